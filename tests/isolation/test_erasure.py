"""What is erased is gone: from every table of the database, whatever its schema, and, after VACUUM FULL, from its files.

Texts and bit patterns that occur nowhere else are planted wherever a text or a vector can be put. The search for them
asks pg_class which tables there are, so one that does not exist yet is searched on the day that it does.
"""

from __future__ import annotations

import hashlib
import random
import re
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.memory.conftest import ingest
from tests.support.databases import Connection, Database, as_caller

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "erasure.md").read_text("utf-8")
DOCS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
STATISTICS, FULL = re.findall(r"^```psql\n(.*?)^```", PAGE, re.M | re.S)
MARK = "zq7"  # so begins each planted word
DIMENSIONS = 600  # 2,400 bytes: more than a row holds, so vectors are kept in TOAST, and uncompressed

# One row per table (TOAST, shared and system tables too) and thing that is found in it, in any form that it can have.
LOOK_EVERYWHERE = """
create function pg_temp.look_everywhere(names text[], forms text[], starts text[]) returns table (name text, place text)
  language plpgsql as $look$
declare
  v_table regclass;
  v_columns text;
begin
  for v_table, v_columns in
    select c.oid, string_agg(quote_ident(a.attname), ', ')
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind in ('r', 't', 'm', 'S') and c.relpersistence <> 't'
     group by c.oid
  loop
    return query execute format(
      'select distinct f.name, %L
         from (select r.text from only %s, lateral (select row(%s)::text as text offset 0) as r
                where exists (select from unnest($3) as s where strpos(r.text, s) > 0) offset 0) as r,
              unnest($1, $2) as f(name, form)
        where strpos(r.text, f.form) > 0', v_table, v_table, v_columns) using names, forms, starts;
  end loop;
end $look$;
create function pg_temp.chunks() returns table (toast regclass, id oid, seq int, md5 text)
  language plpgsql as $chunks$
begin
  for toast in
    select c.reltoastrelid from pg_class c
     where c.reltoastrelid <> 0 and not c.relisshared and c.oid <> 'pg_statistic'::regclass -- renewed by ANALYZE alone
  loop
    return query execute format('select %L::regclass, chunk_id, chunk_seq, md5(chunk_data) from %s', toast, toast);
  end loop;
end $chunks$;
create function pg_temp.look_in_files(names text[], forms bytea[]) returns table (name text, file text)
  language sql as $files$
  select distinct f.name, file
    from (select oid from pg_database where datname = current_database()) as d,
         lateral pg_ls_dir('base/' || d.oid) as file,
         lateral (select pg_read_binary_file('base/' || d.oid || '/' || file, 0, 1000000000, true) as bytes offset 0) as r,
         unnest(names, forms) as f(name, form)
   where position(f.form in r.bytes) > 0
$files$;
"""


def word(place: str) -> str:
    """A word for a place, found nowhere else; search's stemmer leaves it as it is."""
    return f"{MARK}{place}{hashlib.sha256(place.encode()).hexdigest()[:10]}7"


def noise(seed: str, length: int) -> str:
    """Text that does not compress much, so that it must go to TOAST."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


def vector(seed: str) -> list[float]:
    """Recognised by its first numbers."""
    numbers = random.Random(seed)
    return [float(np.float32(numbers.gauss(0, 1))) for _ in range(DIMENSIONS)]


@dataclass
class Planted:
    """Things to look for: a name for each, and the forms in which it may be written or stored."""

    texts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    raw: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))

    def __or__(self, other: Planted) -> Planted:
        return Planted(self.texts | other.texts, self.raw | other.raw)

    def word(self, place: str) -> str:
        text = word(place)
        self.texts[place] += [text, text.encode().hex()]  # as text; as bytes
        self.raw[place] += [text.encode()]
        return text

    def id(self, name: str, id: UUID) -> UUID:
        signed = " ".join(str(byte - 256 if byte > 127 else byte) for byte in id.bytes)
        self.texts[name] += [str(id), id.hex, signed]  # the last: as a constant in a stored expression
        self.raw[name] += [id.bytes, str(id).encode(), id.hex.encode()]
        return id

    def vector(self, name: str) -> list[float]:
        found = vector(name)
        self.texts[name] += [
            f"{np.float32(found[0])!s}",
            repr(found[0])[:12],
        ]  # as pgvector prints it; as a double in a sum
        self.raw[name] += [struct.pack("<3f", *found[:3])]
        return found


class Looker:
    """The superuser's eyes."""

    def __init__(self, db: Database) -> None:
        self.conn = db.connect()
        self.conn.execute("load 'age'")
        self.conn.execute(LOOK_EVERYWHERE.encode())

    def tables(self, planted: Planted) -> dict[str, set[str]]:
        """Where each thing is; things that are nowhere are left out."""
        pairs = [(name, form) for name, forms in planted.texts.items() for form in forms]
        # What a row must have to be looked at closely: the first letters of a form; of ids, the digits that tell the hour.
        starts = {form[: len(MARK)] if form.startswith(MARK) else form[:6] for _, form in pairs}
        rows = self.conn.execute(
            "select name, place from pg_temp.look_everywhere(%s, %s, %s)",
            [*(list(column) for column in zip(*pairs, strict=True)), list(starts)],
        )
        found: dict[str, set[str]] = defaultdict(set)
        for name, place in rows:
            found[name].add(place)
        return dict(found)

    def chunks(self) -> set[tuple[Any, ...]]:
        return set(self.conn.execute("select toast::oid, id, seq, md5 from pg_temp.chunks()").fetchall())

    def files(self, planted: Planted) -> dict[str, set[str]]:
        pairs = [(name, form) for name, forms in planted.raw.items() for form in forms]
        self.conn.execute("checkpoint")  # the files are as the memory is
        rows = self.conn.execute(
            "select name, file from pg_temp.look_in_files(%s, %s)",
            [list(column) for column in zip(*pairs, strict=True)],
        )
        found: dict[str, set[str]] = defaultdict(set)
        for name, file in rows:
            found[name].add(file)
        return dict(found)

    def tables_to_vacuum(self) -> list[str]:
        """All but those that the databases of the cluster share: other tests use them at this moment."""
        query = "select oid::regclass::text from pg_class where relkind in ('r', 'm') and not relisshared and relpersistence = 'p'"
        return [row[0] for row in self.conn.execute(query)]


def made_by(conn: Connection, query: str) -> list[str]:
    """The statements that psql's \\gexec would send."""
    return [row[0] for row in conn.execute(query.encode())]


def ids(conn: Connection, query: str, *args: Any) -> list[UUID]:
    return [row[0] for row in conn.execute(query.encode(), args)]


def plant(db: Database, admin: Connection, prefix: str) -> Planted:
    """A tenant with something of its own in every place that takes a text, a vector or a scope."""
    planted = Planted()

    def p(place: str) -> str:
        return planted.word(prefix + place)

    slug, scope = p("slug"), p("scope")
    admin.execute("select graphium.create_tenant(%s, dimensions => %s)", [slug, DIMENSIONS])
    login = db.cluster.role(db.login())
    admin.execute("select graphium.add_principal(%s, %s, %s)", [login, slug, [scope]])
    where: dict[str, Any] = {
        "family": p("family"), "genus": p("genus"), "specimen": p("specimen"), "required_scopes": [scope]
    }  # fmt: skip
    first = {
        "content": f"{p('content')} is here",
        "embedding": planted.vector(prefix + "embedding"),
        "source": p("source"),
        "metadata": {p("key"): p("value"), "long": noise(prefix + "metadata", 8000)},
    }
    long = {"content": f"{p('long')} {noise(prefix, 20000)}", "embedding": planted.vector(prefix + "vector")}
    # The same sentence, by its vector, said about somebody else: kept as a variant.
    again = first | {
        "content": f"{p('variant')} was here",
        "source": p("variantsource"),
        "metadata": {p("variantkey"): [p("variantvalue")], "long": noise(prefix + "variant", 8000)},
    }
    with as_caller(admin, slug):
        rows = ingest(admin, [first, long], **where)
        [folded] = ingest(admin, [again], **where | {"specimen": p("variantspecimen")})
        assert folded[1:3] == (rows[0][1], True)
        ingest(admin, [{"content": "elsewhere", "embedding": vector("elsewhere")}], family=p("otherfamily"))
        admin.execute(
            "select graphium.link_symbiosis('related_to', %s, %s, %s)",
            [Jsonb({"statement_id": str(rows[0][1])}), Jsonb({"family": word(prefix + "otherfamily")}), p("note")],
        )
        admin.execute(
            "select graphium.set_required_scopes('statement', %s, %s)", [rows[1][1], [scope, p("editedscope")]]
        )
        for table in ("tenants", "dh_families", "dh_specimens", "kg_statements", "dh_symbioses", "scope_edits"):
            row = admin.execute(f"select id from graphium.{table} order by id limit 1".encode()).fetchone()
            assert row is not None
            planted.id(f"{prefix}{table} id", row[0])
    return planted


def maintain(db: Database, admin: Connection) -> None:
    """What `graphium maintain` does."""
    plan = admin.execute("select statement from graphium.maintenance_plan() order by step").fetchall()
    with psycopg.connect(db.dsn("deployer"), autocommit=True) as conn:
        for (statement,) in plan:
            conn.execute(statement.encode())


@pytest.fixture(scope="module")
def admin(db: Database) -> Connection:
    return db.connect("admin")


@pytest.fixture(scope="module")
def looker(db: Database) -> Looker:
    return Looker(db)


@pytest.fixture(scope="module")
def kept(db: Database, admin: Connection) -> Planted:
    """A tenant that nobody erases: whatever happens to others, it stays as it is."""
    return plant(db, admin, "k")


IN_STATEMENTS = {"graphium.kg_statements"}
IN_VARIANTS = {"graphium.kg_statement_variants"}
# Where each thing is found before it is erased. A partition stands for the table, "graph" for the tenant's schema.
PLACES = {
    "slug": {"graphium.tenants", "graphium.principals", "graphium.scope_edits"},
    "scope": {
        "graphium.principals", "graphium.dh_families", "graphium.dh_specimens", "graphium.kg_statements",
        "graphium.kg_embeddings", "graphium.scope_edits", "graphium_private.postings", "graph",
    },
    "editedscope": {
        "graphium.kg_statements", "graphium.kg_embeddings", "graphium.scope_edits", "graphium_private.postings"
    },
    "family": {"graphium.dh_families", "graph"},
    "otherfamily": {"graphium.dh_families", "graph"},
    "genus": {"graphium.dh_genera", "graph"},
    "specimen": {"graphium.dh_specimens", "graph"},
    "variantspecimen": {"graphium.dh_specimens", "graph"},
    "content": IN_STATEMENTS,
    "long": IN_STATEMENTS | {"toast"},
    "source": IN_STATEMENTS,
    "key": IN_STATEMENTS | {"toast"},
    "value": IN_STATEMENTS | {"toast"},
    "variant": IN_VARIANTS,
    "variantsource": IN_VARIANTS,
    "variantkey": IN_VARIANTS | {"toast"},
    "variantvalue": IN_VARIANTS | {"toast"},
    "note": {"graphium.dh_symbioses"},
    "embedding": {"graphium.kg_embeddings"},
    "vector": {"graphium.kg_embeddings"},
    "tenants id": {
        "graphium.tenants", "graphium.dh_families", "graphium.dh_genera", "graphium.dh_specimens",
        "graphium.kg_statements", "graphium.kg_statement_variants", "graphium.kg_embeddings", "graphium.dh_symbioses",
        "graphium.scope_edits", "graphium_private.family_counters", "graphium_private.family_sums",
        "graphium_private.postings", "graphium_private.audiences", "graph", "ag_catalog.ag_graph", "ag_catalog.ag_label", "pg_class", "pg_namespace",
        "pg_policy", "pg_index", "pg_statistic",
    },
}  # fmt: skip


def places(found: dict[str, set[str]], prefix: str) -> dict[str, set[str]]:
    """What was found of one tenant, by the names of PLACES."""
    shorter = ((r"_p\d\d$", ""), (r"^graphium_[0-9a-f]{32}\..*", "graph"), (r"^pg_toast\..*", "toast"))

    def short(place: str) -> str:
        for pattern, replacement in shorter:
            place = re.sub(pattern, replacement, place)
        return place

    return {name[1:]: {short(place) for place in where} for name, where in found.items() if name[0] == prefix}


def test_a_dropped_tenant_is_gone_from_tables_and_files(
    db: Database, admin: Connection, looker: Looker, kept: Planted
) -> None:
    boss = looker.conn
    boss.execute("update graphium_private.settings set value = 1 where name ~ '^hnsw_(min|drop)'")
    chunks_before = looker.chunks()
    doomed = plant(db, admin, "d")
    maintain(db, admin)
    boss.execute("analyze")
    both = doomed | kept
    before, chunks = looker.tables(both), looker.chunks() - chunks_before
    found = places(before, "d")
    assert {name: found[name] for name in PLACES} == PLACES
    assert set(before) == set(both.texts)
    toasted = boss.execute(
        "select c.reltoastrelid from pg_class c where c.relname in ('kg_statements', 'kg_statement_variants')"
        " or c.oid in (select e.tableoid from graphium.kg_embeddings e join graphium.tenants t on t.id = e.tenant_id"
        "               where t.slug = %s)",
        [word("dslug")],
    ).fetchall()
    assert {toast for toast, *_ in chunks} >= {toast for (toast,) in toasted}
    files = looker.files(both)
    assert set(files) >= {
        name for name in both.raw if PLACES.get(name[1:], set()) & {"toast"} == set()
    }  # may be compressed

    admin.execute("select graphium.drop_tenant(%s)", [word("dslug")])

    after = looker.tables(both)
    assert places(after, "k") == places(before, "k")
    left = places(after, "d")
    assert left.pop("tenants id") == {"pg_class", "pg_index", "pg_statistic"}  # its own vector index
    assert all(name.endswith(" id") and where == {"pg_statistic"} for name, where in left.items()), left
    assert looker.chunks() & chunks == set()

    delete, analyze = STATISTICS.removesuffix(" \\gexec\n").split(";\n")
    maintain(db, admin)
    boss.execute(delete.encode())
    for statement in made_by(boss, analyze):
        boss.execute(statement.encode())
    after = looker.tables(both)
    assert places(after, "d") == {}
    assert places(after, "k").keys() == places(before, "k").keys()

    # Files. VACUUM gives room free and leaves the bytes; VACUUM FULL writes everything anew.
    boss.execute(f"vacuum {', '.join(looker.tables_to_vacuum())}".encode())
    files = looker.files(both)
    assert {"dcontent", "dvariant", "dembedding"} & set(files)
    vacuum, checkpoint = FULL.split(" \\gexec\n")
    assert checkpoint == "checkpoint;\n"
    shared = {name for (name,) in boss.execute("select oid::regclass::text from pg_class where relisshared")}
    for statement in made_by(boss, vacuum):
        if statement.split(" ")[-1] not in shared:  # other tests use them at this moment
            boss.execute(statement.encode())
    files = looker.files(both)
    assert {name for name in files if name[0] == "d"} == set()
    assert {name for name in files if name[0] == "k"} >= {"kcontent", "kvariant", "kembedding", "ktenants id"}


def test_forgotten_statements_are_gone(db: Database, admin: Connection, looker: Looker, kept: Planted) -> None:
    planted = plant(db, admin, "f")
    looker.conn.execute("analyze")
    with as_caller(admin, word("fslug")):
        two = ids(admin, "select statement_id from graphium.recall_context(family => %s)", word("ffamily"))
        assert ids(admin, "select graphium.forget_context(%s)", two) == [2]
        [row] = admin.execute(
            "select summary_embedding, statement_count from graphium.dh_families where name = %s", [word("ffamily")]
        ).fetchall()
        assert row == (None, 0)
    left = places(looker.tables(planted), "f")
    for name in list(left):
        left[name] -= {"pg_statistic"}  # of ids; see the docs
    stays = {name: PLACES[name] for name in ("slug", "family", "otherfamily", "genus", "specimen", "variantspecimen")}
    stays["scope"] = {
        "graphium.principals",
        "graphium.dh_families",
        "graphium.dh_specimens",
        "graphium.scope_edits",
        "graph",
    }
    stays["editedscope"] = {"graphium.scope_edits"}
    assert {name: where for name, where in left.items() if not name.endswith(" id") and where} == stays
    assert left["kg_statements id"] <= {"graphium.scope_edits"}
    assert left["dh_symbioses id"] == set()


def test_a_forgotten_specimen_takes_what_was_said_about_it(
    db: Database, admin: Connection, looker: Looker, kept: Planted
) -> None:
    """Its wording, folded into a statement about another specimen, too."""
    planted = plant(db, admin, "g")
    slug = word("gslug")
    with as_caller(admin, slug):
        forget = "select graphium.forget_taxon(%s, id) from graphium.{} where name = %s"
        assert ids(admin, forget.format("dh_specimens"), "specimen", word("gvariantspecimen")) == [0]
    left = places(looker.tables(planted), "g")
    assert {name for name in left if name.startswith("variant")} == set()
    assert left["content"] == PLACES["content"]
    with as_caller(admin, slug):
        assert ids(admin, forget.format("dh_genera"), "genus", word("ggenus")) == [2]
        assert ids(admin, forget.format("dh_families"), "family", word("gfamily")) == [0]
    left = places(looker.tables(planted), "g")
    for name in list(left):
        left[name] -= {"pg_statistic"}
    assert {name: where for name, where in left.items() if not name.endswith(" id") and where} == {
        "slug": PLACES["slug"],
        "scope": {"graphium.principals", "graphium.scope_edits"},
        "editedscope": {"graphium.scope_edits"},
        "otherfamily": PLACES["otherfamily"],
    }


def test_a_genus_takes_what_was_said_about_its_specimens(admin: Connection, looker: Looker, kept: Planted) -> None:
    admin.execute("select graphium.create_tenant('of a genus', dimensions => 3)")
    with as_caller(admin, "of a genus"):
        ingest(admin, [{"content": "likes tea", "embedding": [1, 2, 3]}], genus="people", specimen="Ada")
        for genus, specimen in (("cats", "Tom"), ("dogs", "Rex"), ("people", "Bob")):
            said = {"content": f"{specimen} likes tea", "embedding": [1, 2, 3]}
            assert ingest(admin, [said], genus=genus, specimen=specimen)[0][2] is True
        admin.execute("select graphium.forget_taxon('genus', id) from graphium.dh_genera where name = 'cats'")
        wordings = "select content from graphium.kg_statement_variants order by content"
        assert [row[0] for row in admin.execute(wordings)] == ["Bob likes tea", "Rex likes tea"]
        admin.execute("select graphium.forget_taxon('specimen', id) from graphium.dh_specimens where name = 'Bob'")
        assert [row[0] for row in admin.execute(wordings)] == ["Rex likes tea"]
        assert admin.execute("select content, access_count from graphium.kg_statements").fetchall() == [
            ("likes tea", 3)
        ]
    admin.execute("select graphium.drop_tenant('of a genus')")


# What these columns hold was chosen from a list of ours, or says nothing about anybody's memory.
NOT_WRITTEN_BY_PEOPLE = {
    "graphium.tenants": {"embedding_model"},
    "graphium.principals": {"role_name"},
    "graphium.scope_edits": {"kind", "login", "caller_role"},
    "graphium.kg_statements": {"memory_type", "layer_kind", "rule"},
    "graphium.kg_embeddings": {"memory_type", "layer_kind"},
    "graphium.dh_symbioses": {"kind"},
}
ONE_VALUE = {("graphium.kg_statements", "content_hash")}


def test_statistics_are_kept_of_no_column_that_people_write(admin: Connection, looker: Looker, kept: Planted) -> None:
    rows = looker.conn.execute(
        "select case when n.nspname ~ '^graphium_[0-9a-f]{32}$' then 'graph' else c.oid::regclass::text end, a.attname,"
        "       a.attstattarget"
        "  from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        "  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
        " where (c.relkind in ('r', 'p') and n.nspname ~ '^graphium' and n.nspname <> 'graphium_private'"
        "     or c.oid in ('graphium_private.postings'::regclass, 'graphium_private.family_sums'::regclass))"
        "   and a.atttypid <> all ('{uuid,bool,int2,int4,int8,float8,timestamptz,oid,ag_catalog.graphid}'::regtype[])"
    ).fetchall()
    kept_of = {}
    for table, column, target in rows:
        table = re.sub(r"_p\d\d$", "", table)
        if column not in NOT_WRITTEN_BY_PEOPLE.get(table, ()) and target != 0:
            kept_of[table, column] = target
    assert kept_of == dict.fromkeys(ONE_VALUE, 1)


def test_estimates_tell_nothing_of_a_value_that_is_guessed(db: Database, admin: Connection, looker: Looker) -> None:
    """A reader of another tenant may ask for plans: for what is there, and for what is not, they are the same."""
    admin.execute("select graphium.create_tenant('busy', dimensions => 3), graphium.create_tenant('curious')")
    with as_caller(admin, "busy"):
        ingest(admin, [{"content": f"{n} times", "source": "mail"} for n in range(300)], required_scopes=["hr"])
    curious = db.principal("curious")

    def plans(conn: Connection, column: str, guesses: list[str]) -> set[str]:
        query = f"explain select from graphium.kg_statements where {column} = "
        found = [conn.execute(f"{query} '{guess}'".encode()).fetchall() for guess in guesses]
        return {str(plan).replace(guess, "…") for plan, guess in zip(found, guesses, strict=True)}

    looker.conn.execute("analyze graphium.kg_statements")
    for column, guesses in (
        ("source", ["mail", "none"]),
        ("required_scopes", ["{hr}", "{no}"]),
        ("content", ["7 times", "no times"]),
    ):
        assert len(plans(curious, column, guesses)) == 1, column
    with looker.conn.transaction(force_rollback=True):  # they would tell, were the column sampled
        looker.conn.execute("alter table graphium.kg_statements alter column source set statistics 100")
        looker.conn.execute("analyze graphium.kg_statements")
        assert len(plans(looker.conn, "source", ["mail", "none"])) == 2
    for slug in ("busy", "curious"):
        admin.execute("select graphium.drop_tenant(%s)", [slug])


def test_the_commands_of_the_docs_come_to_no_table_of_a_stranger(
    db: Database, admin: Connection, looker: Looker, kept: Planted
) -> None:
    """An index expression of his that raises an error ends a command for all tables, before the rest of them."""
    login = db.login()
    role = db.cluster.role(login)
    looker.conn.execute(f"create schema his authorization {role}".encode())
    his = db.connect(login)
    his.execute(
        f"create function his.stop(x int) returns int language plpgsql immutable as $stop$ begin if session_user <> '{role}' then raise exception 'stopped'; end if; return x; end $stop$".encode()
    )
    his.execute(
        "create table his.trap (x int); insert into his.trap values (1); create index on his.trap (his.stop(x))"
    )
    with pytest.raises(psycopg.errors.RaiseException, match="stopped"):
        looker.conn.execute("analyze")
    graph = made_by(looker.conn, "select graph_name::text from graphium.tenants limit 1")[0]
    for query, verb in (
        (STATISTICS.removesuffix(" \\gexec\n").split(";\n")[1], "analyze"),
        (FULL.split(" \\gexec\n")[0], "vacuum (full, analyze)"),
    ):
        statements = made_by(looker.conn, query)
        assert not [statement for statement in statements if " his." in statement]
        ours = ("graphium.kg_statements", "graphium_private.postings", f'{graph}."Family"', "pg_class", "pg_statistic", "ag_catalog.ag_graph")  # fmt: skip
        assert {f"{verb} {table}" for table in ours} <= set(statements)
    looker.conn.execute("drop schema his cascade")


def test_the_commands_of_the_docs_work(looker: Looker) -> None:
    for block in DOCS:
        for statement in block.strip().split(";\n"):
            looker.conn.execute(statement.encode())
