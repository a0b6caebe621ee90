"""The graph mirror: taxonomy inserts, against the same inserts without the mirror.

In bulk: families, genera and specimens by one statement each. Single: one specimen a statement. All of it in one
transaction that is rolled back, so that no commit hides the difference. The reference's tables have our keys and
foreign keys; of our triggers on a new family, the mirror is the one that they lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks import raw
from benchmarks.bench import Bench, Connection, Statement
from benchmarks.measure import Bar, Line, Run, rates, seconds

BULK = Bar("≥ 0.35×", lambda ours, raw: ours >= 0.35 * raw)
SINGLE = Bar("≥ 0.65×", lambda ours, raw: ours >= 0.65 * raw)
ROUNDS = 10

FAMILIES = (
    "insert into {0}.dh_families (tenant_id, id, name) select $1, t.id, t.id::text from unnest($2::uuid[]) as t(id)"
)
GENERA = "insert into {0}.dh_genera (tenant_id, id, family_id, name) select $1, t.id, t.id, t.id::text from unnest($2::uuid[]) as t(id)"
SPECIMENS = "insert into {0}.dh_specimens (tenant_id, id, family_id, genus_id, name) select $1, t.id, t.id, t.id, t.id::text from unnest($2::uuid[]) as t(id)"
ONE = "insert into {0}.dh_specimens (tenant_id, id, family_id, genus_id, name) values ($1, $2::uuid, $3, $3, ($2::uuid)::text)"

OTHER_TRIGGER = """
create table if not exists raw.family_counters (like graphium_private.family_counters including all);
create table if not exists raw.family_sums (like graphium_private.family_sums including all);
create or replace function raw.families_born() returns trigger language plpgsql as $$
begin
  insert into raw.family_counters (tenant_id, family_id) select n.tenant_id, n.id from new_rows n;
  insert into raw.family_sums (tenant_id, family_id) select n.tenant_id, n.id from new_rows n;
  return null;
end $$;
create or replace trigger families_born after insert on raw.dh_families
  referencing new table as new_rows for each statement execute function raw.families_born();
"""


def run(bench: Bench) -> Iterator[Line]:
    tenant = str(bench.tenant("mirrored").id)
    ids = [str(id) for id in bench.generator.ids(bench.sizes.taxa)]
    listed = "{" + ",".join(ids) + "}"
    with bench.superuser() as conn:
        raw.make(conn)
        conn.execute(OTHER_TRIGGER.encode())

        def bulk(schema: str) -> Run:
            steps = [Statement(conn, text.format(schema)) for text in (FAMILIES, GENERA, SPECIMENS)]

            def insert(_: int) -> None:
                for step in steps:
                    step(tenant, listed)

            return insert

        def single(schema: str) -> Run:
            one = Statement(conn, ONE.format(schema))

            def insert(_: int) -> None:
                for id in ids[1:]:
                    one(tenant, id, ids[0])

            return insert

        def parents(schema: str) -> None:
            for text in (FAMILIES, GENERA):
                conn.execute(
                    text.format(schema).replace("$1", "%s").replace("$2", "%s").encode(), [tenant, "{" + ids[0] + "}"]
                )

        yield rates(
            f"{len(ids):,} families, genera and specimens, in bulk", 3 * len(ids),
            *_rolled_back(conn, bulk("graphium"), bulk("raw"), lambda _: None), BULK,
        )  # fmt: skip
        yield rates(
            f"{len(ids) - 1:,} specimens, one by one", len(ids) - 1,
            *_rolled_back(conn, single("graphium"), single("raw"), parents), SINGLE,
        )  # fmt: skip


def _rolled_back(
    conn: Connection, ours: Run, reference: Run, before: Callable[[str], None]
) -> tuple[list[float], list[float]]:
    taken: tuple[list[float], list[float]] = ([], [])
    for n in range(ROUNDS + 1):
        for which in ((0, 1), (1, 0))[n % 2]:
            with conn.transaction(force_rollback=True):
                before(("graphium", "raw")[which])
                taken[which].append(1000 * seconds((ours, reference)[which]))
    return taken[0][1:], taken[1][1:]
