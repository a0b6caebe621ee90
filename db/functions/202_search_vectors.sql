-- The nearest statements to a vector, exactly or along the tenant's HNSW index.
--
-- _choose_scan() is the one place that decides, from counters that no caller sees and settings that a DBA may change:
--   no valid index of the tenant's own                                               → exact
--   a family, genus or specimen filter that admits at most exact_scan_max vectors    → exact: a filtered graph walk is
--                                                                                      slower there, and misses rows
--   otherwise                                                                        → hnsw
-- HNSW applies row-level security and filters after the index, so it may run dry: _nearest looks at one batch of the index first
-- (the ef_search nearest rows of the tenant, hidden ones included), and goes by how many of them are left:
--   enough                                 → these. The nearest of the tenant contain the nearest of the caller.
--   at least one in 20 of what is wanted   → the index is read on, batch by batch, which will take some 8,000 rows at most
--   fewer, or still not enough             → the exact scan. Reading on through tens of thousands of hidden rows is slower than
--                                            that, and pgvector gives up in the middle of it (hnsw.max_scan_tuples) with rows
--                                            that are not the nearest: who hides rows would change what others find.
-- Both scans are built as text, because the planner must know the tenant (the partition, and the index's predicate), the
-- dimension (the index's expression) and the filter's values; but for the exact scan without a filter, which needs none of them.
-- Nobody else may read along the index: who asks it for one row, and gets none where the nearest is hidden, finds out where the
-- hidden ones are. So it is on _indexed(embedding), which no caller can name, and which is nothing but a name.
set local role graphium_owner;

-- In plpgsql, which the planner never puts in its place; and without a SET, for it looks up nothing.
create or replace function graphium_private._indexed(p_embedding @extschema:vector@.vector) returns @extschema:vector@.vector
  language plpgsql immutable strict parallel safe security invoker
as $indexed$
begin
  return p_embedding;
end
$indexed$;
comment on function graphium_private._indexed(@extschema:vector@.vector) is
  'Its argument. What HNSW indexes are on: only who may execute it can read along one.';
revoke all on function graphium_private._indexed(@extschema:vector@.vector) from public;
grant execute on function graphium_private._indexed(@extschema:vector@.vector) to graphium_keeper; -- whose updates maintain the index

-- Name and expression of a tenant's own index, for searching and for maintenance_plan(): alike, or it is never used.
-- (This and _setting are inlined: a body that is parsed when it is made, and no SET.)
create or replace function graphium_private._hnsw_index_name(p_tenant_id uuid) returns name
  language sql immutable strict parallel safe security invoker
  return 'kg_embeddings_hnsw_' || replace(p_tenant_id::text, '-', '');
comment on function graphium_private._hnsw_index_name(uuid) is 'Name of the HNSW index that a tenant has or would have.';
revoke all on function graphium_private._hnsw_index_name(uuid) from public;
grant execute on function graphium_private._hnsw_index_name(uuid) to graphium_keeper;

create or replace function graphium_private._hnsw_type(p_dimensions int) returns text
  language sql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
  return case when p_dimensions <= 2000 then format('@extschema:vector@.vector(%s)', p_dimensions)
              when p_dimensions <= 4000 then format('@extschema:vector@.halfvec(%s)', p_dimensions) end;
comment on function graphium_private._hnsw_type(int) is
  'What vectors are cast to for an HNSW index: vector up to 2,000 dimensions, halfvec up to 4,000, NULL beyond (no index is possible).';
revoke all on function graphium_private._hnsw_type(int) from public;
grant execute on function graphium_private._hnsw_type(int) to graphium_keeper;

-- Without a filter its plan is kept through the session, whoever the tenant is: making one takes longer than comparing
-- hundreds of vectors. No sequential scans, for such a plan must not depend on whose rows are in the partition.
drop function if exists graphium_private._scan_exactly(uuid, @extschema:vector@.vector, text, int); -- it returned a table
create or replace function graphium_private._scan_exactly(p_tenant_id uuid, p_query @extschema:vector@.vector, p_filter text, p_count int) returns graphium_private.hit[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $scan_exactly$
-- @plpgsql_check_options: security_warnings = off
-- (the filter that stands in the query was written by _write_filter: nothing but columns and constants)
declare
  v_hits graphium_private.hit[];
begin
  if p_filter = '' then
    return array(
      select (n.statement_id, 1 - n.distance, 1 - n.distance, null, null)::graphium_private.hit
        from (select r.statement_id, r.embedding operator(@extschema:vector@.<=>) p_query as distance
                from graphium.kg_embeddings r
               where r.tenant_id = p_tenant_id
               order by distance, r.statement_id
               limit p_count) as n
       order by (1 - n.distance)::real desc, n.statement_id);
  end if;
  execute format($query$
    select array(
      select (n.statement_id, 1 - n.distance, 1 - n.distance, null, null)::graphium_private.hit
        from (select r.statement_id, r.embedding operator(@extschema:vector@.<=>) $1 as distance
                from graphium.kg_embeddings r
               where r.tenant_id = %L::uuid %s
               order by distance, r.statement_id
               limit $2) as n
       order by (1 - n.distance)::real desc, n.statement_id) $query$, p_tenant_id, p_filter)
    into v_hits using p_query, p_count;
  return v_hits;
end
$scan_exactly$;
comment on function graphium_private._scan_exactly(uuid, @extschema:vector@.vector, text, int) is
  'The nearest visible embeddings, best first, by comparing all that the filter admits.';
revoke all on function graphium_private._scan_exactly(uuid, @extschema:vector@.vector, text, int) from public;

do $load_vector$ begin perform '[1]'::@extschema:vector@.vector; end $load_vector$; -- else hnsw.* cannot be set below

-- The settings stand in the head so that they end with the function; two of them get their values inside. Only the index
-- gives nearest rows first without a sort: with sorting off, a wrong estimate cannot take another plan. The rows come
-- slightly out of order (relaxed_order), and among equals by chance.
drop function if exists graphium_private._scan_hnsw(uuid, int, @extschema:vector@.vector, text, int); -- as it was before it could stop
create or replace function graphium_private._scan_hnsw(p_tenant_id uuid, p_dimensions int, p_query @extschema:vector@.vector, p_filter text, p_count int, p_is_iterative boolean)
  returns table (statement_id uuid, distance double precision)
  language plpgsql stable parallel unsafe security invoker set search_path = pg_catalog, pg_temp
  set hnsw.ef_search = 400 set hnsw.iterative_scan = off set enable_sort = off
as $scan_hnsw$
-- @plpgsql_check_options: security_warnings = off
-- (the filter that stands in the query was written by _write_filter: nothing but columns and constants)
begin
  perform set_config('hnsw.ef_search', least(greatest(graphium_private._setting('hnsw_ef_search')::int, p_count), 1000)::text, true),
          set_config('hnsw.iterative_scan', case when p_is_iterative then 'relaxed_order' else 'off' end, true);
  return query execute format($query$
    select r.statement_id, r.embedding operator(@extschema:vector@.<=>) $1 as distance
      from graphium.kg_embeddings r
     where r.tenant_id = %1$L::uuid %2$s
     order by graphium_private._indexed(r.embedding)::%3$s operator(@extschema:vector@.<=>) $1::%3$s
     limit $2 $query$, p_tenant_id, p_filter, graphium_private._hnsw_type(p_dimensions)) using p_query, p_count;
end
$scan_hnsw$;
comment on function graphium_private._scan_hnsw(uuid, int, @extschema:vector@.vector, text, int, boolean) is
  'The nearest visible embeddings by the tenant''s HNSW index, in no strict order: fast, now and then missing one, and fewer than asked for when filters and audiences admit few of the nearest; iterative: of some 20,000.';
revoke all on function graphium_private._scan_hnsw(uuid, int, @extschema:vector@.vector, text, int, boolean) from public;

create or replace function graphium_private._nearest(p_tenant_id uuid, p_dimensions int, p_query @extschema:vector@.vector, p_filter text, p_scan text, p_count int)
  returns graphium_private.hit[]
  language plpgsql stable parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $nearest$
declare
  v_hits graphium_private.hit[];
  v_is_iterative boolean;
begin
  if p_scan = 'hnsw' then
    foreach v_is_iterative in array '{false,true}'::boolean[] loop
      v_hits := array(select (n.statement_id, 1 - n.distance, 1 - n.distance, null, null)::graphium_private.hit
                        from graphium_private._scan_hnsw(p_tenant_id, p_dimensions, p_query, p_filter, p_count, v_is_iterative) as n
                       order by (1 - n.distance)::real desc, n.statement_id);
      exit when cardinality(v_hits) >= p_count or 20 * cardinality(v_hits) < p_count;
    end loop;
  end if;
  if p_scan = 'exact' or cardinality(v_hits) < p_count then
    v_hits := graphium_private._scan_exactly(p_tenant_id, p_query, p_filter, p_count);
  end if;
  return v_hits;
end
$nearest$;
comment on function graphium_private._nearest(uuid, int, @extschema:vector@.vector, text, text, int) is
  'The nearest visible statements, best first, with their cosine similarity, by the given scan (exact, hnsw); exactly after all when the index returns too few.';
revoke all on function graphium_private._nearest(uuid, int, @extschema:vector@.vector, text, text, int) from public;

create or replace function graphium_private._setting(p_name text) returns numeric
  language sql stable parallel safe security invoker
  return (select s.value from graphium_private.settings s where s.name = p_name);
comment on function graphium_private._setting(text) is 'Value of a row of graphium_private.settings.';
revoke all on function graphium_private._setting(text) from public;
grant execute on function graphium_private._setting(text) to graphium_keeper;

-- ---------------------------------------------------------------- the choice
set local role graphium_keeper;

-- Keeper-owned, for the counters are over rows that the caller may not see: it says which scan, and never how many.
create or replace function graphium_private._choose_scan(p_tenant_id uuid, p_dimensions int, p_level text, p_ids uuid[]) returns text
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $choose_scan$
declare
  v_exact_max bigint;
  v_admitted bigint;
begin
  if to_regclass('graphium.' || graphium_private._hnsw_index_name(p_tenant_id)) is null then
    return 'exact'; -- most tenants, told at once
  end if;
  if not exists (select from pg_catalog.pg_index i
                   join pg_catalog.pg_class c on c.oid = i.indexrelid
                   join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = 1
                  where c.relname = graphium_private._hnsw_index_name(p_tenant_id) and c.relnamespace = 'graphium'::regnamespace
                    and i.indisvalid and a.atttypmod = p_dimensions
                    and exists (select from pg_catalog.pg_depend d -- else it is one of before there was _indexed
                                 where (d.classid, d.objid) = ('pg_catalog.pg_class'::regclass, c.oid)
                                   and (d.refclassid, d.refobjid) = ('pg_catalog.pg_proc'::regclass, 'graphium_private._indexed'::regproc))) then
    return 'exact';
  end if;
  if p_level is null then
    return 'hnsw';
  end if;

  -- Whole families are counted already; of genera and specimens, their families bound the number, and where that says
  -- too little they are counted up to the limit.
  v_exact_max := graphium_private._setting('exact_scan_max');
  select coalesce(sum(c.embeddings), 0) into v_admitted
    from graphium_private.family_counters c
   where c.tenant_id = p_tenant_id
     and c.family_id in (select unnest(p_ids) where p_level = 'family'
                         union all select g.family_id from graphium.dh_genera g where p_level = 'genus' and g.tenant_id = p_tenant_id and g.id = any (p_ids)
                         union all select s.family_id from graphium.dh_specimens s where p_level = 'specimen' and s.tenant_id = p_tenant_id and s.id = any (p_ids));
  if v_admitted > v_exact_max and p_level <> 'family' then
    execute format('select count(*) from (select from graphium.kg_embeddings e where e.tenant_id = %L::uuid and e.%I = any (%L::uuid[]) limit %s) as e',
                   p_tenant_id, p_level || '_id', p_ids, v_exact_max + 1) into v_admitted;
  end if;
  return case when v_admitted > v_exact_max then 'hnsw' else 'exact' end;
end
$choose_scan$;
comment on function graphium_private._choose_scan(uuid, int, text, uuid[]) is
  'How a search by vector is to run: exact or hnsw. The reasons are in this file''s head.';
revoke all on function graphium_private._choose_scan(uuid, int, text, uuid[]) from public;
grant execute on function graphium_private._choose_scan(uuid, int, text, uuid[]) to graphium_owner;
