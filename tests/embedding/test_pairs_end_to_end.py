"""Our own pairs through the client and the database: the same merge, the others stay."""

from __future__ import annotations

from graphium_db import Graphium
from tests.embedding.pairs import APART, CASES_OF_A_NUMBER, TOGETHER
from tests.support.databases import Database


def test_pairs(db: Database, tenant: str) -> None:
    pairs = [*TOGETHER, *APART, *CASES_OF_A_NUMBER]
    with Graphium(db.dsn("app"), tenant=tenant) as memory:
        for number, pair in enumerate(pairs):
            first, second = memory.ingest_context(f"family {number}", "pairs", "pair", list(pair))
            assert (first.statement_id == second.statement_id) == (pair in TOGETHER), pair
