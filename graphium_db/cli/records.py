"""Statements in and out as JSON Lines: what `ingest`, `export` and `import` share."""

from __future__ import annotations

import json
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, cast
from uuid import UUID

import click
import psycopg

from graphium_db import calls, inputs
from graphium_db.cli.options import (
    Session,
    caller_options,
    examples,
    filter_options,
    or_none,
    required_scope_option,
)
from graphium_db.cli.output import counted, done, listed, path, print_json, progress_bar, say
from graphium_db.client import Graphium
from graphium_db.errors import BadArgumentError, BadEmbeddingError, BadStatementError, GraphiumError
from graphium_db.models import FiledStatementInput, StatementInput
from graphium_db.printable import escaped

BATCH = 256
"""Statements embedded at once: enough to keep the model busy, few enough for the progress bar to move."""
WINDOW, WINDOW_BYTES = 16_384, 64 * 2**20
"""How many lines that bring their vectors are sent by family: the more, the fewer families a call has."""
CALL = 2000
LANES = 2
"""How many calls run at once. Two cores or twenty: the server does the work, this process only reads and encodes."""
PAGE = 1000
_TAXA = ("family", "genus", "specimen")
_TAXON_SCOPES = ("family_scopes", "specimen_scopes")
TOLD = 5


@dataclass(slots=True)
class Record:
    """One line (or text): its number from 1, its fields, its length, and whether its vector was made here."""

    line: int
    fields: dict[str, Any]
    size: int = 0
    embedded: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one line."""

    line: int
    family: str
    genus: str
    specimen: str
    content: str
    statement_id: UUID
    deduplicated: bool
    similarity: float | None
    memory_type: str
    layer_kind: str
    required_scopes: tuple[str, ...]


def stdin_text() -> str:
    """All of stdin, which is UTF-8 whatever the terminal is; a byte order mark may come first."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadArgumentError(f"stdin is not UTF-8: {error.reason} at byte {error.start + 1}") from None


def from_texts(texts: Sequence[str], whole: bool) -> Iterator[Record]:
    """Texts as records; "-" is the text on stdin."""
    sentences: list[str] = []
    for text in texts:
        body = stdin_text() if text == "-" else text
        sentences += [body] if whole else [item["content"] for item in inputs.statement_inputs(None, body, None, None)]
    yield from (Record(number, {"content": sentence}) for number, sentence in enumerate(sentences, start=1))


def from_jsonl(lines: Iterable[bytes]) -> Iterator[Record]:
    """Lines of UTF-8 (a byte order mark may come first) as records; empty lines are passed over."""
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            fields = json.loads(text)
        except UnicodeDecodeError as error:
            raise BadStatementError(f"line {number} is not UTF-8: {error.reason}") from None
        except ValueError as error:
            raise BadStatementError(f"line {number} is not JSON: {error}") from None
        except RecursionError:
            raise BadStatementError(f"line {number} is nested too deeply") from None
        if not isinstance(fields, dict):
            raise BadStatementError(f"line {number} is not a JSON object")
        yield Record(number, fields, len(line))


def size(file: BinaryIO | None) -> int | None:
    """How many lines a file has, where it can be read twice."""
    if file is None or not file.seekable():
        return None
    count = sum(1 for _ in file)
    file.seek(0)
    return count


def ingest(
    memory: Graphium,
    records: Iterator[Record],
    defaults: Mapping[str, str | None],
    required_scopes: Sequence[str] | None,
    total: int | None = None,
) -> Iterator[list[Stored]]:
    """Store records window by window, with a progress bar on a terminal's stderr. Each window's results are in order.

    A window ends when a batch is to be embedded. While it is sent, the next one is read. After an error some of the
    lines that follow may be stored already.
    """
    with progress_bar() as progress, _Lanes() as lanes:
        task = progress.add_task("ingest", total=total)
        sent: deque[list[Future[list[Stored]]]] = deque()

        def results() -> list[Stored]:
            stored: list[Stored] = []
            for call in sent.popleft():
                rows = call.result()
                stored += rows
                progress.update(task, advance=len(rows))
            stored.sort(key=lambda one: one.line)
            progress.update(task, completed=stored[-1].line)
            return stored

        while window := _window(records):
            for record in window:
                _complete(record, defaults)
            _embed(memory, window)
            sent.append(lanes.send(window, lambda lines: _ingest_lines(memory, lines, required_scopes)))
            if len(sent) > 1:
                yield results()
        while sent:
            yield results()


class _Lanes:
    """Sends calls, some at once. All lines of a family take one lane, so they arrive in their order."""

    def __init__(self) -> None:
        self._lanes = [ThreadPoolExecutor(1) for _ in range(LANES)]
        self._lane_of: dict[str, int] = {}
        self._load = [0] * LANES
        self._sent: list[Future[list[Stored]]] = []

    def __enter__(self) -> _Lanes:
        return self

    def __exit__(self, *_: object) -> None:
        for lane in self._lanes:
            lane.shutdown(cancel_futures=True)

    def send(
        self, window: Sequence[Record], ingest: Callable[[list[Record]], list[Stored]]
    ) -> list[Future[list[Stored]]]:
        """A line that names a source and no place gets the place after those sent before: then nothing overtakes."""
        in_order = any(
            isinstance(record.fields.get("source"), str) and record.fields.get("position") is None for record in window
        )
        if in_order:
            wait(self._sent)
        parts = [list(window)] if in_order else self._by_family(window)
        self._sent = [
            self._lanes[lane].submit(ingest, sorted(lines[start : start + CALL], key=lambda record: record.line))
            for lane, lines in enumerate(parts)
            for start in range(0, len(lines), CALL)
        ]
        if in_order:
            wait(self._sent)
        return self._sent

    def _by_family(self, window: Sequence[Record]) -> list[list[Record]]:
        """The lines of each lane, those of a family together. A new one takes the lane that had fewer lines so far.

        What fits into one call goes in one, so that ids are in the order of the lines.
        """
        lanes = LANES if len(window) > CALL else 1
        families: dict[str, list[Record]] = {}
        for record in window:
            families.setdefault(record.fields["family"], []).append(record)
        parts: list[list[Record]] = [[] for _ in self._lanes]
        for family, lines in families.items():
            lane = self._lane_of.setdefault(family, self._load.index(min(self._load[:lanes])))
            self._load[lane] += len(lines)
            parts[lane] += lines
        return parts


def _window(records: Iterator[Record]) -> list[Record]:
    window: list[Record] = []
    size = missing = 0
    for record in islice(records, WINDOW):
        window.append(record)
        size += record.size
        missing += "embedding" not in record.fields
        if missing == BATCH or size >= WINDOW_BYTES:
            break
    return window


def _complete(record: Record, defaults: Mapping[str, str | None]) -> None:
    """Fill what the line leaves out, and refuse it when a name or the content is still missing or cannot be stored."""
    for name, value in defaults.items():
        if value is not None and record.fields.get(name) is None:
            record.fields[name] = value
    calls.check_statement(f"line {record.line}", record.fields)
    for name in (*_TAXA, "content"):
        value = record.fields.get(name)
        if not isinstance(value, str):
            raise BadStatementError(
                f"line {record.line}: {name} {'is missing' if value is None else f'must be text, got {value!r}'}",
                f"Name it in the line, or for all lines that do not with --{name}."
                if name in _TAXA
                else "Give one sentence.",
            )


def _embed(memory: Graphium, batch: Sequence[Record]) -> None:
    missing = [record for record in batch if "embedding" not in record.fields]
    if missing:
        vectors = memory.embedder.embed([record.fields["content"] for record in missing])
        inputs.set_embeddings([cast(StatementInput, record.fields) for record in missing], vectors)
        for record in missing:
            record.embedded = True


def _ingest_lines(memory: Graphium, lines: list[Record], required_scopes: Sequence[str] | None) -> list[Stored]:
    statements = [cast(FiledStatementInput, record.fields) for record in lines]
    model = memory.embedder.name if any(record.embedded for record in lines) else None
    try:
        rows = memory.ingest_many(statements, required_scopes, embedding_model=model)
    except (BadStatementError, BadEmbeddingError, BadArgumentError) as error:
        statement = re.match(r"statement (\d+)", error.message)
        if statement is None:
            message = f"line {lines[0].line}: {error.message}"
        else:
            message = f"line {lines[int(statement[1]) - 1].line}{error.message[statement.end() :]}"
        raise type(error)(message, error.hint) from error
    return [
        Stored(
            line=record.line,
            **{name: record.fields[name] for name in (*_TAXA, "content")},
            statement_id=row.statement_id,
            deduplicated=row.deduplicated,
            similarity=row.similarity,
            memory_type=row.memory_type,
            layer_kind=row.layer_kind,
            required_scopes=row.required_scopes,
        )
        for record, row in zip(lines, rows, strict=True)
    ]


def exported(memory: Graphium, **filters: Any) -> list[dict[str, Any]]:
    """All that the caller may see, oldest first, as records that `import` takes."""
    audiences = {(row.family, row.genus, row.specimen): row for row in memory.context_tree()}
    records: list[dict[str, Any]] = []
    after: UUID | None = None
    while True:
        page = memory.recall_context(**filters, page_size=PAGE, after=after)
        for row in page:
            when = row.occurred_at or row.created_at
            taxa = audiences.get((row.family, row.genus, row.specimen))
            record = {
                "family": row.family,
                "genus": row.genus,
                "specimen": row.specimen,
                "content": row.content,
                "memory_type": row.memory_type,
                "layer_kind": row.layer_kind,
                "required_scopes": list(row.required_scopes),
                **{name: None if taxa is None else getattr(taxa, name) for name in _TAXON_SCOPES},
                "occurred_at": when.isoformat(),
                "source": row.source,
                "position": row.position,
                "metadata": row.metadata,
            }
            records.append({key: value for key, value in record.items() if value not in (None, {})})
        if len(page) < PAGE:
            return records[::-1]
        after = page[-1].statement_id


@click.command(
    short_help="Write statements as JSON Lines.",
    epilog=examples(
        """
graphium export > memory.jsonl
graphium export -f relationships -o relationships.jsonl
"""
    ),
)
@click.option(
    "-o", "--output", type=click.File("w", encoding="utf-8", lazy=True), default="-", help="File; default: stdout."
)
@click.option("-f", "--family", help="Only this family.")
@click.option("-g", "--genus", help="Only this genus.")
@click.option("-s", "--specimen", help="Only this specimen.")
@filter_options
@caller_options
def export(session: Session, output: Any, as_json: bool, **filters: Any) -> None:
    """Write the statements that the caller may see as JSON Lines, oldest first, for `graphium import`.

    What is not in them: ids, counts, folded wordings, vectors (the import embeds again), symbioses. occurred_at is when
    it happened, or else when it was stored. For a backup use pg_dump.

    With --json: one array instead of lines.
    """
    for name in ("memory_types", "layer_kinds"):
        filters[name] = or_none(filters[name])
    with session.memory() as memory:
        records = exported(memory, **filters)
    if as_json:
        output.write(escaped(json.dumps(records, ensure_ascii=False, indent=2)) + "\n")
    else:
        output.writelines(escaped(json.dumps(record, ensure_ascii=False)) + "\n" for record in records)
    nameless = sum(any(name not in record for name in _TAXA) for record in records)
    if nameless:
        say(
            f"{nameless} of {len(records)} are in a family or specimen whose name you may not see: "
            "import them with -f, -g, -s."
        )


class _Taxa:
    """Makes whatever family or specimen a line names first, with the audiences that the export gives the two.

    No one call makes both with different audiences: so a new family and its specimen are made in a transaction of
    several, on `connection`. Nobody sees a name that is not for him in between, and what is broken off is not made.
    """

    def __init__(self, memory: Graphium, connection: psycopg.Connection[Any]) -> None:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ  # of transactions; single calls begin none
        self._memory = memory
        self._connection = connection
        self._given: dict[tuple[str, ...], set[frozenset[str]]] = {}

    def of(self, records: Iterator[Record], defaults: Mapping[str, str | None], as_exported: bool) -> Iterator[Record]:
        """The same records, after what they name is made; `as_exported` or, where it is new, by the ingest itself."""
        there: set[tuple[str | None, ...]] = set()
        for row in self._memory.context_tree():
            there |= {(row.family,), (row.family, row.genus, row.specimen)}
        for record in records:
            names = tuple(_named(record, defaults))
            scopes = [_scopes(record, name) for name in _TAXON_SCOPES]
            given = [audience for audience in scopes if audience is not None]
            if as_exported and given and len(names) == len(_TAXA):
                for taxon, audience in zip((names[:1], names), scopes, strict=True):
                    if audience is not None:
                        self._given.setdefault(taxon, set()).add(_audience(audience))
                if names not in there:
                    try:
                        self._make(names, given[0], given[-1], names[:1] not in there)
                    except GraphiumError as error:
                        raise type(error)(f"line {record.line}: {error.message}", error.hint) from error
                there |= {names[:1], names}
            yield record

    def _make(
        self, names: tuple[str, ...], for_family: list[str], for_specimen: list[str], with_the_family: bool
    ) -> None:
        family, genus, specimen = names
        if not with_the_family or set(for_family) == set(for_specimen):
            self._memory.ingest_context(family, genus, specimen, [], required_scopes=for_specimen)
            return
        while True:  # once more when somebody made or changed the same family meanwhile
            with suppress(psycopg.errors.SerializationFailure), self._connection.transaction():
                before = self._family_ids()
                self._memory.ingest_context(family, genus, specimen, [], required_scopes=for_specimen)
                for made in self._family_ids() - before:  # in a repeatable read: by this very transaction
                    self._memory.set_required_scopes("family", made, for_family)
                return

    def _family_ids(self) -> set[UUID]:
        return {row.family_id for row in self._memory.context_tree() if row.family_id is not None}

    def kept(self) -> list[str]:
        """Families and specimens that were there, or came to be, with another audience than the file gives them."""
        audiences: dict[tuple[str | None, ...], Sequence[str] | None] = {}
        for row in self._memory.context_tree() if self._given else ():
            audiences[row.family,] = row.family_scopes
            audiences[row.family, row.genus, row.specimen] = row.specimen_scopes
        found = []
        for taxon, given in self._given.items():
            has = audiences.get(taxon)
            other = [] if has is None else sorted(map(_told, given - {_audience(has)}))
            if has is not None and other:
                found.append(f"{path(*taxon)} stays {_told(has)}, and does not become {other[0]}, as the file has it.")
        return found


def _named(record: Record, defaults: Mapping[str, str | None]) -> Iterator[str]:
    """The names in a line, which become as the database stores them: so two spellings of one are one."""
    for name in _TAXA:
        value = record.fields.get(name)
        value = defaults.get(name) if value is None else value
        if isinstance(value, str):
            record.fields[name] = inputs.clean_name(value)
            yield record.fields[name]


def _scopes(record: Record, name: str) -> list[str] | None:
    value = record.fields.pop(name, None)
    if value is not None and not (isinstance(value, list) and all(isinstance(scope, str) for scope in value)):
        raise BadStatementError(f"line {record.line}: {name} must be a list of texts", "As the export writes it.")
    return cast("list[str] | None", value)


def _audience(scopes: Iterable[str]) -> frozenset[str]:
    """Who it is, as a set; `public` is everybody."""
    clean = frozenset(map(inputs.clean_name, scopes))
    return frozenset() if "public" in clean else clean


def _told(scopes: Iterable[str]) -> str:
    return f"for {listed(sorted(scopes))}" if (scopes := _audience(scopes)) else "open"


@click.command(
    "import",
    short_help="Store the statements of an export.",
    epilog=examples(
        """
graphium import memory.jsonl
graphium export --tenant acme | graphium import --tenant acme-copy -
"""
    ),
)
@click.argument("file", type=click.File("rb"))
@click.option("-f", "--family", help="For lines that name none.")
@click.option("-g", "--genus", help="For lines that name none.")
@click.option("-s", "--specimen", help="For lines that name none.")
@required_scope_option(help="Audience of what is new and of lines without one; repeatable.")
@caller_options
def import_(
    session: Session, file: BinaryIO, required_scopes: tuple[str, ...], as_json: bool, **defaults: str | None
) -> None:
    """Store the statements of an export (or any JSON Lines that `ingest --jsonl` takes).

    Importing twice changes counts only. Families and specimens that are new get the audience that the export gives
    them, or that of --required-scope; the statements keep their own either way. A line that has the audience of one of
    the two only gives it to both. What was there keeps its audience; on stderr it says where that is not the file's.
    """
    total = new = 0
    taxa: set[tuple[str, ...]] = set()
    with session.memory() as memory, session.connection() as connection:
        new_taxa = _Taxa(session.memory_on(connection), connection)
        records = new_taxa.of(from_jsonl(file), defaults, not required_scopes)
        for batch in ingest(memory, records, defaults, or_none(required_scopes), total=size(file)):
            total += len(batch)
            new += sum(not row.deduplicated for row in batch)
            taxa |= {(row.family, row.genus, row.specimen) for row in batch}
        kept = new_taxa.kept()
    for line in kept[:TOLD]:
        say(line)
    if len(kept) > TOLD:
        say(f"{len(kept) - TOLD} more stay as they were: graphium tree --json lists audiences.")
    if as_json:
        print_json({"statements": total, "new": new, "deduplicated": total - new, "specimens": len(taxa)})
    else:
        done(
            f"{counted(total, 'statement')} about {counted(len(taxa), 'specimen')}: "
            f"{new} new, {total - new} known before"
        )
