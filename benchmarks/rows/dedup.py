"""The dedup check in a large family, against an exact scan of it; and whether it is right.

What the check costs is the difference between one statement ingested into the large family and one into a family of a
hundred. The reference is what a plain table would be asked: the nearest of the family, without an index.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator

import numpy as np
from pgvector import Vector

from benchmarks.bench import Bench, Statement
from benchmarks.data import Floats, binary, load
from benchmarks.measure import Bar, Line, percentile, seconds

COST = Bar("≤ 0.08×", lambda ours, raw: ours <= 0.08 * raw)
MISSES = Bar("no miss", lambda missed, _: missed == 0)
FALSE = Bar("no false merge", lambda merged, _: merged == 0)
BATCH = 500

OURS = "select * from graphium.ingest_context(family => $1, genus => $2, specimen => $3, statements => $4::jsonb)"
REFERENCE = """
select e.statement_id, e.embedding <=> $1::vector as distance
  from graphium.kg_embeddings e
 where e.tenant_id = '{tenant}' and e.family_id = '{family}'
 order by e.embedding <=> $1::vector limit 1
"""


def run(bench: Bench) -> Iterator[Line]:
    size, count = bench.sizes.family, min(bench.sizes.queries, 200)
    memory = bench.generator.memory(bench.tenant("deduplicated"), 0, family_sizes=[size, 100])
    with bench.superuser() as conn:
        load(conn, memory)
    with bench.superuser() as conn, bench.database.connect_as("deduplicated") as caller:
        ingest = Statement(caller, OURS)
        scan = Statement(conn, REFERENCE.format(tenant=memory.tenant.id, family=memory.family_ids[0]))
        new = bench.generator.rows(memory.centres, np.repeat([0, 1], count))
        inputs = [_as_json(new.contents[i : i + 1], new.vectors[i : i + 1]) for i in range(len(new))]
        large, small, exact = [], [], []
        for i in range(count):
            large.append(1000 * seconds(lambda i: ingest("family 0", "genus 0", "specimen 0", inputs[i]), i))
            small.append(1000 * seconds(lambda i: ingest("family 1", "genus 2", "specimen 4", inputs[i]), count + i))
            exact.append(1000 * seconds(lambda i: scan(binary(new.vectors[i])), i))
        yield Line(
            f"family of {size:,}",
            "ms",
            statistics.median(large) - statistics.median(small),
            statistics.median(exact),
            reference_p95=percentile(exact, 0.95),
            bar=COST,
            note=f"one statement into the large family {statistics.median(large):.2f}, into the small one {statistics.median(small):.2f}",
        )

        planted = bench.sizes.planted
        sources = np.flatnonzero((memory.rows.family == 0) & (memory.rows.audience == 0))
        chosen = memory.rows.vectors[bench.generator.random.choice(sources, planted, replace=planted > len(sources))]
        for case, low, high, wanted, bar in (
            ("near-duplicates at 0.9990 to 1.0", 0.999, 1.0, True, MISSES),
            ("others at 0.9980 to 0.9989", 0.998, 0.9989, False, FALSE),
        ):
            cosines = bench.generator.random.uniform(low + 1e-7, high, planted)
            near = bench.generator.near(chosen, cosines)
            certain = _cosines(chosen, near) >= 0.999
            near = near[certain == wanted]
            # numbered: equal texts would be folded as such, whatever their vectors
            contents = [f"{text} {n}" for n, text in enumerate(bench.generator.sentences(len(near)))]
            folded = 0
            for start in range(0, len(near), BATCH):
                part = slice(start, start + BATCH)
                with caller.transaction(force_rollback=True):
                    row = caller.execute(
                        "select count(*) filter (where deduplicated) from graphium.ingest_context('family 0', 'genus 0', 'specimen 0', %s)",
                        [_as_json(contents[part], near[part])],
                    ).fetchone()
                    assert row is not None
                    folded += row[0]
            yield Line(
                f"{len(near):,} planted {case}",
                "missed" if wanted else "merged",
                len(near) - folded if wanted else folded,
                bar=bar,
            )


def _as_json(contents: list[str], vectors: Floats) -> str:
    return json.dumps(
        [
            {"content": c, "embedding": Vector(v).to_text(), "required_scopes": []}
            for c, v in zip(contents, vectors, strict=True)
        ]
    )


def _cosines(a: Floats, b: Floats) -> Floats:
    x, y = a.astype(np.float64), b.astype(np.float64)
    cosines: Floats = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    return cosines
