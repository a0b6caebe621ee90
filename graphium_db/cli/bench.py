"""`graphium bench-retrieval`: what searches find, measured on conversations that the user brings."""

from __future__ import annotations

import json
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, BinaryIO
from uuid import UUID

import click
from rich.progress import Progress

from graphium_db import retrieval
from graphium_db.cli.options import Session, admin_options, examples
from graphium_db.cli.output import as_json as written
from graphium_db.cli.output import counted, done, print_json, progress_bar, table
from graphium_db.client import Graphium
from graphium_db.errors import BadArgumentError
from graphium_db.models import FiledStatementInput
from graphium_db.retrieval import CUTOFFS, Answer, Conversation, Score, Turn

# As many candidates are compared for 50 hits as for 10 (fusion_pool), so the first ten are those of an agent who asks
# for ten. The others are for sessions: the tenth mostly comes before the fiftieth hit.
HITS = 50
BATCH = 256


@dataclass(frozen=True, slots=True)
class Part:
    """The answers to all questions, asked in one way."""

    name: str
    answers: list[Answer]

    def milliseconds(self, percent: int) -> float:
        return retrieval.percentile([answer.milliseconds for answer in self.answers], percent)


@click.command(
    "bench-retrieval",
    short_help="Measure what searches find in conversations.",
    epilog=examples(
        """
graphium bench-retrieval locomo10.json
graphium bench-retrieval longmemeval_s.json --limit 20 -o figures.json
"""
    ),
)
@click.argument("dataset", type=click.File("rb"))
@click.option("--limit", type=click.IntRange(min=1), help="Only the first conversations of the file.")
@click.option(
    "-o", "--output", type=click.File("w", encoding="utf-8", lazy=True), help="Write figures and ranks there, as JSON."
)
@admin_options
def bench_retrieval(session: Session, dataset: BinaryIO, limit: int | None, output: Any, as_json: bool) -> None:
    """Measure what searches find, on a file in the form of LoCoMo or LongMemEval.

    The conversations go into a tenant of their own, which is dropped at the end: each is a family, its speakers are
    specimens, its sessions sources. Each question is asked as an agent would, by one search_context of the Python
    client: with the family of its conversation, then without. Printed are means over questions, in percent: the share
    of the turns, and of the sessions, with the answer that are among the first 1, 5 and 10. A session ranks by its best
    turn. The login is a member of graphium_admin.
    """
    try:
        data = json.loads(dataset.read().decode("utf-8-sig"))
    except ValueError as error:
        raise BadArgumentError(f"the file is not JSON: {error}") from None
    conversations = retrieval.read(data)[:limit]
    if not any(conversation.questions for conversation in conversations):
        raise BadArgumentError("the file has no question whose evidence is in it", "There is nothing to measure.")
    with _scratch(session) as memory:
        statements, parts = measure(memory, conversations)
    figures = {
        "conversations": len(conversations),
        "turns": sum(len(conversation.turns) for conversation in conversations),
        "statements": statements,
        "left_out": sum(conversation.left_out for conversation in conversations),
        "asked": [
            {
                "where": part.name,
                "milliseconds": {"p50": part.milliseconds(50), "p95": part.milliseconds(95)},
                "scores": {name: asdict(score) for name, score in retrieval.scores(part.answers)},
                "answers": part.answers,
            }
            for part in parts
        ],
    }
    if output is not None:
        output.write(written(figures) + "\n")
    if as_json:
        print_json(figures)
        return
    done(f"{counted(len(conversations), 'conversation')}, {counted(statements, 'statement')}")
    if len(conversations) == 1:
        done("Its family is all there is: searched once. A file of several is searched without a family, too.")
    for part in parts:
        p50, p95 = part.milliseconds(50), part.milliseconds(95)
        done("")
        done(f"{part.name}; a call takes {p50:.1f} ms, 95 % at most {p95:.1f}")
        _print(retrieval.scores(part.answers))


@contextmanager
def _scratch(session: Session) -> Iterator[Graphium]:
    """The client of a new tenant, which is dropped at the end: after an error and Ctrl-C, too."""
    slug = f"bench-retrieval-{secrets.token_hex(8)}"
    with session.admin() as admin, replace(session, tenant=slug).admin() as memory:
        try:
            admin.create_tenant(slug, memory.embedder.name, memory.embedder.dimensions)
            yield memory
        finally:
            if slug in [tenant.slug for tenant in admin.list_tenants()]:
                admin.drop_tenant(slug)


def measure(memory: Graphium, conversations: Sequence[Conversation]) -> tuple[int, list[Part]]:
    """How many statements the turns became, and the answers, by where was searched."""
    asked = sum(len(conversation.questions) for conversation in conversations)
    parts = [Part("In the family of the conversation", [])]
    if len(conversations) > 1:
        parts.append(Part("In all families", []))
    with progress_bar() as progress:
        said = _ingest(memory, conversations, progress)
        for part in parts:
            task = progress.add_task(part.name, total=asked)
            for conversation in conversations:
                for question in conversation.questions:
                    began = time.perf_counter()
                    hits = memory.search_context(
                        question.text,
                        HITS,
                        families=[conversation.name] if part is parts[0] else None,
                        now=conversation.ended_at,
                    )
                    took = 1000 * (time.perf_counter() - began)
                    found = [said[hit.statement_id] for hit in hits]
                    part.answers.append(retrieval.answer(conversation, question, found, took))
                    progress.advance(task)
    return len(said), parts


def _ingest(
    memory: Graphium, conversations: Sequence[Conversation], progress: Progress
) -> dict[UUID, list[tuple[Conversation, Turn]]]:
    """Of each statement the turns that it is: several, where the same was said again."""
    task = progress.add_task("Ingest", total=sum(len(conversation.turns) for conversation in conversations))
    said: dict[UUID, list[tuple[Conversation, Turn]]] = defaultdict(list)
    for conversation in conversations:
        for start in range(0, len(conversation.turns), BATCH):
            turns = conversation.turns[start : start + BATCH]
            rows = memory.ingest_many([_statement(conversation, turn) for turn in turns])
            for turn, row in zip(turns, rows, strict=True):
                said[row.statement_id].append((conversation, turn))
            progress.advance(task, len(turns))
    return said


def _statement(conversation: Conversation, turn: Turn) -> FiledStatementInput:
    return {
        "family": conversation.name,
        "genus": "speakers",
        "specimen": turn.speaker,
        "content": turn.text,
        "occurred_at": turn.occurred_at,
        "source": f"{conversation.name} {turn.session}",
        "position": turn.position,
    }


def _print(scores: Sequence[tuple[str, Score]]) -> None:
    columns = ["turn@1", "@5", "@10", "session@1", "@5", "@10"]
    rows = [
        [
            name,
            str(score.questions),
            *(percent(score.turn[k]) if score.turn else "—" for k in CUTOFFS),
            *(percent(score.session[k]) for k in CUTOFFS),
        ]
        for name, score in scores
    ]
    table("category", "asked", *columns, rows=rows, right=["asked", *columns])
    overall = scores[-1][1]
    done("one of the sessions: " + ", ".join(f"{percent(overall.any_session[k])} @{k}" for k in CUTOFFS))
    if overall.turn_error:
        done(f"standard error of turn@10: {percent(overall.turn_error[10])}")


def percent(share: float) -> str:
    return f"{100 * share:.1f}"
