"""Which rows dedup reads of a tenant that the statistics do not know yet, as in the middle of an import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.memory.conftest import ingest
from tests.memory.test_threshold import statements
from tests.support.databases import Connection, as_caller

LARGE, SMALL, DIMENSIONS = 2000, 7, 32


def rows_read(conn: Connection) -> int:
    """How many embeddings the transaction has found by indexes, or by reading a table."""
    row = conn.execute(
        "select sum(pg_stat_get_xact_tuples_returned(o.oid))::int"
        "  from pg_partition_tree('graphium.kg_embeddings') as t,"
        "       lateral (select t.relid as oid union all select indexrelid from pg_index where indrelid = t.relid) as o"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def unknown(boss: Connection, app: Connection, new_tenant: Callable[[int], str]) -> str:
    """A tenant that the statistics do not know, in the partition of one that they do."""
    known = new_tenant(DIMENSIONS)
    random = np.random.default_rng(1)
    fill(app, known, LARGE, random)
    boss.execute("analyze graphium.kg_embeddings")
    partitions = boss.execute(
        "select count(*) from pg_inherits where inhparent = 'graphium.kg_embeddings'::regclass"
    ).fetchone()
    assert partitions is not None
    for _ in range(20 * partitions[0]):
        new = new_tenant(DIMENSIONS)
        beside = boss.execute(
            "select from graphium.kg_embeddings e, graphium.tenants k, graphium.tenants n,"
            "            pg_get_expr((select relpartbound from pg_class where oid = e.tableoid), e.tableoid) as bound"
            " where k.slug = %s and n.slug = %s and e.tenant_id = k.id and satisfies_hash_partition('graphium.kg_embeddings'::regclass,"
            "       %s, substring(bound from 'remainder (\\d+)')::int, n.id) limit 1",
            [known, new, partitions[0]],
        ).fetchone()
        if beside is not None:
            return new
    raise AssertionError("no tenant came into the same partition")


def fill(app: Connection, tenant: str, count: int, random: Any) -> None:
    with as_caller(app, tenant):
        ingest(app, statements("large", random.normal(size=(count, DIMENSIONS)).astype(np.float32)), family="large")


def test_a_small_family_of_an_unknown_tenant_is_not_looked_for_in_a_large_one(app: Connection, unknown: str) -> None:
    random = np.random.default_rng(2)
    fill(app, unknown, LARGE, random)
    with as_caller(app, unknown):
        ingest(app, statements("first", random.normal(size=(SMALL, DIMENSIONS)).astype(np.float32)), family="small")
    with as_caller(app, unknown):
        before = rows_read(app)
        ingest(app, statements("then", random.normal(size=(SMALL, DIMENSIONS)).astype(np.float32)), family="small")
        read = rows_read(app) - before
    assert SMALL <= read < 20 * SMALL
