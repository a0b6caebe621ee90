"""The memory core between tenants and between callers of one tenant."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from tests.memory.conftest import ingest
from tests.support.databases import Connection, Database, as_caller

TABLES = (
    "tenants",
    "dh_families",
    "dh_genera",
    "dh_specimens",
    "kg_statements",
    "kg_statement_variants",
    "kg_embeddings",
    "dh_symbioses",
)
TEA = {"content": "Ada likes tea", "embedding": [1, 2, 3]}
ROLES = ("graphium_reader", "graphium_user", "graphium_app", "graphium_admin")
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def tenant(new_tenant: Callable[[int], str]) -> str:
    return new_tenant(3)


@pytest.fixture
def family() -> str:
    return f"family {next(numbers)}"


def counts(conn: Connection) -> dict[str, int]:
    found = {}
    for table in TABLES:
        [found[table]] = conn.execute(f"select count(*) from graphium.{table}".encode()).fetchone() or ()
    return found


def scalar(conn: Connection, query: str, *args: Any) -> Any:
    row = conn.execute(query.encode(), list(args)).fetchone()
    assert row is not None
    return row[0]


# ------------------------------------------------------------------------------------------ tenants
def test_tenants_with_names_alike(db: Database) -> None:
    slugs = ["acme", "acme-corp", "acme_corp", "acme%", "Acme", "acme corp", "*", "%", "_", "acme*", "ácme"]
    admin, app = db.connect("admin"), db.connect("app")
    ids: dict[str, Any] = {}
    for slug in slugs:
        admin.execute("select graphium.create_tenant(%s, dimensions => 3)", [slug])
    for slug in slugs:
        with as_caller(app, slug, ["hr", "*"]):
            [row] = ingest(app, [TEA], required_scopes=["hr"])
            assert row[2] is False  # nobody else's is the same
            ids[slug] = row[1]
            assert ingest(app, [TEA | {"content": "Tea is what Ada likes", "required_scopes": ["hr"]}])[0][1:3] == (
                row[1],
                True,
            )
    for slug in slugs:
        for conn, scopes in ((app, ["hr"]), (admin, [])):
            with as_caller(conn, slug, scopes):
                assert counts(conn) == {**dict.fromkeys(TABLES, 1), "dh_symbioses": 0}
                assert scalar(conn, "select id from graphium.kg_statements") == ids[slug]
                assert scalar(conn, "select slug from graphium.tenants") == slug
                others = [i for s, i in ids.items() if s != slug]
                assert scalar(conn, "select graphium.forget_context(%s)", others) == 0
                for id_ in others[:3]:
                    with pytest.raises(psycopg.Error) as caught, conn.transaction():
                        conn.execute("select graphium.set_required_scopes('statement', %s, '{}')", [id_])
                    assert caught.value.sqlstate == "MG007"
    with as_caller(admin, "*"):
        assert counts(admin)["kg_statements"] == 1
    admin.execute("select graphium.drop_tenant('acme%')")
    admin.execute("select graphium.drop_tenant('*')")
    assert sorted(r[0] for r in admin.execute("select slug from graphium.list_tenants()")) == sorted(
        set(slugs) - {"acme%", "*"}
    )


def test_one_uuid_in_two_tenants(db: Database) -> None:
    admin, boss = db.connect("admin"), db.connect()
    for slug in ("acme", "umbrella"):
        admin.execute("select graphium.create_tenant(%s, dimensions => 3)", [slug])
        with as_caller(admin, slug):
            ingest(admin, [{"content": slug}])
    same = scalar(boss, "select gen_random_uuid()")
    boss.execute(
        "insert into graphium.kg_statements (tenant_id, id, family_id, genus_id, specimen_id, content, memory_type)"
        " select tenant_id, %s, family_id, genus_id, specimen_id, content || ' too', 'fact' from graphium.kg_statements",
        [same],
    )

    def rows() -> list[Any]:
        return boss.execute(
            "select content, required_scopes from graphium.kg_statements where id = %s order by 1", [same]
        ).fetchall()

    with as_caller(admin, "acme"):
        assert scalar(admin, "select graphium.set_required_scopes('statement', %s, '{hr}')", same) == 1
    assert rows() == [("acme too", ["hr"]), ("umbrella too", [])]
    with as_caller(admin, "acme"):
        assert scalar(admin, "select graphium.forget_context(%s)", [same]) == 1
    assert rows() == [("umbrella too", [])]
    with as_caller(admin, "acme"):
        assert scalar(admin, "select graphium.forget_context(%s)", [same]) == 0


# ------------------------------------------------------------------------------------------ nobody
# What a caller without a tenant may call: it names no tenant's data, or makes it.
WITHOUT_TENANT = {
    "set_caller",
    "classify",
    "create_tenant",
    "drop_tenant",
    "list_tenants",
    "add_principal",
    "remove_principal",
    "list_principals",
    "check_security",
    "maintenance_plan",
}
ARGUMENTS = {  # valid ones, where NULL is refused for its own sake
    "kind": "'family'",
    "id": "gen_random_uuid()",
    "name": "'x'",
    "family": "'f'",
    "genus": "'g'",
    "specimen": "'s'",
    "statements": """'[{"content": "x"}]'""",
    "statement_ids": "'{}'",
    "ids": "'{}'",
    "required_scopes": "'{}'",
    "query": "'match (n) return n'",
    "genus_id": "gen_random_uuid()",
    "source": """'{"family": "f"}'""",
    "target": """'{"family": "g"}'""",
    "query_text": "'tea'",
    "query_embedding": "'[1,2,3]'",
}


def functions(boss: Connection, role: str) -> list[tuple[str, str]]:
    """Name and a call of every public function that `role` may execute."""
    rows = boss.execute(
        "select p.proname, p.pronargdefaults, p.proargnames, (select array_agg(format_type(t, null) order by n)"
        " from unnest(p.proargtypes) with ordinality as a(t, n))"
        "  from pg_proc p where p.pronamespace = 'graphium'::regnamespace"
        " and has_function_privilege(%s, p.oid, 'execute') order by 1",
        [role],
    ).fetchall()
    calls = []
    for name, defaults, argument_names, types in rows:
        count = len(types or []) - defaults
        given = [
            f"{a} => ({ARGUMENTS.get(a, 'null')})::{t}"
            for a, t in zip((argument_names or [])[:count], (types or [])[:count], strict=True)
        ]
        if name in ("check_memory", "check_graph", "rebuild_graph", "rebuild_memory"):
            given = ["tenant => null"]
        calls.append((name, f"select * from graphium.{name}({', '.join(given)})"))
    return calls


SETTINGS: list[tuple[str | None, str | None]] = [
    (None, None),
    ("", ""),
    ("", "{hr}"),
    ("   ", "{hr}"),
    ("\t\n", "{}"),
    ("no such tenant", "{hr}"),
    ("NULL", "{hr}"),
    ("TENANT 1", "{hr}"),
    ("tenant 1 ", "{}"),
    ("tenant%", "{}"),
    ("*", "{*}"),
    ("tenant 1', 'x", "{}"),
]


@pytest.mark.parametrize("login", ["app", "admin"])
@pytest.mark.parametrize(("name", "scopes"), SETTINGS)
def test_without_a_tenant_everything_is_closed(
    shared: Database, boss: Connection, tenant: str, app: Connection, login: str, name: str | None, scopes: str | None
) -> None:
    with as_caller(app, tenant):
        ingest(app, [TEA], family="closed")
    conn = shared.connect(login)
    if name is not None:
        conn.execute(
            "select set_config('graphium.tenant', %s, false), set_config('graphium.scopes', %s, false)", [name, scopes]
        )
    assert counts(conn) == dict.fromkeys(TABLES, 0)
    called = functions(boss, f"graphium_{login}")
    assert {"ingest_context", "forget_context", "set_required_scopes", "caller"} <= {n for n, _ in called}
    for function, call in called:
        if function not in WITHOUT_TENANT:
            with pytest.raises(psycopg.Error) as caught:
                conn.execute(call.encode())
            assert (function, caught.value.sqlstate) == (function, "MG001")
            assert caught.value.diag.message_hint


@pytest.mark.parametrize("scopes", ["hr", "   ", "{hr", "null", '{"hr"'])
def test_malformed_scopes_are_an_error_and_never_more(shared: Database, tenant: str, scopes: str) -> None:
    conn = shared.connect("app")
    conn.execute(
        "select set_config('graphium.tenant', %s, false), set_config('graphium.scopes', %s, false)", [tenant, scopes]
    )
    for query in ("select * from graphium.kg_statements", "select * from graphium.ingest_context('f', 'g', 's', '[]')"):
        with pytest.raises(psycopg.Error) as caught:
            conn.execute(query.encode())
        assert caught.value.sqlstate == "MG008"
        assert str(caught.value).startswith("graphium.scopes is not a list of scopes")
    with as_caller(conn, tenant):  # whoever names himself properly does not suffer from what is left there
        conn.execute("select * from graphium.kg_statements")


def test_nobodies(shared: Database, tenant: str) -> None:
    """A login that belongs to nothing, one with graphium_user but no tenant of its own, and set_caller's refusals."""
    stranger = shared.connect(shared.login())
    with pytest.raises(errors.InsufficientPrivilege):
        stranger.execute("select * from graphium.kg_statements")
    with pytest.raises(errors.InsufficientPrivilege):
        stranger.execute("select graphium.set_caller('x')")
    unbound = shared.connect(shared.login("graphium_user"))
    unbound.execute("select set_config('graphium.tenant', %s, false)", [tenant])
    assert counts(unbound) == dict.fromkeys(TABLES, 0)
    for call in (
        "select graphium.set_caller('tenant 1')",
        "select * from graphium.ingest_context('f', 'g', 's', '[]')",
        "select * from graphium.caller()",
    ):
        with pytest.raises(psycopg.Error) as caught:
            unbound.execute(call.encode())
        assert caught.value.sqlstate == "MG001"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (None, "MG008"),
        ("", "MG008"),
        (" \t", "MG008"),
        ("no such tenant", "MG002"),
        ("Tenant 1", "MG002"),
        ("%", "MG002"),
    ],
)
def test_set_caller_refuses(app: Connection, tenant: str, name: str | None, code: str) -> None:
    with pytest.raises(psycopg.Error) as caught, app.transaction():
        app.execute("select graphium.set_caller(tenant => %s)", [name])
    assert caught.value.sqlstate == code


def test_scopes_null_and_empty_are_none(app: Connection, tenant: str) -> None:
    for scopes in (None, []):
        with as_caller(app, tenant, scopes):
            assert scalar(app, "select scopes from graphium.caller()") == []


def test_the_caller_is_gone_after_the_transaction(app: Connection, tenant: str) -> None:
    with as_caller(app, tenant, ["hr"]):
        assert counts(app)["tenants"] == 1
    assert counts(app) == dict.fromkeys(TABLES, 0)


# ------------------------------------------------------------------------------------------ dedup and what is hidden
def test_dedup_does_not_see_what_the_caller_does_not(
    app: Connection, boss: Connection, tenant: str, family: str
) -> None:
    with as_caller(app, tenant, ["secret"]):
        [hidden] = ingest(app, [TEA | {"required_scopes": ["secret"]}], family=family)
    for scopes in ([], ["hr"], ["secret"]):  # who sees it does not match it either: another audience
        with as_caller(app, tenant, scopes):
            [row] = ingest(app, [TEA | {"content": f"Ada likes tea{'.' * len(scopes)}"}], family=family)
            assert row[1] != hidden[1]
            assert row[2] is bool(scopes)
    assert boss.execute(
        "select access_count, last_accessed_at from graphium.kg_statements where id = %s", [hidden[1]]
    ).fetchone() == (0, None)
    assert scalar(boss, "select count(*) from graphium.kg_statement_variants where statement_id = %s", hidden[1]) == 0
    with as_caller(app, tenant, []):
        assert (
            scalar(
                app,
                "select count(*) from graphium.kg_statements s join graphium.dh_families f"
                " on f.id = s.family_id where f.name = %s",
                family,
            )
            == 1
        )


AUDIENCES = [
    ([], [], True),
    ([], ["public"], True),
    (["public"], [], True),
    (["public", "hr"], [], True),
    (["public", "hr"], ["public", "legal"], True),
    (["hr"], ["hr"], True),
    (["hr", "legal"], ["legal", "hr", "hr"], True),
    ([" hr"], ["hr"], True),
    (["e\u0301"], ["\u00e9"], True),
    ([], ["hr"], False),
    (["hr"], [], False),
    (["hr"], ["public"], False),
    (["hr"], ["hr", "legal"], False),
    (["hr", "legal"], ["hr"], False),
    (["hr"], ["legal"], False),
    (["hr"], ["HR"], False),
    (["hr"], ["Public", "hr"], False),
    (["*"], [], False),
    (["*"], ["hr"], False),
]


@pytest.mark.parametrize(("one", "other", "is_same"), AUDIENCES)
def test_equal_audiences(
    app: Connection, admin: Connection, tenant: str, family: str, one: list[str], other: list[str], is_same: bool
) -> None:
    held = ["hr", "legal", "HR", "*", "\u00e9"]
    for again in (TEA, TEA | {"content": "Tea is what Ada likes"}):
        name = f"{family} {again['content']}"
        with as_caller(app, tenant, held):
            [first] = ingest(app, [TEA | {"required_scopes": one}], family=name)
            [second] = ingest(app, [again | {"required_scopes": other}], family=name)
        assert (second[1] == first[1], second[2]) == (is_same, is_same)
        if is_same:
            assert second[6] == first[6]  # the audience stays what it was


def test_default_audiences(app: Connection, boss: Connection, tenant: str, family: str) -> None:
    """The statement's own, else the call's, else its specimen's; births with the call's; what exists stays."""

    def say(content: str, own: list[str] | None, call: list[str] | None, specimen: str) -> list[str]:
        with as_caller(app, tenant, ["hr", "legal"]):
            return list(
                ingest(
                    app,
                    [{"content": content, "required_scopes": own}],
                    family=family,
                    specimen=specimen,
                    required_scopes=call,
                )[0][6]
            )

    assert say("1", None, ["hr"], "born for hr") == ["hr"]
    assert say("2", None, None, "born for hr") == ["hr"]
    assert say("3", [], None, "born for hr") == []
    assert say("4", None, [], "born for hr") == []
    assert say("5", ["legal"], ["public"], "born for hr") == ["legal"]
    assert say("6", None, None, "born open") == []
    assert say("7", None, ["legal"], "born open") == ["legal"]
    assert say("8", None, ["public", "hr"], "born public") == ["hr", "public"]
    assert boss.execute(
        "select s.name, s.required_scopes, f.required_scopes from graphium.dh_specimens s"
        " join graphium.dh_families f on f.id = s.family_id where f.name = %s order by 1",
        [family],
    ).fetchall() == [
        ("born for hr", ["hr"], ["hr"]),
        ("born open", [], ["hr"]),
        ("born public", ["hr", "public"], ["hr"]),
    ]


def test_a_statement_outlives_the_sight_of_its_family(app: Connection, tenant: str, family: str) -> None:
    with as_caller(app, tenant, ["hr"]):
        [row] = ingest(app, [{"content": "for all", "required_scopes": []}], family=family, required_scopes=["hr"])
    with as_caller(app, tenant):
        assert scalar(app, "select count(*) from graphium.kg_statements where id = %s", row[1]) == 1
        assert scalar(app, "select count(*) from graphium.dh_families where name = %s", family) == 0


def test_both_forms_of_the_rule_agree(boss: Connection) -> None:
    """is_visible() is inlined into the policies; is_seen(), which goes first in callers' own queries, says it again."""
    audiences = [[], ["public"], ["hr"], ["hr", "legal"], ["legal", "public"], ["Public"], ["*"], ["legal"]]
    callers = [None, [], ["hr"], ["legal", "sales"], ["public"], ["*"], ["Public"]]
    tried = visible = 0
    for audience, caller, tenant in itertools.product(audiences, callers, ("00000001", "00000002", None)):
        row, own = "00000001-0000-0000-0000-000000000000", tenant and f"{tenant}-0000-0000-0000-000000000000"
        found = boss.execute(
            "select graphium_private.is_seen(%(row)s, %(audience)s, %(own)s, %(caller)s) is true,"
            " (%(row)s::uuid = %(own)s::uuid and graphium_private.is_visible(%(audience)s, %(caller)s)) is true",
            {"row": row, "own": own, "audience": audience, "caller": caller},
        ).fetchone()
        assert found is not None
        assert found[0] is found[1], (audience, caller, tenant)
        tried, visible = tried + 1, visible + found[0]
    assert (tried, visible) == (168, 8 + 3 + 5 + 5 + 3 + 4 + 4)


# ------------------------------------------------------------------------------------------ principals
@pytest.fixture(scope="module")
def analyst(shared: Database, tenant: str) -> Connection:
    return shared.principal(tenant, ["hr", "sales"])


@pytest.mark.parametrize(
    ("setting", "held"),
    [
        (None, ["hr", "sales"]),
        ("", ["hr", "sales"]),
        ("{}", []),
        ("{hr}", ["hr"]),
        ("{hr,legal}", ["hr"]),
        ("{legal}", []),
        ("{*}", []),
        ("{NULL}", []),
        ("{{hr},{sales}}", ["hr", "sales"]),
    ],
)
def test_a_principal_narrows_and_never_widens(
    shared: Database,
    new_tenant: Callable[[int], str],
    tenant: str,
    analyst: Connection,
    setting: str | None,
    held: list[str],
) -> None:
    other = new_tenant(3)
    with analyst.transaction():
        if setting is not None:
            analyst.execute("select set_config('graphium.scopes', %s, true)", [setting])
        analyst.execute("select set_config('graphium.tenant', %s, true)", [other])
        assert analyst.execute("select tenant, scopes, role, source from graphium.caller()").fetchone() == (
            tenant,
            held,
            "principal",
            "principals",
        )
        assert scalar(analyst, "select slug from graphium.tenants") == tenant
    with pytest.raises(psycopg.Error) as caught, analyst.transaction():
        analyst.execute("select graphium.set_caller(%s, '{hr}')", [other])
    assert caught.value.sqlstate == "MG002"
    with as_caller(analyst, tenant, ["hr", "legal"]):
        assert scalar(analyst, "select scopes from graphium.caller()") == ["hr"]


def test_a_principal_writes_only_what_he_could_read(
    analyst: Connection, app: Connection, tenant: str, family: str
) -> None:
    with as_caller(app, tenant, ["legal"]):
        [theirs] = ingest(app, [TEA | {"required_scopes": ["legal"]}], family=family)
    [mine] = ingest(analyst, [TEA | {"required_scopes": ["hr"]}], family=family)
    assert mine[2] is False
    for statement in (
        "select graphium.ingest_context('x', 'g', 's', '[]', '{legal}')",
        """select graphium.ingest_context('x', 'g', 's', '[{"content": "x", "required_scopes": ["legal"]}]')""",
        f"select graphium.set_required_scopes('statement', '{mine[1]}', '{{legal}}')",
    ):
        with pytest.raises(psycopg.Error) as caught:
            analyst.execute(statement.encode())
        assert caught.value.sqlstate == "MG006"
    with pytest.raises(psycopg.Error) as caught:
        analyst.execute("select graphium.set_required_scopes('statement', %s, '{}')", [theirs[1]])
    assert caught.value.sqlstate == "MG007"
    assert scalar(analyst, "select graphium.forget_context(%s)", [theirs[1]]) == 0
    assert scalar(analyst, "select graphium.set_required_scopes('statement', %s, '{hr,legal}')", mine[1]) == 1


def test_set_role_is_no_disguise(
    shared: Database, boss: Connection, tenant: str, new_tenant: Callable[[int], str]
) -> None:
    """A principal who may act as another login stays who he is; so does an application that may act as an admin."""
    other = new_tenant(3)
    logins = [shared.login() for _ in range(2)]
    roles = [shared.cluster.role(login) for login in logins]
    with shared.connect("admin") as admin:
        admin.execute("select graphium.add_principal(%s, %s, '{hr}')", [roles[0], tenant])
        admin.execute("select graphium.add_principal(%s, %s, '{legal}')", [roles[1], other])
    boss.execute(sql.SQL("grant {} to {}").format(sql.Identifier(roles[1]), sql.Identifier(roles[0])))
    conn = shared.connect(logins[0])
    conn.execute(sql.SQL("set role {}").format(sql.Identifier(roles[1])))
    assert conn.execute("select tenant, scopes from graphium.caller()").fetchone() == (tenant, ["hr"])
    assert conn.execute("select slug from graphium.tenants").fetchall() == [(tenant,)]
    for role in (
        "graphium_user",
        "graphium_reader",
        "graphium_admin",
        "graphium_app",
        "graphium_owner",
        "graphium_keeper",
        "postgres",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(sql.SQL("set role {}").format(sql.Identifier(role)))


def test_a_change_of_a_binding_counts_at_once(shared: Database, tenant: str, new_tenant: Callable[[int], str]) -> None:
    login = shared.login()
    role = shared.cluster.role(login)
    other = new_tenant(3)
    with shared.connect("admin") as admin:
        admin.execute("select graphium.add_principal(%s, %s, '{hr}')", [role, tenant])
        conn = shared.connect(login)
        assert conn.execute("select tenant, scopes from graphium.caller()").fetchone() == (tenant, ["hr"])
        admin.execute("select graphium.add_principal(%s, %s, '{}', read_only => true)", [role, other])
        assert conn.execute("select tenant, scopes from graphium.caller()").fetchone() == (other, [])
        with pytest.raises(errors.InsufficientPrivilege):
            ingest(conn, [TEA])
        # Whatever another database of the cluster granted the login, the binding here says that it only reads.
        shared.connect().execute(sql.SQL("grant graphium_user to {}").format(sql.Identifier(role)))
        for call in (
            "ingest_context('f', 'g', 's', '[]')",
            "forget_context('{}')",
            "set_required_scopes('family', null, '{}')",
        ):
            with pytest.raises(errors.InsufficientPrivilege, match="may only read"):
                conn.execute(f"select graphium.{call}".encode())
        admin.execute("select graphium.remove_principal(%s)", [role])
        with pytest.raises(psycopg.Error) as caught:
            conn.execute("select graphium.caller()")
        assert caught.value.sqlstate == "MG001"
        assert conn.execute("select count(*) from graphium.tenants").fetchone() == (0,)


# ------------------------------------------------------------------------------------------ content, and raw writes
@pytest.mark.parametrize("role", [None, "graphium_owner", "graphium_keeper"])
def test_content_never_changes(boss: Connection, app: Connection, tenant: str, family: str, role: str | None) -> None:
    with as_caller(app, tenant):
        [row] = ingest(app, [TEA], family=family)
    for statement in (
        "update graphium.kg_statements set content = 'Ada likes coffee' where id = %s",
        "update graphium.kg_statements set content = content || ' ' where id = %s",
        "merge into graphium.kg_statements k using (select %s::uuid as id) x"
        " on k.id = x.id when matched then update set content = 'x'",
    ):
        with boss.transaction(force_rollback=True):
            boss.execute("select set_config('graphium.tenant', %s, true)", [tenant])
            boss.execute(f"set local role {role or 'none'}".encode())
            with pytest.raises(psycopg.Error) as caught:
                boss.execute(statement.encode(), [row[1]])
        assert caught.value.sqlstate == "MG003"
        assert "ingest" in (caught.value.diag.message_hint or "")
    boss.execute("update graphium.kg_statements set content = content, access_count = 7 where id = %s", [row[1]])
    assert boss.execute(
        "select content, access_count from graphium.kg_statements where id = %s", [row[1]]
    ).fetchone() == ("Ada likes tea", 7)


def relations(boss: Connection) -> list[str]:
    return [
        r[0]
        for r in boss.execute(
            "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.relkind in ('r', 'p', 'v', 'm', 'f')"
            " and (n.nspname in ('graphium', 'graphium_private') or n.oid in (select"
            " to_regnamespace(quote_ident(graph_name)) from graphium.tenants)) order by 1"
        )
    ]


def test_application_roles_hold_no_right_to_write(boss: Connection, tenant: str) -> None:
    found = boss.execute(
        "select r, t, p from unnest(%s::text[]) r, unnest(%s::text[]) t, unnest(%s::text[]) p"
        " where has_table_privilege(r, t, p) or (p in ('INSERT', 'UPDATE', 'REFERENCES')"
        " and has_any_column_privilege(r, t, p))",
        [list(ROLES), relations(boss), ["INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"]],
    ).fetchall()
    assert found == []
    assert len(relations(boss)) > 25
    rights = boss.execute(
        "select r, s, p from unnest(%s::text[]) r, unnest('{graphium,graphium_private}'::text[]) s,"
        " unnest('{CREATE,USAGE}'::text[]) p where has_schema_privilege(r, s, p)",
        [list(ROLES)],
    ).fetchall()
    assert {(s, p) for _, s, p in rights} == {("graphium", "USAGE")}
    assert (
        boss.execute(
            "select rolname from pg_roles where rolname like 'graphium\\_%%'"
            " and (rolsuper or rolbypassrls or rolcanlogin or rolcreaterole or rolcreatedb)"
        ).fetchall()
        == []
    )


@pytest.mark.parametrize("who", ["app", "admin", "principal"])
def test_raw_writes_are_denied(shared: Database, boss: Connection, tenant: str, analyst: Connection, who: str) -> None:
    conn = analyst if who == "principal" else shared.connect(who)
    if who != "principal":
        conn.execute("select graphium.set_caller(%s, is_local => false)", [tenant])
    tables = [t for t in relations(boss) if not t.startswith("graphium_") or t.startswith("graphium_private.")]
    for table in tables:
        column = scalar(
            boss, "select quote_ident(attname) from pg_attribute where attrelid = %s::regclass and attnum = 1", table
        )
        for statement in (
            f"insert into {table} default values",
            f"update {table} set {column} = {column}",
            f"delete from {table}",
            f"truncate {table}",
            f"copy {table} from stdin",
            f"lock table {table} in share mode",
            f"alter table {table} disable row level security",
        ):
            with pytest.raises(errors.InsufficientPrivilege), conn.transaction():
                conn.execute(statement.encode())
        if table.startswith("graphium_private."):
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(f"select * from {table}".encode())


def test_partitions_and_row_security_off(
    shared: Database, boss: Connection, app: Connection, tenant: str, family: str
) -> None:
    """A partition cannot be read directly; row_security = off is an error and not a way round."""
    partitions = [
        r[0]
        for r in boss.execute(
            "select relid::regclass::text from pg_partition_tree('graphium.kg_embeddings') where isleaf"
        )
    ]
    assert len(partitions) == 16
    with as_caller(app, tenant, ["hr"]):
        ingest(app, [TEA | {"required_scopes": ["hr"]}], family=family)
        for partition in partitions:
            with pytest.raises(errors.InsufficientPrivilege), app.transaction():
                app.execute(f"select * from {partition}".encode())
    # Were somebody granted one, the policy would be there.
    boss.execute(f"grant select on {', '.join(partitions)} to graphium_app".encode())
    try:
        for scopes in ([], ["hr"]):
            with as_caller(app, tenant, scopes):
                through_parent = scalar(app, "select count(*) from graphium.kg_embeddings")
                assert sum(scalar(app, f"select count(*) from {p}") for p in partitions) == through_parent
        assert sum(scalar(app, f"select count(*) from {p}") for p in partitions) == 0
    finally:
        boss.execute(f"revoke select on {', '.join(partitions)} from graphium_app".encode())
    with as_caller(app, tenant):
        app.execute("set local row_security = off")
        with pytest.raises(errors.InsufficientPrivilege), app.transaction():
            app.execute("select * from graphium.kg_statements")
