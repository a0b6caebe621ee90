-- No index with a name, a source or a wording in it serves a caller's own query. Reading along one he found out what is
-- hidden: EXPLAIN (ANALYZE) counts the rows that the policies took away before a row of his, so that by writing a row here
-- and there he halved his way to any name, letter by letter. Such indexes are on _indexed_text(column), which no caller may
-- execute; graphium_private._ids_named() and _last_position() look things up in them.
set local role graphium_owner;
set local lock_timeout = '10s';

-- In plpgsql, which the planner never puts in its place; without a SET, for it looks up nothing; and of a cost that makes no
-- plan compute it row by row where the index has it.
create or replace function graphium_private._indexed_text(p_text text) returns text
  language plpgsql immutable strict parallel safe security invoker cost 10000
as $indexed$
begin
  return p_text;
end
$indexed$;
comment on function graphium_private._indexed_text(text) is 'Its argument. What indexes of names and sources are on: only who may execute it can use them.';
revoke all on function graphium_private._indexed_text(text) from public;
grant execute on function graphium_private._indexed_text(text) to graphium_keeper;

create or replace function graphium_private._indexed_key(p_key bytea) returns bytea
  language plpgsql immutable strict parallel safe security invoker cost 10000
as $indexed$
begin
  return p_key;
end
$indexed$;
comment on function graphium_private._indexed_key(bytea) is 'Its argument. What the index of variants is on: only who may execute it can use it.';
revoke all on function graphium_private._indexed_key(bytea) from public;
grant execute on function graphium_private._indexed_key(bytea) to graphium_keeper;

-- squawk-ignore ban-drop-constraint
alter table graphium.dh_families drop constraint if exists dh_families_tenant_id_name_key;
-- squawk-ignore ban-drop-constraint
alter table graphium.dh_genera drop constraint if exists dh_genera_tenant_id_family_id_name_key;
-- squawk-ignore ban-drop-constraint
alter table graphium.dh_specimens drop constraint if exists dh_specimens_tenant_id_genus_id_name_key;
-- squawk-ignore ban-drop-constraint
alter table graphium.kg_statement_variants drop constraint if exists kg_statement_variants_pkey;
-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.kg_statements_of_source;
-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.kg_statement_variants_of_source;

-- squawk-ignore require-concurrent-index-creation
create unique index if not exists dh_families_named on graphium.dh_families (tenant_id, graphium_private._indexed_text(name));
-- squawk-ignore require-concurrent-index-creation
create unique index if not exists dh_genera_named on graphium.dh_genera (tenant_id, family_id, graphium_private._indexed_text(name));
-- squawk-ignore require-concurrent-index-creation
create unique index if not exists dh_specimens_named on graphium.dh_specimens (tenant_id, genus_id, graphium_private._indexed_text(name));
-- squawk-ignore require-concurrent-index-creation
create unique index if not exists kg_statement_variants_once on graphium.kg_statement_variants (tenant_id, statement_id, graphium_private._indexed_key(variant_key));
-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_statements_in_source on graphium.kg_statements (tenant_id, graphium_private._indexed_text(source), position)
 where graphium_private._indexed_text(source) is not null;
-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_statement_variants_in_source on graphium.kg_statement_variants (tenant_id, graphium_private._indexed_text(source), position)
 where graphium_private._indexed_text(source) is not null;

-- An index that computes is sampled for the planner; what people wrote is to be in no statistics (0010).
alter index graphium.dh_families_named alter column 2 set statistics 0;
alter index graphium.dh_genera_named alter column 3 set statistics 0;
alter index graphium.dh_specimens_named alter column 3 set statistics 0;
alter index graphium.kg_statement_variants_once alter column 3 set statistics 0;
alter index graphium.kg_statements_in_source alter column 2 set statistics 0;
alter index graphium.kg_statement_variants_in_source alter column 2 set statistics 0;
