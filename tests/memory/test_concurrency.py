"""Many sessions at once. Each waits on a lock that another is known to hold; nothing sleeps and hopes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel, errors, sql

from tests.memory.conftest import hanging_up, ingest, ingest_many
from tests.support.concurrency import all_at_once, in_thread, wait_until, wait_until_blocked
from tests.support.databases import Connection, Database, as_caller

READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE = (
    IsolationLevel.READ_COMMITTED,
    IsolationLevel.REPEATABLE_READ,
    IsolationLevel.SERIALIZABLE,
)
LEVELS = [pytest.param(level, id=level.name) for level in (READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE)]
TEA = [{"content": "Ada likes tea", "embedding": [1, 2, 3]}]
SAME_TEXT = [{"content": "ada likes tea.", "embedding": None}]
SAME_VECTOR = [{"content": "Tea is what Ada likes", "embedding": [1, 2, 3.01]}]
COFFEE = [{"content": "Ada likes coffee", "embedding": [3, -1, 0]}]
names = itertools.count(1)


@pytest.fixture(scope="module")
def tenant(new_tenant: Callable[[int], str]) -> str:
    return new_tenant(3)


@pytest.fixture
def family() -> str:
    return f"family {next(names)}"


@pytest.fixture(autouse=True)
def hang_up(shared: Database, boss: Connection, app: Connection, admin: Connection) -> Iterator[None]:
    """Closes the sessions of each test: a server has only so many."""
    with hanging_up(shared):
        yield


def rows(boss: Connection, family: str) -> list[tuple[Any, ...]]:
    """(content, access_count) of the family's statements, in order of birth."""
    return boss.execute(
        "select s.content, s.access_count from graphium.kg_statements s join graphium.dh_families f"
        "    on (f.tenant_id, f.id) = (s.tenant_id, s.family_id) where f.name = %s order by s.id",
        [family],
    ).fetchall()


def family_id(boss: Connection, family: str) -> Any:
    row = boss.execute("select id from graphium.dh_families where name = %s", [family]).fetchone()
    assert row is not None
    return row[0]


class Session:
    """An application's connection inside a transaction that has named its caller and taken its snapshot."""

    def __init__(
        self,
        database: Database,
        tenant: str,
        level: IsolationLevel = READ_COMMITTED,
        scopes: Sequence[str] = (),
        login: str = "app",
    ) -> None:
        self.conn = database.connect(login)
        self.conn.autocommit = False
        self.conn.isolation_level = level
        self.tenant, self.scopes = tenant, list(scopes)
        self.begin()

    def begin(self) -> None:
        self.conn.execute("select graphium.set_caller(tenant => %s, scopes => %s)", [self.tenant, self.scopes])

    def ingest(self, statements: Any, **where: Any) -> list[tuple[Any, ...]]:
        return ingest(self.conn, statements, **where)

    def ingest_and_commit(self, statements: Any, **where: Any) -> list[tuple[Any, ...]]:
        try:
            found = self.ingest(statements, **where)
            self.conn.commit()
        except psycopg.Error:
            if not self.conn.closed:
                self.conn.rollback()
            raise
        return found


def retried(session: Session, statements: Any, **where: Any) -> list[tuple[Any, ...]]:
    """What the hint tells clients of the stricter levels: on 40001, the transaction again."""
    while True:
        try:
            return session.ingest_and_commit(statements, **where)
        except errors.SerializationFailure:
            session.begin()


# ------------------------------------------------------------------------------------------ the same sentence
@pytest.mark.parametrize("again", [SAME_TEXT, SAME_VECTOR], ids=["same text", "same vector"])
@pytest.mark.parametrize("is_new", [True, False], ids=["new family", "old family"])
@pytest.mark.parametrize("level", LEVELS)
def test_two_sessions_one_sentence(
    shared: Database, boss: Connection, tenant: str, family: str, level: IsolationLevel, is_new: bool, again: Any
) -> None:
    if not is_new:
        Session(shared, tenant).ingest_and_commit(COFFEE, family=family)
    first, second = Session(shared, tenant, level), Session(shared, tenant, level)
    [row] = first.ingest(TEA, family=family)
    with in_thread(lambda: second.ingest_and_commit(again, family=family)) as waiting:
        wait_until_blocked(boss, second.conn, by=first.conn)
        first.conn.commit()
    if level is READ_COMMITTED:
        [other] = waiting.result()
    else:
        assert isinstance(waiting.exception(), errors.SerializationFailure)
        second.begin()
        [other] = second.ingest_and_commit(again, family=family)
    assert other[1:3] == (row[1], True)
    assert rows(boss, family)[-1] == ("Ada likes tea", 1)
    assert len(rows(boss, family)) == 2 - is_new


@pytest.mark.parametrize("level", LEVELS)
def test_stale_snapshot_after_the_lock_is_free(
    shared: Database, boss: Connection, tenant: str, family: str, level: IsolationLevel
) -> None:
    """The other one is done before we begin to write, but after we took our snapshot. No wait, and no duplicate."""
    Session(shared, tenant).ingest_and_commit(COFFEE, family=family)
    late = Session(shared, tenant, level)
    # Without a vector or a word for the family's readers: only the private counters change.
    Session(shared, tenant, scopes=["hr"]).ingest_and_commit(
        [{"content": "Ada likes tea", "required_scopes": ["hr"]}], family=family
    )
    mine = [{"content": "Ada likes tea", "required_scopes": ["hr"]}]
    late.scopes = ["hr"]
    late.begin()
    if level is READ_COMMITTED:
        late.ingest_and_commit(mine, family=family)
    else:
        with pytest.raises(errors.SerializationFailure):
            late.ingest_and_commit(mine, family=family)
        late.begin()
        late.ingest_and_commit(mine, family=family)
    assert rows(boss, family) == [("Ada likes coffee", 0), ("Ada likes tea", 1)]


@pytest.mark.parametrize(
    ("level", "is_new"),
    [(READ_COMMITTED, True), (READ_COMMITTED, False), (REPEATABLE_READ, True), (SERIALIZABLE, False)],
)
def test_fifty_sessions_one_sentence(
    shared: Database, boss: Connection, tenant: str, family: str, level: IsolationLevel, is_new: bool
) -> None:
    if not is_new:
        Session(shared, tenant).ingest_and_commit(COFFEE, family=family)
    holder = Session(shared, tenant)
    holder.ingest(COFFEE, family=family)
    sessions = [Session(shared, tenant, level) for _ in range(50)]
    with in_thread(lambda: all_at_once([lambda s=s: retried(s, TEA, family=family) for s in sessions])) as done:
        wait_until(lambda: waiters(boss) == 50, "fifty sessions wait for a lock")
        holder.conn.commit()
    ids = {r[0][1] for r in done.result()}
    assert len(ids) == 1
    assert rows(boss, family)[-1] == ("Ada likes tea", 49)
    assert len(rows(boss, family)) == 2


def waiters(observer: Connection) -> int:
    row = observer.execute(
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("level", LEVELS)
def test_batches_in_opposite_order(
    shared: Database, boss: Connection, tenant: str, family: str, level: IsolationLevel
) -> None:
    first, second = Session(shared, tenant, level), Session(shared, tenant, level)
    first.ingest(TEA + COFFEE, family=family)
    with in_thread(lambda: retried(second, COFFEE + TEA, family=family)) as waiting:
        wait_until_blocked(boss, second.conn, by=first.conn)
        first.conn.commit()
    assert [r[2] for r in waiting.result()] == [True, True]
    assert rows(boss, family) == [("Ada likes tea", 1), ("Ada likes coffee", 1)]


def test_the_first_rolls_back(shared: Database, boss: Connection, tenant: str, family: str) -> None:
    first, second = Session(shared, tenant), Session(shared, tenant)
    first.ingest(TEA, family=family)
    with in_thread(lambda: second.ingest_and_commit(SAME_TEXT, family=family)) as waiting:
        wait_until_blocked(boss, second.conn, by=first.conn)
        first.conn.rollback()
    assert waiting.result()[0][2] is False
    assert rows(boss, family) == [("ada likes tea.", 0)]


@pytest.mark.parametrize("level", LEVELS)
def test_many_sessions_many_sentences(
    shared: Database, boss: Connection, new_tenant: Callable[[int], str], level: IsolationLevel
) -> None:
    """Whoever comes first: one row per sentence, and as many counts as inputs."""
    tenant = new_tenant(12)
    batches = 8

    def words(sentence: int, choice: random.Random) -> dict[str, Any]:
        vector = [1.0 if n == sentence else 0.0 for n in range(12)]
        wording = choice.choice([f"sentence {sentence}", f"Sentence  {sentence}.", f"in other words {choice.random()}"])
        return {"content": wording, "embedding": [x * choice.choice([1, 3]) for x in vector]}

    def work(session: Session, seed: int) -> int:
        choice = random.Random(seed)
        done = 0
        for _ in range(batches):
            batch = [words(choice.randrange(12), choice) for _ in range(choice.randint(1, 10))]
            retried(session, batch, family="stress", specimen=choice.choice(["Ada", "Bob"]))
            done += len(batch)
            session.begin()
        return done

    sessions = [Session(shared, tenant, level) for _ in range(6)]
    inputs = sum(all_at_once([lambda s=s, n=n: work(s, n) for n, s in enumerate(sessions)]))
    found = boss.execute(
        "select count(*), count(distinct e.embedding::text), sum(s.access_count) from graphium.kg_statements s"
        "  join graphium.kg_embeddings e on e.statement_id = s.id join graphium.tenants t on t.id = s.tenant_id"
        " where t.slug = %s",
        [tenant],
    ).fetchone()
    assert found == (12, 12, inputs - 12)


# ------------------------------------------------------------------------------------------ births
def test_first_use_of_everything_at_once(
    shared: Database, boss: Connection, admin: Connection, new_tenant: Callable[[int], str]
) -> None:
    tenant = new_tenant(3)
    sessions = [Session(shared, tenant) for _ in range(8)]
    all_at_once(
        [
            lambda n=n, s=s: s.ingest_and_commit(
                [{"content": f"sentence {n}", "embedding": None}, *TEA], family="f", genus="g", specimen="s"
            )
            for n, s in enumerate(sessions)
        ]
    )
    counts = boss.execute(
        "select (select count(*) from graphium.dh_families f where f.tenant_id = t.id), (select count(*)"
        " from graphium.dh_genera g where g.tenant_id = t.id),"
        "       (select count(*) from graphium.dh_specimens s where s.tenant_id = t.id), (select count(*)"
        " from graphium.kg_statements s where s.tenant_id = t.id)"
        "  from graphium.tenants t where t.slug = %s",
        [tenant],
    ).fetchone()
    assert counts == (1, 1, 1, 9)


def test_one_tenant_is_made_once(shared: Database) -> None:
    admins = [shared.connect("admin") for _ in range(5)]

    def create(conn: Connection) -> str:
        try:
            conn.execute("select graphium.create_tenant('twin', dimensions => 3)")
        except psycopg.Error as error:
            return str(error.sqlstate)
        return "made"

    assert sorted(all_at_once([lambda c=c: create(c) for c in admins])) == ["MG008"] * 4 + ["made"]


# ------------------------------------------------------------------------------------------ against the other writers
@pytest.fixture
def big_family(shared: Database, tenant: str, family: str) -> str:
    """A family with 10,000 statements."""
    session = Session(shared, tenant)
    for part in range(10):
        session.ingest(
            [
                {"content": f"fact {part}-{n}", "embedding": f"[{n + 1},{part},1]", "exact_only": True}
                for n in range(1000)
            ],
            family=family,
            specimen=f"specimen {part}",
        )
    session.conn.commit()
    return family


def test_ingest_waits_for_a_family_to_be_forgotten(
    shared: Database, boss: Connection, tenant: str, big_family: str
) -> None:
    ingesters = [Session(shared, tenant) for _ in range(4)]
    forgetter = Session(shared, tenant, login="admin")
    row = forgetter.conn.execute("select graphium.forget_taxon('family', %s)", [family_id(boss, big_family)]).fetchone()
    assert row == (10000,)
    with in_thread(
        lambda: all_at_once([lambda s=s: s.ingest_and_commit(TEA, family=big_family) for s in ingesters])
    ) as waiting:
        for session in ingesters:
            wait_until_blocked(boss, session.conn)
        forgetter.conn.commit()
    assert sorted(r[0][2] for r in waiting.result()) == [False, True, True, True]
    assert rows(boss, big_family) == [("Ada likes tea", 3)]


def test_forgetting_a_family_waits_for_an_ingest(shared: Database, boss: Connection, tenant: str, family: str) -> None:
    Session(shared, tenant).ingest_and_commit(COFFEE, family=family)
    ingester = Session(shared, tenant)
    forgetter = Session(shared, tenant, login="admin")
    id_ = family_id(boss, family)
    ingester.ingest(TEA, family=family)
    with in_thread(
        lambda: forgetter.conn.execute("select graphium.forget_taxon('family', %s)", [id_]).fetchone()
    ) as waiting:
        wait_until_blocked(boss, forgetter.conn, by=ingester.conn)
        ingester.conn.commit()
    assert waiting.result() == (2,)
    forgetter.conn.commit()
    assert rows(boss, family) == []


@pytest.mark.parametrize("level", LEVELS)
def test_ingest_after_its_match_was_forgotten(
    shared: Database, boss: Connection, tenant: str, family: str, level: IsolationLevel
) -> None:
    [row] = Session(shared, tenant).ingest_and_commit(TEA, family=family)
    forgetter, ingester = Session(shared, tenant), Session(shared, tenant, level)
    assert forgetter.conn.execute("select graphium.forget_context(%s)", [[row[1]]]).fetchone() == (1,)
    with in_thread(lambda: retried(ingester, TEA, family=family)) as waiting:
        wait_until_blocked(boss, ingester.conn, by=forgetter.conn)
        forgetter.conn.commit()
    [other] = waiting.result()
    assert other[2] is False
    assert other[1] != row[1]
    assert rows(boss, family) == [("Ada likes tea", 0)]


def test_forget_of_a_row_that_another_forgets(shared: Database, boss: Connection, tenant: str, family: str) -> None:
    [row] = Session(shared, tenant).ingest_and_commit(TEA, family=family)
    first, second = Session(shared, tenant), Session(shared, tenant)
    first.conn.execute("select graphium.forget_context(%s)", [[row[1]]])
    with in_thread(lambda: second.conn.execute("select graphium.forget_context(%s)", [[row[1]]]).fetchone()) as waiting:
        wait_until_blocked(boss, second.conn, by=first.conn)
        first.conn.commit()
    assert waiting.result() == (0,)
    second.conn.commit()


@pytest.mark.parametrize("level", LEVELS)
def test_ingest_after_its_match_got_another_audience(
    shared: Database, boss: Connection, tenant: str, family: str, level: IsolationLevel
) -> None:
    [row] = Session(shared, tenant).ingest_and_commit(TEA, family=family)
    editor, ingester = Session(shared, tenant, scopes=["hr"]), Session(shared, tenant, level, scopes=["hr"])
    assert editor.conn.execute("select graphium.set_required_scopes('statement', %s, '{hr}')", [row[1]]).fetchone() == (
        1,
    )
    with in_thread(lambda: retried(ingester, TEA, family=family)) as waiting:
        wait_until_blocked(boss, ingester.conn, by=editor.conn)
        editor.conn.commit()
    assert waiting.result()[0][2] is False
    assert rows(boss, family) == [("Ada likes tea", 0), ("Ada likes tea", 0)]


@pytest.mark.parametrize("kind", ["family", "specimen"])
@pytest.mark.parametrize("level", LEVELS)
def test_ingest_into_what_is_being_hidden(
    shared: Database, boss: Connection, tenant: str, family: str, level: IsolationLevel, kind: str
) -> None:
    Session(shared, tenant).ingest_and_commit(COFFEE, family=family)
    editor, ingester = Session(shared, tenant, scopes=["hr"]), Session(shared, tenant, level)
    id_ = family_id(boss, family)
    if kind == "specimen":
        [id_] = boss.execute("select id from graphium.dh_specimens where family_id = %s", [id_]).fetchone() or []
    editor.conn.execute("select graphium.set_required_scopes(%s, %s, '{hr}')", [kind, id_])
    with in_thread(lambda: retried(ingester, TEA, family=family)) as waiting:
        wait_until_blocked(boss, ingester.conn, by=editor.conn)
        editor.conn.commit()
    assert getattr(waiting.exception(), "sqlstate", None) == "MG006"
    assert rows(boss, family) == [("Ada likes coffee", 0)]


def test_ingest_into_what_is_being_renamed(shared: Database, boss: Connection, tenant: str, family: str) -> None:
    """The sentence goes where its caller said, not where that name has gone."""
    Session(shared, tenant).ingest_and_commit(COFFEE, family=family)
    admin, ingester = Session(shared, tenant, login="admin"), Session(shared, tenant)
    admin.conn.execute("select graphium.rename_taxon('family', %s, %s)", [family_id(boss, family), family + " of old"])
    with in_thread(lambda: ingester.ingest_and_commit(TEA, family=family)) as waiting:
        wait_until_blocked(boss, ingester.conn, by=admin.conn)
        admin.conn.commit()
    assert waiting.result()[0][2] is False
    assert rows(boss, family) == [("Ada likes tea", 0)]
    assert rows(boss, family + " of old") == [("Ada likes coffee", 0)]


def test_ingest_into_a_specimen_that_is_being_moved(
    shared: Database, boss: Connection, tenant: str, family: str
) -> None:
    Session(shared, tenant).ingest_and_commit(COFFEE, family=family, genus="from", specimen="Ada")
    Session(shared, tenant).ingest_and_commit([{"content": "Bob"}], family=family, genus="to", specimen="Bob")
    specimen, genus = (
        boss.execute(
            "select (select s.id from graphium.dh_specimens s where s.family_id = f.id and s.name = 'Ada'),"
            "       (select g.id from graphium.dh_genera g where g.family_id = f.id and g.name = 'to')"
            " from graphium.dh_families f where f.name = %s",
            [family],
        ).fetchone()
        or ()
    )
    admin, ingester = Session(shared, tenant, login="admin"), Session(shared, tenant)
    admin.conn.execute("select graphium.move_specimen(%s, %s)", [specimen, genus])
    with in_thread(
        lambda: ingester.ingest_and_commit(COFFEE + TEA, family=family, genus="from", specimen="Ada")
    ) as waiting:
        wait_until_blocked(boss, ingester.conn, by=admin.conn)
        admin.conn.commit()
    assert [r[2] for r in waiting.result()] == [True, False]
    assert boss.execute(
        "select g.name, p.name, s.content from graphium.kg_statements s join graphium.dh_genera g on g.id = s.genus_id"
        "  join graphium.dh_specimens p on p.id = s.specimen_id where s.family_id = %s and p.name = 'Ada' order by 3",
        [family_id(boss, family)],
    ).fetchall() == [("to", "Ada", "Ada likes coffee"), ("from", "Ada", "Ada likes tea")]


@pytest.mark.parametrize("kind", ["genus", "specimen"])
def test_ingest_into_what_is_being_forgotten(
    shared: Database, boss: Connection, tenant: str, family: str, kind: str
) -> None:
    Session(shared, tenant).ingest_and_commit(TEA, family=family)
    table = "dh_genera" if kind == "genus" else "dh_specimens"
    [id_] = (
        boss.execute(
            f"select id from graphium.{table} where family_id = %s".encode(),
            [family_id(boss, family)],
        ).fetchone()
        or []
    )
    admin, ingester = Session(shared, tenant, login="admin"), Session(shared, tenant)
    admin.conn.execute("select graphium.forget_taxon(%s, %s)", [kind, id_])
    with in_thread(lambda: ingester.ingest_and_commit(TEA, family=family)) as waiting:
        wait_until_blocked(boss, ingester.conn, by=admin.conn)
        admin.conn.commit()
    assert waiting.result()[0][2] is False
    assert rows(boss, family) == [("Ada likes tea", 0)]


def test_ingest_into_a_tenant_that_is_being_dropped(
    shared: Database, boss: Connection, admin: Connection, new_tenant: Callable[[int], str]
) -> None:
    tenant = new_tenant(3)
    Session(shared, tenant).ingest_and_commit(TEA, family="only")
    dropper, old, new = Session(shared, tenant, login="admin"), Session(shared, tenant), Session(shared, tenant)
    dropper.conn.execute("select graphium.drop_tenant(%s)", [tenant])
    with (
        in_thread(lambda: old.ingest_and_commit(TEA, family="only")) as one,
        in_thread(lambda: new.ingest_and_commit(TEA, family="another")) as two,
    ):
        wait_until_blocked(boss, old.conn, by=dropper.conn)
        wait_until_blocked(boss, new.conn, by=dropper.conn)
        dropper.conn.commit()
    assert [getattr(w.exception(), "sqlstate", None) for w in (one, two)] == ["MG001", "MG001"]
    assert boss.execute("select count(*) from graphium.dh_families where name in ('only', 'another')").fetchone() == (
        0,
    )


# ------------------------------------------------------------------------------------------ what goes wrong, cleanly
def test_opposite_order_of_families_is_a_deadlock_that_is_detected(
    shared: Database, boss: Connection, tenant: str
) -> None:
    one, other = (f"family {next(names)}" for _ in range(2))
    login = shared.login("graphium_app")
    boss.execute(
        sql.SQL("alter role {} set deadlock_timeout = '20ms'").format(sql.Identifier(shared.cluster.role(login)))
    )
    for name in (one, other):
        Session(shared, tenant).ingest_and_commit(COFFEE, family=name)
    first, second = Session(shared, tenant), Session(shared, tenant, login=login)
    first.ingest(TEA, family=one)
    second.ingest(TEA, family=other)
    with in_thread(lambda: first.ingest_and_commit(TEA, family=other)) as waiting:
        wait_until_blocked(boss, first.conn, by=second.conn)
        with pytest.raises(errors.DeadlockDetected):
            second.ingest_and_commit(TEA, family=one)
    assert waiting.result()[0][2] is False
    assert rows(boss, one) == rows(boss, other) == [("Ada likes coffee", 0), ("Ada likes tea", 0)]


@pytest.mark.parametrize("is_new", [True, False], ids=["new families", "old families"])
def test_many_families_are_locked_in_one_order(
    shared: Database, boss: Connection, tenant: str, family: str, is_new: bool
) -> None:
    """Two calls name the same families the other way round: the second waits for the first, and neither for both."""
    one, other = f"{family} of one", f"{family} of the other"
    about = {"genus": "g", "specimen": "s", **TEA[0]}
    if not is_new:
        for name in (other, one):
            Session(shared, tenant).ingest_and_commit(COFFEE, family=name)
    first, second = Session(shared, tenant), Session(shared, tenant)
    ingest_many(first.conn, [{**about, "family": name} for name in (one, other)])
    with in_thread(lambda: ingest_many(second.conn, [{**about, "family": name} for name in (other, one)])) as waiting:
        wait_until_blocked(boss, second.conn, by=first.conn)
        first.conn.commit()
    assert [row[2] for row in waiting.result()] == [True, True]
    second.conn.commit()
    assert rows(boss, one)[-1] == rows(boss, other)[-1] == ("Ada likes tea", 1)


def test_a_client_dies_with_a_batch_done_but_not_committed(
    shared: Database, boss: Connection, tenant: str, family: str
) -> None:
    victim, survivor = Session(shared, tenant), Session(shared, tenant)
    victim.ingest(TEA + COFFEE, family=family, specimen="Bob")
    with in_thread(lambda: survivor.ingest_and_commit(TEA, family=family)) as waiting:
        wait_until_blocked(boss, survivor.conn, by=victim.conn)
        boss.execute("select pg_terminate_backend(%s)", [victim.conn.info.backend_pid])
    assert waiting.result()[0][2] is False
    assert rows(boss, family) == [("Ada likes tea", 0)]
    assert boss.execute(
        "select name from graphium.dh_specimens where family_id = %s", [family_id(boss, family)]
    ).fetchall() == [("Ada",)]


def test_a_client_dies_in_the_middle_of_a_batch(shared: Database, boss: Connection, tenant: str, family: str) -> None:
    """It has made a family of its own in the same transaction when it stops at a lock."""
    holder, victim = Session(shared, tenant), Session(shared, tenant)
    holder.ingest(COFFEE, family=family)
    victim.ingest(TEA, family=family + " of the victim")
    with in_thread(lambda: victim.ingest_and_commit(TEA, family=family)) as waiting:
        wait_until_blocked(boss, victim.conn, by=holder.conn)
        boss.execute("select pg_terminate_backend(%s)", [victim.conn.info.backend_pid])
    assert isinstance(waiting.exception(), psycopg.OperationalError)
    holder.conn.commit()
    assert rows(boss, family) == [("Ada likes coffee", 0)]
    assert boss.execute(
        "select count(*) from graphium.dh_families where starts_with(name, %s)", [family]
    ).fetchone() == (1,)


def test_a_client_cancels(shared: Database, boss: Connection, tenant: str, family: str) -> None:
    holder, victim = Session(shared, tenant), Session(shared, tenant)
    holder.ingest(COFFEE, family=family)
    with in_thread(lambda: victim.ingest_and_commit(TEA, family=family)) as waiting:
        wait_until_blocked(boss, victim.conn, by=holder.conn)
        victim.conn.cancel_safe()
    assert isinstance(waiting.exception(), errors.QueryCanceled)
    holder.conn.commit()
    victim.begin()
    victim.ingest_and_commit(TEA, family=family)
    assert rows(boss, family) == [("Ada likes coffee", 0), ("Ada likes tea", 0)]


def test_savepoint_takes_back_a_batch(shared: Database, boss: Connection, tenant: str, family: str) -> None:
    session = Session(shared, tenant)
    session.ingest(COFFEE, family=family)
    with session.conn.transaction(force_rollback=True):
        session.ingest(TEA, family=family, specimen="Bob")
    session.ingest(SAME_TEXT, family=family)
    session.conn.commit()
    assert rows(boss, family) == [("Ada likes coffee", 0), ("ada likes tea.", 0)]


def test_different_families_do_not_wait(shared: Database, boss: Connection, tenant: str) -> None:
    for is_new in (True, False):
        families = [f"family {next(names)}" for _ in range(2)]
        if not is_new:
            for name in families:
                Session(shared, tenant).ingest_and_commit(COFFEE, family=name)
        first, second = Session(shared, tenant), Session(shared, tenant)
        first.ingest(TEA, family=families[0])
        second.conn.execute("set local lock_timeout = '1ms'")
        second.ingest_and_commit(TEA, family=families[1])
        first.conn.commit()


def test_other_readers_do_not_wait(shared: Database, tenant: str, family: str, app: Connection) -> None:
    Session(shared, tenant).ingest_and_commit(COFFEE, family=family)
    writer = Session(shared, tenant)
    writer.ingest(TEA, family=family)
    with as_caller(app, tenant):
        app.execute("set local lock_timeout = '1ms'")
        seen = app.execute(
            "select s.content from graphium.kg_statements s join graphium.dh_families f on f.id = s.family_id"
            " where f.name = %s",
            [family],
        ).fetchall()
    assert seen == [("Ada likes coffee",)]
    writer.conn.commit()
