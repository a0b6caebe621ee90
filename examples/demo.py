"""From a clean machine to a memory that is searched, woken and traversed. `make demo` runs it; it needs no arguments.
With `--data FOLDER` its server has its data there.

Everything printed below a heading is what the functions returned.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from graphium_db import Graphium, GraphiumError, classify, server
from graphium_db.cli.output import json_value, path, shown, statement_list
from graphium_db.models import IngestedStatement, SearchHit
from graphium_db.splitting import split_sentences

TENANT = "graphium-demo"
"""Of this program alone: each run drops it and makes it anew."""
CONVERSATION = Path(__file__).with_name("conversation.jsonl")
TYPES = ("preference", "decision", "discovery", "advice", "event", "fact")
out = Console(highlight=False, width=None if sys.stdout.isatty() else 100)


def heading(number: int, title: str, call: str = "") -> None:
    out.print()
    out.rule(Text(f"{number}  {title}", style="bold"), align="left", style="dim")
    if call:
        out.print(Text(call, style="dim"))
    out.print()


def show_columns(*rows: tuple[Text, ...]) -> None:
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*row)
    out.print(grid)


def show_hits(hits: list[SearchHit]) -> None:
    if not hits:
        out.print("Nothing found.")
    statement_list(
        (
            (
                [str(hit.rank), f"{hit.score:.2f}"],
                hit.content,
                [
                    (f"↔ {hit.symbiosis_kind}" if hit.is_symbiosis else "", "bold yellow"),
                    (path(hit.family, hit.genus, hit.specimen), "cyan"),
                    (f"{hit.occurred_at:%Y-%m-%d}" if hit.occurred_at else "", "dim"),
                    (f"for {', '.join(hit.required_scopes)}" if hit.required_scopes else "", "yellow"),
                ],
            )
            for hit in hits
        ),
        out,
    )


def ingest(memory: Graphium, turns: list[dict[str, Any]]) -> list[tuple[str, IngestedStatement]]:
    """One call a turn: its sentences, from its session, with its speaker."""
    stored: list[tuple[str, IngestedStatement]] = []
    progress = Console(stderr=True)
    for turn in track(turns, "ingest", console=progress, transient=True, disable=not progress.is_terminal):
        sentences = split_sentences(turn["text"])
        rows = memory.ingest_context(
            turn["family"],
            turn["genus"],
            turn["specimen"],
            [{"content": sentence, "metadata": {"speaker": turn["speaker"]}} for sentence in sentences],
            turn.get("required_scopes"),
            source=turn["session"],
            occurred_at=turn["occurred_at"],
        )
        stored += zip(sentences, rows, strict=True)
    return stored


def main(data: Path | None = None) -> None:
    began = time.perf_counter()
    turns = [json.loads(line) for line in CONVERSATION.read_text(encoding="utf-8").splitlines()]

    heading(1, "A database", "graphium up")
    up = server.up(data)
    server.remember(Path(up.connection.data))
    out.print(f"PostgreSQL {'started' if up.started else 'was running'} on 127.0.0.1:{up.connection.port}.")
    out.print(f"{len(up.deployed.migrations)} migrations and {len(up.deployed.files)} files of functions deployed.")
    with Graphium(up.connection.operator_dsn) as operator:
        if TENANT in [tenant.slug for tenant in operator.list_tenants()]:
            operator.drop_tenant(TENANT)
        operator.create_tenant(TENANT)
    out.print(f"A fresh tenant: {TENANT}. Each run of this demo makes it anew.")

    with (
        Graphium(up.connection.dsn, tenant=TENANT, scopes=["hr"]) as lead,
        Graphium(up.connection.dsn, tenant=TENANT) as colleague,
        Graphium(up.connection.operator_dsn, tenant=TENANT) as operator,
    ):
        heading(2, "A conversation becomes memory", 'ingest_context(family, genus, specimen, ["…", "…"])')
        stored = ingest(lead, turns)
        counts: Counter[str] = Counter(row.memory_type for _, row in stored)
        preloaded = sum(row.layer_kind == "preloaded" for _, row in stored)
        out.print(f"{len(turns)} turns, {len(stored)} sentences, {preloaded} of them for the start of every session.\n")
        for memory_type in TYPES:
            out.print(Text(f"{counts[memory_type]:3} {memory_type}", style="bold magenta"))
            sentences = [text for text, row in stored if row.memory_type == memory_type][:3]
            show_columns(*((Text(f"    {classify(s).rule:18}", style="dim"), Text(shown(s))) for s in sentences))

        heading(3, "Told again, it is the same memory")
        again = ingest(lead, turns[:8])
        known = sum(row.deduplicated for _, row in again)
        out.print(f"The first 8 turns once more: {known} of {len(again)} sentences known, {len(again) - known} new.\n")
        wordings = ["I prefer small pull requests that one person can review in ten minutes!!",
                    "i prefer  small pull requests that one person can review in ten minutes",
                    "I prefer small pull requests that one person can review in twelve minutes."]  # fmt: skip
        rows = lead.ingest_context("relationships", "team", "Tomasz", wordings)
        show_columns(
            *(
                (
                    Text(
                        f"known (same text after folding), cosine {row.similarity:.4f}" if row.deduplicated else "new",
                        style="bold",
                    ),
                    Text(wording),
                )
                for wording, row in zip(wordings, rows, strict=True)
            )
        )
        lead.forget_context([row.statement_id for row in rows if not row.deduplicated])

        heading(
            4,
            "Search, and a hop to what belongs with it",
            'search_context("When is the public launch?", match_count=3)',
        )
        operator.link_symbiosis(
            "related_to",
            {"family": "goals", "genus": "this year", "specimen": "Summer launch"},
            {"family": "projects", "genus": "Harbour", "specimen": "Timetable importer"},
            note="no launch without timetables",
        )
        show_hits(colleague.search_context("When is the public launch?", match_count=3, symbiosis_count=2))

        budget = 120
        heading(5, "What an agent should know when it wakes up", f"wake_up_context(token_budget={budget})")
        woken = colleague.wake_up_context(budget)
        statement_list(
            (
                (
                    [f"{row.running_tokens}"],
                    row.content,
                    [(path(row.family, row.genus, row.specimen), "cyan"), (row.memory_type, "magenta")],
                )
                for row in woken
            ),
            out,
        )
        out.print(f"\n{woken[-1].running_tokens if woken else 0} of {budget} tokens.")

        heading(6, "Recall: all about one subject, newest first", 'recall_context(specimen="Ines", page_size=4)')
        statement_list(
            (
                (
                    [f"{row.occurred_at:%Y-%m-%d}" if row.occurred_at else ""],
                    row.content,
                    [(path(row.family, row.genus, row.specimen), "cyan"), (row.memory_type, "magenta")],
                )
                for row in colleague.recall_context(specimen="Ines", page_size=4)
            ),
            out,
        )

        query = "MATCH (f:Family)-[:HAS_GENUS]->(g)-[:HAS_SPECIMEN]->(s) RETURN {family: f.name, specimen: s.name}"
        heading(7, "The same taxonomy as a graph, in Cypher", query)
        for row in colleague.cypher(query):
            out.print(Text(json_value(row)))

        question = "What was decided about Tomasz's salary?"
        heading(8, "Two callers, one question", f'search_context("{question}", match_count=2, follow_symbiosis=False)')
        for name, memory in (("A colleague, without scopes", colleague), ("The lead, who holds the scope hr", lead)):
            out.print(Text(name, style="bold"))
            show_hits(memory.search_context(question, match_count=2, follow_symbiosis=False))
            out.print()

    out.rule(style="dim")
    out.print(f"That took {time.perf_counter() - began:.1f} s. The server is still up; go on with it:\n")
    bin_directory = Path(sys.executable).parent
    for command in (
        f'{bin_directory}/graphium search --tenant {TENANT} "What annoys Mara?"',
        f"{bin_directory}/graphium tree --tenant {TENANT}",
        f"{bin_directory}/graphium up --stop",
    ):
        out.print(Text(f"  {command}"), soft_wrap=True)


def is_up(data: Path | None) -> bool:
    try:
        server.saved_connection(data)
    except GraphiumError:
        return False
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What the memory does, shown on the embedded server.")
    parser.add_argument("--data", type=Path, help="directory of its data; default: that of the last `graphium up`")
    data = parser.parse_args().data
    was_up = is_up(data)
    try:
        main(data)
    except GraphiumError as error:
        if not was_up:
            server.stop(data)
        folder = (data or server.current_data()).resolve()
        sys.exit(
            f"Error: {error}\n\n"
            f"The server's data is in {folder}. Another folder, for the demo alone: make demo DATA=./demo-data"
        )
