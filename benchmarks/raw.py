"""The reference's tables: ours, in a schema of their own, without triggers and policies.

Same columns, checks, keys, foreign keys, partitions and indexes; so what a plain insert into them costs is what the
storage costs, and the rest is what Graphium adds.
"""

from __future__ import annotations

import contextlib

from benchmarks.bench import Connection, Tenant

# in the order in which foreign keys need them
TABLES = ("dh_families", "dh_genera", "dh_specimens", "kg_statements", "kg_embeddings", "postings")

_CLONE = """
do $clone$
declare
  v_key record;
begin
  create schema raw;
  create table raw.dh_families (like graphium.dh_families including all);
  create table raw.dh_genera (like graphium.dh_genera including all);
  create table raw.dh_specimens (like graphium.dh_specimens including all);
  create table raw.kg_statements (like graphium.kg_statements including all);
  create table raw.postings (like graphium_private.postings including all);
  create table raw.kg_embeddings (like graphium.kg_embeddings including all) partition by hash (tenant_id);
  for v_remainder in 0..15 loop
    execute format('create table raw.kg_embeddings_p%s partition of raw.kg_embeddings for values with (modulus 16, remainder %s)',
                   to_char(v_remainder, 'FM00'), v_remainder);
  end loop;
  alter table raw.dh_families set (fillfactor = 50);
  alter table raw.kg_statements set (fillfactor = 85);
  for v_key in
    select c.relname, pg_get_constraintdef(k.oid) as definition
      from pg_constraint k join pg_class c on c.oid = k.conrelid
     where k.contype = 'f' and k.conparentid = 0 and c.relnamespace = 'graphium'::regnamespace
       and c.relname in ('dh_families', 'dh_genera', 'dh_specimens', 'kg_statements', 'kg_embeddings')
       and k.confrelid <> 'graphium.tenants'::regclass
     order by k.oid
  loop
    execute format('alter table raw.%I add %s', v_key.relname, replace(v_key.definition, 'REFERENCES graphium.', 'REFERENCES raw.'));
  end loop;
  alter table raw.dh_families add foreign key (tenant_id) references graphium.tenants (id) on delete cascade;
end
$clone$;
"""


def make(conn: Connection) -> None:
    """Make the reference's tables, unless they are there."""
    if conn.execute("select to_regnamespace('raw')").fetchone() == (None,):
        conn.execute(_CLONE.encode())


def copy_tenant(conn: Connection, tenant: Tenant, tables: tuple[str, ...] = TABLES) -> None:
    """Copy a tenant's rows from our tables, and give it the HNSW index that ours has."""
    make(conn)
    for table in tables:
        schema = "graphium_private" if table == "postings" else "graphium"
        columns = conn.execute(
            "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute "
            "where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = ''",
            [f"{schema}.{table}"],
        ).fetchone()
        assert columns is not None
        conn.execute(
            f"insert into raw.{table} ({columns[0]}) select {columns[0]} from {schema}.{table} where tenant_id = %s".encode(),
            [tenant.id],
        )
    index_like_ours(conn, tenant)
    conn.execute("vacuum (analyze) raw.kg_statements, raw.kg_embeddings")


def index_like_ours(conn: Connection, tenant: Tenant) -> None:
    found = conn.execute(
        "select indexdef from pg_indexes where schemaname = 'graphium' and indexname = %s",
        [f"kg_embeddings_hnsw_{tenant.id.hex}"],
    ).fetchone()
    if found is not None:
        with contextlib.ExitStack() as stack:
            conn.execute("set max_parallel_maintenance_workers = 0")
            stack.callback(conn.execute, "reset max_parallel_maintenance_workers")
            plain = (
                found[0]
                .replace(" ON graphium.", " ON raw.")
                .replace("graphium_private._indexed_direction(embedding, statement_id)", "embedding")
            )
            conn.execute(plain.encode())
