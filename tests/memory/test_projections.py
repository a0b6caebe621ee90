"""Near-duplicates found by projections are those that comparing with everything finds.

The module's database projects every family of 20 embeddings and every batch of 4, so that the tests of dedup itself,
which run here once more, go that way too. At the end of each module check_memory() compares all projections.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.memory.conftest import hanging_up, ingest
from tests.memory.model import THRESHOLD
from tests.memory.test_ingest_against_model import (  # noqa: F401  (both run here too)
    tenants,
    test_agrees_with_the_model,
)
from tests.memory.test_threshold import planted, statements, test_at_many_dimensions, test_on_the_right_side  # noqa: F401
from tests.support.concurrency import in_thread, wait_until_blocked
from tests.support.databases import Cluster, Connection, Database, as_caller

LEAST = 20
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def shared(cluster: Cluster) -> Iterator[Database]:
    database = Database(cluster, cluster.take())
    try:
        with database.connect() as conn:
            conn.execute(
                "update graphium_private.settings s set value = v.value"
                " from (values ('projected_family_min', 20), ('projected_batch_min', 4)) as v(name, value)"
                " where s.name = v.name"
            )
        yield database
        assert database.ailments() == []
    finally:
        database.close()
        cluster.give_back(database.name)


@pytest.fixture
def family() -> str:
    return f"projected {next(numbers)}"


@pytest.fixture
def tenant(new_tenant: Callable[[int], str]) -> str:
    return new_tenant(3)


def around(random: np.random.Generator, count: int, dimensions: int = 3) -> list[dict[str, Any]]:
    vectors = random.normal(size=(count, dimensions)).astype(np.float32)
    return statements(f"{next(numbers)}", vectors)


def projected(boss: Connection, family: str) -> tuple[int | None, int]:
    """How many embeddings its directions were made for (None: it has none), and how many are projected."""
    row = boss.execute(
        "select (select d.embeddings from graphium_private.directions d where d.family_id = f.id),"
        "       (select count(*) from graphium_private.projections p where p.family_id = f.id)"
        "  from graphium.dh_families f where f.name = %s",
        [family],
    ).fetchone()
    assert row is not None
    return row[0], row[1]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 7, 384, 3000])
def test_directions_are_unit_vectors_at_right_angles(boss: Connection, dimensions: int) -> None:
    random = np.random.default_rng(dimensions)
    for spread in (0.0, 1e-6, 0.1, 1.0):
        vectors = (1 + spread * random.normal(size=(60, dimensions))).astype(np.float32)
        row = boss.execute(
            "select graphium_private._find_directions(%s::vector[])::text[]", [[str(v.tolist()) for v in vectors]]
        ).fetchone()
        assert row is not None
        found = np.array([np.array(d.strip("[]").split(","), dtype=float) for d in row[0]])
        assert 1 <= len(found) <= min(8, dimensions)
        assert np.abs(found @ found.T - np.eye(len(found))).max() < 1e-5
        if spread == 1.0:
            assert len(found) == min(8, dimensions)


def test_a_family_crosses_the_threshold_up_and_down(
    boss: Connection, app: Connection, admin: Connection, tenant: str, family: str
) -> None:
    random = np.random.default_rng(1)
    ids: list[Any] = []

    def grow(count: int) -> None:
        with as_caller(app, tenant):
            ids.extend(row[1] for row in ingest(app, around(random, count), family=family))

    grow(LEAST - 1)
    assert projected(boss, family) == (None, 0)
    grow(1)
    assert projected(boss, family) == (None, 0)  # it was small when this ingest looked
    grow(3)
    made, rows = projected(boss, family)
    assert made is not None
    assert LEAST - 3 <= made <= LEAST
    stored = count(boss, family)
    assert rows == stored
    while count(boss, family) < 4 * made:
        grow(10)
    grow(1)
    again, rows = projected(boss, family)
    assert again is not None
    assert again >= 4 * made
    assert rows == count(boss, family)
    with as_caller(app, tenant):
        app.execute("select graphium.forget_context(%s)", [sorted(set(ids))[5:]])
    assert projected(boss, family) == (None, 0)  # some of what they were made of is gone
    with as_caller(app, tenant):
        app.execute("select graphium.forget_context(%s)", [sorted(set(ids))[4:]])
    assert projected(boss, family) == (None, 0)
    grow(30)
    grow(1)
    assert projected(boss, family)[0] is not None
    row = boss.execute("select id from graphium.dh_families where name = %s", [family]).fetchone()
    assert row is not None
    with as_caller(admin, tenant):
        admin.execute("select graphium.forget_taxon('family', %s)", [row[0]])
    for table in ("directions", "projections"):
        left = boss.execute(f"select count(*) from graphium_private.{table} where family_id = %s".encode(), [row[0]])
        assert left.fetchone() == (0,)


@pytest.mark.parametrize(("seen", "hidden"), [(2 * LEAST, 2 * LEAST), (LEAST // 2, 3 * LEAST)])
def test_directions_say_nothing_of_what_some_readers_do_not_see(
    boss: Connection, app: Connection, tenant: str, family: str, seen: int, hidden: int
) -> None:
    """Whoever counts what his ingests read can measure them."""
    random = np.random.default_rng(6)
    directions = "select directions::text from graphium_private.directions d join graphium.dh_families f on f.id = d.family_id where f.name = %s"
    made = []
    with as_caller(app, tenant):
        ingest(app, [], family=family)  # open to all
        ingest(app, around(random, seen), family=family)
    for _ in range(2):
        with as_caller(app, tenant, ["hr"]):
            ingest(app, around(random, hidden), family=family, required_scopes=["hr"])
            ingest(app, statements(f"hr {next(numbers)}", np.array([[1, 2, 3]])), family=family, required_scopes=["hr"])
        made += boss.execute(directions, [family]).fetchall()
        boss.execute("delete from graphium_private.directions")
    assert len(made) == 2
    assert made[0] == made[1]


@pytest.mark.parametrize("change", [
    "select graphium.forget_context(array[{id}]::uuid[])",
    "select graphium.set_required_scopes('statement', {id}, '{{hr}}')",
    "select graphium.set_required_scopes('family', family_id, '{{hr}}') from graphium.kg_statements where id = {id}",
])  # fmt: skip
def test_directions_go_with_what_they_were_made_of(
    boss: Connection, app: Connection, admin: Connection, tenant: str, family: str, change: str
) -> None:
    """Else who sees less than was seen then solves them for what is hidden from him now."""
    random = np.random.default_rng(7)
    with as_caller(app, tenant):
        ids = [row[1] for row in ingest(app, around(random, 3 * LEAST), family=family)]
        ingest(app, around(random, 1), family=family)
    assert projected(boss, family)[0] is not None
    with as_caller(admin, tenant):
        admin.execute(change.format(id=f"'{ids[7]}'").encode())
    assert projected(boss, family) == (None, 0)
    with as_caller(app, tenant, ["hr"]):
        ingest(app, around(random, 1), family=family)
    made, rows = projected(boss, family)
    assert made is not None
    assert rows == count(boss, family)


@pytest.mark.parametrize(
    ("audience", "scopes"),
    [([], ["{public}", "{}", "{hr,public}"]), (["hr"], ["{hr,legal}", "{}", "{legal,public}", "{hr}"])],
)
def test_directions_stay_while_all_readers_of_the_family_see_what_they_were_made_of(
    boss: Connection, app: Connection, tenant: str, family: str, audience: list[str], scopes: list[str]
) -> None:
    """Else a writer who edits to and fro has the next ingest, whoever's, make all of them anew."""
    random = np.random.default_rng(8)
    with as_caller(app, tenant, ["hr", "legal"]):
        ids = [row[1] for row in ingest(app, around(random, 3 * LEAST), family=family, required_scopes=audience)]
        ingest(app, around(random, 1), family=family, required_scopes=audience)
    made = projected(boss, family)
    assert made[0] is not None
    for wider in scopes:
        with as_caller(app, tenant, ["hr", "legal"]):
            edited = app.execute("select graphium.set_required_scopes('statement', %s, %s)", [ids[7], wider])
            assert edited.fetchone() == (1,)
        assert projected(boss, family) == made
    with as_caller(app, tenant, ["hr", "legal"]):
        app.execute("select graphium.set_required_scopes('statement', %s, '{legal}')", [ids[7]])
    assert projected(boss, family) == (None, 0)


def count(boss: Connection, family: str) -> int:
    row = boss.execute(
        "select count(*) from graphium.kg_embeddings e join graphium.dh_families f on f.id = e.family_id where f.name = %s",
        [family],
    ).fetchone()
    assert row is not None
    found: int = row[0]
    return found


@pytest.mark.parametrize("dimensions", [3, 384])
def test_any_history_finds_what_brute_force_finds(
    boss: Connection, app: Connection, admin: Connection, new_tenant: Callable[[int], str], family: str, dimensions: int
) -> None:
    random = np.random.default_rng(dimensions)
    tenant = new_tenant(dimensions)
    with as_caller(app, tenant):
        ingest(app, [], family=family)  # open to all
    known: dict[Any, np.ndarray[Any, Any]] = {}
    audience: dict[Any, tuple[str, ...]] = {}
    for _ in range(12):
        ones, others = planted_at(random, 25, dimensions)
        scopes = [(), ("hr",), ("legal",)][random.integers(3)]
        with as_caller(app, tenant, ["hr", "legal"]):
            rows = ingest(app, statements(f"{next(numbers)}", ones), family=family, required_scopes=list(scopes))
        for row, vector in zip(rows, ones, strict=True):
            if not row[2]:
                known[row[1]], audience[row[1]] = vector, scopes
        gone = list(random.choice(sorted(known), 3, replace=False))
        edited = list(random.choice(sorted(set(known) - set(gone)), 3, replace=False))
        with as_caller(admin, tenant):
            admin.execute("select graphium.forget_context(%s)", [gone])
            for id in edited:
                admin.execute("select graphium.set_required_scopes('statement', %s, '{legal}')", [id])
        for id in gone:
            del known[id], audience[id]
        for id in edited:
            audience[id] = ("legal",)
        changed = sorted(known)[0]  # as only a superuser can
        known[changed] = random.normal(size=dimensions).astype(np.float32)
        boss.execute(
            "update graphium.kg_embeddings set embedding = %s::vector where statement_id = %s",
            [str(known[changed].tolist()), changed],
        )
        held = [["hr"], ["legal"], []][random.integers(3)]
        scopes = tuple(held)
        with as_caller(app, tenant, held), app.transaction(force_rollback=True):
            rows = ingest(app, statements(f"{next(numbers)}", others), family=family, required_scopes=list(scopes))
        ids = [id for id in sorted(known) if audience[id] == scopes]
        units = np.array([known[id] for id in ids] or np.zeros((0, dimensions)), dtype=float)
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        mates = others.astype(float) / np.linalg.norm(others.astype(float), axis=1, keepdims=True)
        for n, row in enumerate(rows):
            if row[1] in known or (len(ids) and (units @ mates[n]).max() >= THRESHOLD):
                cosines = dict(zip(ids, units @ mates[n], strict=True))
                assert row[2]
                assert cosines[row[1]] >= THRESHOLD
                assert cosines[row[1]] == pytest.approx(max(cosines.values()), abs=1e-6)
    assert projected(boss, family) in ((None, 0), (projected(boss, family)[0], len(known)))


def planted_at(random: np.random.Generator, count: int, dimensions: int) -> tuple[Any, Any]:
    ones = random.normal(size=(count, dimensions))
    aside = random.normal(size=ones.shape)
    aside -= ones * np.sum(aside * ones, axis=1, keepdims=True) / np.sum(ones * ones, axis=1, keepdims=True)
    cosines = random.uniform(0.9985, 1, size=(count, 1))
    unit = ones / np.linalg.norm(ones, axis=1, keepdims=True)
    others = unit * cosines + aside / np.linalg.norm(aside, axis=1, keepdims=True) * np.sqrt(1 - cosines**2)
    return ones.astype(np.float32), (others * random.uniform(0.1, 9, size=(count, 1))).astype(np.float32)


def test_another_similarity_makes_wider_cells(boss: Connection, app: Connection, tenant: str, family: str) -> None:
    random = np.random.default_rng(2)
    for _ in range(2):
        with as_caller(app, tenant):
            ingest(app, around(random, 30), family=family)
    probe = statements("probe", np.array([[1, 0, 0]]))
    close = statements("close", np.array([[0.95, np.sqrt(1 - 0.95**2), 0]]))
    change = "update graphium_private.settings set value = %s where name = 'dedup_similarity'"
    try:
        boss.execute(change, [0.9])
        with as_caller(app, tenant), app.transaction(force_rollback=True):
            first = ingest(app, probe, family=family)[0]
            second = ingest(app, close, family=family)[0]
            assert second[2]
            assert second[1] == first[1] or second[3] >= 0.95
    finally:
        boss.execute(change, [THRESHOLD])


def test_writers_wait_while_projections_are_made(
    shared: Database, boss: Connection, app: Connection, tenant: str, family: str
) -> None:
    """A superuser's plain insert and a delete take no lock of ours, but the family's row, as their triggers do."""
    random = np.random.default_rng(3)
    with as_caller(app, tenant):
        ids = [row[1] for row in ingest(app, around(random, 3 * LEAST), family=family)]
    assert projected(boss, family) == (None, 0)
    with hanging_up(shared):
        other, third = shared.connect(), shared.connect("app")
        with as_caller(app, tenant):
            ingest(app, around(random, 1), family=family)  # makes them, and has not committed
            with in_thread(
                lambda: other.execute(
                    "update graphium.kg_embeddings set embedding = '[5,-1,3]' where statement_id = %s", [ids[0]]
                )
            ) as first:
                wait_until_blocked(boss, other)

                def forget() -> None:
                    with as_caller(third, tenant):
                        third.execute("select graphium.forget_context(%s)", [ids[1:3]])

                with in_thread(forget) as second:
                    wait_until_blocked(boss, third)
                    app.execute("commit")
                    first.result(20)
                    second.result(20)
    assert projected(boss, family) == (None, 0)  # made, and gone again: both were of the sample
    with as_caller(app, tenant):
        ingest(app, around(random, 1), family=family)
    assert projected(boss, family)[1] == count(boss, family)


def test_few_rows_are_touched(boss: Connection, app: Connection, new_tenant: Callable[[int], str], family: str) -> None:
    """By the counters of the server, with and without statistics: the index finds the cells, keys find the vectors."""
    random = np.random.default_rng(4)
    tenant = new_tenant(24)
    vectors = random.normal(size=(3000, 24)).astype(np.float32)
    with as_caller(app, tenant):
        ingest(app, statements("some", vectors), family=family)
    touched = (
        "select sum(seq_scan) filter (where relname = 'projections')::int,"
        "       sum(idx_tup_fetch) filter (where relname = 'projections')::int,"
        "       sum(seq_tup_read) filter (where relname like 'kg_embeddings%')::int"
        "  from pg_stat_xact_user_tables"
    )
    for analyzed in (False, True):
        if analyzed:
            boss.execute("analyze graphium_private.projections, graphium.kg_embeddings")
        with as_caller(app, tenant):
            ingest(app, statements(f"warm {analyzed}", random.normal(size=(1, 24))), family=family)
        with as_caller(app, tenant):
            before = counted(app, touched)
            rows = ingest(app, statements("near", vectors[7:8] * 1.001), family=family)
            scans, fetched, scanned = np.subtract(counted(app, touched), before)
        assert rows[0][2]
        assert scans == 0
        assert 1 <= fetched < 600
        assert scanned == 0


def counted(conn: Connection, query: str) -> list[int]:
    row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return [n or 0 for n in row]


@pytest.mark.parametrize(
    "damage",
    [
        "delete from graphium_private.projections",
        "update graphium_private.projections set cell = cell + 1",
        "update graphium_private.projections set required_scopes = '{hr}'",
        "update graphium_private.projections set projection = projection + projection",
        "delete from graphium.kg_embeddings",
    ],
)
def test_check_memory_finds_damage(
    shared: Database, boss: Connection, app: Connection, tenant: str, family: str, damage: str
) -> None:
    random = np.random.default_rng(5)
    for _ in range(2):
        with as_caller(app, tenant):
            ingest(app, around(random, 2 * LEAST), family=family)
    conn = shared.connect()
    conn.autocommit = False
    conn.execute("set session_replication_role = replica")
    assert conn.execute(damage.encode()).rowcount > 0
    found = {r[0] for r in conn.execute("select problem from graphium.check_memory(%s)", [tenant]).fetchall()}
    assert "projection" in found
    conn.execute("set session_replication_role = origin")
    conn.execute("select graphium.rebuild_memory(%s)", [tenant])
    assert conn.execute("select * from graphium.check_memory(%s)", [tenant]).fetchall() == []
    conn.rollback()
    conn.close()
