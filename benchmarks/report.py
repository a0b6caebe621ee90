"""What came out: a JSON file, a page in Markdown, and plots."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.bench import Connection, Server, Sizes
from benchmarks.measure import Bar, Line, value_text
from benchmarks.rows import Row, rows

SETTINGS = (
    "shared_buffers",
    "maintenance_work_mem",
    "work_mem",
    "random_page_cost",
    "jit",
    "synchronous_commit",
    "fsync",
)


@dataclass
class Report:
    """The lines of a run, row by row, and where it ran."""

    sizes: Sizes
    machine: dict[str, str]
    rows: list[tuple[Row, list[Line], float]] = field(default_factory=list)
    earlier: dict[str, str] = field(
        default_factory=dict
    )  # by the title of a row: the run that it is of, if not of this

    def write(self, page: Path) -> None:
        """Write `page`, and beside it a directory with the figures and plots."""
        directory = page.with_suffix("")
        directory.mkdir(parents=True, exist_ok=True)
        self.keep(directory / "results.json")
        (directory / "results.json").write_text(
            json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
        from benchmarks import plots

        drawn = plots.draw([line for _, lines, _ in self.rows for line in lines], directory)
        page.write_text(self.markdown(directory.name, drawn), "utf-8")

    def keep(self, results: Path) -> None:
        """Take over the rows of an earlier run of this kind that this one did not measure."""
        there: dict[str, Any] = (
            json.loads(results.read_text("utf-8")) if results.exists() else {"sizes": {"name": None}}
        )
        if there["sizes"]["name"] != self.sizes.name:
            return
        known, mine = {row.key: row for row in rows()}, {row.title for row, _, _ in self.rows}
        for old in there["rows"]:
            if old["key"] in known and old["title"] not in mine:
                lines = [_as_line(line) for line in old["lines"]]
                self.rows.append((replace(known[old["key"]], title=old["title"]), lines, old["seconds"]))
                self.earlier[old["title"]] = old.get("run", there["machine"]["run"])
        self.rows.sort(key=lambda entry: list(known).index(entry[0].key))

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "sizes": asdict(self.sizes),
            "rows": [
                {
                    "key": row.key,
                    "title": row.title,
                    "run": self.earlier.get(row.title, self.machine["run"]),
                    "seconds": round(took, 1),
                    "lines": [_line(line) for line in lines],
                }
                for row, lines, took in self.rows
            ],
        }

    def markdown(self, directory: str, drawn: list[tuple[str, str]]) -> str:
        lines = [line for _, some, _ in self.rows for line in some if line.met is not None]
        parts = [
            _INTRODUCTION,
            f"{sum(bool(line.met) for line in lines)} of {len(lines)} bars are met in this run.",
            "## Where\n\n| | |\n|---|---|\n"
            + "\n".join(f"| {name} | {value} |" for name, value in self.machine.items()),
            "## Results",
        ]
        for row, some, _ in self.rows:
            how = f"How: [benchmarks/rows/{row.key}.py](../benchmarks/rows/{row.key}.py)"
            how += f". Of another run: {self.earlier[row.title]}." if row.title in self.earlier else ""
            parts.append(f"### {row.title}\n\n{how}\n\n{(row.table or _table)(some)}")
        parts += [f"## {title}\n\n![{title}]({directory}/{file})" for file, title in drawn]
        return "\n\n".join(parts) + "\n"


_INTRODUCTION = """<!-- Written by `make bench`. Do not edit: benchmarks/report.py has the text. -->
# Benchmarks

`make bench` makes this page, `make bench-quick` a small one of it in `build/`. Each row of the suite is a file in
`benchmarks/rows/` that holds its bar, how ours is called, and the reference: what a competent engineer would write by hand.
[Beside LangGraph's store](benchmarks/others.md) is a page of its own.

Ours and the reference take turns, query by query, in one run on the same data and the same server; which goes first
alternates. Times are medians, with the 95th percentile beside them, of a whole round trip through libpq: the result has
arrived, nobody has decoded it. *Ratio* is ours over the reference, *spread* the range of the ratio over five consecutive slices
of the run. *Server CPU* is what the two backends used a call: it tells the ratio on a machine that does other work too.
References run as a superuser, whom no policy touches. The vectors are clustered as sentence embeddings are
(`benchmarks/data.py`), the tenants unequal. *On topic* asks about one of the tenant's own families; *off topic* about one of
another tenant, whose statements are nearest. A row that a run left out (`make bench ROWS=…`) stands as it was measured last."""


def _table(lines: list[Line]) -> str:
    rows = ["| | ours | reference | ratio | spread | bar | |", "|---|---:|---:|---:|---:|---|---|"]
    for line in lines:
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}×"
        spread = "" if line.spread is None else f"{line.spread[0]:.2f}–{line.spread[1]:.2f}"
        verdict = {None: "", True: "met", False: "**missed**"}[line.met]
        case = line.case + (f"<br><small>{line.note}</small>" if line.note else "")
        cells = [
            case, value_text(line.ours, line.ours_p95, line.unit), value_text(line.reference, line.reference_p95, line.unit),
            ratio, spread, line.bar.text if line.bar else "", verdict,
        ]  # fmt: skip
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _line(line: Line) -> dict[str, Any]:
    found = {name: value for name, value in asdict(line).items() if name != "bar" and value not in (None, "", {})}
    return found | {"ratio": line.ratio, "bar": line.bar.text if line.bar else None, "met": line.met}


def _as_line(found: dict[str, Any]) -> Line:
    """A line as it was written down, with its verdict as it was."""
    given = {name: found[name] for name in found.keys() & {f.name for f in fields(Line)}}
    bar, met = given.pop("bar", None), found.get("met")
    spread = given.pop("spread", None)
    return Line(**given, spread=spread and tuple(spread), bar=Bar(bar, lambda *_: bool(met)) if bar else None)


def as_text(line: Line) -> str:
    """A line for the terminal."""
    verdict = {None: "       ", True: "met    ", False: "MISSED "}[line.met]
    reference = (
        "" if line.reference is None else f"  reference {value_text(line.reference, line.reference_p95, line.unit)}"
    )
    ratio = "" if line.ratio is None else f"  {line.ratio:.2f}x"
    spread = "" if line.spread is None else f" ({line.spread[0]:.2f}–{line.spread[1]:.2f})"
    bar = f"  bar {line.bar.text}" if line.bar else ""
    note = f"  [{line.note}]" if line.note else ""
    return f"  {verdict}{line.case}: {value_text(line.ours, line.ours_p95, line.unit)}{reference}{ratio}{spread}{bar}{note}"


def machine(conn: Connection, server: Server, sizes: Sizes) -> dict[str, str]:
    """Where a run takes place. A load beside ours makes figures worse and spreads wider; it is stated."""
    settings = {}
    for name in SETTINGS:
        row = conn.execute("select current_setting(%s)", [name]).fetchone()
        settings[name] = "" if row is None else row[0]
    extensions = conn.execute(
        "select extname, extversion from pg_extension where extname in ('vector', 'age') order by 1"
    ).fetchall()
    postgres = conn.execute("select current_setting('server_version')").fetchone()
    load = os.getloadavg()[0]
    return {
        "run": f"{sizes.name}{'' if sizes.name == 'full' else ' (small sizes: to try the suite, not to judge the bars)'}, {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, {_commit()}",
        "load when it started": f"{load:.2f}"
        + (
            " — **the machine was busy with other work: trial figures, compare only within a line**"
            if load > 0.5
            else ""
        ),
        "machine": f"{os.cpu_count()} × {_cpu()}, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB, {platform.system()} {platform.release()}",
        "server": f"{server.kind}: PostgreSQL {postgres[0] if postgres else '?'}, "
        + ", ".join(f"{n} {v}" for n, v in extensions),
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
        "client": f"Python {platform.python_version()}, psycopg {version('psycopg')}, numpy {version('numpy')}",
    }


def _cpu() -> str:
    names = (
        [
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ]
        if Path("/proc/cpuinfo").exists()
        else []
    )
    return names[0] if names else platform.processor()


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return f"commit {done.stdout.strip()}" if done.returncode == 0 else "no git"
