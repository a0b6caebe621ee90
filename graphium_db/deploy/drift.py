"""What was changed by hand since the last deploy: owners, functions, triggers, policies, row-level security and rights
in our schemas.

A deploy leaves the lines of `db/functions/165_catalog.sql` in `graphium_private.deployed_catalog`; the next one
compares. The query is read from the file and not asked of the function: somebody may have changed that, too.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from graphium_db.deploy.tree import DeployNotAllowedError
from graphium_db.printable import printable
from graphium_db.resources import db_path

Connection = psycopg.Connection[Any]

_CATALOG = (db_path() / "functions" / "165_catalog.sql").read_text("utf-8").split("$catalog$")[1]
# What may not be there, or belong to somebody else; longest first.
_THINGS = ("materialized view", "foreign table", "function", "sequence", "schema", "table", "view", "type")

# For a transaction as graphium_owner.
RECORD = f"""
create table if not exists graphium_private.deployed_catalog (object text primary key, state text not null);
comment on table graphium_private.deployed_catalog is
  'As the last deploy left them: owners, functions, triggers, policies, row-level security and rights in our schemas.';
delete from graphium_private.deployed_catalog;
insert into graphium_private.deployed_catalog (object, state) select c.object, c.state from ({_CATALOG}) as c;
"""


@dataclass(frozen=True)
class Difference:
    """An object that is not as it was left. `was` is None for one that was added, `now` for one that is gone."""

    object: str
    was: str | None
    now: str | None
    owner: str

    def __str__(self) -> str:
        return f"{self.object} ({'added' if self.was is None else 'gone' if self.now is None else 'changed'})"

    @property
    def thing(self) -> str | None:
        """Its name, when it is a thing that has an owner."""
        kind = next((kind for kind in _THINGS if self.object.startswith(f"{kind} ")), None)
        return kind and self.object.removeprefix(f"{kind} ")

    @property
    def refused(self) -> str | None:
        """The statement that a superuser runs first: a deploy neither drops nor takes what it did not make."""
        if self.thing is None or self.now is None:
            return None
        if self.was is None:
            return f"alter {self.object} set schema public".replace("alter function", "alter routine")
        owner = self.was.split()[0]
        if owner == self.now.split()[0]:
            return None
        return f"alter {self.object} owner to {owner}".replace("alter function", "alter routine")  # aggregates, too

    @property
    def remedy(self) -> str | None:
        """The statement with which a deploy puts it back; None for what the repeatable files put back."""
        if self.object.startswith("row security of ") and self.was and self.now:
            enable = "enable" if self.was.startswith("enabled") else "disable"
            force = "no force" if self.was.endswith("not forced") else "force"
            table = self.object.removeprefix("row security of ")
            return f"alter table {table} {enable} row level security, {force} row level security"
        if self.object.startswith("statistics of "):
            table, _, column = self.object.removeprefix("statistics of ").rpartition(".")
            return f"alter table {table} alter column {column} set statistics {self.was or -1}"
        if self.object.startswith(("policy ", "trigger ")) and self.was is None:
            return f"drop {self.object}"
        if self.object.startswith("grant "):
            what, _, role = self.object.removeprefix("grant ").rpartition(" to ")
            if self.now is None:
                return None if " on routine " in what else self.object
            return f"revoke {'' if self.was is None else 'grant option for '}{what} from {role}"
        return None


def known(conn: Connection) -> bool:
    """Whether a deploy of this version recorded the catalog, and no migration ran since by other means."""
    if _missing(conn, "deployed_catalog") or _missing(conn, "_yoyo_migration"):
        return False
    row = conn.execute(
        "select exists ("
        " select from graphium_private.deployed_catalog where object = 'this list' and state = 'format 2')"
        " and not exists ("
        " select from (select 'migrations/' || migration_id || '.sql' as path from graphium_private._yoyo_migration) m"
        " full join (select path from graphium_private.deployed_files where path ^@ 'migrations/') f using (path)"
        " where m.path is null or f.path is null)"
    ).fetchone()
    return row == (True,)


def differences(conn: Connection) -> tuple[Difference, ...]:
    """What is not as the last deploy left it; nothing when that is not known. In a transaction as graphium_owner."""
    with _told():
        if not known(conn):
            return ()
        rows = conn.execute(
            f"select object, r.state, c.state, coalesce(c.owner, 'graphium_owner') from ({_CATALOG}) as c"
            " full join graphium_private.deployed_catalog r using (object)"
            ' where r.state is distinct from c.state order by object collate "C"'.encode()
        ).fetchall()
    return tuple(Difference(*row) for row in rows)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise DeployNotAllowedError(
            f"{error.diag.message_primary}: our own records belong to somebody else, as after pg_restore --no-owner",
            "As a superuser, in psql: select remedy from graphium.check_security() where lint = 'owner' \\gexec"
            "\nThen: graphium migrate",
        ) from error


def refused(found: Iterable[Difference], expected: Container[str]) -> tuple[Difference, ...]:
    """Those which keep a deploy from running. `expected`: names of the functions that the tree makes."""
    return tuple(
        d
        for d in found
        if d.refused and not (d.was is None and d.object.removeprefix("function ").partition("(")[0] in expected)
    )


def parts(found: Iterable[Difference], refused: Iterable[Difference]) -> tuple[Difference, ...]:
    """Rights to added things that are refused, and the like: they go with them."""
    added = [d.thing for d in refused if d.was is None and d.thing]
    return tuple(d for d in found if d.was is None and d.thing is None and any(name in d.object for name in added))


def refusal(found: Iterable[Difference]) -> DeployNotAllowedError:
    """The error for those that :func:`refused` names."""
    lines = "".join(
        f"\n  {printable(d.refused or '')};" + ("  -- or a schema of yours, or drop it" if d.was is None else "")
        for d in found
    )
    return DeployNotAllowedError(
        "changed by hand since the last migrate, and not by a deploy to put back",
        f"As a superuser, and then graphium migrate again:{lines}",
    )


def put_back(conn: Connection, found: tuple[Difference, ...]) -> None:
    """Undo what no repeatable file would undo: flags, rights, policies too many. Raises when it is not allowed to."""
    mended = [d for d in found if d.remedy]
    for difference in mended:
        try:
            conn.execute("select set_config('role', %s, true)", [difference.owner])
            conn.execute((difference.remedy or "").encode())
        except psycopg.Error as error:
            raise _by_superuser([difference]) from error
    conn.execute("set local role graphium_owner")
    if mended:
        now = differences(conn)
        left = [d for d in now if d in mended]
        if left:
            raise _by_superuser(left)
        # Taking back a right to a table takes those to its columns along.
        put_back(conn, tuple(d for d in now if d not in found))


def record(conn: Connection) -> None:
    """Remember the catalog as it is. In a transaction as graphium_owner."""
    conn.execute(RECORD.encode())


def _by_superuser(left: list[Difference]) -> DeployNotAllowedError:
    lines = "".join(f"\n  {printable(d.remedy or str(d))};" for d in left)
    return DeployNotAllowedError(
        f"changed by hand since the last migrate: {printable(', '.join(map(str, left)))}",
        f"As a superuser, and then graphium migrate again:{lines}",
    )


def _missing(conn: Connection, table: str) -> bool:
    return conn.execute("select to_regclass(%s) is null", [f"graphium_private.{table}"]).fetchone() == (True,)
