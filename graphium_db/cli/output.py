"""What commands print: JSON, statement lists, tables. On a terminal in colour and at its width; piped, unwrapped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from io import TextIOWrapper
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from graphium_db.printable import escaped, printable

PIPED_WIDTH = 100_000  # lines are the reader's to wrap


def console(stderr: bool = False) -> Console:
    """The console of this moment's stdout (or stderr)."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def put(renderable: RenderableType, out: Console | None = None) -> None:
    """Print to `out`, by default to stdout; where nobody looks, without the blanks that fill a line up to a column."""
    out = out or console()
    if out.is_terminal:
        out.print(renderable)
        return
    with out.capture() as capture:
        out.print(renderable)
    out.file.writelines(f"{line.rstrip()}\n" for line in capture.get().split("\n")[:-1])


def shown(text: str | None) -> str:
    """`text` on one line, without characters that act on a terminal; "—" for what the caller may not see."""
    return "—" if text is None else printable(text)


def path(*names: str | None) -> str:
    return " › ".join(shown(name) for name in names)


def listed(scopes: Iterable[str]) -> str:
    """Scopes, in quotes where one would look like two."""
    return ", ".join(f'"{shown(scope)}"' if "," in scope else shown(scope) for scope in scopes)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def write_what_the_terminal_lacks_as_escapes() -> None:
    """Text holds any character; a terminal or pipe in ASCII gets \\u2502 for what it has not, and not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _ascii_only() -> bool:
    """JSON has escapes of its own for what stdout's encoding lacks."""
    return "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()


def as_json(value: Any) -> str:
    def default(item: Any) -> Any:
        if is_dataclass(item) and not isinstance(item, type):
            return asdict(item)
        if isinstance(item, (datetime, date)):
            return item.isoformat()
        if isinstance(item, (UUID, Path)):
            return str(item)
        raise TypeError(f"{type(item).__name__} is not JSON")

    return escaped(json.dumps(value, ensure_ascii=_ascii_only(), indent=2, default=default))


def print_json(value: Any) -> None:
    sys.stdout.write(as_json(value) + "\n")


def table(*columns: str, rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """A plain table; the columns named in `right` are numbers."""
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(Text(shown(column)), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(shown(cell)) for cell in row))
    put(grid)


def statement_list(
    entries: Iterable[tuple[Sequence[str], str, Sequence[tuple[str, str]]]], out: Console | None = None
) -> None:
    """Statements, each with short columns before it and a line of particulars below it; to stdout by default.

    An entry is (columns, content, particulars); a particular is (text, rich style). Empty ones are left out.
    """
    grid = Table.grid(padding=(0, 1))
    filled = False
    for columns, content, particulars in entries:
        if not filled:
            for _ in columns:
                grid.add_column(justify="right", style="bold", no_wrap=True)
            grid.add_column(overflow="fold")
            filled = True
        body = Text(shown(content))
        for i, (text, style) in enumerate([p for p in particulars if p[0]]):
            body.append("\n" if i == 0 else "  ")
            body.append(shown(text), style=style)
        grid.add_row(*(Text(shown(column)) for column in columns), body)
    if filled:
        put(grid, out)


_MARKS = {"ok": ("✓", "green"), "info": ("i", "cyan"), "warning": ("!", "bold yellow"), "fault": ("✗", "bold red")}
_ALIKE = 5


def finding_list(findings: Iterable[tuple[str, str, str | None, str, str | None]]) -> None:
    """What was looked at, each (level, check, object, found, remedy); of many alike the first few."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for check, alike in groupby(findings, key=lambda finding: finding[1]):
        listed = list(alike)
        for level, _, object, found, remedy in listed[:_ALIKE]:
            body = Text()
            body.append(shown(check), style="bold")
            if object:
                body.append(f" {shown(object)}\n")
            else:
                body.append(": ")
            body.append(shown(found))
            if remedy:
                body.append(f"\n{shown(remedy)}", style="cyan")
            grid.add_row(Text(*_MARKS[level]), body)
        if len(listed) > _ALIKE:
            grid.add_row("", Text(f"… and {len(listed) - _ALIKE} more of {check}: --json lists them", style="dim"))
    put(grid)


def progress_bar() -> Progress:
    """Bars on stderr, one for each task, while they last; none where stderr is no terminal."""
    errors_to = console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors_to,
        transient=True,
        disable=not errors_to.is_terminal,
    )


def say(message: str, style: str = "") -> None:
    """One line for the person at the terminal, on stderr: stdout carries data only, and this comes after it."""
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    put(Text(shown(message), style=style), console(stderr=True))


def done(message: str) -> None:
    """What a command that changes something did: one line on stdout."""
    put(Text(shown(message)))


def json_value(value: Any) -> str:
    """One line of JSON."""
    return escaped(json.dumps(value, ensure_ascii=_ascii_only(), default=str))


def is_map_of_values(value: Any) -> bool:
    """A Cypher map, as opposed to a vertex or an edge."""
    return isinstance(value, Mapping) and not {"id", "label", "properties"} <= value.keys()
