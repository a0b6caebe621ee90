-- What a person who looks after memory wants to know of some statements beyond what recall_context() says: the rule that classified
-- each and which labels a caller chose, when it was last matched, and the variants that were folded into it; of a query, which of its words it has.
--
-- One row per statement that the caller sees, by id; the ids of taxa that he may not see are NULL. variants is a JSON array, the last
--   seen first, 100 of them at most (variant_count counts all); content is null there where the wording was the statement's own.
-- Writes nothing: runs in a READ ONLY transaction and on a replica.
--
-- example:
--   select graphium.set_caller('acme');
--   select statement_id, rule, last_accessed_at, variant_count, matched_words
--     from graphium.statement_details(array(select statement_id from graphium.recall_context(page_size => 10)), query_text => 'feedback');
set local role graphium_owner;

drop function if exists graphium.statement_details(uuid[], text); -- it did not say which labels were chosen
create or replace function graphium.statement_details(statement_ids uuid[], query_text text = null)
  returns table (statement_id uuid, family_id uuid, genus_id uuid, specimen_id uuid, rule text, is_type_chosen boolean, is_layer_chosen boolean, exact_only boolean, last_accessed_at timestamptz,
    variant_count bigint, variants jsonb, matched_words text[])
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set plan_cache_mode = force_generic_plan
as $statement_details$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_language constant text := (select t.language from graphium.tenants t where t.id = v_tenant_id);
  v_words constant text[] := case when query_text is null then '{}' else graphium_private._query_words(query_text, v_language) end;
begin
  if statement_ids is null then
    perform graphium_private._raise_error('MG008', 'statement_ids must not be NULL', 'Give an array of statement ids.');
  end if;
  return query
    select s.id, f.id, g.id, p.id, s.rule, s.is_type_chosen, s.is_layer_chosen, s.exact_only, s.last_accessed_at, v.all_of_them, v.latest,
           array(select w from unnest(v_words) with ordinality as q(w, n) where w = any (h.words) order by q.n)
      from graphium.kg_statements s
      left join graphium.dh_families f on f.tenant_id = v_tenant_id and f.id = s.family_id
      left join graphium.dh_genera g on g.tenant_id = v_tenant_id and g.id = s.genus_id
      left join graphium.dh_specimens p on p.tenant_id = v_tenant_id and p.id = s.specimen_id
     cross join lateral (
       select coalesce(max(k.all_of_them), 0) as all_of_them,
              coalesce(jsonb_agg(jsonb_build_object('content', k.content, 'specimen', o.name, 'source', k.source, 'position', k.position, 'occurred_at', k.occurred_at,
                'seen_count', k.seen_count, 'last_seen_at', k.last_seen_at) order by k.last_seen_at desc, k.variant_key), '[]') as latest
         from (select t.*, count(*) over () as all_of_them from graphium.kg_statement_variants t
                where t.tenant_id = v_tenant_id and t.statement_id = s.id
                order by t.last_seen_at desc, t.variant_key limit 100) as k
         left join graphium.dh_specimens o on o.tenant_id = v_tenant_id and o.id = k.specimen_id
     ) as v
     cross join lateral (select case when v_words <> '{}' then graphium_private.words_v2(s.content, v_language) end as words offset 0) as h -- once for each statement, not for each word
     where s.tenant_id = v_tenant_id and s.id = any (statement_ids)
     order by s.id;
end
$statement_details$;
comment on function graphium.statement_details(uuid[], text) is
  'Of each of these statements that the caller sees: ids of its taxa, the rule that classified it and which labels a caller chose, when it was last matched, its variants, and which words of a query it has. Writes nothing.';
revoke all on function graphium.statement_details(uuid[], text) from public;
grant execute on function graphium.statement_details(uuid[], text) to graphium_reader;
