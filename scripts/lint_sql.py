"""Lint the SQL tree: squawk on migrations, pgspot on functions and policies. Exit status 1 when either finds anything.

pgspot looks for what lets a caller run code as the owner of a function: a `search_path` that is missing or leaves
pg_temp first, operators and functions that are looked up along the caller's path.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from pglast import parse_sql
from pgspot.state import Counter, State
from pgspot.visitors import visit_sql

from graphium_db.deploy import Tree
from graphium_db.deploy.tree import SqlFile, statements
from graphium_db.deploy.verify import INLINED

PGSPOT = Namespace(
    ignore=[
        "PS002",  # `create or replace function` where others may create: in our schemas only our owners can
        "PS007",  # the same for an aggregate
    ],
    proc_without_search_path=[],
    plpgsql=True,
    ignore_lang=[],
    sql_fn=[],
    summary_only=False,
    append=False,
)
# How the deployer runs a file, so that bare names outside of functions are pg_catalog's.
PREAMBLE = "set search_path = pg_catalog, pg_temp; "


def squawk(tree: Tree) -> int:
    return subprocess.run([Path(sys.executable).parent / "squawk", *tree.migrations()], check=False).returncode


def composite_types(tree: Tree) -> list[str]:
    """Names of our row types: the parser behind pgspot takes a variable of such a type for a scalar without fields."""
    return [
        s.name
        for p in tree.migrations()
        for s in statements(p.read_text("utf-8"))
        if (s.verb, s.kind) == ("create", "type")
    ]


def pgspot(file: SqlFile, types: list[str]) -> list[str]:
    """Findings in one file, statement by statement, so that a body that pgspot cannot read hides no other."""
    findings = []
    for statement in statements(file.text):
        # `return …` was bound to its operators when it was created: no path can change it, nor can pgspot read it.
        if getattr(parse_sql(statement.text)[0].stmt, "sql_body", None) is not None:
            continue
        # ag_catalog belongs to the extension, as pg_catalog to the server; pgspot knows only the latter.
        text = statement.text.replace("search_path = ag_catalog, pg_temp", "search_path = pg_catalog, pg_temp")
        text = text.replace('"position"', "place")  # a column of results, which pgspot writes back without its quotes
        text = re.sub(r"\bopen \w+ for execute", "execute", text)  # which pgspot cannot read
        # A helper without a setting runs under that of its callers; that nobody else can call it, verify.py sees to.
        if statement.kind == "function" and statement.name not in INLINED and " set search_path" not in text:
            text = re.sub(r"\nas \$", "\nset search_path = pg_catalog, pg_temp as $", text, count=1)
        for name in types:
            text = re.sub(rf"\b{re.escape(name)}\b(?!\[)", "record", text)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                visit_sql(State(Counter(PGSPOT)), PREAMBLE + text, toplevel=True)
        except Exception as error:  # noqa: BLE001  whatever it stumbles over: a body that nobody read is a finding
            print(f"pgspot could not read it: {error}", file=said)
        for line in said.getvalue().splitlines():
            if not (line.startswith("PS005") and statement.name in INLINED):
                findings.append(f"db/{file.path}:{statement.line}: {line}")
    return findings


def main() -> int:
    tree = Tree.default()
    types = composite_types(tree)
    findings = [line for file in tree.repeatables("public") for line in pgspot(file, types)]
    print(*findings, f"pgspot: {len(findings)} findings", sep="\n")
    return int(bool(squawk(tree)) or bool(findings))


if __name__ == "__main__":
    sys.exit(main())
