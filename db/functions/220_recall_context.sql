-- Statements as they are, without a query: by taxon, by id, by label, by time; newest id first, a page at a time.
--
-- Filters: NULL is none, '{}' and names that do not exist (or are hidden) match nothing.
--   Labels that do not exist are refused, and a since that is not before until.
--   since <= coalesce(occurred_at, created_at) < until.
-- Paging is by id: pass the last id of a page as `after` to get the next one. That row may have been deleted meanwhile,
--   or never have existed; rows that are added later have newer ids and shift nothing. The cost of a page does not
--   depend on how deep it lies.
-- Superseded statements are shown, and marked. The name of a taxon that the caller may not see is NULL.
-- Writes nothing: runs in a READ ONLY transaction and on a replica.
--
-- example:
--   select graphium.ingest_context('performance', 'feedback', 'Ada', '[{"content": "Ada prefers written feedback.", "embedding": null}]');
--   select statement_id, content, genus, created_at
--     from graphium.recall_context(family => 'performance', specimen => 'Ada', page_size => 20, after => null);
set local role graphium_owner;

create or replace function graphium.recall_context(family text = null, genus text = null, specimen text = null, statement_ids uuid[] = null,
    memory_types text[] = null, layer_kinds text[] = null, since timestamptz = null, until timestamptz = null, page_size int = 50, after uuid = null)
  returns setof graphium.recalled
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set plan_cache_mode = force_generic_plan
as $recall_context$
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_taxa record := graphium_private._find_taxa(v_tenant_id,
    case when family is not null then array[family collate "C"] end, case when genus is not null then array[genus] end, case when specimen is not null then array[specimen] end);
  v_ids uuid[];
  v_superseded uuid[] := '{}';
begin
  perform graphium_private._require_between('page_size', page_size, 1, 1000);
  if num_nonnulls(memory_types, layer_kinds, since, until) > 0 then
    perform graphium_private._require_filters(memory_types collate "C", layer_kinds, since, until);
  end if;

  v_ids := graphium_private._newest(v_tenant_id, v_taxa.level, v_taxa.ids,
    graphium_private._write_filter('kg_statements', case when statement_ids is not null then 'statement' end, statement_ids, memory_types collate "C", layer_kinds, since, until),
    after, page_size);
  if graphium_private._has_symbioses(v_tenant_id) then
    v_superseded := graphium_private._superseded(v_tenant_id, v_ids);
  end if;

  return query
    select s.id, s.content, f.name, g.name, p.name, s.memory_type, s.layer_kind, s.id = any (v_superseded),
           s.access_count, s.required_scopes, s.occurred_at, s.created_at, s.source, s.position, s.metadata
      from graphium.kg_statements s
      left join graphium.dh_families f on f.tenant_id = v_tenant_id and f.id = s.family_id
      left join graphium.dh_genera g on g.tenant_id = v_tenant_id and g.id = s.genus_id
      left join graphium.dh_specimens p on p.tenant_id = v_tenant_id and p.id = s.specimen_id
     where s.tenant_id = v_tenant_id and s.id = any (v_ids)
     order by s.id desc;
end
$recall_context$;
comment on function graphium.recall_context(text, text, text, uuid[], text[], text[], timestamptz, timestamptz, int, uuid) is
  'A page of statements under filters (those of search_context), newest id first; after: the last id of the page before. Superseded statements are marked, not left out. Writes nothing.';
revoke all on function graphium.recall_context(text, text, text, uuid[], text[], text[], timestamptz, timestamptz, int, uuid) from public;
grant execute on function graphium.recall_context(text, text, text, uuid[], text[], text[], timestamptz, timestamptz, int, uuid) to graphium_reader;
