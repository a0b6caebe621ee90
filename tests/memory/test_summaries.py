"""Counters and summaries: after any history they are what numpy computes from the rows."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors, sql

from tests.memory.conftest import ingest
from tests.memory.model import includes
from tests.support.concurrency import all_at_once, in_thread, wait_until_blocked
from tests.support.databases import Connection, Database, as_caller

names = itertools.count(1)
SCOPES: list[list[str]] = [[], [], ["public"], ["hr"], ["hr", "legal"], ["legal"], ["hr", "public"]]


@pytest.fixture(scope="module")
def tenant(new_tenant: Callable[[int], str]) -> str:
    return new_tenant(5)


def numbers(text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(text.strip("[]").split(","), np.float32).astype(np.float64)


def check_summaries(boss: Connection) -> None:
    """Every family of the database against its rows, computed here."""
    statements = defaultdict(list)
    for family, scopes, vector in boss.execute(
        "select s.family_id, s.required_scopes, e.embedding::text from graphium.kg_statements s left"
        " join graphium.kg_embeddings e on e.statement_id = s.id"
    ).fetchall():
        statements[family].append((scopes, None if vector is None else numbers(vector)))
    rows = boss.execute(
        "select f.id, f.required_scopes, f.statement_count, f.summary_embedding::text, c.statements, c.embeddings"
        "  from graphium.dh_families f left join graphium_private.family_counters c on c.family_id = f.id"
    ).fetchall()
    assert set(statements) <= {r[0] for r in rows}
    for id_, audience, count, summary, all_statements, all_embeddings in rows:
        mine = statements[id_]
        seen = [vector for scopes, vector in mine if includes(scopes, audience)]
        vectors = [v for v in seen if v is not None]
        assert (count, all_statements, all_embeddings) == (len(seen), len(mine), sum(v is not None for _, v in mine))
        mean = np.mean(vectors, axis=0) if vectors else np.zeros(1)
        lengths = sum(float(np.linalg.norm(v)) for v in vectors)
        if np.linalg.norm(mean) <= 1e-13 * lengths:  # none, or they cancel out
            assert summary is None
        else:
            got = numbers(summary)
            assert 1 - got @ mean / (np.linalg.norm(got) * np.linalg.norm(mean)) < 1e-5
            assert np.linalg.norm(got) == pytest.approx(np.linalg.norm(mean), rel=1e-5)


class Mixer:
    """Does random things to two families, by our functions and as a superuser by raw SQL."""

    ACTIONS = (
        "ingest",
        "ingest",
        "ingest",
        "forget",
        "scope statement",
        "scope specimen",
        "scope family",
        "move",
        "forget specimen",
        "raw delete",
        "raw scopes",
        "raw vectors",
        "raw cascade",
        "rolled back",
    )

    def __init__(
        self, tenant: str, families: list[str], app: Connection, admin: Connection, boss: Connection, seed: int
    ) -> None:
        self.tenant, self.families, self.app, self.admin, self.boss = tenant, families, app, admin, boss
        self.random = random.Random(seed)
        self.tries = 0

    def do(self, action: str) -> None:
        """Again when another session was in the way."""
        while True:
            try:
                return getattr(self, action.replace(" ", "_"))()
            # A raw delete takes no family's lock, so a genus can vanish under an ingest or a move.
            except (errors.DeadlockDetected, errors.SerializationFailure, errors.ForeignKeyViolation):
                self.tries += 1
            except psycopg.Error as error:
                if error.sqlstate != "MG007":  # somebody else was faster
                    raise
                return None

    def some(self, what: str, conn: Connection | None = None) -> list[Any]:
        tables = {"statement": "kg_statements", "specimen": "dh_specimens", "genus": "dh_genera"}
        rows = (
            (conn or self.boss)
            .execute(
                (
                    f"select t.id from graphium.{tables[what]} t join graphium.dh_families f on f.id = t.family_id"
                    " where f.name = any(%s) order by t.id"
                ).encode(),
                [self.families],
            )
            .fetchall()
        )
        return self.random.sample([r[0] for r in rows], min(len(rows), self.random.randint(1, 4)))

    def family(self) -> str:
        return self.random.choice(self.families)

    def batch(self) -> list[dict[str, Any]]:
        return [
            {
                "content": f"sentence {self.random.randint(1, 40)}",
                "embedding": self.random.choice(
                    [None, [self.random.uniform(-1, 1) * 10 ** self.random.randint(-3, 3) for _ in range(5)]]
                ),
                "required_scopes": self.random.choice(SCOPES),
            }
            for _ in range(self.random.randint(0, 6))
        ]

    def ingest(self) -> None:
        with as_caller(self.admin, self.tenant):
            ingest(
                self.admin,
                self.batch(),
                family=self.family(),
                genus=self.random.choice("gh"),
                specimen=self.random.choice("abc"),
            )

    def rolled_back(self) -> None:
        with as_caller(self.admin, self.tenant):
            ingest(self.admin, self.batch(), family=self.families[0], genus="g", specimen="a")
            with self.admin.transaction(force_rollback=True):
                ingest(self.admin, self.batch(), family=self.families[0], genus="g", specimen="b")
                self.admin.execute("select graphium.forget_context(%s)", [self.some("statement", self.admin)])
            ingest(self.admin, self.batch(), family=self.families[0], genus="h", specimen="a")

    def forget(self) -> None:
        with as_caller(self.app, self.tenant, ["hr", "legal"]):
            self.app.execute("select graphium.forget_context(%s)", [self.some("statement")])

    def scope(self, kind: str, ids: list[Any]) -> None:
        with as_caller(self.admin, self.tenant):
            for id_ in ids[:1]:
                self.admin.execute(
                    "select graphium.set_required_scopes(%s, %s, %s, %s)",
                    [kind, id_, self.random.choice(SCOPES), self.random.random() < 0.5],
                )

    def scope_statement(self) -> None:
        self.scope("statement", self.some("statement"))

    def scope_specimen(self) -> None:
        self.scope("specimen", self.some("specimen"))

    def scope_family(self) -> None:
        self.scope(
            "family",
            [r[0] for r in self.boss.execute("select id from graphium.dh_families where name = %s", [self.family()])],
        )

    def move(self) -> None:
        with as_caller(self.admin, self.tenant):
            for specimen, genus in zip(self.some("specimen"), self.some("genus"), strict=False):
                try:
                    with self.admin.transaction():
                        self.admin.execute("select graphium.move_specimen(%s, %s)", [specimen, genus])
                except psycopg.Error as error:
                    if error.sqlstate not in ("MG007", "MG008"):  # another family, or the name is there already
                        raise

    def forget_specimen(self) -> None:
        with as_caller(self.admin, self.tenant):
            for id_ in self.some("specimen")[:1]:
                self.admin.execute("select graphium.forget_taxon('specimen', %s)", [id_])

    def raw(self, statement: str, ids: list[Any]) -> None:
        with self.boss.transaction():
            self.boss.execute(
                statement.encode(), [*([self.random.choice(SCOPES)] if "required_scopes" in statement else []), ids]
            )

    def raw_delete(self) -> None:
        self.raw("delete from graphium.kg_statements where id = any(%s)", self.some("statement"))

    def raw_scopes(self) -> None:
        self.raw("update graphium.kg_statements set required_scopes = %s where id = any(%s)", self.some("statement"))

    def raw_vectors(self) -> None:
        self.raw(
            "update graphium.kg_embeddings set embedding = embedding + '[1,0,0,0,0.5]' where statement_id = any(%s)",
            self.some("statement"),
        )

    def raw_cascade(self) -> None:
        self.raw("delete from graphium.dh_genera where id = any(%s)", self.some("genus")[:1])


@given(st.integers(0, 2**32), st.lists(st.sampled_from(Mixer.ACTIONS), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history(
    tenant: str, app: Connection, admin: Connection, boss: Connection, seed: int, actions: list[str]
) -> None:
    families = [f"family {next(names)}" for _ in range(2)]
    mixer = Mixer(tenant, families, app, admin, boss, seed)
    mixer.do("ingest")
    for action in actions:
        mixer.do(action)
    check_summaries(boss)
    boss.execute("delete from graphium.dh_families")


def test_any_history_by_many_sessions(shared: Database, tenant: str, boss: Connection) -> None:
    families = ["crowded", "crowded too"]
    # Raw writers lock rows before families: they meet ours in a deadlock now and then, and one of them notices.
    logins = shared.login("graphium_app"), shared.login("graphium_admin")
    for login in logins:
        boss.execute(
            sql.SQL("alter role {} set deadlock_timeout = '10ms'").format(sql.Identifier(shared.cluster.role(login)))
        )

    def session(seed: int) -> None:
        raw = shared.connect()
        raw.execute("set deadlock_timeout = '10ms'")
        mixer = Mixer(tenant, families, shared.connect(logins[0]), shared.connect(logins[1]), raw, seed)
        for _ in range(40):
            mixer.do(mixer.random.choice(Mixer.ACTIONS))

    all_at_once([lambda seed=seed: session(seed) for seed in range(6)])
    check_summaries(boss)


def test_raw_writer_is_counted_by_the_audience_that_the_family_has_by_then(
    shared: Database, tenant: str, admin: Connection, boss: Connection
) -> None:
    """The raw delete began before the family got another audience, and ends after."""
    with as_caller(admin, tenant):
        ingest(
            admin,
            [
                {"content": f"s{n}", "embedding": [n, 1, 0, 0, 0], "required_scopes": ["hr"] if n % 2 else []}
                for n in range(6)
            ],
            family="race",
        )
    editor, raw = shared.connect("admin"), shared.connect()
    with as_caller(editor, tenant):
        editor.execute(
            "select graphium.set_required_scopes('family', id, '{hr}') from graphium.dh_families where name = 'race'"
        )
        with in_thread(
            lambda: raw.execute("delete from graphium.kg_statements where content in ('s1', 's2')")
        ) as waiting:
            wait_until_blocked(boss, raw, by=editor)
            editor.execute("commit")
        waiting.result()
    check_summaries(boss)


def summary(boss: Connection, family: str) -> tuple[Any, ...]:
    row = boss.execute(
        "select statement_count, summary_embedding::text from graphium.dh_families where name = %s", [family]
    ).fetchone()
    assert row is not None
    return row


def test_no_ghost_after_twenty_thousand(tenant: str, app: Connection, boss: Connection) -> None:
    """10,000 long vectors come and go, 200 at a time; one short one stays, and is all of the mean."""
    with as_caller(app, tenant):
        ingest(app, [{"content": "stays", "embedding": [1e-3, 0, 0, 0, 0]}], family="ghost")
    randoms = np.random.default_rng(1)
    for part in range(50):
        with as_caller(app, tenant):
            rows = ingest(
                app,
                [
                    {"content": f"{part} {n}", "embedding": str(v.tolist()), "exact_only": True}
                    for n, v in enumerate(randoms.normal(size=(200, 5)) * 1e4)
                ],
                family="ghost",
            )
            app.execute("select graphium.forget_context(%s)", [[r[1] for r in rows]])
    assert summary(boss, "ghost") == (1, "[0.001,0,0,0,0]")
    check_summaries(boss)


def test_a_thousand_one_by_one(tenant: str, app: Connection, boss: Connection) -> None:
    with as_caller(app, tenant):
        ingest(app, [{"content": "stays", "embedding": [0, 0, 0.25, 0, 0]}], family="singly")
    boss.execute(
        """do $$
        declare s graphium.kg_statements; x uuid;
        begin
          select k.* into s
            from graphium.kg_statements k join graphium.dh_families f on f.id = k.family_id where f.name = 'singly';
          for n in 1..500 loop
            x := gen_random_uuid();
            insert into graphium.kg_statements (tenant_id, id, family_id, genus_id, specimen_id, content, memory_type)
            values (s.tenant_id, x, s.family_id, s.genus_id, s.specimen_id, 'n' || n, 'fact');
            insert into graphium.kg_embeddings (tenant_id, statement_id, family_id, genus_id, specimen_id, memory_type,
                                                layer_kind, required_scopes, happened_at, embedding)
              select s.tenant_id, x, s.family_id, s.genus_id, s.specimen_id, 'fact', 'on_demand', '{}', created_at,
                     format('[%s,%s,1,0,7]', n, n % 7)::vector
                from graphium.kg_statements where id = x;
            delete from graphium.kg_statements where id = x;
          end loop;
        end $$"""
    )
    assert summary(boss, "singly") == (1, "[0,0,0.25,0,0]")


def test_vectors_that_cancel_out(tenant: str, app: Connection, boss: Connection) -> None:
    def add(content: str, *vector: float) -> Any:
        with as_caller(app, tenant):
            return ingest(app, [{"content": content, "embedding": list(vector)}], family="cancel")[0][1]

    add("up", 0.1, 0.2, 0.3, 0, 0)
    add("down", -0.1, -0.2, -0.3, 0, 0)
    assert summary(boss, "cancel") == (2, None)
    third = add("aside", 0, 0, 0, 3, 0)
    assert summary(boss, "cancel") == (3, "[0,0,0,1,0]")
    with as_caller(app, tenant):
        app.execute("select graphium.forget_context(%s)", [[third]])
    assert summary(boss, "cancel") == (2, None)
    add("almost", 1e-6, 0, 0, 0, 0)
    check_summaries(boss)


def test_null_when_empty(tenant: str, app: Connection, boss: Connection) -> None:
    with as_caller(app, tenant):
        rows = ingest(
            app, [{"content": "one", "embedding": [1, 0, 0, 0, 0]}, {"content": "words only"}], family="empty"
        )
    assert summary(boss, "empty") == (2, "[1,0,0,0,0]")
    with as_caller(app, tenant):
        app.execute("select graphium.forget_context(%s)", [[rows[0][1]]])
    assert summary(boss, "empty") == (1, None)
    with as_caller(app, tenant):
        app.execute("select graphium.forget_context(%s)", [[r[1] for r in rows]])
    assert summary(boss, "empty") == (0, None)


def test_only_what_every_reader_of_the_family_may_see(tenant: str, admin: Connection, boss: Connection) -> None:
    """By hand: which of five audiences count in a family that is open, and in one for hr."""
    vectors = {
        "open": [1, 0, 0, 0, 0],
        "public": [0, 1, 0, 0, 0],
        "hr": [0, 0, 1, 0, 0],
        "hr legal": [0, 0, 0, 1, 0],
        "legal": [0, 0, 0, 0, 1],
    }
    with as_caller(admin, tenant):
        ingest(
            admin,
            [
                {"content": name, "embedding": vector, "required_scopes": [] if name == "open" else name.split()}
                for name, vector in vectors.items()
            ],
            family="audiences",
        )
    assert summary(boss, "audiences") == (2, "[0.5,0.5,0,0,0]")
    set_scopes = (
        "select graphium.set_required_scopes('family', f.id, %s) from graphium.dh_families f where f.name = 'audiences'"
    )
    for scopes, expected in (
        (["hr"], (4, "[0.25,0.25,0.25,0.25,0]")),
        (["legal", "hr"], (3, "[0.33333334,0.33333334,0,0.33333334,0]")),
        (["hr", "public"], (2, "[0.5,0.5,0,0,0]")),
        (["other"], (2, "[0.5,0.5,0,0,0]")),
    ):
        with as_caller(admin, tenant):
            admin.execute(set_scopes, [scopes])
        assert summary(boss, "audiences") == expected


def test_truncate(db: Database) -> None:
    admin, boss = db.connect("admin"), db.connect()
    for tenant in ("acme", "umbrella"):
        admin.execute("select graphium.create_tenant(%s, dimensions => 5)", [tenant])
        with as_caller(admin, tenant):
            ingest(
                admin, [{"content": "one", "embedding": [1, 0, 0, 0, 0]}, {"content": "two", "required_scopes": ["hr"]}]
            )
    with boss.transaction(force_rollback=True):
        boss.execute("truncate graphium.kg_statements cascade")
        assert (
            boss.execute("select statement_count, summary_embedding from graphium.dh_families").fetchall()
            == [(0, None)] * 2
        )
    check_summaries(boss)
    boss.execute("truncate graphium.kg_embeddings")
    assert (
        boss.execute("select statement_count, summary_embedding from graphium.dh_families").fetchall()
        == [(1, None)] * 2
    )
    check_summaries(boss)
    assert db.ailments() == []
    boss.execute("truncate graphium.kg_statements cascade")
    check_summaries(boss)
    with as_caller(admin, "acme"):
        ingest(admin, [{"content": "one", "embedding": [1, 0, 0, 0, 0]}])
    check_summaries(boss)


def test_partitions_count_too(tenant: str, app: Connection, boss: Connection) -> None:
    """A superuser who writes to a partition directly."""
    with as_caller(app, tenant):
        ingest(
            app,
            [{"content": "one", "embedding": [1, 0, 0, 0, 0]}, {"content": "two", "embedding": [0, 1, 0, 0, 0]}],
            family="partition",
        )
    [partition] = (
        boss.execute(
            "select e.tableoid::regclass::text from graphium.kg_embeddings e join graphium.kg_statements s"
            " on s.id = e.statement_id where s.content = 'one' limit 1"
        ).fetchone()
        or ()
    )
    boss.execute(
        f"delete from {partition} e using graphium.kg_statements s"
        " where s.id = e.statement_id and s.content = 'one'".encode()
    )
    check_summaries(boss)
