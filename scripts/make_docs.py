"""Generate docs/reference/sql.md from the SQL tree's comments, docs/errors.md from graphium_db/errors.py, and
docs/matrix.md, of which docs/security.md has an excerpt, from tests/isolation/matrix.yaml.

python scripts/make_docs.py           # write them
python scripts/make_docs.py --check   # exit 1 when a file is not what would be written
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import yaml

from graphium_db import errors

ROOT = Path(__file__).resolve().parent.parent
ROLES = {
    "graphium_reader": "every caller",
    "graphium_user": "callers who write",
    "graphium_app": "applications",
    "graphium_admin": "graphium_admin",
}
ERRORS_HEAD = """\
Generated from `graphium_db/errors.py` by `make docs`. The database raises them with a message that names the argument
and a hint that says what to do; no message carries another row's text. In Python each is a subclass of `GraphiumError`
with `sqlstate`, `message` and `hint`. The client raises the same classes for text that PostgreSQL cannot store (U+0000,
half of a surrogate pair) and for values of another type than the argument's, before it sends anything. Other database
errors stay `psycopg`'s. Among them `42501`, `permission denied for function …`: the login is no member of the role that
the [reference](reference/sql.md) names for the function, such as `graphium_admin`.
"""
MATRIX_HEAD = """\
# The matrix

Generated from `tests/isolation/matrix.yaml` by `make docs`: what each actor gets from each object by each operation in
the small world of `tests/isolation/world.py`, which explains the `$names`. A test tries every cell, and looks in all
that comes back for what is hidden from the actor.
"""
MATRIX_EXCERPT_HEAD = """\
What is read from each table, and one call of each function; what else was tried, on tables, sequences, the graph, the
command line and the Python client, is in [matrix.md](matrix.md).
"""
MATRIX_MARKS = ("<!-- matrix.yaml, by make docs -->\n", "<!-- end of matrix.yaml -->\n")
MATRIX_CALLS = {
    "functions": "Functions: `graphium.` and",
    "cypher": "The graph: `graphium.cypher()` of",
    "statements": "What else a session can try",
    "commands": "The command line: `graphium` and",
    "client": "The Python client: methods of `Graphium`",
}
_TEXT = r"'((?:[^']|'')*)'"
_FUNCTION = re.compile(
    r"create or replace function graphium\.(?P<name>[a-z]\w*)\((?P<arguments>.*?)\)"
    r"(?:\s+returns (?P<returns>.*?))?\n\s+language ",
    re.DOTALL,
)


def _comment(sql: str, kind: str, name: str) -> str:
    found = re.search(rf"comment on {kind} graphium\.{name}(?:\(.*?\))? is\s+{_TEXT};", sql, re.DOTALL)
    return found[1].replace("''", "'") if found else ""


def _example(sql: str) -> list[str]:
    lines = iter(sql.splitlines())
    for line in lines:
        if line.strip() == "-- example:":
            example: list[str] = []
            for shown in lines:
                if not shown.startswith("--   "):
                    return example
                example.append(shown.removeprefix("--   "))
    return []


def _types(migrations: str) -> dict[str, str]:
    """Composite types that functions return, as their column lists."""
    return {
        f"graphium.{name}": " ".join(columns.split())
        for name, columns in re.findall(r"create type graphium\.(\w+) as \((.*?)\n\);", migrations, re.DOTALL)
    }


def sql_reference() -> str:
    migrations = "\n".join(
        path.read_text("utf-8")
        for path in sorted((ROOT / "db" / "migrations").glob("*.sql"))
        if not path.name.endswith(".rollback.sql")
    )
    types = _types(migrations)
    lines = [
        "# SQL reference",
        "",
        "Generated from the comments in `db/` by `make docs`. Functions are called by `name => value`; their errors",
        "are in [errors.md](../errors.md).",
        "",
        "## Functions",
    ]
    for path in sorted((ROOT / "db" / "functions").glob("*.sql")):
        sql = path.read_text("utf-8").replace("@extschema:vector@.", "")
        names = []
        for function in _FUNCTION.finditer(sql):
            name = function["name"]
            grants = re.findall(rf"grant execute on function graphium\.{name}\([^)]*\) to (\w+);", sql)
            if name in names or not any(grant in ROLES for grant in grants):
                continue
            names.append(name)
            returns = " ".join((function["returns"] or "record").split())
            for type_name, columns in types.items():
                returns = returns.replace(f"setof {type_name}", f"table ({columns})")
            arguments = " ".join(function["arguments"].split())
            lines += [
                "",
                f"### {name}",
                "",
                "```sql",
                *_folded(f"graphium.{name}({arguments})", f"  -> {returns}"),
                "```",
                "",
                _comment(sql, "function", name),
                "",
                f"For {', '.join(ROLES[grant] for grant in grants if grant in ROLES)}.",
            ]
        if names and (example := _example(sql)):
            lines += ["", "```sql", *example, "```"]
    lines += [
        "",
        "## Tables",
        "",
        "Application roles read them under row-level security and write them by functions only.",
    ]
    for name in re.findall(r"create table graphium\.(\w+) \(", migrations):
        lines += ["", f"### {name}", "", _comment(migrations, "table", name)]
        described = re.findall(rf"comment on column graphium\.{name}\.(\w+) is\s+{_TEXT};", migrations)
        if described:
            lines += ["", *(f"- `{column}`: {text.replace(chr(39) * 2, chr(39))}" for column, text in described)]
    return "\n".join(lines) + "\n"


def _folded(*signature: str) -> list[str]:
    """The signature, one argument or column a line where it is long."""
    lines: list[str] = []
    for part in signature:
        if len(part) <= 110 or "(" not in part:
            lines.append(part)
            continue
        head, rest = part.split("(", 1)
        inner, tail = rest.rsplit(")", 1)
        indent = " " * (len(head) - len(head.lstrip()) + 2)
        items = re.split(r", (?=\w+ )", inner)
        lines += [
            f"{head}(",
            *(f"{indent}{item}," for item in items[:-1]),
            f"{indent}{items[-1]}",
            f"{indent[:-2]}){tail}",
        ]
    return lines


def errors_table() -> str:
    lines = [
        "# Errors",
        "",
        *ERRORS_HEAD.splitlines(),
        "",
        "| SQLSTATE | Python | means | what to do |",
        "|---|---|---|---|",
    ]
    for cls in errors.GraphiumError.__subclasses__():
        state = f"`{cls.sqlstate}`" if cls.sqlstate else "—"
        lines.append(f"| {state} | `{cls.__name__}` | {cls.meaning} | {cls.remedy} |")
    return "\n".join(lines) + "\n"


class Matrix:
    """tests/isolation/matrix.yaml as tables of Markdown."""

    def __init__(self) -> None:
        self._stated = yaml.load((ROOT / "tests/isolation/matrix.yaml").read_text("utf-8"), yaml.BaseLoader)  # noqa: S506  texts only

    def page(self) -> str:
        """Every cell."""
        lines = [*MATRIX_HEAD.splitlines(), "", "A cell is", ""]
        lines += [f"- {cell}: {meaning}" for cell, meaning in self._stated["cells"].items()]
        lines += ["", "The actors are", "", *self._actors()]
        for section in ("tables", "sequences"):
            groups = self._stated[section]["names"]
            lines += ["", f"## {section.capitalize()}", ""]
            lines += [f"- {group}: {', '.join(f'`{name}`' for name in names)}" for group, names in groups.items()]
            for operation, rows in self._stated[section]["operations"].items():
                lines += self._table(operation, rows, groups)
        lines += ["", "## Calls"]
        for section, title in MATRIX_CALLS.items():
            lines += self._table(title, self._stated[section])
        [helpers] = [name for name in self._stated if name.startswith("other helpers")]
        lines += self._table("Functions of `graphium_private`", {helpers: self._stated[helpers]}, ["other helpers"])
        return self._with_notes(lines)

    def excerpt(self) -> str:
        """What is read from each table, and one call of each function: the first that is stated."""
        functions: dict[str, Any] = {}
        for call, cells in self._stated["functions"].items():
            functions.setdefault(call.split("(")[0], (call, cells))
        read, rest = {}, []
        for name, cells in self._stated["tables"]["operations"]["select"].items():
            if name.startswith("graphium."):
                read[name] = cells
            else:
                rest.append(cells)
        read["all others"] = [cells[0] if len(set(cells)) == 1 else "…" for cells in zip(*rest, strict=True)]
        lines = [*MATRIX_EXCERPT_HEAD.splitlines(), "", *self._actors(), *self._table("`select` from", read)]
        lines += self._table(MATRIX_CALLS["functions"], dict(functions.values()))
        return self._with_notes(lines)

    def _actors(self) -> list[str]:
        return [f"- **{name}**: {who}" for name, who in self._stated["actors"].items()]

    def _table(self, title: str, rows: dict[str, Any], groups: Container[str] = ()) -> list[str]:
        actors = list(self._stated["actors"])
        lines = ["", f"| {title} | {' | '.join(actors)} |", "|---" * (len(actors) + 1) + "|"]
        for line, cells in rows.items():
            columns: Sequence[str] = [cells] * len(actors) if isinstance(cells, str) else cells
            name, mark, note = line.partition(" [^")
            shown = name if name in groups or name == "all others" else f"`{name}`".replace("|", "\\|")
            lines.append(f"| {shown}{mark}{note} | {' | '.join(columns)} |")
        return lines

    def _with_notes(self, lines: list[str]) -> str:
        """What the marks of these lines mean, as Markdown's footnotes."""
        text = "\n".join(lines) + "\n"
        used = [f"[^{name}]: {note}" for name, note in self._stated["notes"].items() if f"[^{name}]" in text]
        return text + "".join(f"\n{note}\n" for note in used)


def security_page() -> str:
    """The page as it is, with the excerpt between its marks."""
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    start, end = MATRIX_MARKS
    before, rest = page.split(start)
    return before + start + Matrix().excerpt() + end + rest.split(end)[1]


PAGES = {
    "docs/reference/sql.md": sql_reference,
    "docs/errors.md": errors_table,
    "docs/matrix.md": lambda: Matrix().page(),
    "docs/security.md": security_page,
}


def main() -> int:
    stale = [name for name, page in PAGES.items() if not _is_current(name, page())]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"{name} is not what its sources say: run make docs")
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote {name}")
    return 0


def _is_current(name: str, text: str) -> bool:
    return (ROOT / name).exists() and (ROOT / name).read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
