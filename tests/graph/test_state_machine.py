"""Random changes of a taxonomy, with savepoints that are rolled back, against a graph worked out in Python after each step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.graph.mirror import Taxonomy
from tests.support.databases import Connection, Database

NAME = st.text(alphabet="ab\\\"'$`{}: é太🙂", min_size=1, max_size=8).map(lambda text: f"x{text}x")
SCOPES = st.lists(st.sampled_from(["hr", "legal", "public"]), max_size=2, unique=True)
PICK = st.integers(0, 2**16)
numbers = itertools.count(1)


def machine(superuser: Connection, admin: Connection) -> type[RuleBasedStateMachine]:
    class Changes(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            slug = f"machine {next(numbers)}"
            admin.execute("select graphium.create_tenant(%s)", [slug])
            self.slug = slug
            self.taxonomy = Taxonomy(superuser, slug)
            self.depth = 0

        def rows(self, table: str, columns: str = "id") -> list[tuple[Any, ...]]:
            return superuser.execute(
                f"select {columns} from graphium.{table} where tenant_id = %s order by id".encode(),
                [self.taxonomy.tenant],
            ).fetchall()

        def some(self, table: str, picks: Sequence[int]) -> list[UUID]:
            rows = self.rows(table)
            return [rows[p % len(rows)][0] for p in picks] if rows else []

        def change(self, query: str, args: Sequence[Any]) -> None:
            """A statement that may break a unique key: then nothing of it may be in the graph either."""
            superuser.execute("savepoint statement")
            try:
                superuser.execute(query.encode(), list(args))
            except Exception as error:
                if getattr(error, "sqlstate", "") != "23505":
                    raise
                superuser.execute("rollback to savepoint statement")
            superuser.execute("release savepoint statement")

        @initialize()
        def begin(self) -> None:
            superuser.execute("begin")

        @rule(names=st.lists(NAME, min_size=1, max_size=3), scopes=SCOPES)
        def add_families(self, names: list[str], scopes: list[str]) -> None:
            self.change(
                "insert into graphium.dh_families (tenant_id, id, name, required_scopes)"
                " select %s, gen_random_uuid(), name, %s from unnest(%s::text[]) as name on conflict do nothing",
                [self.taxonomy.tenant, scopes, names],
            )

        @rule(names=st.lists(NAME, min_size=1, max_size=3), picks=st.lists(PICK, min_size=1, max_size=3))
        def add_genera(self, names: list[str], picks: list[int]) -> None:
            self.change(
                "insert into graphium.dh_genera (tenant_id, id, family_id, name)"
                " select %s, gen_random_uuid(), f, n from unnest(%s::uuid[]) as f, unnest(%s::text[]) as n on conflict do nothing",
                [self.taxonomy.tenant, self.some("dh_families", picks), names],
            )

        @rule(names=st.lists(NAME, min_size=1, max_size=3), picks=st.lists(PICK, min_size=1, max_size=3), scopes=SCOPES)
        def add_specimens(self, names: list[str], picks: list[int], scopes: list[str]) -> None:
            self.change(
                "insert into graphium.dh_specimens (tenant_id, id, family_id, genus_id, name, required_scopes)"
                " select %s, gen_random_uuid(), g.family_id, g.id, n, %s from graphium.dh_genera g, unnest(%s::text[]) as n"
                " where g.tenant_id = %s and g.id = any (%s)"
                " on conflict (tenant_id, genus_id, graphium_private._masked(name)) do update set required_scopes = excluded.required_scopes",
                [
                    self.taxonomy.tenant,
                    scopes,
                    list(dict.fromkeys(names)),
                    self.taxonomy.tenant,
                    self.some("dh_genera", picks),
                ],
            )

        @rule(
            table=st.sampled_from(["dh_families", "dh_genera", "dh_specimens"]),
            picks=st.lists(PICK, min_size=1, max_size=3),
            name=NAME,
        )
        def rename(self, table: str, picks: list[int], name: str) -> None:
            self.change(
                f"update graphium.{table} set name = left(%s || name, 200) where tenant_id = %s and id = any (%s)",
                [name, self.taxonomy.tenant, self.some(table, picks)],
            )

        @rule(
            table=st.sampled_from(["dh_families", "dh_specimens"]),
            picks=st.lists(PICK, min_size=1, max_size=3),
            scopes=SCOPES,
        )
        def change_audience(self, table: str, picks: list[int], scopes: list[str]) -> None:
            self.change(
                f"update graphium.{table} set required_scopes = %s where tenant_id = %s and id = any (%s)",
                [scopes, self.taxonomy.tenant, self.some(table, picks)],
            )

        @rule(pick=PICK)
        def move(self, pick: int) -> None:
            specimens = self.rows("dh_specimens", "id, family_id")
            if specimens:
                id, family = specimens[pick % len(specimens)]
                self.change(
                    "update graphium.dh_specimens set genus_id = (select g.id from graphium.dh_genera g where g.tenant_id = %s and g.family_id = %s"
                    " order by md5(g.id::text || %s) limit 1) where tenant_id = %s and id = %s",
                    [self.taxonomy.tenant, family, str(pick), self.taxonomy.tenant, id],
                )

        @rule(
            table=st.sampled_from(["dh_families", "dh_genera", "dh_specimens", "dh_specimens"]),
            picks=st.lists(PICK, min_size=1, max_size=2),
        )
        def delete(self, table: str, picks: list[int]) -> None:
            self.change(
                f"delete from graphium.{table} where tenant_id = %s and id = any (%s)",
                [self.taxonomy.tenant, self.some(table, picks)],
            )

        @precondition(lambda self: self.depth < 3)
        @rule()
        def savepoint(self) -> None:
            self.depth += 1
            superuser.execute(f"savepoint s{self.depth}".encode())

        @precondition(lambda self: self.depth > 0)
        @rule(roll_back=st.booleans())
        def end_savepoint(self, roll_back: bool) -> None:
            superuser.execute(f"{'rollback to' if roll_back else 'release'} savepoint s{self.depth}".encode())
            self.depth -= 1

        @rule(commit=st.booleans())
        def end_transaction(self, commit: bool) -> None:
            superuser.execute(b"commit" if commit else b"rollback")
            superuser.execute("begin")
            self.depth = 0

        @invariant()
        def graph_is_equal_to_rows(self) -> None:
            self.taxonomy.assert_mirrored()

        def teardown(self) -> None:
            superuser.execute("rollback")
            assert admin.execute("select * from graphium.check_graph(%s)", [self.slug]).fetchall() == []
            admin.execute("select graphium.drop_tenant(%s)", [self.slug])

    return Changes


def test_random_changes(db: Database) -> None:
    run_state_machine_as_test(
        machine(db.connect(), db.connect("admin")),
        settings=settings(
            max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
