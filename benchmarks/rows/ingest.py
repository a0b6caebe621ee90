"""ingest_context in batches of 500, against a raw insert … select of the same input, parsed before.

The reference's tables are ours without triggers and policies (benchmarks/raw.py). Its input stands parsed in a table:
ids chosen, text classified, vector read. So its time is that of the storage: rows, keys, foreign keys, indexes. It adds
the words to the inverted index too, which is one of our tables; a line says what it costs without.
Each batch goes into another family, which holds some hundred statements.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator

import numpy as np
from pgvector import Vector
from pgvector.psycopg import register_vector

from benchmarks import raw
from benchmarks.bench import Bench, Connection, Statement
from benchmarks.data import Memory, Rows, load
from benchmarks.measure import Bar, Line, interleave, rates
from graphium_db.calls import vector_text

WITHOUT_INDEX = Bar("≥ 0.4×", lambda ours, raw: ours >= 0.4 * raw)
WITH_INDEX = Bar("≥ 0.8×", lambda ours, raw: ours >= 0.8 * raw)
BATCH = 500
FAMILY = 100

OURS = "select * from graphium.ingest_context(family => $1, genus => $2, specimen => $3, statements => $4::jsonb)"

REFERENCE = (
    """
    insert into raw.kg_statements (tenant_id, id, family_id, genus_id, specimen_id, content, memory_type, layer_kind, rule, required_scopes)
    select p.tenant_id, p.id, p.family_id, p.genus_id, p.specimen_id, p.content, p.memory_type, p.layer_kind, p.rule, p.required_scopes
      from raw.parsed p where p.batch = $1
    """,
    """
    insert into raw.kg_embeddings (tenant_id, statement_id, family_id, genus_id, specimen_id, memory_type, layer_kind, required_scopes, happened_at, embedding)
    select p.tenant_id, p.id, p.family_id, p.genus_id, p.specimen_id, p.memory_type, p.layer_kind, p.required_scopes, now(), p.embedding
      from raw.parsed p where p.batch = $1
    """,
    """
    insert into raw.postings (tenant_id, audience_key, statement_id, word_key, occurrences, length, required_scopes)
    select p.tenant_id, 7, p.id, hashtextextended(w.word, 7), w.occurrences, cardinality(d.words), p.required_scopes
      from raw.parsed p,
           lateral (select graphium_private.words_v1(p.content) as words offset 0) as d,
           lateral (select u.word, count(*) as occurrences from unnest(d.words) as u(word) group by u.word) as w
     where p.batch = $1
    """,
)

PARSED = """
create unlogged table raw.parsed (batch int, tenant_id uuid, id uuid, family_id uuid, genus_id uuid, specimen_id uuid, content text,
  memory_type text, layer_kind text, rule text, required_scopes text[], embedding vector);
create index on raw.parsed (batch);
"""


def run(bench: Bench) -> Iterator[Line]:
    batches = bench.sizes.batches
    # families enough for every batch of the two lines without an index
    memory = bench.generator.memory(bench.tenant("ingested"), 0, family_sizes=[FAMILY] * (2 * batches + 4))
    with bench.superuser() as conn:
        load(conn, memory)
        raw.copy_tenant(conn, memory.tenant)
    yield from _compare(bench, memory, batches, 0, WITHOUT_INDEX, "no HNSW")
    yield from _compare(bench, memory, batches, batches + 2, None, "no HNSW; the reference without words", words=False)

    for indexed in (m for m in bench.everybody() if m.size >= bench.sizes.hnsw_from):
        with bench.superuser() as conn:
            raw.copy_tenant(conn, indexed.tenant)
        yield from _compare(bench, indexed, bench.sizes.hnsw_batches, 0, WITH_INDEX, f"HNSW of {indexed.size:,}")


def _compare(
    bench: Bench, memory: Memory, batches: int, first: int, bar: Bar | None, case: str, *, words: bool = True
) -> Iterator[Line]:
    """Time `batches` batches each, in families that are as near to a hundred statements as there are."""
    sizes = np.bincount(memory.rows.family, minlength=len(memory.family_ids))
    warm_up = 2
    families = np.argsort(np.abs(sizes - FAMILY), kind="stable")[first : first + batches + warm_up]
    rows = bench.generator.rows(memory.centres, np.repeat(families, BATCH))
    inputs = [as_json(rows, slice(BATCH * n, BATCH * (n + 1))) for n in range(len(families))]
    with bench.superuser() as conn, bench.database.connect_as(memory.tenant.slug) as caller:
        _parse(conn, memory, rows)
        ingest = Statement(caller, OURS)
        begin, commit = Statement(conn, "begin"), Statement(conn, "commit")
        steps = [Statement(conn, text) for text in REFERENCE[: 3 if words else 2]]

        def ours(n: int) -> None:
            ingest(f"family {families[n]}", f"genus {families[n] * 2}", f"specimen {families[n] * 4}", inputs[n])

        def reference(n: int) -> None:
            begin()
            for step in steps:
                step(str(n))
            commit()

        # no warming up beforehand: a batch that is sent twice is deduplicated
        backends = (caller.info.backend_pid, conn.info.backend_pid)
        taken = interleave(ours, reference, len(families), warm_up=0, backends=backends)
        yield rates(
            f"batches of {BATCH}, families of {statistics.median(sizes[families]):.0f}, {case}",
            BATCH,
            taken.ours[warm_up:],
            taken.reference[warm_up:],
            bar,
            taken.told(),
            series="" if not words else "ingest_context",
            at=memory.size if "HNSW of" in case else 0,
        )


def as_json(rows: Rows, part: slice) -> str:
    return json.dumps(
        [
            {"content": content, "embedding": vector_text(vector)}
            for content, vector in zip(rows.contents[part], rows.vectors[part], strict=True)
        ]
    )


def _parse(conn: Connection, memory: Memory, rows: Rows) -> None:
    register_vector(conn)
    conn.execute(b"drop table if exists raw.parsed")
    conn.execute(PARSED.encode())
    with conn.cursor().copy(
        "copy raw.parsed (batch, tenant_id, id, family_id, genus_id, specimen_id, content, embedding) from stdin (format binary)"
    ) as copy:
        copy.set_types(["int4", *["uuid"] * 5, "text", "vector"])
        for i, family in enumerate(rows.family.tolist()):
            taxa = (memory.family_ids[family], memory.genus_ids[2 * family], memory.specimen_ids[4 * family])
            copy.write_row(
                (i // BATCH, memory.tenant.id, rows.ids[i], *taxa, rows.contents[i], Vector(rows.vectors[i]))
            )
    conn.execute(
        "update raw.parsed p set (memory_type, layer_kind, rule) = (select c.memory_type, c.layer_kind, c.rule from graphium.classify(p.content) c), required_scopes = '{}'"
    )
    conn.execute("vacuum (analyze) raw.parsed")
