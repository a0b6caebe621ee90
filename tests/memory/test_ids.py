"""Ids are UUIDs of version 7, in order of birth."""

from __future__ import annotations

import time

from tests.memory.conftest import ingest
from tests.support.concurrency import all_at_once
from tests.support.databases import Connection, Database, as_caller


def test_version_variant_and_time(boss: Connection) -> None:
    before = time.time()
    rows = boss.execute("select graphium_private.new_id() from generate_series(1, 3000)").fetchall()
    after = time.time()
    ids = [r[0] for r in rows]
    assert {i.version for i in ids} == {7}
    assert {i.variant for i in ids} == {"specified in RFC 4122"}
    assert len(set(ids)) == len(ids)
    milliseconds = [i.int >> 80 for i in ids]
    assert before * 1000 - 2 <= min(milliseconds) <= max(milliseconds) <= after * 1000 + 2
    # The random part is random: 62 bits, all of them different.
    assert len({i.int & (1 << 62) - 1 for i in ids}) == len(ids)


def test_in_order_of_birth(shared: Database, app: Connection, admin: Connection) -> None:
    """Inside a batch, between batches and between sessions."""
    admin.execute("select graphium.create_tenant('ids', dimensions => 3)")
    ids = []
    for n in range(5):
        conn = (app, shared.connect("app"))[n % 2]
        with as_caller(conn, "ids"):
            ids += [r[1] for r in ingest(conn, [{"content": f"{n} {m}"} for m in range(200)])]
    assert ids == sorted(ids)


def test_no_two_alike_from_many_sessions(shared: Database) -> None:
    def many(conn: Connection) -> list[object]:
        return [r[0] for r in conn.execute("select graphium_private.new_id() from generate_series(1, 3000)")]

    connections = [shared.connect() for _ in range(4)]
    parts = all_at_once([lambda c=c: many(c) for c in connections])
    assert len({i for part in parts for i in part}) == 12000
