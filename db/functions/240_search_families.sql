-- The families whose memory is nearest to a query, by the cosine of the query and the family's summary: where to look, or
-- where to file. Only visible families, only those that have a summary; a summary holds only what every reader of its
-- family may see. statement_count counts the same statements. Ties are broken by id. Writes nothing.
--
-- example:
--   select graphium.ingest_context('performance', 'feedback', 'Ada', '[{"content": "Ada prefers written feedback.", "embedding": [1, 0, 0]}]');
--   select family, similarity, statement_count from graphium.search_families(query_embedding => '[1, 1, 0]', match_count => 3);
set local role graphium_owner;

create or replace function graphium.search_families(query_embedding @extschema:vector@.vector, match_count int = 5, embedding_model text = null)
  returns table (family text, similarity real, statement_count bigint)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off
as $search_families$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_tenant graphium.tenants := (select t from graphium.tenants t where t.id = v_tenant_id);
begin
  perform graphium_private._require_model(v_tenant, embedding_model);
  if query_embedding is null then
    perform graphium_private._raise_error('MG008', 'query_embedding must not be NULL', 'Give a vector of the tenant''s model.');
  end if;
  perform graphium_private._require_comparable(query_embedding, v_tenant.dimensions, v_tenant.embedding_model, 'query_embedding'),
          graphium_private._require_between('match_count', match_count, 1, 1000);
  return query
    select f.name, (1 - n.distance)::real, f.statement_count
      from graphium.dh_families f, lateral (select f.summary_embedding operator(@extschema:vector@.<=>) query_embedding) as n(distance)
     where f.tenant_id = v_tenant_id and f.summary_embedding is not null
     order by n.distance, f.id
     limit match_count;
end
$search_families$;
comment on function graphium.search_families(@extschema:vector@.vector, int, text) is
  'The visible families nearest to a query, by the cosine of the query and the mean of what their readers may see. Writes nothing.';
revoke all on function graphium.search_families(@extschema:vector@.vector, int, text) from public;
grant execute on function graphium.search_families(@extschema:vector@.vector, int, text) to graphium_reader;
