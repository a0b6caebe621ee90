"""`graphium import` of statements with vectors into an empty tenant, against COPY into the same tables and their indexes.

Ours is the command, from starting Python to its exit; its lines are those of `graphium export`, and vectors. The reference COPYs rows that are ready (ids, labels, binary vectors)
into our tables without triggers and indexes, then makes every key and index. The inverted index of words is a table of
ours, so the reference fills that too, by one statement (without its key, too); a line says what it costs without. The HNSW
index is the same either way, so another line adds it to both: `graphium maintain`, and the same `create index`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import raw
from benchmarks.bench import Bench, Connection, maintain
from benchmarks.data import AUDIENCES, MEMORY_TYPES, Memory, write_rows
from benchmarks.measure import Bar, Line
from graphium_db.calls import vector_text

BAR = Bar("≥ 0.5×", lambda ours, raw: ours >= 0.5 * raw)

# of the large tables: the taxonomy is small, and there before the COPY
INDEXES = """
select format('drop index raw.%I', c.relname), pg_get_indexdef(i.indexrelid)
  from pg_index i join pg_class c on c.oid = i.indexrelid
 where i.indrelid in ('raw.kg_statements'::regclass, 'raw.kg_embeddings'::regclass, 'raw.postings'::regclass) and not i.indisprimary
   and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
"""
CONSTRAINTS = """
select format('alter table %s drop constraint %I', conrelid::regclass, conname),
       format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  from pg_constraint
 where conrelid in ('raw.kg_statements'::regclass, 'raw.kg_embeddings'::regclass, 'raw.postings'::regclass) and contype in ('f', 'p', 'u') and conparentid = 0
 order by array_position('{p,u,f}'::"char"[], contype), conrelid desc
"""


WORDS = """
insert into raw.postings (tenant_id, audience_key, statement_id, word_key, occurrences, length, required_scopes)
select s.tenant_id, hashtextextended(s.required_scopes::text, 7), s.id, hashtextextended(w.word, 7), w.occurrences, cardinality(d.words), s.required_scopes
  from raw.kg_statements s,
       lateral (select graphium_private.words_v1(s.content) as words offset 0) as d,
       lateral (select u.word, count(*) as occurrences from unnest(d.words) as u(word) group by u.word) as w
"""


def run(bench: Bench) -> Iterator[Line]:
    size = bench.sizes.imported
    memory = bench.generator.memory(bench.tenant("imported"), size)
    with bench.superuser() as conn:
        raw.make(conn)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "statements.jsonl"
            _write(memory, file)
            ours = _import(bench, file)
        bare, reference = (_copy(conn, memory, words) for words in (False, True))
        for case, seconds, bar in (("", reference, BAR), ("; the reference without words", bare, None)):
            yield Line(
                f"{size:,} statements{case}",
                "rows/s",
                size / ours,
                size / seconds,
                bar=bar,
                note=f"{ours:.1f} s and {seconds:.1f} s",
            )
        start = time.perf_counter()
        if not maintain(conn, memory.tenant):
            return
        build = time.perf_counter() - start
        yield Line(
            f"{size:,} statements, and the HNSW index",
            "rows/s",
            size / (ours + build),
            size / (reference + build),
            note=f"the index takes {build:.1f} s, here and there",
        )


def _write(memory: Memory, file: Path) -> None:
    rows = memory.rows
    with file.open("w", encoding="utf-8") as lines:
        for i in range(len(rows)):
            specimen = int(rows.specimen[i])
            line = {
                "family": f"family {memory.family_of(specimen)}",
                "genus": f"genus {memory.genus_of(specimen)}",
                "specimen": f"specimen {specimen}",
                "content": rows.contents[i],
                "embedding": vector_text(rows.vectors[i]),
                "memory_type": MEMORY_TYPES[rows.memory_type[i]],
                "layer_kind": "on_demand",
                "required_scopes": AUDIENCES[rows.audience[i]],
            }
            lines.write(json.dumps(line) + "\n")


def _import(bench: Bench, file: Path) -> float:
    environment = {
        **os.environ,
        "GRAPHIUM_DSN": bench.database.app,
        "GRAPHIUM_TENANT": "imported",
        "GRAPHIUM_SCOPES": "hr,board",
    }
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "graphium_db.cli", "import", str(file)], check=True, env=environment, capture_output=True
    )
    return time.perf_counter() - start


def _copy(conn: Connection, memory: Memory, words: bool) -> float:
    """Seconds of COPY and of making the indexes. The tables are empty but for what other rows left: it is taken out."""
    conn.execute("truncate raw.dh_families, raw.postings cascade")
    tenant = memory.tenant
    conn.execute(
        "insert into raw.dh_families (tenant_id, id, name) select %s, id, name from unnest(%s::uuid[], %s::text[]) as t(id, name)",
        [tenant.id, memory.family_ids, [f"family {n}" for n in range(len(memory.family_ids))]],
    )
    conn.execute(
        "insert into raw.dh_genera (tenant_id, id, family_id, name) select %s, id, f, id::text from unnest(%s::uuid[], %s::uuid[]) as t(id, f)",
        [tenant.id, memory.genus_ids, [memory.family_ids[n // 2] for n in range(len(memory.genus_ids))]],
    )
    conn.execute(
        "insert into raw.dh_specimens (tenant_id, id, family_id, genus_id, name) "
        "select %s, id, f, g, id::text from unnest(%s::uuid[], %s::uuid[], %s::uuid[]) as t(id, f, g)",
        [
            tenant.id,
            memory.specimen_ids,
            [memory.family_ids[memory.family_of(n)] for n in range(len(memory.specimen_ids))],
            [memory.genus_ids[memory.genus_of(n)] for n in range(len(memory.specimen_ids))],
        ],
    )
    indexes = conn.execute(INDEXES.encode()).fetchall()
    constraints = conn.execute(CONSTRAINTS.encode()).fetchall()
    for drop, _ in [*reversed(constraints), *indexes]:
        conn.execute(drop.encode())
    start = time.perf_counter()
    with conn.transaction():
        write_rows(conn, memory, "raw")
        if words:
            conn.execute(WORDS.encode())
        for _, make in [*constraints, *indexes]:
            conn.execute(make.encode())
    return time.perf_counter() - start
