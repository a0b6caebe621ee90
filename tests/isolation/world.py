"""The small world that the matrix looks at: two tenants, some rows of every audience, and who is who.

Every text that is planted here ends in the mark of those who may see it: `acme-hr` is for callers of acme with the scope
hr. So whatever an actor gets, from wherever, must not contain a mark that is not his, nor the id of a row that is not.

    acme                                                     statements (audience; * has no vector)
      family plans {}         specimen harbour {}            open {}  public {public}*  hr {hr}  legal {legal}
                                                             either {hr,legal}
                              specimen ada {hr}              ada {hr}
      family raises {hr}      specimen grades {hr}           raise {hr}  leftover {}
      family lawsuits {legal} specimen court {legal}         lawsuit {legal}
      symbioses               raises_edge plans-raises  lawsuit_edge open-lawsuit  both_edge raises-lawsuits
                              open_edge open-leftover
    umbrella
      family umbrella_plans {} specimen umbrella_dock {}     umbrella_open {}  umbrella_hr {hr}  umbrella_legal {legal}
      family umbrella_deals {} specimen umbrella_pier {}     umbrella_deal {}
      symbioses               umbrella_edge umbrella_plans-umbrella_deals

Said twice, so that there is a variant: open, hr, umbrella_open. Preloaded: open, hr, lawsuit, umbrella_open. The audience
of `either` and of `umbrella_legal` was edited once. Each of the two tenants has principals: two, and one;
one more of acme was removed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from graphium_db.embedding import Embedding
from tests.support.databases import Connection, Database, as_caller

OPEN, HR, LEGAL, EITHER, BOTH = "acme-open", "acme-hr", "acme-legal", "acme-either", "acme-both"
U_OPEN, U_HR, U_LEGAL = "umbrella-open", "umbrella-hr", "umbrella-legal"
ACME = {OPEN, HR, LEGAL, EITHER, BOTH}
MARKS = ACME | {U_OPEN, U_HR, U_LEGAL, "acme", "umbrella"}


@dataclass(frozen=True)
class Actor:
    """Somebody with a login, and what each of his transactions begins with. matrix.yaml says who they are."""

    name: str
    login: str
    begin: str
    sees: frozenset[str] = frozenset()
    tenant: str | None = None
    scopes: tuple[str, ...] | None = None

    def may_know(self, mark: str) -> bool:
        """Of a slug: whether he sees anything of that tenant. An admin may know all tenants by name."""
        if mark in ("acme", "umbrella"):
            return self.name == "admin" or any(seen.startswith(mark) for seen in self.sees)
        return mark in self.sees


def _names(tenant: str, scopes: str = "{}") -> str:
    return f"select graphium.set_caller('{tenant}', '{scopes}')"


def _claims(tenant: str, scopes: str) -> str:
    """Settings that count for nothing, or can only narrow, for those who use this."""
    return f"select set_config('graphium.tenant', '{tenant}', true), set_config('graphium.scopes', '{scopes}', true)"


_OF_HR = frozenset({OPEN, HR, EITHER})
ACTORS = {
    actor.name: actor
    for actor in (
        Actor("nobody", "app", ""),
        Actor("stranger", "stranger", _claims("acme", "{hr,legal}")),
        Actor("unbound", "unbound", _claims("acme", "{hr,legal}")),
        Actor("other", "app", _names("umbrella", "{hr}"), frozenset({U_OPEN, U_HR}), "umbrella", ("hr",)),
        Actor("unscoped", "app", _names("acme"), frozenset({OPEN}), "acme", ()),
        Actor("scoped", "app", _names("acme", "{hr}"), _OF_HR, "acme", ("hr",)),
        Actor("both", "app", _names("acme", "{hr,legal}"), frozenset(ACME), "acme", ("hr", "legal")),
        Actor("principal", "principal", _claims("umbrella", "{hr,legal}"), _OF_HR),
        Actor("reader", "reader", _claims("umbrella", "{hr,legal}"), _OF_HR),
        Actor("admin", "admin", _names("acme"), frozenset(ACME), "acme"),
        Actor("owner", "deployer", f"set local role graphium_owner; {_claims('acme', '{hr,legal}')}"),
    )
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class World:
    """The database with all that in it."""

    db: Database
    boss: Connection
    connections: dict[str, Connection]
    """Of each actor."""
    logins: dict[str, str]
    """For `Database.dsn`, by the actors' `login`."""
    roles: dict[str, str]
    """Full names of the logins."""
    ids: dict[str, str]
    """Of the rows that have a name above; more names: `raises_genus` and the like, `acme`, `umbrella`."""
    marks: dict[str, str]
    """Whose row it is, by id."""
    graph: str
    """Schema of acme's graph."""
    names: dict[str, str]
    """What $names stand for: ids, full names of logins, graph, and a file for `graphium ingest` and `import`."""
    before: dict[UUID, str]
    """What matrix.rows() says of the world as it is."""

    def filled_in(self, text: str) -> str:
        """Puts ids, login names and paths in for $names."""
        if "$" in text:
            for name in sorted(self.names, key=len, reverse=True):
                text = text.replace(f"${name}", self.names[name])
        return text

    def hidden_ids(self, actor: Actor) -> list[str]:
        return [id for id, mark in self.marks.items() if not actor.may_know(mark)]

    def hidden_from(self, actor: Actor) -> list[str]:
        """Ids and texts of what that actor must never get."""
        return self.hidden_ids(actor) + [mark for mark in sorted(MARKS) if not actor.may_know(mark)]


class NoModel:
    """An embedder of the world's model: every text has one direction."""

    name = "world"
    dimensions = 3

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        return [Embedding(vector=[1.0, 0.0, 0.0], exact_only=True) for _ in texts]


def _says(name: str, mark: str, vector: list[int] | None, *scopes: str, **more: Any) -> dict[str, Any]:
    return {"content": content(name, mark), "embedding": vector, "required_scopes": list(scopes), "source": f"minutes {mark}", "memory_type": "fact", "layer_kind": "on_demand", "metadata": {"by": mark}} | more  # fmt: skip


def content(name: str, mark: str) -> str:
    return f"The ferry of {name} is {mark}"


PRELOADED = {"layer_kind": "preloaded"}
# tenant, family, its audience, genus, specimen, its audience, statements
MEMORY: list[tuple[str, str, list[str], str, str, list[str], list[dict[str, Any]]]] = [
    ("acme", f"plans {OPEN}", [], f"year {OPEN}", f"harbour {OPEN}", [], [
        _says("open", OPEN, [1, 0, 0], **PRELOADED),
        _says("public", OPEN, None, "public"),
        _says("hr", HR, [0, 1, 0], "hr", **PRELOADED),
        _says("legal", LEGAL, [0, 0, 1], "legal"),
        _says("either", EITHER, [1, 1, 0], "hr"),
        _says("open", OPEN, [1, 0, 0], **PRELOADED) | {"content": f"Of open is the ferry {OPEN}"},
        _says("hr", HR, [0, 1, 0], "hr", **PRELOADED) | {"content": f"Of hr is the ferry {HR}"},
    ]),
    ("acme", f"plans {OPEN}", [], f"year {OPEN}", f"ada {HR}", ["hr"], [_says("ada", HR, [1, 0, 1], "hr")]),
    ("acme", f"raises {HR}", ["hr"], f"pay {HR}", f"grades {HR}", ["hr"], [
        _says("raise", HR, [0, 1, 1], "hr"),
        _says("leftover", OPEN, [1, 1, 1]),
    ]),
    ("acme", f"lawsuits {LEGAL}", ["legal"], f"civil {LEGAL}", f"court {LEGAL}", ["legal"], [
        _says("lawsuit", LEGAL, [1, 2, 3], "legal", **PRELOADED),
    ]),
    ("umbrella", f"plans {U_OPEN}", [], f"year {U_OPEN}", f"dock {U_OPEN}", [], [
        _says("umbrella_open", U_OPEN, [1, 0, 0], **PRELOADED),
        _says("umbrella_hr", U_HR, [0, 1, 0], "hr"),
        _says("umbrella_legal", U_LEGAL, [0, 0, 1]),
        _says("umbrella_open", U_OPEN, [1, 0, 0], **PRELOADED) | {"content": f"Of umbrella_open is the ferry {U_OPEN}"},
    ]),
    ("umbrella", f"deals {U_OPEN}", [], f"year {U_OPEN}", f"pier {U_OPEN}", [], [
        _says("umbrella_deal", U_OPEN, [0, 0, 1]),
    ]),
]  # fmt: skip
STATEMENTS = {
    "open": OPEN, "public": OPEN, "hr": HR, "legal": LEGAL, "either": EITHER, "ada": HR, "raise": HR, "leftover": OPEN, "lawsuit": LEGAL,
    "umbrella_open": U_OPEN, "umbrella_hr": U_HR, "umbrella_legal": U_LEGAL, "umbrella_deal": U_OPEN,
}  # fmt: skip
# By what is before and after the mark: a family, its genus, a specimen.
TAXA = {
    "plans": ("dh_families", OPEN), "raises": ("dh_families", HR), "lawsuits": ("dh_families", LEGAL), "umbrella_plans": ("dh_families", U_OPEN), "umbrella_deals": ("dh_families", U_OPEN),
    "year": ("dh_genera", OPEN), "pay": ("dh_genera", HR), "civil": ("dh_genera", LEGAL),
    "harbour": ("dh_specimens", OPEN), "ada": ("dh_specimens", HR), "grades": ("dh_specimens", HR), "court": ("dh_specimens", LEGAL), "umbrella_dock": ("dh_specimens", U_OPEN), "umbrella_pier": ("dh_specimens", U_OPEN),
}  # fmt: skip
EDGES = [
    ("acme", "raises_edge", HR, {"family": f"plans {OPEN}"}, {"family": f"raises {HR}"}),
    ("acme", "lawsuit_edge", LEGAL, {"statement_id": "$open"}, {"statement_id": "$lawsuit"}),
    ("acme", "both_edge", BOTH, {"family": f"raises {HR}"}, {"family": f"lawsuits {LEGAL}"}),
    ("acme", "open_edge", OPEN, {"statement_id": "$open"}, {"statement_id": "$leftover"}),
    ("umbrella", "umbrella_edge", U_OPEN, {"family": f"plans {U_OPEN}"}, {"family": f"deals {U_OPEN}"}),
]

# What the test needs beside the memory: a schema where anybody may make things, and a look, past the policies, at what
# an actor's own transaction did to rows that are hidden from him. A family's count and summary are no such change: they
# follow visible statements, in a hidden family, too.
SCAFFOLD = """
create schema matrix;
grant usage, create on schema matrix to public;
create function matrix.noop() returns trigger language plpgsql as 'begin return null; end';
create function matrix.rows() returns table (id uuid, hash text) language sql security definer set search_path = pg_catalog as $rows$
  select r.id, md5(string_agg(r.line, e'\\n' order by r.line)) from (
    select t.id, to_jsonb(t)::text from graphium.tenants t
    union all select f.id, (to_jsonb(f) - '{statement_count,summary_embedding}'::text[])::text from graphium.dh_families f
    union all select g.id, to_jsonb(g)::text from graphium.dh_genera g
    union all select s.id, to_jsonb(s)::text from graphium.dh_specimens s
    union all select s.id, to_jsonb(s)::text from graphium.kg_statements s
    union all select v.statement_id, to_jsonb(v)::text from graphium.kg_statement_variants v
    union all select e.statement_id, to_jsonb(e)::text from graphium.kg_embeddings e
    union all select y.id, to_jsonb(y)::text from graphium.dh_symbioses y) as r(id, line)
   group by r.id
$rows$;
"""


def rows(conn: Connection) -> dict[UUID, str]:
    """A hash of each row, by id, as the transaction of `conn` sees them, whoever that is."""
    return dict(conn.execute("select id, hash from matrix.rows()").fetchall())


def build(db: Database, folder: Path) -> World:
    """Make it: the memory by functions only, as an admin."""
    boss, admin = db.connect(), db.connect("admin")
    boss.execute(SCAFFOLD.encode())
    for slug in ("acme", "umbrella"):
        admin.execute("select graphium.create_tenant(%s, 'world', 3)", [slug])
    for tenant, family, family_scopes, genus, specimen, specimen_scopes, statements in MEMORY:
        with as_caller(admin, tenant):
            # Born open or with the specimen's audience; the families' audiences are those of their first specimen.
            assert family_scopes in ([], specimen_scopes)
            admin.execute(
                "select graphium.ingest_context(%s, %s, %s, %s::jsonb, %s)",
                [family, genus, specimen, json.dumps(statements), specimen_scopes],
            )
    # As if an older rule set had labelled them: something to do for reclassify().
    boss.execute("update graphium.kg_statements set rule = 'fact.old', rules_version = 0, is_type_chosen = false")
    ids: dict[str, str] = {}
    marks: dict[str, str] = {}

    def found(name: str, mark: str, query: str, *values: str) -> None:
        [(id,)] = boss.execute(query.encode(), values).fetchall()
        ids[name], marks[str(id)] = str(id), mark

    for name, mark in STATEMENTS.items():
        found(name, mark, "select id from graphium.kg_statements where content = %s", content(name, mark))
    for name, (table, mark) in TAXA.items():
        found(
            f"{name}_{_kind(table)}",
            mark,
            f"select id from graphium.{table} where name = %s",
            f"{name.removeprefix('umbrella_')} {mark}",
        )
    for (id,) in boss.execute("select id from graphium.dh_genera where name = %s", [f"year {U_OPEN}"]):
        marks[str(id)] = U_OPEN
    for tenant, name, mark, source, target in EDGES:
        ends = [
            json.dumps({key: ids.get(value.removeprefix("$"), value) for key, value in end.items()})
            for end in (source, target)
        ]
        with as_caller(admin, tenant):
            admin.execute(
                "select graphium.link_symbiosis('related_to', %s::jsonb, %s::jsonb, %s)", [*ends, f"note {mark}"]
            )
        found(name, mark, "select id from graphium.dh_symbioses where note = %s", f"note {mark}")
    for tenant, name, scopes in (("acme", "either", ["hr", "legal"]), ("umbrella", "umbrella_legal", ["legal"])):
        with as_caller(admin, tenant):
            admin.execute("select graphium.set_required_scopes('statement', %s, %s)", [ids[name], scopes])
    for slug in ("acme", "umbrella"):
        found(slug, slug, "select id from graphium.tenants where slug = %s", slug)

    logins = {"app": "app", "admin": "admin", "deployer": "deployer"}
    for name, tenant, read_only in (
        ("principal", "acme", False),
        ("reader", "acme", True),
        ("colleague", "umbrella", False),
        ("unbound", "acme", False),
        ("stranger", "", False),
    ):
        logins[name] = db.login()
        if tenant:
            admin.execute(
                "select graphium.add_principal(%s, %s, '{hr}', %s)", [db.cluster.role(logins[name]), tenant, read_only]
            )
    roles = {f"{name}_login": db.cluster.role(login) for name, login in logins.items()}
    admin.execute("select graphium.remove_principal(%s)", [roles["unbound_login"]])
    statements_file = folder / "statements.jsonl"
    statements_file.write_text(
        json.dumps(
            {
                "family": f"plans {OPEN}",
                "genus": f"year {OPEN}",
                "specimen": f"harbour {OPEN}",
                "content": "It sails at noon",
                "embedding": None,
            }
        )
        + "\n"
    )
    conversation_file = folder / "conversation.json"
    turn = {"dia_id": "D1:1", "speaker": "Ada", "text": "It sails at noon"}
    question = {"question": "When does it sail?", "evidence": ["D1:1"]}
    conversation_file.write_text(json.dumps([{"conversation": {"session_1": [turn]}, "qa": [question]}]))
    graph = f"graphium_{ids['acme'].replace('-', '')}"
    boss.execute("grant execute on all functions in schema matrix to public")
    connections = {}
    for actor in ACTORS.values():
        connections[actor.name] = db.connect(logins[actor.login], prepare_threshold=None)  # no two texts are alike
        connections[actor.name].execute("set lock_timeout = '5s'")
    names = ids | roles | {"graph": graph, "statements": str(statements_file), "conversation": str(conversation_file)}
    return World(db, boss, connections, logins, roles, ids, marks, graph, names, rows(boss))


def _kind(table: str) -> str:
    return {"dh_families": "family", "dh_genera": "genus", "dh_specimens": "specimen"}[table]
