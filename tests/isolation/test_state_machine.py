"""Random callers in two tenants write, edit, delete, read, come and go: whatever anyone reads is what a small model says that
he may see, whatever is refused is refused as the model says and changes nothing.

A failure is printed as its shortest story, one call a line. `who` is a login and the settings that its session makes:
`app acme {hr}`, `ann {}`. Statements are written as in model.Said. To look for new stories, and for faults on purpose:

    GRAPHIUM_STORIES=300 python -m pytest --hypothesis-profile=default tests/isolation/test_state_machine.py
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb

from tests.isolation.model import (
    ADMIN_TABLES,
    CONTENTS,
    QUERIES,
    TABLES,
    VECTORS,
    Caller,
    Place,
    Refused,
    Roughly,
    Said,
    World,
    scopes_in,
)
from tests.support.databases import Cluster, Connection, Database

STORIES = int(os.environ.get("GRAPHIUM_STORIES", "0"))
SLUGS = ["acme", "acme-corp"]
# Who can do something, more often than who must not.
WRITERS = [
    *["app acme {hr}", "app acme {}", "app acme {legal}", "app acme {hr,legal}", "ann", "bob", "admin acme"] * 3,
    *["ann {hr}", "ann {}", "app acme-corp {hr}", "app acme {public}", "ann acme-corp {legal}", "admin acme-corp"],
    *["rob", "app", "app {hr}", "app % {hr}", "app Acme {HR,h}", "admin", "eve acme {hr}"],
]
READERS = [
    *WRITERS[:21],
    *WRITERS,
    *["rob"] * 2,
    "rob {hr,legal}",
    "app acme {HR,h}",
    "app acme-corp {hr,legal}",
    "bob acme",
]
ADMINS = ["admin acme"] * 10 + ["admin acme-corp"] * 2 + ["admin", "app acme {hr,legal}", "ann", "rob"]
AUDIENCES = ["{}", "{hr}", "{legal}", "{hr,legal}", "{public}", "{hr,public}"]
PATHS = ["a/g/s", "a/g/s", "b/g/s", "b/g/s", "a/g/t", "a/h/s", "b/h/t", "c/g/s"]
TAXA = ["a", "b", "a/g/s", "b/g/s", "a/g", "b/g", "a/h", "a/g/t", "c"]


def one_of(*weighted: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(weighted)


SOMEBODY = st.sampled_from(READERS)
KINDS = one_of("related_to", "supersedes", "contradicts")


@st.composite
def saying(draw: st.DrawFn) -> str:
    parts = [
        draw(st.sampled_from(list(CONTENTS))),
        draw(st.sampled_from([*VECTORS, "-"])),
        draw(one_of("", "", *AUDIENCES)),
        draw(one_of("", "talk", "talk", "talk/3")),
        draw(one_of("", "", "preloaded")),
        draw(one_of("", "", "", "exact")),
    ]
    return " ".join(part for part in parts if part)


def remembered() -> st.SearchStrategy[Any]:
    """Path, audience, statements."""
    says = st.lists(saying(), min_size=1, max_size=6)
    return st.tuples(st.sampled_from(PATHS), st.sampled_from(AUDIENCES), says)


def searching() -> st.SearchStrategy[Any]:
    """match_count, families, symbiosis_count, min_similarity."""
    families = one_of(None, None, None, None, None, ["a"], ["b"], [])
    return st.tuples(one_of(10, 10, 1, 2), families, one_of(5, 5, 1, 0), one_of(None, None, None, None, None, 0.9))


def allowed(whos: Sequence[str]) -> st.SearchStrategy[str]:
    """Callers that can write now: while a transaction is open, only its login, for others might wait for it."""
    return st.runner().flatmap(lambda story: st.sampled_from(story.able(whos)))


class Conversation:
    """Sessions that stay open from story to story, and what they are asked."""

    def __init__(self, database: Database) -> None:
        self.finished = 0  # stories
        self.boss = database.connect(prepare_threshold=0)
        roles = {"app": "app", "admin": "admin"}
        for login, group in (
            ("ann", "graphium_user"),
            ("bob", "graphium_user"),
            ("rob", "graphium_reader"),
            ("eve", None),
        ):
            roles[login] = database.login(group)
        self.sessions = {
            login: database.connect(
                short, prepare_threshold=0, options="-c statement_timeout=20s -c synchronous_commit=off"
            )
            for login, short in roles.items()
        }
        self.role = {login: database.cluster.role(short) for login, short in roles.items()}
        self.login = {role: login for login, role in self.role.items()}

    def ask(self, who: str, *queries: tuple[str, Sequence[Any]]) -> list[list[Any]] | str:
        """The rows of each query, or the SQLSTATE with which they are refused, all of them."""
        login, *settings = who.split()
        tenant = next((s for s in settings if not s.startswith("{")), "")
        scopes = next((s for s in settings if s.startswith("{")), "")
        session = self.sessions[login]
        is_local = session.info.transaction_status != TransactionStatus.IDLE or len(queries) > 1
        try:
            with session.transaction() if is_local else contextlib.nullcontext():
                session.execute(
                    "select set_config('graphium.tenant', %s, %s), set_config('graphium.scopes', %s, %s)",
                    [tenant, is_local, scopes, is_local],
                )
                return [session.execute(query.encode(), args).fetchall() for query, args in queries]
        except psycopg.Error as error:
            return error.sqlstate or str(error)


def same(expected: Any, got: Any) -> bool:
    """Equal, floats and vectors nearly."""
    if isinstance(expected, Roughly):
        return got is not None and abs(expected - got) <= expected.within
    if isinstance(expected, (float, np.floating, np.ndarray)) or (
        isinstance(expected, tuple) and isinstance(got, list)
    ):
        return (
            np.shape(expected) == np.shape(got) and got is not None and np.allclose(expected, got, rtol=1e-5, atol=1e-5)
        )
    if isinstance(expected, tuple):
        return len(expected) == len(got) and all(map(same, expected, got))
    return bool(expected == got)


def machine(talk: Conversation) -> type[RuleBasedStateMachine]:
    class Story(RuleBasedStateMachine):
        statements: Bundle[UUID] = Bundle("statements")
        edges: Bundle[UUID] = Bundle("edges")

        def __init__(self) -> None:
            super().__init__()
            self.committed = World()
            self.dropped = False
            self.open = ""  # the login that has a transaction open, …
            self.working = World()  # … what it sees, …
            self.saved: list[World] = []  # … and what it saw at each savepoint
            for row in talk.boss.execute("select slug from graphium.tenants").fetchall():  # of a story that failed
                talk.sessions["admin"].execute("select graphium.drop_tenant(%s)", row)

        # -------------------------------------------------------------------------------- asking and comparing
        def able(self, whos: Sequence[str]) -> list[str]:
            return [who for who in whos if self.open in ("", who.split()[0])] or [f"{self.open} acme"]

        def world(self, who: str) -> World:
            return self.working if self.open == who.split()[0] else self.committed

        def id_of(self, who: str, path: str, level: str | None = None) -> UUID:
            """Of the taxon of that name in the caller's tenant, or as "acme-corp:a" in another; else one that nobody has."""
            slug, _, names = path.rpartition(":")
            world = self.world(who)
            of = world.tenants.get(slug) if slug else world.caller(who).of
            place = of.find(names) if of else None
            return place[1] if place and level in (None, place[0]) else uuid4()

        def readable(self, value: Any) -> Any:
            """For messages: names instead of ids."""
            if isinstance(value, UUID):
                for world in (self.working, self.committed):
                    for t in world.tenants.values():
                        if value == t.id:
                            return t.slug
                        if value in t.statements:
                            return f"{t.slug}: {t.statements[value].content!r} {t.statements[value].scopes}"
                        for level, depth in (("family", 1), ("genus", 2), ("specimen", 3)):
                            if value in t.table(level):
                                tables: Any = (t.families, t.genera, t.specimens)
                                path = t.path((level, value))[:depth]
                                return f"{t.slug}:" + "/".join(tables[n][i].name for n, i in enumerate(path))
                return f"…{str(value)[-4:]}"
            if isinstance(value, (tuple, list)):
                return [self.readable(v) for v in value]
            return value.tolist() if isinstance(value, np.ndarray) else value

        def agree(self, what: str, expected: Any, got: Any, ordered: bool = True) -> None:
            """What the model says and what the database says."""
            if isinstance(expected, list) and isinstance(got, list):
                if not ordered:
                    expected, got = (sorted(rows, key=lambda row: repr(row[:6])) for rows in (expected, got))
                wrong = [
                    (e, g) for e, g in itertools.zip_longest(expected, got) if e is None or g is None or not same(e, g)
                ]
                if wrong:
                    raise AssertionError(
                        f"{what}: the model says\n  "
                        + "\n  ".join(str(self.readable(e)) for e in expected)
                        + "\nbut the database\n  "
                        + "\n  ".join(str(self.readable(g)) for g in got)
                    )
            elif not same(expected, got):
                raise AssertionError(
                    f"{what}: the model says {self.readable(expected)}, the database {self.readable(got)}"
                )

        def read(
            self,
            who: str,
            what: str,
            model: Callable[[Caller], Any],
            *queries: tuple[str, Sequence[Any]],
            ordered: bool = True,
        ) -> list[Any]:
            """What both answer to the last query, which must be the same; no rows when it is refused."""
            got = talk.ask(who, *queries)
            try:
                expected = model(self.world(who).caller(who))
            except Refused as refused:
                self.agree(f"{who}, {what}", refused.sqlstate, got)
                return []
            self.agree(f"{who}, {what}", expected, got if isinstance(got, str) else got[-1], ordered)
            return got[-1] if isinstance(got, list) else []

        def write(
            self, who: str, what: str, model: Callable[[Caller, Any], Any], *queries: tuple[str, Sequence[Any]]
        ) -> Any:
            """What both answer; None when it is refused: the model stays as it is, and so must the database."""
            got = talk.ask(who, *queries)

            def answer() -> Any:
                assert isinstance(got, list), f"{who}, {what}: the model allows it, the database says {got}"
                return got

            try:
                expected = model(self.world(who).caller(who), answer)
            except Refused as refused:
                self.agree(f"{who}, {what}", refused.sqlstate, got)
                return None
            first = answer()[0]
            if expected is not None:
                self.agree(f"{who}, {what}", expected, first if isinstance(expected, list) else first[0][0])
            return expected

        def everything_is_as_in_the_model(self, when: str) -> None:
            """All committed rows of all tenants, as the superuser sees them."""
            expected: dict[str, list[Any]] = {name: [] for name in (*TABLES, "scope_edits")}
            for slug in self.committed.tenants:
                caller = self.committed.caller(f"admin {slug}")
                for name, rows in {**caller.tables(), "scope_edits": caller.tenant.scope_edits}.items():
                    expected[name] += rows
            expected["principals"] = [(login, *bound) for login, bound in self.committed.principals.items()]
            for name, columns in {**TABLES, **ADMIN_TABLES}.items():
                got = talk.boss.execute(f"select {columns} from graphium.{name}".encode()).fetchall()
                self.agree(f"{name} {when}", expected[name], self.with_logins(got), ordered=False)

        @staticmethod
        def with_logins(rows: list[Any]) -> list[Any]:
            return [tuple(talk.login.get(v, v) if isinstance(v, str) else v for v in row) for row in rows]

        # -------------------------------------------------------------------------------- the beginning and the end
        @initialize(
            target=statements,
            ann=one_of("acme {hr,legal}", "acme {hr}"),
            bob=one_of("acme-corp {hr}", "acme {legal}"),
            rob=one_of("acme {hr}", "acme-corp {}"),
            memory=st.lists(remembered(), max_size=2) | st.lists(remembered(), min_size=3, max_size=6),
            links=st.lists(
                st.tuples(KINDS, one_of("a", "a/g", "a/g/s", "a/g/t"), one_of("b", "b/g", "b/g/s", "c")), max_size=2
            ),
        )
        def begin_with(
            self,
            ann: str,
            bob: str,
            rob: str,
            memory: list[tuple[str, str, list[str]]],
            links: list[tuple[str, str, str]],
        ) -> Any:
            """Two tenants with names alike, three principals, of whom rob may only read, and what is known already."""
            for slug in SLUGS:
                self.make_tenant(slug)
            for login, binding in (("ann", ann), ("bob", bob), ("rob", rob)):
                slug, scopes = binding.split()
                self.bind("admin", login, slug, scopes, read_only=login == "rob")
            told = [self.tell("admin acme", path, says, scopes) for path, scopes, says in memory]
            for link in links:
                self.join("admin acme", *link, None)
            return multiple(*dict.fromkeys(itertools.chain(*told)))

        def make_tenant(self, slug: str) -> None:
            def model(caller: Caller, answer: Any) -> list[Any]:
                caller.create_tenant(slug, lambda: answer()[0][0][0])
                return [(self.world("admin").tenants[slug].id,)]

            self.write("admin", "create_tenant", model, ("select graphium.create_tenant(%s, dimensions => 3)", [slug]))

        def teardown(self) -> None:
            if self.open:
                talk.sessions[self.open].execute("rollback")
            if sys.exc_info()[0] is not None:
                return  # it failed already
            self.everything_is_as_in_the_model("at the end")
            for slug in self.committed.tenants:
                for check in ("check_memory", "check_graph"):
                    got = (
                        talk.sessions["admin"]
                        .execute(f"select * from graphium.{check}(%s)".encode(), [slug])
                        .fetchall()
                    )
                    self.agree(check, [], got)
            for slug in self.committed.tenants:
                talk.sessions["admin"].execute("select graphium.drop_tenant(%s)", [slug])
            self.committed = World()
            self.everything_is_as_in_the_model("when all tenants are dropped")
            talk.finished += 1

        # -------------------------------------------------------------------------------- transactions
        @precondition(lambda self: not self.open)
        @rule(login=one_of("app", "ann", "admin"))
        def begin(self, login: str) -> None:
            talk.sessions[login].execute("begin")
            self.open, self.working = login, copy.deepcopy(self.committed)

        @precondition(lambda self: self.open and len(self.saved) < 2)
        @rule()
        def savepoint(self) -> None:
            self.saved.append(copy.deepcopy(self.working))
            talk.sessions[self.open].execute(f"savepoint s{len(self.saved)}".encode())

        @precondition(lambda self: self.saved)
        @rule()
        def rollback_to_savepoint(self) -> None:
            talk.sessions[self.open].execute(f"rollback to savepoint s{len(self.saved)}".encode())
            talk.sessions[self.open].execute(f"release savepoint s{len(self.saved)}".encode())
            self.working = self.saved.pop()

        @precondition(lambda self: self.open)
        @rule(how=one_of("commit", "rollback"))
        def end(self, how: str) -> None:
            talk.sessions[self.open].execute(how.encode())
            if how == "commit":
                self.committed = self.working
            self.open, self.working, self.saved = "", World(), []
            self.everything_is_as_in_the_model(f"after the {how}")

        # -------------------------------------------------------------------------------- writing
        @rule(
            target=statements,
            who=allowed(WRITERS),
            path=st.sampled_from(PATHS),
            says=st.lists(saying(), min_size=1, max_size=3),
            scopes=one_of(None, None, *AUDIENCES),
            seen_by=SOMEBODY,
        )
        def ingest(self, who: str, path: str, says: list[str], scopes: str | None, seen_by: str) -> Any:
            ids = self.tell(who, path, says, scopes)
            self.tables(seen_by)
            return multiple(*dict.fromkeys(ids))

        @rule(
            target=statements,
            who=allowed(WRITERS),
            id=statements,
            path=st.sampled_from(PATHS),
            scopes=one_of(None, *AUDIENCES),
            seen_by=SOMEBODY,
        )
        def repeat(self, who: str, id: UUID, path: str, scopes: str | None, seen_by: str) -> Any:
            """What was said already, if it still is there: into the same family or another, for this or that audience."""
            of = self.world(who).tenants["acme"]
            if id not in of.statements:
                return multiple()
            content = next(word for word, (text, _) in CONTENTS.items() if text == of.statements[id].content)
            vector = next((name for name, v in VECTORS.items() if v == of.statements[id].vector), "-")
            ids = self.tell(who, path, [f"{content} {vector}"], scopes)
            self.tables(seen_by)
            return multiple(*ids)

        def tell(self, who: str, path: str, says: list[str], scopes: str | None) -> list[UUID]:
            """The statements that they are now."""
            inputs = [Said.parse(text) for text in says]
            names = path.split("/")
            rows = self.write(
                who,
                "ingest_context",
                lambda caller, answer: caller.ingest(
                    path, inputs, None if scopes is None else scopes_in(scopes), lambda: (answer()[0], answer()[1][0])
                ),
                (
                    "select ordinal, statement_id, deduplicated, similarity, required_scopes"
                    " from graphium.ingest_context(%s, %s, %s, %s, %s::text[])",
                    [*names, Jsonb([said.as_json() for said in inputs]), scopes],
                ),
                (
                    "select f.id, g.id, s.id from graphium.dh_families f join graphium.dh_genera g on g.family_id = f.id"
                    " join graphium.dh_specimens s on s.genus_id = g.id where f.name = %s and g.name = %s and s.name = %s",
                    names,
                ),
            )
            return [row[1] for row in rows or ()]

        @rule(
            who=allowed(WRITERS),
            paths=st.lists(st.sampled_from([*TAXA, "acme:a", "acme-corp:a"]), min_size=1, max_size=2),
            scopes=st.sampled_from(AUDIENCES),
            cascade=st.booleans(),
            seen_by=SOMEBODY,
        )
        def edit_taxa(self, who: str, paths: list[str], scopes: str, cascade: bool, seen_by: str) -> None:
            level = "specimen" if paths[0].count("/") == 2 else "family"
            self.edit(who, level, [self.id_of(who, path, level) for path in paths], scopes, cascade)
            self.tables(seen_by)

        @rule(
            who=allowed(WRITERS),
            ids=st.lists(statements, max_size=2),
            scopes=st.sampled_from(AUDIENCES),
            seen_by=SOMEBODY,
        )
        def edit_statements(self, who: str, ids: list[UUID], scopes: str, seen_by: str) -> None:
            self.edit(who, "statement", ids, scopes, False)
            self.tables(seen_by)

        def edit(self, who: str, level: str, ids: list[UUID], scopes: str, cascade: bool) -> None:
            args = [level, ids[0] if len(ids) == 1 else ids, scopes, cascade]
            call = "set_required_scopes(%s, %s" if len(ids) == 1 else "set_many_required_scopes(%s, %s::uuid[]"
            self.write(
                who,
                f"set_required_scopes of a {level}",
                lambda caller, _: caller.edit(level, ids, scopes_in(scopes), cascade),
                (f"select graphium.{call}, %s::text[], %s)", args),
            )

        @rule(who=allowed(WRITERS), ids=st.lists(statements, max_size=2), seen_by=SOMEBODY)
        def forget(self, who: str, ids: list[UUID], seen_by: str) -> None:
            query = ("select graphium.forget_context(%s::uuid[])", [[*ids, uuid4()]])
            self.write(who, "forget_context", lambda caller, _: caller.forget(ids), query)
            self.tables(seen_by)

        @rule(
            who=allowed(ADMINS),
            path=st.sampled_from([*TAXA, "acme-corp:a"]),
            name=one_of("a", "b", "g", "s"),
            seen_by=SOMEBODY,
        )
        def rename(self, who: str, path: str, name: str, seen_by: str) -> None:
            level = ("family", "genus", "specimen")[path.count("/")]
            id = self.id_of(who, path)
            query = ("select graphium.rename_taxon(%s, %s, %s)", [level, id, name])
            self.write(who, "rename_taxon", lambda caller, _: caller.rename(level, id, name), query)
            self.tables(seen_by)

        @rule(
            who=allowed(ADMINS),
            specimen=one_of("a/g/s", "a/g/t", "a/h/s", "acme-corp:a/g/s"),
            genus=one_of("a/g", "a/h", "b/g", "acme-corp:a/g"),
            seen_by=SOMEBODY,
        )
        def move(self, who: str, specimen: str, genus: str, seen_by: str) -> None:
            ids = self.id_of(who, specimen), self.id_of(who, genus)
            query = ("select graphium.move_specimen(%s, %s)", ids)
            self.write(who, "move_specimen", lambda caller, _: caller.move(*ids), query)
            self.tables(seen_by)

        @rule(who=allowed(ADMINS), path=st.sampled_from([*TAXA, "acme-corp:a"]), seen_by=SOMEBODY)
        def forget_taxon(self, who: str, path: str, seen_by: str) -> None:
            level = ("family", "genus", "specimen")[path.count("/")]
            id = self.id_of(who, path)
            query = ("select graphium.forget_taxon(%s, %s)", [level, id])
            self.write(who, "forget_taxon", lambda caller, _: caller.forget_taxon(level, id), query)
            self.tables(seen_by)

        @rule(
            target=edges,
            who=allowed(ADMINS),
            kind=KINDS,
            source=st.one_of(st.sampled_from(TAXA), statements),
            to=st.one_of(st.sampled_from(["b", "a", "b/g", "b/g/s", "c"]), statements),
            note=one_of(None, "why"),
            seen_by=SOMEBODY,
        )
        def link(self, who: str, kind: str, source: str | UUID, to: str | UUID, note: str | None, seen_by: str) -> Any:
            ids = self.join(who, kind, source, to, note)
            self.tables(seen_by)
            return multiple(*ids)

        def join(self, who: str, kind: str, source: str | UUID, to: str | UUID, note: str | None) -> list[UUID]:
            of = self.world(who).caller(who).of

            def place(end: str | UUID) -> Place | None:
                return ("statement", end) if isinstance(end, UUID) else of.find(end) if of else None

            given = [
                {"statement_id": str(end)}
                if isinstance(end, UUID)
                else dict(zip(("family", "genus", "specimen"), end.split("/"), strict=False))
                for end in (source, to)
            ]
            id = self.write(
                who,
                "link_symbiosis",
                lambda caller, answer: caller.link(kind, place(source), place(to), note, lambda: answer()[0][0][0]),
                ("select graphium.link_symbiosis(%s, %s, %s, %s)", [kind, *map(Jsonb, given), note]),
            )
            return [id] if id else []

        @rule(who=allowed(ADMINS), edge=edges, seen_by=SOMEBODY)
        def unlink(self, who: str, edge: UUID, seen_by: str) -> None:
            query = ("select graphium.unlink_symbiosis(%s)", [edge])
            self.write(who, "unlink_symbiosis", lambda caller, _: caller.unlink(edge), query)
            self.tables(seen_by)

        # -------------------------------------------------------------------------------- who one is
        def principals(self, who: str, what: str, model: Callable[[Caller], Any], query: str, *args: Any) -> None:
            """Effective at once, in a transaction that another login has open too."""
            self.write(who, what, lambda caller, _: model(caller), (query, args))
            if self.open != "admin":
                for world in (self.working, *self.saved):
                    world.principals = dict(self.committed.principals)

        @rule(
            who=one_of("admin", "admin", "admin acme", "ann", "app acme {hr}"),
            login=one_of("ann", "bob"),
            slug=one_of("acme", "acme-corp", "nobody"),
            scopes=st.sampled_from(AUDIENCES),
            read_only=st.booleans(),
            seen_by=SOMEBODY,
        )
        def add_principal(self, who: str, login: str, slug: str, scopes: str, read_only: bool, seen_by: str) -> None:
            self.bind(who, login, slug, scopes, read_only)
            self.tables(seen_by)

        def bind(self, who: str, login: str, slug: str, scopes: str, read_only: bool) -> None:
            self.principals(
                who,
                "add_principal",
                lambda caller: caller.bind(login, slug, scopes_in(scopes), read_only),
                "select graphium.add_principal(%s, %s, %s::text[], %s)",
                *(talk.role[login], slug, scopes, read_only),
            )

        @rule(who=one_of("admin", "admin", "ann"), login=one_of("ann", "bob", "rob"), seen_by=SOMEBODY)
        def remove_principal(self, who: str, login: str, seen_by: str) -> None:
            query = "select graphium.remove_principal(%s)"
            self.principals(who, "remove_principal", lambda caller: caller.unbind(login), query, talk.role[login])
            self.tables(seen_by)

        @precondition(lambda self: not (self.open or self.dropped))
        @rule(slug=st.sampled_from(SLUGS), end=one_of("rollback", "commit"))
        def drop_tenant(self, slug: str, end: str) -> None:
            """And make it again, empty; or think better of it. Once a story, for it takes long."""
            self.dropped = True
            talk.sessions["admin"].execute("begin")
            self.open, self.working = "admin", copy.deepcopy(self.committed)
            query = ("select graphium.drop_tenant(%s)", [slug])
            self.write("admin", "drop_tenant", lambda caller, _: caller.drop_tenant(slug), query)
            self.tables(f"admin {slug}")
            self.make_tenant(slug)
            self.end(end)

        # -------------------------------------------------------------------------------- reading
        @rule(who=SOMEBODY)
        def tables(self, who: str) -> None:
            """Raw SELECTs, without a condition."""
            caller = self.world(who).caller(who)
            got = talk.ask(who, *((f"select {columns} from graphium.{name}", ()) for name, columns in TABLES.items()))
            if caller.login == "eve":
                self.agree("tables", "42501", got)
            else:
                assert isinstance(got, list), f"{who} reads tables: {got}"
                for (name, expected), rows in zip(caller.tables().items(), got, strict=True):
                    self.agree(f"{who} reads {name}", expected, rows, ordered=False)
            for name, columns in ADMIN_TABLES.items():
                got = talk.ask(who, (f"select {columns} from graphium.{name}", ()))
                try:
                    expected = caller.admin_tables()[name]
                except Refused as refused:
                    self.agree(f"{who} reads {name}", refused.sqlstate, got)
                else:
                    assert isinstance(got, list), f"{who} reads {name}: {got}"
                    self.agree(f"{who} reads {name}", expected, self.with_logins(got[0]), ordered=False)

        @rule(who=SOMEBODY, vector=st.sampled_from(list(VECTORS)), how=searching())
        def search(self, who: str, vector: str, how: Any) -> None:
            self.find(who, vector, None, *how)

        @rule(who=SOMEBODY, text=st.sampled_from(list(QUERIES)), how=searching())
        def search_words(self, who: str, text: str, how: Any) -> None:
            self.find(who, None, text, *how)

        @rule(
            who=SOMEBODY,
            vector=st.sampled_from(list(VECTORS)),
            text=st.sampled_from(list(QUERIES)),
            how=searching(),
        )
        def search_both(self, who: str, vector: str, text: str, how: Any) -> None:
            self.find(who, vector, text, *how)

        def find(
            self,
            who: str,
            vector: str | None,
            text: str | None,
            count: int,
            families: list[str] | None,
            hops: int,
            at_least: float | None,
        ) -> None:
            query = VECTORS[vector] if vector else None
            self.read(
                who,
                "search_context",
                lambda caller: caller.search(query, text, count, families, hops, at_least),
                (
                    "select statement_id, similarity, score, is_symbiosis, symbiosis_kind, symbiosis_id, content, family, genus,"
                    " specimen, is_superseded, access_count, required_scopes, source, position"
                    " from graphium.search_context(%s, %s, %s, %s::text[], min_similarity => %s, follow_symbiosis => %s,"
                    " symbiosis_count => %s) order by rank",
                    [query and str(list(query)), text, count, families, at_least, hops > 0, hops],
                ),
            )

        @rule(
            who=SOMEBODY,
            family=one_of(None, "a", "b"),
            genus=one_of(None, None, "g"),
            specimen=one_of(None, None, "s"),
            page_size=one_of(50, 1, 2),
        )
        def recall(self, who: str, family: str | None, genus: str | None, specimen: str | None, page_size: int) -> None:
            """Page after page."""

            def one_page(page: int, caller: Caller) -> list[Any]:
                return caller.recall(family, genus, specimen)[page * page_size :][:page_size]

            after = None
            for page in itertools.count():
                rows = self.read(
                    who,
                    f"recall_context, page {page + 1}",
                    partial(one_page, page),
                    (
                        "select statement_id, content, family, genus, specimen, is_superseded, access_count, required_scopes,"
                        " source, position from graphium.recall_context(%s, %s, %s, page_size => %s, after => %s)",
                        [family, genus, specimen, page_size, after],
                    ),
                )
                if len(rows) < page_size:
                    break
                after = rows[-1][0]

        @rule(who=SOMEBODY, budget=one_of(800, 0, 4, 9))
        def wake_up(self, who: str, budget: int) -> None:
            self.read(
                who,
                "wake_up_context",
                lambda caller: caller.wake_up(budget),
                (
                    "select statement_id, content, family, genus, specimen, tokens, running_tokens"
                    " from graphium.wake_up_context(%s) order by position",
                    [budget],
                ),
            )

        @rule(who=SOMEBODY, vector=st.sampled_from(list(VECTORS)))
        def overview(self, who: str, vector: str) -> None:
            """Who one is, the tree, the families nearest to a vector, and names in a question."""
            self.caller(who)
            self.tree(who)
            self.search_families(who, vector)
            self.prepare_query(who)

        def tree(self, who: str) -> None:
            names = "select family_id, family, genus_id, genus, specimen_id, specimen, statements from graphium.context_tree()"

            def in_order(caller: Caller) -> list[Any]:
                at = (1, 3, 5, 0, 2, 4)
                return sorted(caller.tree(), key=lambda row: [(row[n] is None, row[n] or "") for n in at])

            self.read(who, "context_tree", in_order, (names, ()))

        def search_families(self, who: str, vector: str) -> None:
            query = VECTORS[vector]
            self.read(
                who,
                "search_families",
                lambda caller: caller.search_families(query),
                ("select family, similarity, statement_count from graphium.search_families(%s)", [str(list(query))]),
                ordered=False,
            )

        @rule(who=SOMEBODY)
        def cypher(self, who: str) -> None:
            self.graph(who, "vertices", lambda caller: caller.graph()[0], "(n)", "[labels(n)[0], n.id, n.name]")
            self.graph(who, "edges", lambda caller: caller.graph()[1], "(a)-[e]->(b)", "[type(e), a.id, b.id]")

        def graph(self, who: str, what: str, model: Callable[[Caller], list[Any]], pattern: str, returns: str) -> None:
            self.read(
                who,
                f"cypher, {what}",
                lambda caller: [([str(v) for v in row],) for row in model(caller)],
                (f"select graphium.cypher('MATCH {pattern} RETURN {returns}')", ()),
                ordered=False,
            )
            self.read(
                who,
                f"cypher, number of {what}",
                lambda caller: [(len(model(caller)),)],
                (f"select graphium.cypher('MATCH {pattern} RETURN count(*)')", ()),
            )

        def caller(self, who: str) -> None:
            """set_caller(), and who the database then thinks one is."""
            login, *settings = who.split()
            tenant = next((s for s in settings if not s.startswith("{")), "acme")
            scopes = next((s for s in settings if s.startswith("{")), None)

            def model(caller: Caller) -> list[Any]:
                caller.require("read", tenant=False)
                if caller.role is None:
                    raise Refused("MG001")
                named = caller.world.caller(f"{login} {tenant} {scopes or ''}")
                if named.of is None or named.of.slug != tenant:
                    raise Refused("MG002")
                return [(tenant, named.scopes, named.role)]

            self.read(
                who,
                "set_caller and caller",
                model,
                ("select graphium.set_caller(%s, %s::text[])", [tenant, scopes]),
                ("select tenant, scopes, role from graphium.caller()", ()),
            )

        def prepare_query(self, who: str) -> None:
            """Which specimens of that name there are is told to who may see one."""

            def model(caller: Caller) -> list[Any]:
                caller.require("read")
                return [(sorted({s.name for s in caller.visible("specimen")} & {"s", "t"}),)]

            query = "select array(select n from unnest(specimens) as n order by n) from graphium.prepare_query('Is s or t?')"
            self.read(who, "prepare_query", model, (query, ()))

    return Story


def tell_stories(talk: Conversation, stories: int, *phases: Phase) -> None:
    """Tells so many stories of 60 steps."""
    run_state_machine_as_test(
        machine(talk),
        settings=settings(
            max_examples=stories,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            phases=phases or (Phase.generate, Phase.shrink),
        ),
    )


# ---------------------------------------------------------------------------------------------------- faults on purpose
Fault = Callable[[Connection], Any]


def rewritten(function: str, what: str, to: str) -> Fault:
    """A private function with a part of it changed."""

    def spoil(boss: Connection) -> None:
        query = "select pg_get_functiondef(%s::regproc)"
        [[source]] = boss.execute(query, [f"graphium_private.{function}"]).fetchall()
        assert what in source, source
        boss.execute(source.replace(what, to).encode())

    return spoil


def seeing_everything(function: str) -> Fault:
    """A function that runs as the keeper instead of under the policies."""

    def spoil(boss: Connection) -> None:
        [[signature]] = boss.execute("select %s::regproc::regprocedure::text", [function]).fetchall()
        boss.execute(b"grant select on all tables in schema graphium, graphium_private to graphium_keeper")
        boss.execute(f"alter function {signature} owner to graphium_keeper".encode())
        boss.execute(f"alter function {signature} security definer".encode())
        boss.execute("grant execute on all functions in schema graphium_private to graphium_keeper")
        boss.execute(f"grant execute on function {signature} to graphium_reader, graphium_owner".encode())

    return spoil


def both(*faults: Fault) -> Fault:
    """Of two guards that say the same, neither: with one of them nothing would be told."""
    return lambda boss: [fault(boss) for fault in faults]


def guarded_by(table: str, using: str) -> Fault:
    query = f"alter policy tenant_and_scope_isolation on {table} using ({using})"
    return lambda boss: boss.execute(query.encode())


OWN = "tenant_id = (select graphium_private.caller_tenant_id())"
SOURCE = (
    "exists (select from graphium.dh_families f where f.tenant_id = dh_symbioses.tenant_id and f.id = source_family_id)"
)
# One guard taken away, and everything else as it should be.
FAULTS: dict[str, Fault] = {
    "everyone in the tenant sees everything": rewritten("is_visible", "(cardinality(required_scopes) = 0)", "true"),
    "specimens whatever their audience": guarded_by("graphium.dh_specimens", OWN),
    "genera of hidden families": guarded_by("graphium.dh_genera", OWN),
    "vectors of hidden statements": guarded_by("graphium.kg_embeddings", OWN),
    "words of hidden statements count": both(
        guarded_by("graphium_private.postings", OWN),
        rewritten("_held_audiences", "a.scope_keys && coalesce(v_held, a.scope_keys)", "true"),
    ),
    "symbioses with one visible end": guarded_by("graphium.dh_symbioses", f"{OWN} and {SOURCE}"),
    "dedup by text into another audience": both(
        rewritten("_find_same_text", "i.content_hash, i.audience)", "i.content_hash, '{}')"),
        rewritten("_find_same_text", "p.audience_key = n.audience_key and ", ""),
    ),
    "dedup by vector into another audience": rewritten(
        "_find_near_statements", "and graphium_private._audience(e.required_scopes) = n.audience", ""
    ),
    "a summary of all audiences": rewritten("_audience_includes", "RETURN (", "RETURN true or ("),
    "settings that widen": rewritten(
        "resolve_caller", "from unnest(scopes) as s where s = any (v_named)", "from unnest(v_named) as s"
    ),
    "principals who name another tenant": rewritten(
        "resolve_caller",
        "where p.role_name",
        "where current_setting('graphium.tenant', true) in ('', p.tenant) and p.role_name",
    ),
    "read-only principals who write": rewritten("_require_writer", ".read_only then", ".read_only and false then"),
    "stale audiences of vectors": rewritten(
        "_on_statements_changed", "required_scopes = n.required_scopes, happened_at", "happened_at"
    ),
    "the graph whatever the audience": rewritten(
        "_protect_graph",
        "and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes()))",
        "",
    ),
    "positions after hidden statements": rewritten(
        "_last_position", "and graphium_private.is_visible(s.required_scopes, p_scopes)", ""
    ),
    "supersession by hidden edges": seeing_everything("graphium_private._superseded"),
    "forgetting what is hidden": seeing_everything("graphium.forget_context"),
    "counting what is hidden": seeing_everything("graphium.context_tree"),
    "editing what is hidden": seeing_everything("graphium_private._edit_scopes"),
    "writing what one may not read": rewritten("_require_held", "if not", "if false and not"),
}


# These are found within seconds; the others take some minutes, so they are tried when stories are asked for.
QUICK = ["everyone in the tenant sees everything", "a summary of all audiences"]


@pytest.mark.parametrize("fault", FAULTS if STORIES else QUICK)
def test_a_fault_is_found(cluster: Cluster, fault: str) -> None:
    database = Database(cluster, cluster.take())
    try:
        talk = Conversation(database)
        FAULTS[fault](talk.boss)
        with pytest.raises(AssertionError, match="the model"):
            tell_stories(talk, 300, Phase.generate)
    finally:
        database.close()
        cluster.give_back(database.name)


@pytest.fixture(scope="module")
def talk(db: Database) -> Conversation:
    return Conversation(db)


def test_whatever_happens_everyone_sees_what_he_may_see(talk: Conversation) -> None:
    tell_stories(talk, STORIES or 35)
    assert talk.finished >= (STORIES or 35)


def test_what_was_said_in_a_transaction_can_be_forgotten_in_it(talk: Conversation) -> None:
    """A story that was found: sentences about t are folded into those of s, and all of it goes in the same transaction."""
    admin = talk.sessions["admin"]
    for forget in (
        "select graphium.forget_taxon('family', family_id) from graphium.context_tree() limit 1",
        "select graphium.forget_taxon('genus', genus_id) from graphium.context_tree() limit 1",
        "select graphium.drop_tenant('acme')",
    ):
        admin.execute("select graphium.create_tenant('acme', dimensions => 3)")
        with admin.transaction(force_rollback="tenant" in forget):
            admin.execute("select graphium.set_caller('acme')")
            for specimen, content in (("t", "milk"), ("s", "tea"), ("t", "tea")):
                said = Jsonb([{"content": content}])
                admin.execute("select graphium.ingest_context('a', 'g', %s, %s)", [specimen, said])
            assert admin.execute("select from graphium.kg_statement_variants").rowcount == 1
            admin.execute(forget.encode())
        admin.execute("select graphium.drop_tenant('acme')")
