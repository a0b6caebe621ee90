-- The nearest statements to a vector, exactly or along the tenant's HNSW index.
--
-- _choose_scan() is the one place that decides, from counters that no caller sees and settings that a DBA may change:
--   no valid index of the tenant's own                                               → exact
--   a principal (unless principals_use_hnsw says otherwise)                          → exact: he may count what a search
--                                                                                      read, and along an index that
--                                                                                      tells of hidden rows
--   a family, genus or specimen filter that admits at most exact_scan_max vectors    → exact: a filtered graph walk misses
--                                                                                      rows, however far it goes
--   memory_types, since and until that admit at most exact_label_max                 → exact, by the index on both
--   otherwise                                                                        → hnsw
-- graphium.explain_search() tells it. Families together with memory_types, since or until are looked up by an index on all of
-- these (0023), but for a principal, who would count by it.
-- HNSW applies row-level security and filters after the index, so it may run dry, and how many rows it must look at to find
-- the nearest ones depends on the query. So _nearest looks twice, and goes by what it sees (visible rows only, but that it sees them
-- among the nearest of the tenant, hidden ones included):
--   first at hnsw_ef_first rows (or four for each that is wanted): enough if half as many again as are wanted are visible, and the
--     nearest is much nearer than the last (hnsw_easy_ratio): the query is about something that the tenant knows
--   then at hnsw_ef_hard rows (fewer where the index has fewer than 60,000 rows: _hard_look; hnsw_ef_search where more than 100 are wanted): enough if as many are visible as wanted
--   a quarter of them: the index is read on, batch by batch, which will take some 3,000 rows at most
--   fewer, or still not enough: the exact scan. Reading on through tens of thousands of hidden rows is slower than
--     that, and pgvector gives up in the middle of it (hnsw.max_scan_tuples) with rows
--     that are not the nearest: who hides rows would change what others find.
-- Both scans are built as text, because the planner must know the tenant (the partition, and the index's predicate), the
-- dimension (the index's expression) and the filter's values; but for the exact scan without a filter, which needs none of them.
-- Nobody else may read along the index: who asks it for one row, and gets none where the nearest is hidden, finds out where the
-- hidden ones are. So it is on _indexed_direction(embedding, statement_id), which no caller can name, and where no two rows are equal.
set local role graphium_owner;

-- pgvector adds a vector that the index has already to the entry that is there, which reads and writes less than a new one does: who
-- ingests a vector that he guesses would see whether a hidden row has it. So each row's is off by some 4e-4 of its length, in a direction
-- that a secret and its id give; the search computes the distances of what the index returns anew, from the vectors as they are.
-- Immutable, as the secret never changes. In plpgsql, which the planner never puts in its place.
-- PostgreSQL computes what a scan is ordered by for each row that this returns, though nobody reads it: so it has to be quick.
create or replace function graphium_private._indexed_direction(p_embedding @extschema:vector@.vector, p_statement_id uuid) returns @extschema:vector@.vector
  language plpgsql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
as $indexed_direction$
declare
  c_scale constant double precision := 1.5e-6;
  v_direction constant @extschema:vector@.vector := @extschema:vector@.l2_normalize(p_embedding);
  v_dimensions constant int := @extschema:vector@.vector_dims(p_embedding);
  v_bytes constant bytea := sha256(graphium_private._index_key() || uuid_send(p_statement_id));
  v_off constant double precision[] := array[
    c_scale * get_byte(v_bytes, 0), c_scale * get_byte(v_bytes, 1), c_scale * get_byte(v_bytes, 2), c_scale * get_byte(v_bytes, 3),
    c_scale * get_byte(v_bytes, 4), c_scale * get_byte(v_bytes, 5), c_scale * get_byte(v_bytes, 6), c_scale * get_byte(v_bytes, 7),
    c_scale * get_byte(v_bytes, 8), c_scale * get_byte(v_bytes, 9), c_scale * get_byte(v_bytes, 10), c_scale * get_byte(v_bytes, 11),
    c_scale * get_byte(v_bytes, 12), c_scale * get_byte(v_bytes, 13), c_scale * get_byte(v_bytes, 14), c_scale * get_byte(v_bytes, 15)];
begin
  if v_dimensions <= 16 then
    return v_direction operator(@extschema:vector@.+) v_off[:v_dimensions]::@extschema:vector@.vector;
  end if;
  return (@extschema:vector@.subvector(v_direction, 1, 16) operator(@extschema:vector@.+) v_off::@extschema:vector@.vector)
         operator(@extschema:vector@.||) @extschema:vector@.subvector(v_direction, 17, v_dimensions - 16);
end
$indexed_direction$;
comment on function graphium_private._indexed_direction(@extschema:vector@.vector, uuid) is
  'The direction of an embedding, a little off. What HNSW indexes are on: only who may execute it can read along one, and no two rows have the same.';
revoke all on function graphium_private._indexed_direction(@extschema:vector@.vector, uuid) from public;
grant execute on function graphium_private._indexed_direction(@extschema:vector@.vector, uuid) to graphium_keeper; -- whose updates maintain the index

do $drop_indexed_alike$ -- what indexes were on before; those that there are stand on it until maintenance_plan() has replaced them
begin
  drop function if exists graphium_private._indexed(@extschema:vector@.vector);
exception when dependent_objects_still_exist then
  null;
end
$drop_indexed_alike$;

do $drop_indexed_slowly$ -- the next
begin
  drop function if exists graphium_private._indexed_vector(@extschema:vector@.vector, uuid);
exception when dependent_objects_still_exist then
  null;
end
$drop_indexed_slowly$;

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
  language plpgsql stable parallel safe security invoker
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
drop function if exists graphium_private._scan_hnsw(uuid, int, @extschema:vector@.vector, text, int, boolean); -- and before it was told how far to look
create or replace function graphium_private._scan_hnsw(p_tenant_id uuid, p_dimensions int, p_query @extschema:vector@.vector, p_filter text, p_count int, p_is_iterative boolean, p_ef_search int = null)
  returns table (statement_id uuid, distance double precision)
  language plpgsql stable parallel unsafe security invoker
  set hnsw.ef_search = 400 set hnsw.iterative_scan = off set enable_sort = off
as $scan_hnsw$
-- @plpgsql_check_options: security_warnings = off
-- (the filter that stands in the query was written by _write_filter: nothing but columns and constants)
begin
  perform set_config('hnsw.ef_search', least(greatest(coalesce(p_ef_search, graphium_private._setting('hnsw_ef_search')::int), p_count), 1000)::text, true),
          set_config('hnsw.iterative_scan', case when p_is_iterative then 'relaxed_order' else 'off' end, true);
  return query execute format($query$
    select r.statement_id, r.embedding operator(@extschema:vector@.<=>) $1 as distance
      from graphium.kg_embeddings r
     where r.tenant_id = %1$L::uuid %2$s
     order by graphium_private._indexed_direction(r.embedding, r.statement_id)::%3$s operator(@extschema:vector@.<=>) $1::%3$s
     limit $2 $query$, p_tenant_id, p_filter, graphium_private._hnsw_type(p_dimensions)) using p_query, p_count;
end
$scan_hnsw$;
comment on function graphium_private._scan_hnsw(uuid, int, @extschema:vector@.vector, text, int, boolean, int) is
  'The nearest visible embeddings by the tenant''s HNSW index, in no strict order: fast, now and then missing one, and fewer than asked for when filters and audiences admit few of the nearest; iterative: of some 20,000.';
revoke all on function graphium_private._scan_hnsw(uuid, int, @extschema:vector@.vector, text, int, boolean, int) from public;

create or replace function graphium_private._walk_hnsw(p_tenant_id uuid, p_dimensions int, p_query @extschema:vector@.vector, p_filter text, p_count int, p_is_iterative boolean, p_ef_search int)
  returns graphium_private.hit[]
  language sql stable parallel unsafe security invoker
begin atomic
  select array(select (n.statement_id, 1 - n.distance, 1 - n.distance, null, null)::graphium_private.hit
                 from graphium_private._scan_hnsw(p_tenant_id, p_dimensions, p_query, p_filter, p_count, p_is_iterative, p_ef_search) as n
                order by (1 - n.distance)::real desc, n.statement_id);
end;
comment on function graphium_private._walk_hnsw(uuid, int, @extschema:vector@.vector, text, int, boolean, int) is 'What _scan_hnsw finds, best first.';
revoke all on function graphium_private._walk_hnsw(uuid, int, @extschema:vector@.vector, text, int, boolean, int) from public;

-- One row in 75 of those in the index, as of the last vacuum or analyze, but 400 at least. Of what a query about something else is for, 400
-- rows of an index of 10,000 hold .998, and 280 .991; 400 of one of 50,000 hold .998 of one build and .983 of another, where 600
-- hold .992, and 800 .997; of 150,000, 800 hold .996.
create or replace function graphium_private._hard_look(p_tenant_id uuid) returns int
  language plpgsql stable parallel safe security invoker
as $hard_look$
begin
  return least(graphium_private._setting('hnsw_ef_hard'),
    (select case when c.reltuples > 0 then greatest(400, c.reltuples / 75) end
       from pg_catalog.pg_class c
      where c.relnamespace = 'graphium'::regnamespace and c.relname = graphium_private._hnsw_index_name(p_tenant_id)));
end
$hard_look$;
comment on function graphium_private._hard_look(uuid) is 'How many rows the second look along a tenant''s index is at.';
revoke all on function graphium_private._hard_look(uuid) from public;

drop function if exists graphium_private._nearest(uuid, int, @extschema:vector@.vector, text, text, int); -- it was told which scan
drop function if exists graphium_private._nearest(uuid, int, @extschema:vector@.vector, text, int); -- it was not told of a pool
-- p_count are wanted; up to p_pool are returned, where looking for those that are wanted finds them.
create or replace function graphium_private._nearest(p_tenant_id uuid, p_dimensions int, p_query @extschema:vector@.vector, p_filter text, p_count int, p_pool int, out hits graphium_private.hit[], out path text)
  language plpgsql stable parallel unsafe security invoker
as $nearest$
declare
  v_ef_search int;
begin
  if p_count <= 100 then
    path := 'hnsw, first look';
    v_ef_search := greatest(graphium_private._setting('hnsw_ef_first')::int, 4 * p_count, p_pool);
    hits := graphium_private._walk_hnsw(p_tenant_id, p_dimensions, p_query, p_filter, v_ef_search, false, v_ef_search);
    if 2 * cardinality(hits) >= 3 * p_count
       and 1 - hits[1].similarity <= graphium_private._setting('hnsw_easy_ratio') * (1 - hits[cardinality(hits)].similarity) then
      hits := hits[:p_pool];
      return;
    end if;
    v_ef_search := graphium_private._hard_look(p_tenant_id);
  else
    v_ef_search := graphium_private._setting('hnsw_ef_search');
  end if;
  path := 'hnsw, second look';
  hits := graphium_private._walk_hnsw(p_tenant_id, p_dimensions, p_query, p_filter, p_pool, false, v_ef_search);
  if cardinality(hits) < p_count and 4 * cardinality(hits) >= p_count then
    path := 'hnsw, read on';
    hits := graphium_private._walk_hnsw(p_tenant_id, p_dimensions, p_query, p_filter, p_pool, true, v_ef_search);
  end if;
  if cardinality(hits) < p_count then
    path := 'exact, after hnsw';
    hits := graphium_private._scan_exactly(p_tenant_id, p_query, p_filter, p_pool);
  end if;
end
$nearest$;
comment on function graphium_private._nearest(uuid, int, @extschema:vector@.vector, text, int, int) is
  'The nearest visible statements, best first, with their cosine similarity, by the tenant''s index, or exactly after all when that returns too few; and which it was.';
revoke all on function graphium_private._nearest(uuid, int, @extschema:vector@.vector, text, int, int) from public;

create or replace function graphium_private._setting(p_name text) returns numeric
  language sql stable parallel safe security invoker
  return (select s.value from graphium_private.settings s where s.name = p_name);
comment on function graphium_private._setting(text) is 'Value of a row of graphium_private.settings.';
revoke all on function graphium_private._setting(text) from public;
grant execute on function graphium_private._setting(text) to graphium_keeper;

-- ---------------------------------------------------------------- the choice
set local role graphium_keeper;

-- Keeper-owned, for the counters are over rows that the caller may not see: it says which scan, and never how many.
drop function if exists graphium_private._choose_scan(uuid, int, text, uuid[]); -- it did not look at times
create or replace function graphium_private._choose_scan(p_tenant_id uuid, p_dimensions int, p_level text, p_ids uuid[], p_memory_types text[], p_since timestamptz, p_until timestamptz, out scan text, out reason text, out has_index boolean, out by_label boolean)
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $choose_scan$
declare
  v_index constant name := graphium_private._hnsw_index_name(p_tenant_id);
  v_is_labelled constant boolean := num_nonnulls(p_memory_types, p_since, p_until) > 0;
  v_is_of_family constant boolean := v_is_labelled and p_level is not distinct from 'family';
  v_max bigint;
  v_admitted bigint;
begin
  scan := 'exact';
  has_index := to_regclass('graphium.' || v_index) is not null;
  by_label := false;
  if not has_index then
    reason := 'the tenant has no index of its own';
  elsif not exists (select from pg_catalog.pg_index i
                      join pg_catalog.pg_class c on c.oid = i.indexrelid
                      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = 1
                     where c.relname = v_index and c.relnamespace = 'graphium'::regnamespace
                       and i.indisvalid and a.atttypmod = p_dimensions
                       and exists (select from pg_catalog.pg_depend d -- else it is one of before there was _indexed_direction
                                    where (d.classid, d.objid) = ('pg_catalog.pg_class'::regclass, c.oid)
                                      and (d.refclassid, d.refobjid) = ('pg_catalog.pg_proc'::regclass, 'graphium_private._indexed_direction'::regproc))) then
    has_index := false;
    reason := 'the tenant''s index is not valid, or not made for its vectors as they are now';
  end if;
  if not has_index and not v_is_of_family then -- most searches, told at once
    return;
  end if;
  if graphium_private._setting('principals_use_hnsw') = 0 and exists (select from graphium.principals p where p.role_name = session_user) then
    if has_index then
      reason := 'a principal searches exactly, unless principals_use_hnsw says otherwise';
    end if;
    has_index := false;
    return;
  end if;
  by_label := v_is_of_family;
  if not has_index then
    return;
  end if;

  -- Whole families are counted already, and bound the number of what is in them.
  if p_level is not null then
    select coalesce(sum(c.embeddings), 0) into v_admitted
      from graphium_private.family_counters c
     where c.tenant_id = p_tenant_id
       and c.family_id in (select unnest(p_ids) where p_level = 'family'
                           union all select g.family_id from graphium.dh_genera g where p_level = 'genus' and g.tenant_id = p_tenant_id and g.id = any (p_ids)
                           union all select s.family_id from graphium.dh_specimens s where p_level = 'specimen' and s.tenant_id = p_tenant_id and s.id = any (p_ids));
    v_max := graphium_private._setting('exact_scan_max');
    if p_level = 'family' and v_admitted <= v_max then
      reason := 'the filter by family admits no more than exact_scan_max vectors';
      return;
    end if;
  end if;
  if v_is_labelled then
    execute format('select count(*) <= %s from (select from graphium.kg_embeddings r where r.tenant_id = %L::uuid and graphium_private._is_ours_to_read(r.tenant_id) %s limit %s) as e',
                   graphium_private._setting('exact_label_max'), p_tenant_id,
                   graphium_private._write_filter('kg_embeddings', case when v_is_of_family then p_level end, p_ids, p_memory_types, null, p_since, p_until),
                   graphium_private._setting('exact_label_max') + 1) into by_label;
    if by_label then
      reason := 'memory_types, since and until admit no more than exact_label_max vectors';
      return;
    end if;
  end if;
  if p_level <> 'family' then
    if v_admitted > v_max then
      execute format('select count(*) from (select from graphium.kg_embeddings e where e.tenant_id = %L::uuid and e.%I = any (%L::uuid[]) limit %s) as e',
                     p_tenant_id, p_level || '_id', p_ids, v_max + 1) into v_admitted;
    end if;
    if v_admitted <= v_max then
      reason := format('the filter by %s admits no more than exact_scan_max vectors', p_level);
      return;
    end if;
  end if;
  scan := 'hnsw';
  reason := 'the tenant has an index of its own, and no filter leaves few vectors';
end
$choose_scan$;
comment on function graphium_private._choose_scan(uuid, int, text, uuid[], text[], timestamptz, timestamptz) is
  'How a search by vector is to run: exact or hnsw; whether the tenant has an index that this caller''s searches may use; whether the index on type and time finds what is admitted. The reasons are in this file''s head.';
revoke all on function graphium_private._choose_scan(uuid, int, text, uuid[], text[], timestamptz, timestamptz) from public;
grant execute on function graphium_private._choose_scan(uuid, int, text, uuid[], text[], timestamptz, timestamptz) to graphium_owner;
