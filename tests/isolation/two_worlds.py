"""Two worlds that differ only in what is hidden from a caller, and all that he gets when he says the same in both.

A world is a tenant. Somebody furnishes it with what the caller may see; in the middle of that somebody else may hide
something in it. Then the caller goes through his calls, and a transcript records everything that comes back: columns,
rows in their order, command tags, notices, and of an error every field that a client can read. Ids become names, in the
order in which they show up; times, the tenant's slug and the login become words.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from tests.support.databases import Connection, Database, as_caller

HIDDEN = ("statement", "family", "genus", "specimen", "edge")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=graphium_)[0-9a-f]{32}")


class World:
    """A tenant, with the connections that act in it."""

    def __init__(self, db: Database, slug: str, app: Connection, admin: Connection, boss: Connection) -> None:
        self.db, self.slug, self.app, self.admin, self.boss = db, slug, app, admin, boss
        admin.execute("select graphium.create_tenant(slug => %s, dimensions => 4)", [slug])
        self.ids: dict[str, UUID] = {}

    def say(
        self,
        content: str | Sequence[dict[str, Any]],
        vector: Sequence[float] | None = None,
        scopes: Sequence[str] = (),
        family: str = "work",
        genus: str = "notes",
        specimen: str = "Ada",
        born: Sequence[str] | None = None,
        **more: Any,
    ) -> list[UUID]:
        """Statements for `scopes`, by somebody who holds them; what is new of their taxa is born for `born`."""
        one = {"content": content, "embedding": vector, "required_scopes": list(scopes), **more}
        statements = [one] if isinstance(content, str) else [{"required_scopes": list(scopes), **s} for s in content]
        with as_caller(self.app, self.slug, ["hr", *scopes, *(born or ())]):
            rows = self.app.execute(
                "select statement_id from graphium.ingest_context(%s, %s, %s, %s, %s)",
                [family, genus, specimen, Jsonb(statements), list(scopes if born is None else born)],
            ).fetchall()
        return [row[0] for row in rows]

    def link(self, kind: str, source: dict[str, Any] | UUID, target: dict[str, Any] | UUID) -> UUID:
        ends = [Jsonb({"statement_id": str(e)} if isinstance(e, UUID) else e) for e in (source, target)]
        return self.as_admin("select graphium.link_symbiosis(%s, %s, %s, 'note')", kind, *ends)  # type: ignore[no-any-return]

    def as_admin(self, query: str, *arguments: Any) -> Any:
        with as_caller(self.admin, self.slug):
            row = self.admin.execute(query.encode(), list(arguments)).fetchone()
        return row[0] if row else None

    def id_of(self, table: str, name: str) -> UUID:
        row = self.boss.execute(
            f"select r.id from graphium.{table} r join graphium.tenants t on t.id = r.tenant_id"
            " where t.slug = %s and r.name = %s".encode(),
            [self.slug, name],
        ).fetchone()
        assert row is not None
        assert isinstance(row[0], UUID)
        return row[0]

    def name_ids(self) -> None:
        """Where a world hides nothing, what it might have hidden has ids that are as old, and of nobody."""
        for name in HIDDEN:
            row = self.boss.execute("select graphium_private.new_id()").fetchone()
            assert row is not None
            self.ids[name] = self.ids.pop(name, row[0])  # in this order everywhere


class Transcript:
    """What one caller of a world is told, call by call."""

    def __init__(self, world: World, conn: Connection, scopes: Sequence[str] | None) -> None:
        """`scopes` None: `conn` is a principal's, who is who he is."""
        self.world, self.conn, self.is_principal = world, conn, scopes is None
        self.names: dict[str, str] = {}
        for name, id in world.ids.items():
            self.names[id.hex] = f"<{name}>"
        self.lines: list[Any] = []
        self._notices: list[str] = []
        if scopes is not None:
            conn.execute("select graphium.set_caller(%s, %s, is_local => false)", [world.slug, list(scopes)])
        conn.add_notice_handler(lambda diag: self._notices.append(f"{diag.severity}: {diag.message_primary}"))

    def __call__(self, query: str, *arguments: Any) -> list[Any]:
        """Run one call in a transaction of its own. Its rows, as they came; none after an error."""
        self._notices.clear()
        rows: list[Any] = []
        try:
            cursor = self.conn.execute(query.encode(), list(arguments))
            told: Any = cursor.statusmessage
            if cursor.description:
                rows = cursor.fetchall()
                told = (told, [c.name for c in cursor.description], [self.plain(row) for row in rows])
        except psycopg.Error as error:
            d = error.diag
            told = [
                self.plain(value)
                for value in (d.sqlstate, d.severity, d.message_primary, d.message_detail, d.message_hint, d.context,
                              d.schema_name, d.table_name, d.column_name, d.constraint_name, d.datatype_name,
                              d.source_function, d.statement_position, d.internal_query)
            ]  # fmt: skip
        self.lines.append((self.plain(query), self.plain(arguments), told, list(self._notices)))
        return rows

    def plain(self, value: Any) -> Any:
        if isinstance(value, UUID):
            return self._name(value.hex)
        if isinstance(value, datetime.datetime):
            return "<time>"
        if isinstance(value, str):
            text = _ID.sub(lambda m: self._name(m[0].replace("-", "")), value)
            text = text.replace(self.world.slug, "<tenant>").replace(self.conn.info.user, "<login>")
            return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*[+]\d\d", "<time>", text)
        if isinstance(value, dict):
            return {self.plain(k): self.plain(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(v) for v in value]
        if isinstance(value, Jsonb):
            return self.plain(value.obj)
        return value

    def _name(self, id: str) -> str:
        return self.names.setdefault(id, f"<id {len(self.names)}>")


Script = Callable[[Transcript, dict[str, UUID]], None]


def differences(one: Transcript, other: Transcript) -> list[tuple[Any, Any]]:
    """Calls that were answered differently. None: the two worlds cannot be told apart by this script."""
    return [(a, b) for a, b in itertools.zip_longest(one.lines, other.lines) if a != b]
