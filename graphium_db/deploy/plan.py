"""What a deploy would change, for a reader: pending migrations, changed files, and the statements in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import sqlglot
from sqlglot import expressions as exp

from graphium_db.deploy import apply, drift
from graphium_db.deploy.tree import DeployError, Statement, Tree, statements
from graphium_db.printable import printable

BY_HAND = "changed by hand"
REFUSED = "refused"
AGAIN = "apply again"


@dataclass(frozen=True)
class Change:
    """One file: its path under `db/`, `"migration" | "apply" | "apply again" | "removed"`, and what its statements do.
    What is applied again did not change, but something that it may speak of did.

    With `"changed by hand"`, `path` is an object of the database that is not as the last deploy left it; with
    `"refused"`, one on account of which a deploy would refuse, and the statement is for a superuser to run before it.
    """

    path: str
    action: str
    statements: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What :func:`graphium_db.deploy.deploy` would do now; false when nothing."""

    changes: tuple[Change, ...]
    refusal: DeployError | None = None
    """What a deploy would raise instead."""
    hardening_due: str | None = None
    """What a superuser types afterwards, where he ran `hardening.sql` and it would not be in force any more."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        return self.told(verbose=True)

    def told(self, *, verbose: bool) -> str:
        """A line for each change, and how many of each kind; what their statements do as well."""
        lines = [] if self else ["Nothing to do."]
        for change in self.changes:
            if change.action == AGAIN and not verbose:
                continue
            lines.append(f"{change.action} {printable(change.path)}")
            if verbose or change.action == REFUSED:
                lines += [f"  {printable(text)}" for text in change.statements]
        if self and not verbose:
            counts = Counter(change.action for change in self.changes)
            lines.append("In all: " + ", ".join(f"{count} {_NOUNS[action]}" for action, count in counts.items()))
        return "\n".join(lines)


_NOUNS = {
    REFUSED: "refused",
    BY_HAND: "changed by hand",
    "migration": "to migrate",
    "apply": "to apply",
    AGAIN: "to apply again, unchanged",
    "removed": "removed",
}


def plan(target: str | apply.Connection, *, tree: Tree | None = None) -> Plan:
    """Compare the tree with a bootstrapped database; writes nothing."""
    tree = tree or Tree.default()
    with apply.connect(target) as conn:
        apply.check_server(conn)
        tree.check_released()
        with apply.owner_transaction(conn):
            # Pending migrations make every repeatable file run again: see deploy().
            by_hand = drift.differences(conn)
            refused = drift.refused(by_hand, apply.made(conn, tree))
            told = {*refused, *drift.parts(by_hand, refused)}
            todo = changed = apply.pending(conn, tree)
            if todo.migrations or by_hand or not drift.known(conn):
                todo = apply.pending(
                    conn, tree, everything=True, but=apply.spared(conn, tree, by_hand) if drift.known(conn) else ()
                )
            due = apply.hardening_due(conn, tree, todo.files)
    paths = {p.stem: p for p in tree.migrations()}
    return Plan(
        tuple(Change(str(d), REFUSED, (f"{d.refused};",)) for d in refused)
        + tuple(Change(str(d), BY_HAND, (d.remedy,) if d.remedy else ()) for d in by_hand if d not in told)
        + tuple(
            Change(f"migrations/{paths[m].name}", "migration", _describe(paths[m].read_text("utf-8")))
            for m in todo.migrations
        )
        + tuple(Change(f.path, "apply" if f in changed.files else AGAIN, _describe(f.text)) for f in todo.files)
        + tuple(Change(path, "removed", ()) for path in todo.removed),
        drift.refusal(refused) if refused else None,
        due,
    )


def _describe(text: str) -> tuple[str, ...]:
    return tuple(line for s in statements(text) if s.verb != "set" for line in _lines(s))


def _lines(statement: Statement) -> list[str]:
    lines = [f"{statement} (line {statement.line})"]
    if statement.kind == "policy" and statement.verb == "create":
        columns, calls = policy_reads(statement.text)
        lines.append(f"  reads {', '.join(columns) or 'no column'}; calls {', '.join(calls) or 'nothing'}")
    return lines


def policy_reads(create_policy: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that a policy's expressions read and the functions that they call, each sorted."""
    head = create_policy.lower()
    starts = [i for i in (head.find(" using"), head.find("with check"), head.find("\nusing")) if i >= 0]
    if not starts:
        return (), ()
    # `using (a) with check (b)` reads like a call of two functions: make it one tuple.
    body = create_policy[min(starts) :].replace("with check", ",").strip()
    body = body[len("using") :] if body.lower().startswith("using") else body.lstrip(",")
    return expression_reads(f"({body})")


def expression_reads(expression: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns and function calls in an SQL expression, as sqlglot reads it."""
    tree = sqlglot.parse_one(f"select {expression}", read="postgres")
    columns = {c.name for c in tree.find_all(exp.Column)}
    calls = set()
    for call in tree.find_all(exp.Func):
        if isinstance(call, (exp.Binary, exp.Connector, exp.Case, exp.Cast, exp.Array)):
            continue
        name = call.name if isinstance(call, exp.Anonymous) else call.sql_name().lower()
        parent = call.parent
        calls.add(f"{parent.this.sql()}.{name}" if isinstance(parent, exp.Dot) else name)
    return tuple(sorted(columns)), tuple(sorted(calls))
