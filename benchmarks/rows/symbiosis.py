"""The hop along symbioses, from a primary hit to five neighbouring families.

The same search with and without the hop; what the hop costs is the difference of the two medians.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator

import numpy as np

from benchmarks.bench import Bench, Statement
from benchmarks.data import CALLER_SCOPES, binary
from benchmarks.filters import by_size
from benchmarks.measure import Bar, Line, interleave

BAR = Bar("≤ 1 ms", lambda added, _: added <= 1)
NEIGHBOURS = 5

SEARCH = """
select * from graphium.search_context(query_embedding => $1::vector, families => $2, follow_symbiosis => $3)
"""


def run(bench: Bench) -> Iterator[Line]:
    for memory in bench.everybody()[1:]:
        sizes = np.bincount(memory.rows.family, minlength=len(memory.family_ids))
        home = by_size(sizes, 500)
        neighbours = [int(n) for n in np.argsort(np.abs(sizes - 130), kind="stable") if n != home][:NEIGHBOURS]
        queries = bench.generator.around(np.repeat(memory.centres[[home]], bench.sizes.queries, axis=0))
        sent = [binary(q) for q in queries]
        with bench.superuser() as conn, bench.database.connect_as(memory.tenant.slug, CALLER_SCOPES) as caller:
            conn.execute("select graphium.set_caller(%s, is_local => false)", [memory.tenant.slug])
            edges = [
                conn.execute(
                    "select graphium.link_symbiosis('related_to', %s, %s)",
                    [json.dumps({"family": f"family {home}"}), json.dumps({"family": f"family {n}"})],
                ).fetchone()
                for n in neighbours
            ]
            search = Statement(caller, SEARCH)
            names = f'{{"family {home}"}}'
            hop, stay, _ = interleave(
                lambda i: search(sent[i], names, "true"), lambda i: search(sent[i], names, "false"), bench.sizes.queries
            )
            for edge in edges:
                assert edge is not None
                conn.execute("select graphium.unlink_symbiosis(%s)", edge)
            yield Line(
                f"{memory.size:,} rows, {len(neighbours)} families of {', '.join(f'{sizes[n]}' for n in neighbours)}",
                "ms",
                statistics.median(hop) - statistics.median(stay),
                bar=BAR,
                note=f"the search with the hop {statistics.median(hop):.2f}, without {statistics.median(stay):.2f}",
            )
