"""The commands that use the memory as an application or a principal does."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import click
from rich.text import Text
from rich.tree import Tree

from graphium_db import classification
from graphium_db.cli import records
from graphium_db.cli.options import (
    Session,
    caller_options,
    examples,
    filter_options,
    json_option,
    or_none,
    required_scope_option,
)
from graphium_db.cli.output import (
    counted,
    done,
    is_map_of_values,
    json_value,
    listed,
    path,
    print_json,
    put,
    say,
    shown,
    statement_list,
    table,
)
from graphium_db.errors import BadArgumentError, BadEmbeddingError, BadStatementError
from graphium_db.models import Caller, RecalledStatement, SearchHit

SHOWN_ROWS = 40  # of an ingest; longer ones are summed up


@click.command(
    short_help="Store sentences.",
    epilog=examples(
        """
graphium ingest -f people -g team -s Aisha "I prefer written feedback."
graphium ingest -f notes -g meetings -s Billing - < minutes.txt
graphium ingest --jsonl conversation.jsonl
"""
    ),
)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("-f", "--family", help="Family; made when new.")
@click.option("-g", "--genus", help="Genus in the family; made when new.")
@click.option("-s", "--specimen", help="Specimen in the genus; made when new.")
@click.option("--jsonl", type=click.File("rb"), help="Statements, one JSON object a line; - is stdin.")
@click.option("--whole", is_flag=True, help="Keep each TEXT as one statement; by default it is split into sentences.")
@required_scope_option(help="Audience: who may see it; repeatable.")
@click.option("--source", help="The conversation or document that it came from.")
@click.option("--occurred-at", metavar="TIME", help="When it happened.")
@click.option(
    "--type", "memory_type", type=click.Choice(classification.MEMORY_TYPES), help="Instead of the classification."
)
@click.option(
    "--layer", "layer_kind", type=click.Choice(classification.LAYER_KINDS), help="Instead of the classification."
)
@caller_options
def ingest(
    session: Session,
    texts: tuple[str, ...],
    jsonl: Any,
    whole: bool,
    required_scopes: tuple[str, ...],
    as_json: bool,
    **defaults: str | None,
) -> None:
    """Store sentences.

    Each TEXT is split into sentences; - reads a text from stdin. With --jsonl each line is a statement: family, genus,
    specimen and content, and as wanted memory_type, layer_kind, required_scopes, occurred_at, source, position,
    metadata, embedding, exact_only. Options fill what lines leave out.

    Lines are stored in batches, and a batch or none of it: after an error, correct the line and send the file again;
    what was stored already is recognised.
    """
    if bool(texts) == (jsonl is not None):
        raise click.UsageError("Give TEXT or --jsonl, one of them.")
    missing = [f"--{name}" for name in ("family", "genus", "specimen") if texts and defaults[name] is None]
    if missing:
        raise click.UsageError(f"Give {', '.join(missing)}, too: what TEXT is about.")
    source = records.from_jsonl(jsonl) if jsonl is not None else records.from_texts(texts, whole)
    rows: list[records.Stored] = []
    with session.memory() as memory, contextlib.nullcontext() if jsonl is not None else _sentences():
        for batch in records.ingest(memory, source, defaults, or_none(required_scopes), total=records.size(jsonl)):
            rows += batch
    if as_json:
        print_json(rows)
        return
    if len(rows) <= SHOWN_ROWS:
        statement_list(
            (
                ["known" if row.deduplicated else "new"],
                row.content,
                [
                    (path(row.family, row.genus, row.specimen), "cyan"),
                    (f"{row.memory_type}, {row.layer_kind}", "magenta"),
                    (_audience(row.required_scopes), "yellow"),
                ],
            )
            for row in rows
        )
    known = sum(row.deduplicated for row in rows)
    types = ", ".join(f"{count} {name}" for name, count in Counter(row.memory_type for row in rows).most_common())
    done(
        f"{counted(len(rows), 'statement')}: {len(rows) - known} new, {known} known before"
        + (f" ({types})" if types else "")
    )


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """What is wrong with a line is wrong with a sentence, or with an option that was given for all."""
    try:
        yield
    except (BadStatementError, BadEmbeddingError, BadArgumentError) as error:
        line, _, message = error.message.partition(": ")
        if not line.startswith("line "):
            raise
        if not message.startswith(("occurred_at ", "source ", "family ", "genus ", "specimen ")):
            message = f"sentence {line.removeprefix('line ')}: {message}"
        raise type(error)(message, error.hint) from error


@click.command(
    short_help="Find the statements that answer a query.",
    epilog=examples(
        """
graphium search "How does Aisha like to get feedback?"
graphium search "still open?" --type decision --since 2026-03-01 --json
graphium search "What did Aisha say last week?" --now 2026-03-09 --explain
"""
    ),
)
@click.argument("query")
@click.option("-n", "--count", "match_count", default=10, show_default=True, help="How many primary hits.")
@click.option("-f", "--family", "families", multiple=True, help="Only this family; repeatable.")
@click.option("-g", "--genus", "genera", multiple=True, help="Only this genus; repeatable.")
@click.option("-s", "--specimen", "specimens", multiple=True, help="Only this specimen; repeatable.")
@filter_options
@click.option("--min-similarity", type=float, help="Least cosine of a hit.")
@click.option("--symbiosis-count", default=5, show_default=True, help="How many hits over cross-family edges.")
@click.option("--no-symbiosis", is_flag=True, help="Do not follow cross-family edges.")
@click.option("--words-only", is_flag=True, help="Search by words alone; needs no embedding model.")
@click.option(
    "--now", metavar="TIME", help="What 'last week' in QUERY is relative to; by default the time of the call."
)
@click.option("--explain", is_flag=True, help="Show why each hit was found.")
@click.option("--ids", is_flag=True, help="Show statement ids.")
@caller_options
def search(
    session: Session, query: str, no_symbiosis: bool, words_only: bool, ids: bool, as_json: bool, **filters: Any
) -> None:
    """Find the statements that answer QUERY, best first, and what cross-family edges lead to from there."""
    for name in ("families", "genera", "specimens", "memory_types", "layer_kinds"):
        filters[name] = or_none(filters[name])
    with session.memory() as memory:
        hits = memory.search_context(
            query, query_embedding=None if words_only else "auto", follow_symbiosis=not no_symbiosis, **filters
        )
    if as_json:
        print_json(hits)
    elif not hits:
        say("Nothing found.")
    else:
        statement_list(
            ([str(hit.rank), f"{hit.score:.2f}"], hit.content, [*_edge(hit), *_particulars(hit, ids), *_why(hit)])
            for hit in hits
        )


@click.command(
    short_help="List statements by where they are.",
    epilog=examples(
        """
graphium recall -f relationships -s Aisha
graphium recall --type decision --since 2026-03-01 --page-size 100
"""
    ),
)
@click.option("-f", "--family", help="Only this family.")
@click.option("-g", "--genus", help="Only this genus.")
@click.option("-s", "--specimen", help="Only this specimen.")
@click.option("--id", "statement_ids", multiple=True, help="Only this statement; repeatable.")
@filter_options
@click.option("--page-size", default=50, show_default=True, help="How many at once.")
@click.option("--after", help="The last id of the page before.")
@click.option("--ids", is_flag=True, help="Show statement ids.")
@caller_options
def recall(session: Session, ids: bool, as_json: bool, **filters: Any) -> None:
    """List statements by where they are, newest first."""
    for name in ("statement_ids", "memory_types", "layer_kinds"):
        filters[name] = or_none(filters[name])
    with session.memory() as memory:
        rows = memory.recall_context(**filters)
    if as_json:
        print_json(rows)
        return
    statement_list(([], row.content, _particulars(row, ids)) for row in rows)
    if not rows:
        say("Nothing found.")
    elif len(rows) == filters["page_size"]:
        say(f"There may be more: --after {rows[-1].statement_id}")


@click.command(
    "wake-up",
    short_help="What an agent should know when it starts.",
    epilog=examples(
        """
graphium wake-up --budget 400
graphium wake-up -s Aisha --text > system-prompt-memory.txt
"""
    ),
)
@click.option("--budget", "token_budget", default=800, show_default=True, help="Most tokens (characters / 4).")
@click.option("-f", "--family", "families", multiple=True, help="Only this family; repeatable.")
@click.option("-s", "--specimen", "specimens", multiple=True, help="Only this specimen; repeatable.")
@click.option("--text", "text_only", is_flag=True, help="Print the sentences alone, for a prompt.")
@caller_options
def wake_up(
    session: Session,
    token_budget: int,
    families: tuple[str, ...],
    specimens: tuple[str, ...],
    text_only: bool,
    as_json: bool,
) -> None:
    """What an agent should know when its session starts, most useful first, within a token budget.

    With --text each statement is one line, without whose it is: name the specimen (-s) where several people say "I". A
    line break inside it becomes a space (--json keeps it). Characters that act on a terminal are replaced where stdout
    is one, and go through a pipe as they are.
    """
    with session.memory() as memory:
        rows = memory.wake_up_context(token_budget, or_none(families), or_none(specimens))
    if as_json:
        print_json(rows)
    elif text_only:
        for row in rows:
            sys.stdout.write((shown(row.content) if sys.stdout.isatty() else " ".join(row.content.splitlines())) + "\n")
    else:
        statement_list(
            (
                [f"{row.running_tokens}"],
                row.content,
                [(path(row.family, row.genus, row.specimen), "cyan"), (row.memory_type, "magenta")],
            )
            for row in rows
        )
        done(f"{rows[-1].running_tokens if rows else 0} of {token_budget} tokens")


@click.command(short_help="Delete statements.", epilog=examples("graphium forget 0199e3a0-6a0b-7c3e-9d53-0c9f5d2f7a11"))
@click.argument("statement_ids", nargs=-1, required=True, type=click.UUID, metavar="ID...")
@caller_options
def forget(session: Session, statement_ids: tuple[UUID, ...], as_json: bool) -> None:
    """Delete statements by id (search --ids and recall --ids show them)."""
    with session.memory() as memory:
        deleted = memory.forget_context(statement_ids)
    if as_json:
        print_json({"deleted": deleted})
    else:
        done(f"{deleted} deleted")


@click.command(
    short_help="Change who may see something.",
    epilog=examples(
        """
graphium scopes statement --open 0199e3a0-6a0b-7c3e-9d53-0c9f5d2f7a11
graphium scopes family --cascade --required-scope hr \\
  0199e3a0-5b11-7d8f-8f0a-2b9f0c4d1e22
"""
    ),
)
@click.argument("kind", type=click.Choice(["family", "specimen", "statement"]))
@click.argument("ids", nargs=-1, required=True, type=click.UUID, metavar="ID...")
@required_scope_option(help="Who may see it from now on; repeatable.")
@click.option("--open", "is_open", is_flag=True, help="Everyone in the tenant may see it from now on.")
@click.option("--cascade", is_flag=True, help="The same for all inside it that you see.")
@caller_options
def scopes(
    session: Session,
    kind: Any,
    ids: tuple[UUID, ...],
    required_scopes: tuple[str, ...],
    is_open: bool,
    cascade: bool,
    as_json: bool,
) -> None:
    """Change who may see families, specimens or statements (tree --ids, recall --ids show ids): all of them or none.

    With --cascade all that is inside and that you see gets that one audience, also what was narrower before: a family
    with --cascade --open opens the specimens and statements in it that were for few. What is hidden from you stays as
    it is. The count is of the families, specimens and statements whose audience changed.
    """
    if bool(required_scopes) == is_open:
        raise click.UsageError("Give --required-scope or --open, one of them.")
    with session.memory() as memory:
        changed = memory.set_many_required_scopes(kind, ids, required_scopes, cascade)
    if as_json:
        print_json({"changed": changed})
    else:
        done(f"{changed} changed, what is inside included" if cascade else f"{changed} changed")


@click.command(
    short_help="Show families, genera and specimens.", epilog=examples("graphium tree\ngraphium tree --ids --json")
)
@click.option("--ids", is_flag=True, help="Show ids.")
@caller_options
def tree(session: Session, ids: bool, as_json: bool) -> None:
    """Families, genera and specimens, with the number of statements that the caller may see."""
    with session.memory() as memory:
        rows = memory.context_tree()
    if as_json:
        print_json(rows)
        return

    def label(name: str | None, id: UUID | None) -> str:
        return f"{shown(name)}  {id}" if ids and id else shown(name)

    root = Tree("", hide_root=True, guide_style="dim")
    nodes: dict[tuple[UUID | None, ...], Tree] = {}
    for row in rows:
        levels = [(row.family, row.family_id), (row.genus, row.genus_id), (row.specimen, row.specimen_id)]
        while len(levels) > 1 and levels[-1][1] is None:
            levels.pop()
        parent = root
        key: tuple[UUID | None, ...] = ()
        for depth, (name, id) in enumerate(levels, start=1):
            key = (*key, id)
            if key not in nodes:
                nodes[key] = parent.add(Text(label(name, id), style="bold" if depth == 1 else ""))
            parent = nodes[key]
        if row.statements or row.specimen_id is not None:
            parent.label = Text.assemble(parent.label, f"  {row.statements}")  # type: ignore[arg-type]
    if rows:
        put(root)
    else:
        say("Nothing here that you may see.")


@click.command(
    short_help="Read the graph in Cypher.",
    epilog=examples(
        """
graphium cypher "MATCH (f:Family)-[:HAS_GENUS]->(g) RETURN f.name"
graphium cypher 'MATCH (s:Specimen) WHERE s.name = $name RETURN s' \\
  --params '{"name": "Aisha"}'
"""
    ),
)
@click.argument("query")
@click.option("--params", default="{}", help="Values for $names in the query, as a JSON object.")
@caller_options
def cypher(session: Session, query: str, params: str, as_json: bool) -> None:
    """Read the tenant's graph of families, genera and specimens. One returned column, or one map."""
    try:
        values = json.loads(params)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--params") from None
    if not isinstance(values, dict):
        raise click.BadParameter("not a JSON object", param_hint="--params")
    with session.memory() as memory:
        rows = memory.cypher(query, values)
    if as_json:
        print_json(rows)
    elif rows and all(is_map_of_values(row) for row in rows):
        columns = list(dict.fromkeys(key for row in rows for key in row))
        table(*columns, rows=([_cell(row.get(column)) for column in columns] for row in rows))
    else:
        for row in rows:
            done(json_value(row))


@click.command(
    short_help="Say what type and layer sentences get.",
    epilog=examples(
        """
graphium classify "We decided to ship on Monday."
cat sentences.txt | graphium classify
"""
    ),
)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@json_option
def classify(texts: tuple[str, ...], as_json: bool) -> None:
    """What type and layer sentences get, and by which rule.

    Without TEXT it reads lines from stdin. Needs no database.
    """
    sentences: Sequence[str] = texts or [line.rstrip("\r") for line in records.stdin_text().split("\n") if line.strip()]
    results = [(sentence, classification.classify(sentence)) for sentence in sentences]
    if as_json:
        print_json([{"content": sentence, **_fields(result)} for sentence, result in results])
    else:
        table(
            "type",
            "layer",
            "rule",
            "sentence",
            rows=([r.memory_type, r.layer_kind, r.rule or "", shown(sentence)] for sentence, r in results),
        )


@click.command(
    short_help="Label again what an older rule set labelled.",
    epilog=examples("graphium reclassify --plan\ngraphium reclassify --apply"),
)
@click.option("--plan", "plan", is_flag=True, help="Say what would change, by rule, and change nothing.")
@click.option("--apply", "apply", is_flag=True, help="Do it, batch by batch.")
@click.option(
    "--batch-size", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Of a transaction."
)
@click.option(
    "--samples", type=click.IntRange(0, 100), default=3, show_default=True, help="With --plan: of each change."
)
@caller_options
def reclassify(session: Session, plan: bool, apply: bool, batch_size: int, samples: int, as_json: bool) -> None:
    """Label again, by the rules that are deployed, what you see and older rules labelled.

    Labels that a caller chose stay as they are (so do those of `import`, which brings them). Interrupted, it goes on
    where it ended.
    """
    if plan == apply:
        raise click.UsageError("Give --plan or --apply, one of them.")
    with session.memory() as memory:
        if plan:
            changes = memory.plan_reclassification(samples)
            if as_json:
                print_json(changes)
                return
            changed = [
                c
                for c in changes
                if (c.memory_type_before, c.layer_kind_before) != (c.memory_type_after, c.layer_kind_after)
            ]
            for c in changed:
                before = f"{c.rule_before or 'no rule'} ({c.memory_type_before}, {c.layer_kind_before})"
                done(f"{c.statements}: {before} → {c.rule_after} ({c.memory_type_after}, {c.layer_kind_after})")
                for sample in c.samples:
                    done(f"    {sample}")
            done(f"{sum(c.statements for c in changed)} would get other labels")
            _say_whose(memory.caller())
            return
        statements = relabelled = 0
        batch = memory.reclassify(batch_size)
        while batch.statements:
            statements, relabelled = statements + batch.statements, relabelled + batch.changed
            batch = memory.reclassify(batch_size, batch.last_id)
        if as_json:
            print_json({"statements": statements, "changed": relabelled})
        else:
            done(f"{relabelled} of {statements} got other labels")
            _say_whose(memory.caller())


def _say_whose(caller: Caller) -> None:
    if caller.scopes is None:
        done(f"Looked at: all of {caller.tenant}.")
    else:
        held = f"the scopes {listed(caller.scopes)}" if caller.scopes else "no scopes"
        done(f"Looked at: what {caller.tenant} sees with {held}. For statements of other audiences give their --scope.")


def _fields(result: Any) -> dict[str, Any]:
    return {"memory_type": result.memory_type, "layer_kind": result.layer_kind, "rule": result.rule}


def _cell(value: Any) -> str:
    return shown(value) if isinstance(value, str) else "" if value is None else json_value(value)


def _audience(required_scopes: Sequence[str]) -> str:
    return "" if not required_scopes else f"for {listed(required_scopes)}"


def _edge(hit: SearchHit) -> list[tuple[str, str]]:
    return [(f"↔ {hit.symbiosis_kind}", "bold yellow")] if hit.is_symbiosis else []


def _why(hit: SearchHit) -> list[tuple[str, str]]:
    """Of an explanation what is not shown anyway: places by meaning and by words, and what was added to the score."""
    why = hit.explanation or {}
    parts = []
    if "dense_rank" in why:
        parts.append(f"by meaning no. {why['dense_rank']} ({why['similarity']:.2f})")
    if "lexical_rank" in why:
        nearby = [f"nearby {word}" for word in why.get("words_nearby", ())]
        parts.append(f"by words no. {why['lexical_rank']} ({', '.join([*why.get('words', ()), *nearby])})")
    for name in ("named_specimen", "named_family", "named_time", "question", "source"):
        if name in why:
            parts.append(f"{name.replace('_', ' ')} {why[name]:+.2f}")
    return [("; ".join(parts), "dim")]


def _particulars(row: SearchHit | RecalledStatement, ids: bool) -> list[tuple[str, str]]:
    when: datetime | None = row.occurred_at
    return [
        (path(row.family, row.genus, row.specimen), "cyan"),
        (f"{row.memory_type}, {row.layer_kind}", "magenta"),
        (when.strftime("%Y-%m-%d") if when else "", "dim"),
        (_audience(row.required_scopes), "yellow"),
        ("superseded" if row.is_superseded else "", "red"),
        (f"seen again {row.access_count} ×" if row.access_count else "", "dim"),
        (str(row.statement_id) if ids else "", "dim"),
    ]
