-- What keeps searches fast: the statements that give each grown tenant an HNSW index of its own, take it from a shrunken
-- one, and clear away what a killed build left. For all tenants of the database; a member of graphium_admin may look.
--
-- Run the statements in order on one connection in autocommit mode, as a role that may act as graphium_owner (that is
--   what `graphium maintain` does): `create index concurrently` cannot run in a transaction, so in no function either.
--   Nothing is blocked meanwhile: writes and searches go on. Safe to break off and to repeat: an index that is there is
--   not made again, and an invalid one is dropped first. An index that someone is building right now (a session holds a
--   SHARE UPDATE EXCLUSIVE lock on its partition; so does a vacuum, then it is simply next time's work) is left alone.
-- Thresholds: settings hnsw_min_embeddings and hnsw_drop_below; between them a tenant keeps what it has. Beyond 4,000
--   dimensions no HNSW index is possible: such a tenant is always scanned exactly.
-- ef_construction = 200: of 150,000 rows a second look (800) then finds .996 of the nearest for queries about what the tenant does
--   not know; with 128 it found .980, and 1,000, the most, .992. It takes longer to build.
-- Builds run without parallel workers: pgvector before 0.8.2 can read past its buffers in parallel builds.
--
-- example:
--   select step, tenant, action, reason, statement from graphium.maintenance_plan();
set local role graphium_keeper;

create or replace function graphium.maintenance_plan() returns table (step int, tenant text, action text, reason text, statement text)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $maintenance_plan$
#variable_conflict use_column
declare
  c_prefix constant text := 'kg_embeddings_hnsw_';
  v_min constant numeric := graphium_private._setting('hnsw_min_embeddings');
  v_drop constant numeric := graphium_private._setting('hnsw_drop_below');
begin
  perform graphium_private._require_admin_role();
  return query
  with partitions as (
    select p.relid, i.inhrelid, c.relname, row_number() over (order by c.relname) - 1 as remainder
      from pg_catalog.pg_partition_tree('graphium.kg_embeddings') as p
      join pg_catalog.pg_inherits i on i.inhrelid = p.relid
      join pg_catalog.pg_class c on c.oid = p.relid
     where p.isleaf
  ), indexes as (
    select c.relname as name, i.indrelid, i.indisvalid, a.atttypmod as dimensions, a.attstattarget is distinct from 0 as is_sampled,
           exists (select from pg_catalog.pg_depend d
                    where (d.classid, d.objid) = ('pg_catalog.pg_class'::regclass, c.oid)
                      and (d.refclassid, d.refobjid) = ('pg_catalog.pg_proc'::regclass, 'graphium_private._indexed_direction'::regproc)) as is_on_indexed,
           exists (select from pg_catalog.pg_locks l
                    where l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
                      and l.relation = i.indrelid and l.mode = 'ShareUpdateExclusiveLock' and l.granted) as is_busy
      from pg_catalog.pg_index i
      join pg_catalog.pg_class c on c.oid = i.indexrelid
      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = 1
     where c.relnamespace = 'graphium'::regnamespace and starts_with(c.relname, c_prefix)
  ), tenants as (
    select t.id, t.slug, t.dimensions, graphium_private._hnsw_index_name(t.id) as index_name,
           coalesce((select sum(c.embeddings) from graphium_private.family_counters c where c.tenant_id = t.id), 0) as embeddings
      from graphium.tenants t
  ), judged as (
    select t.slug, coalesce(t.index_name, i.name) as name, t.id, t.dimensions, i.name is not null as is_there, i.is_sampled,
           coalesce(i.is_busy and not i.indisvalid, false) as is_building,
           case when i.name is null then null
                when t.id is null then 'it belongs to no tenant'
                when not i.indisvalid then 'it is invalid: a build was broken off'
                when not i.is_on_indexed then 'it tells of hidden vectors, and searches do not use it: it is not on _indexed_direction(embedding, statement_id)'
                when i.dimensions <> t.dimensions then format('it has %s dimensions, the tenant''s model has %s', i.dimensions, t.dimensions)
                when t.embeddings < v_drop then format('%s embeddings are fewer than hnsw_drop_below = %s', t.embeddings, v_drop) end as drop_reason,
           case when t.embeddings >= v_min and graphium_private._hnsw_type(t.dimensions) is not null
                then format('%s embeddings are at least hnsw_min_embeddings = %s', t.embeddings, v_min) end as create_reason
      from tenants t
      full join indexes i on i.name = t.index_name
  ), work as (
    select j.slug, 'drop index' as action, j.drop_reason as reason, 1 as turn, j.name,
           format('drop index concurrently if exists graphium.%I', j.name) as statement
      from judged j where j.drop_reason is not null and not j.is_building
    union all
    select j.slug, 'create index', j.create_reason, 2, j.name,
           format('create index concurrently if not exists %I on graphium.%I using hnsw ((graphium_private._indexed_direction(embedding, statement_id)::%s) @extschema:vector@.%s) with (m = 16, ef_construction = 200) where tenant_id = %L::uuid',
                  j.name, p.relname, graphium_private._hnsw_type(j.dimensions), case when j.dimensions <= 2000 then 'vector_cosine_ops' else 'halfvec_cosine_ops' end, j.id)
      from judged j
      join partitions p on satisfies_hash_partition('graphium.kg_embeddings'::regclass, 16, p.remainder::int, j.id)
     where j.create_reason is not null and (not j.is_there or j.drop_reason is not null) and not j.is_building
  ), sampled as ( -- once there
    select j.name from judged j
     where case when j.is_there and j.drop_reason is null then j.is_sampled else j.create_reason is not null end and not j.is_building
  ), framed as (
    select w.slug, w.action, w.reason, w.statement, 1 as part, w.slug collate "C" as tenant_order, w.name, w.turn from work w
    union all
    select null, 'set up', s.reason, s.statement, 0, null, s.statement::name, s.turn
      from (values (1, 'only the owner of a table may index it', 'set role graphium_owner'),
                   (2, 'parallel builds of an HNSW index are not safe before pgvector 0.8.2', 'set max_parallel_maintenance_workers = 0')) as s(turn, reason, statement)
     where exists (select from work) or exists (select from sampled)
    union all
    select null, 'clean up', 'an index that computes is sampled for the planner; vectors are to be in no statistics, which outlive them',
           format('alter index graphium.%I alter column 1 set statistics 0', s.name), 2, null, s.name, 0
      from sampled s
    union all
    select null, 'clean up', 'as it was', s.statement, 2, null, s.statement::name, s.turn
      from (values (1, 'reset max_parallel_maintenance_workers'), (2, 'reset role')) as s(turn, statement)
     where exists (select from work) or exists (select from sampled)
  )
  select row_number() over (order by f.part, f.tenant_order, f.turn, f.name)::int, f.slug, f.action, f.reason, f.statement
    from framed f
   order by f.part, f.tenant_order, f.turn, f.name;
end
$maintenance_plan$;
comment on function graphium.maintenance_plan() is
  'The statements that create, repair and drop the tenants'' own HNSW indexes, in order, each with its reason; no row when there is nothing to do. Run them on one connection in autocommit mode, as a role that may act as graphium_owner: `graphium maintain` does.';
revoke all on function graphium.maintenance_plan() from public;
grant execute on function graphium.maintenance_plan() to graphium_admin;
