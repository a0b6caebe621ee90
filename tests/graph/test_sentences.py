"""Whatever the grammar lets through, AGE answers or refuses: no crash, no internal error of ours, nothing written."""

from __future__ import annotations

import os

import psycopg
from psycopg.types.json import Jsonb

from tests.graph.mirror import Taxonomy
from tests.graph.sentences import PARAMS, Sentences
from tests.support.databases import Database

# A soak: GRAPHIUM_SENTENCES=100000 python -m pytest tests/graph/test_sentences.py
HOW_MANY = int(os.environ.get("GRAPHIUM_SENTENCES", "600"))
SEED = int(os.environ.get("GRAPHIUM_SEED", "1"))


def test_sentences(db: Database) -> None:
    db.connect("admin").execute("select graphium.create_tenant('acme')")
    taxonomy = Taxonomy(db.connect(), "acme")
    taxonomy.small()
    before = taxonomy.assert_mirrored()
    caller = db.principal("acme", ["hr"])
    caller.execute("set statement_timeout = '10s'")
    sentences = Sentences(SEED)
    answered = 0
    for _ in range(HOW_MANY):
        query = sentences.next()
        code = None
        try:
            caller.execute("select graphium.cypher(%s, %s)", [query, Jsonb(PARAMS)])
            answered += 1
        except psycopg.Error as error:
            code = error.sqlstate or "connection"
        assert not caller.closed, f"the server went away on: {query}"
        # Refused, or cancelled by the timeout; never an error of our own functions.
        assert code in (None, "MG010", "57014"), f"{code} on: {query}"
    assert answered > HOW_MANY / 20
    assert taxonomy.assert_mirrored() == before
