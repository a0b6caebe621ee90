-- What reading functions share: names become ids, and filters become SQL. NULL is "no filter", '{}' is "nothing
-- matches"; a name that does not exist, or that the caller may not see, matches nothing and makes nothing. A label that does
-- not exist is refused.
set local role graphium_owner;

-- Family, genus and specimen determine each other upwards, so the narrowest level that is named decides alone: its ids
-- are those whose parents have the other names. level is NULL when nothing is named.
create or replace function graphium_private._find_taxa(p_tenant_id uuid, p_families text[], p_genera text[], p_specimens text[], out level text, out ids uuid[])
  language plpgsql stable parallel safe security invoker
as $find_taxa$
declare
  v_named uuid[];
begin
  if p_families is not null then
    level := 'family';
    v_named := graphium_private._ids_named(p_tenant_id, 'family', null, graphium_private._fold_names(p_families));
    ids := array(select f.id from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = any (v_named));
  end if;
  if p_genera is not null then
    v_named := graphium_private._ids_named(p_tenant_id, 'genus', ids, graphium_private._fold_names(p_genera));
    ids := array(select g.id from graphium.dh_genera g where g.tenant_id = p_tenant_id and g.id = any (v_named));
    level := 'genus';
  end if;
  if p_specimens is not null then
    v_named := graphium_private._ids_named(p_tenant_id, 'specimen', case level when 'genus' then ids end, graphium_private._fold_names(p_specimens));
    ids := array(select s.id from graphium.dh_specimens s
                  where s.tenant_id = p_tenant_id and s.id = any (v_named) and (level is distinct from 'family' or s.family_id = any (ids)));
    level := 'specimen';
  end if;
end
$find_taxa$;
comment on function graphium_private._find_taxa(uuid, text[], text[], text[]) is
  'The taxa that filters by name admit: ids of families, or of genera, or of specimens, whichever is named and narrowest.';
revoke all on function graphium_private._find_taxa(uuid, text[], text[], text[]) from public;

create or replace function graphium_private._fold_names(p_names text[]) returns text[]
  language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
  return array(select graphium_private._trim(n) from unnest(p_names) as n);
comment on function graphium_private._fold_names(text[]) is 'Names as they are stored, for comparing: trimmed, NFC.';
revoke all on function graphium_private._fold_names(text[]) from public;

-- The conditions of a search as text, to be put after `where tenant_id = …`. Values are constants in it, so that the
-- planner knows them and an index serves; names never reach this text, only ids. Times are written in ISO form and UTC,
-- whatever the session's DateStyle and zone: abbreviations can be ambiguous, and of some zones what is written cannot be read.
create or replace function graphium_private._write_filter(p_table text, p_level text, p_ids uuid[], p_memory_types text[], p_layer_kinds text[], p_since timestamptz, p_until timestamptz) returns text
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp set datestyle = 'ISO' set timezone = 'UTC'
as $write_filter$
declare
  v_id constant text := case when p_level <> 'statement' then p_level || '_id' when p_table = 'kg_embeddings' then 'statement_id' else 'id' end;
  v_time constant text := case p_table when 'kg_embeddings' then 'r.happened_at' else 'coalesce(r.occurred_at, r.created_at)' end;
begin
  return concat(
    case when p_level is null then null
         when cardinality(p_ids) = 1 then format(' and r.%I = %L::uuid', v_id, p_ids[1])
         else format(' and r.%I = any (%L::uuid[])', v_id, p_ids) end,
    case when p_memory_types is not null then format(' and r.memory_type = any (%L::text[])', p_memory_types)
         -- all that there are: so the index on (tenant_id, memory_type, happened_at) serves a filter by time alone
         when p_table = 'kg_embeddings' and num_nonnulls(p_since, p_until) > 0 then format(' and r.memory_type = any (%L::text[])', graphium_private._memory_types()) end,
    case when p_layer_kinds is not null then format(' and r.layer_kind = any (%L::text[])', p_layer_kinds) end,
    case when p_since is not null then format(' and %s >= %L::timestamptz', v_time, p_since) end,
    case when p_until is not null then format(' and %s < %L::timestamptz', v_time, p_until) end);
end
$write_filter$;
comment on function graphium_private._write_filter(text, text, uuid[], text[], text[], timestamptz, timestamptz) is
  'SQL conditions on a row r of kg_statements or kg_embeddings for the filters that are not NULL.';
revoke all on function graphium_private._write_filter(text, text, uuid[], text[], text[], timestamptz, timestamptz) from public;
grant execute on function graphium_private._write_filter(text, text, uuid[], text[], text[], timestamptz, timestamptz) to graphium_keeper;

-- Sorting is switched off, so that rows are read newest first from an index until there are enough, whatever the planner
-- expects filters and audiences to admit. One taxon at a time, because each has its own place in the index. Without a filter
-- the plan is kept through the session.
create or replace function graphium_private._newest(p_tenant_id uuid, p_level text, p_ids uuid[], p_filter text, p_after uuid, p_count int) returns uuid[]
  language plpgsql stable parallel safe security invoker set enable_sort = off set plan_cache_mode = force_generic_plan
as $newest$
-- @plpgsql_check_options: security_warnings = off
-- (the filter that stands in the query was written by _write_filter: nothing but columns and constants)
declare
  v_upto uuid := coalesce(p_after, 'ffffffff-ffff-ffff-ffff-ffffffffffff'); -- as an expression in the query no index would serve it
  v_query text;
  v_newest uuid[];
begin
  if p_level is null and p_filter = '' then
    return array(
      select r.id from graphium.kg_statements r
       where r.tenant_id = p_tenant_id and r.id <= v_upto and r.id is distinct from p_after
       order by r.id desc limit p_count);
  end if;
  v_query := format('select r.id from graphium.kg_statements r where r.tenant_id = %L::uuid %s%s%s order by r.id desc limit %s', p_tenant_id, p_filter,
    case when p_after is not null then format(' and r.id < %L::uuid', p_after) end,
    case when p_level is not null then format(' and r.%I = t.id', p_level || '_id') end, p_count);
  if p_level is not null then
    v_query := format('select r.id from unnest(%L::uuid[]) as t(id), lateral (%s) as r order by r.id desc limit %s', p_ids, v_query, p_count);
  end if;
  execute format('select array(%s)', v_query) into v_newest;
  return v_newest;
end
$newest$;
comment on function graphium_private._newest(uuid, text, uuid[], text, uuid, int) is
  'Ids of the newest visible statements (of the given taxa) that the filter admits, after an id, newest first.';
revoke all on function graphium_private._newest(uuid, text, uuid[], text, uuid, int) from public;

-- Names are anybody's, and one that is not there matches nothing. Labels are fixed, and times have an order: what can match nothing
-- whatever is remembered is a slip, and not an answer.
create or replace function graphium_private._require_filters(p_memory_types text[], p_layer_kinds text[], p_since timestamptz, p_until timestamptz, p_min_similarity double precision = null) returns void
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_filters$
declare
  v_filter record;
begin
  for v_filter in values
    ('memory_types', p_memory_types, graphium_private._memory_types()),
    ('layer_kinds', p_layer_kinds, graphium_private._layer_kinds())
  loop
    if not v_filter.column2 <@ v_filter.column3 then
      perform graphium_private._raise_error('MG008', format('%s: %s is not known', v_filter.column1,
          (select coalesce('"' || left(l, 100) || '"', 'NULL') from unnest(v_filter.column2) as l where l <> all (v_filter.column3) is not false limit 1)),
        format('Any of %s; or leave it out.', array_to_string(v_filter.column3, ', ')));
    end if;
  end loop;
  if p_since >= p_until then
    perform graphium_private._raise_error('MG008', 'since must be before until', 'What is found has happened at since or later, and before until.');
  elsif p_min_similarity = 'NaN' then
    perform graphium_private._raise_error('MG008', 'min_similarity must be a number, got NaN', 'Give the least cosine, from -1 to 1.');
  end if;
end
$require_filters$;
comment on function graphium_private._require_filters(text[], text[], timestamptz, timestamptz, double precision) is
  'MG008 for labels that there are not, a since that is not before until, and NaN as a similarity.';
revoke all on function graphium_private._require_filters(text[], text[], timestamptz, timestamptz, double precision) from public;

create or replace function graphium_private._require_between(p_argument text, p_value int, p_least int, p_most int) returns void
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_between$
begin
  if p_value between p_least and p_most is not true then
    perform graphium_private._raise_error('MG008', format('%s must be between %s and %s, got %s', p_argument, p_least, p_most, coalesce(p_value::text, 'NULL')),
      format('Give a whole number from %s to %s.', p_least, p_most));
  end if;
end
$require_between$;
comment on function graphium_private._require_between(text, int, int, int) is 'MG008 unless the argument is in range.';
revoke all on function graphium_private._require_between(text, int, int, int) from public;
