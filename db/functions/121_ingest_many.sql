-- Puts statements about many specimens into memory: ingest_context() for an import, where a call for each specimen would cost more
-- than what it stores.
--
-- statements: as in ingest_context(), and each names its family, genus and specimen. As if they came one after the other, in this
--   order: of two that are the same statement of a family, it is the first one's.
-- Families, genera and specimens that are new are born with required_scopes, which is also the audience of statements
--   that have none of their own.
-- All or nothing; one row per input, in input order. All their families stay locked until the end of the transaction.
--
-- example:
--   select graphium.set_caller('acme');
--   select ordinal, deduplicated, memory_type
--     from graphium.ingest_many(statements => '[
--       {"family": "performance", "genus": "feedback", "specimen": "Ada", "content": "Ada prefers written feedback."},
--       {"family": "performance", "genus": "feedback", "specimen": "Bob", "content": "Bob wants to lead a team."}]');
set local role graphium_owner;

create or replace function graphium.ingest_many(statements jsonb, required_scopes text[] = null, embedding_model text = null)
  returns setof graphium.ingested
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $ingest_many$
declare
  v_tenant_id uuid := graphium_private._require_writer();
  v_call_scopes text[] := case when required_scopes is not null then graphium_private._clean_scopes(required_scopes, 'required_scopes') end;
  v_inputs graphium_private.incoming[] := graphium_private._parse_statements(v_tenant_id, statements, embedding_model collate "C", p_with_taxa => true);
  v_which constant int[] := array(select dense_rank() over (order by i.taxa collate "C") from unnest(v_inputs) as i order by i.ordinal);
  v_specimens graphium.dh_specimens[] := '{}'; -- in the order of their names
  v_named record;
  v_last text[];
  v_families uuid[];
  v_family_id uuid;
  v_genus_id uuid;
begin
  if v_inputs <> '{}' then
    perform graphium_private._lock_or_make_families(v_tenant_id,
      array(select distinct graphium_private._clean_name(i.family, format('statement %s: family', i.ordinal))
              from (select i.taxa[1] as family, min(i.ordinal) as ordinal from unnest(v_inputs) as i group by 1) as i),
      coalesce(v_call_scopes, '{}') collate "C");
  end if;
  for v_named in
    select i.taxa, format('statement %s: ', min(i.ordinal)) as subject from unnest(v_inputs) as i group by i.taxa order by i.taxa collate "C"
  loop
    if v_last[1] collate "C" is distinct from v_named.taxa[1] then
      v_families := graphium_private._ids_named(v_tenant_id, 'family', null, array[graphium_private._clean_name(v_named.taxa[1], v_named.subject || 'family')]);
      select f.id into strict v_family_id from graphium.dh_families f where f.tenant_id = v_tenant_id and f.id = any (v_families);
    end if;
    if v_last[1:2] collate "C" is distinct from v_named.taxa[1:2] then
      v_genus_id := graphium_private._find_or_make_genus(v_tenant_id, v_family_id, graphium_private._clean_name(v_named.taxa[2], v_named.subject || 'genus'));
    end if;
    v_last := v_named.taxa;
    v_specimens := v_specimens || graphium_private._find_or_make_specimen(v_tenant_id, v_family_id, v_genus_id,
      graphium_private._clean_name(v_named.taxa[3], v_named.subject || 'specimen'), coalesce(v_call_scopes, '{}') collate "C");
  end loop;
  return query select * from graphium_private._remember(v_tenant_id, graphium_private._place_inputs(v_inputs, v_specimens, v_which, v_call_scopes collate "C"));
end
$ingest_many$;
comment on function graphium.ingest_many(jsonb, text[], text) is
  'ingest_context() for statements about many specimens: each element of statements also names its family, genus and specimen. All or nothing; returns a row per input, in input order.';
revoke all on function graphium.ingest_many(jsonb, text[], text) from public;
grant execute on function graphium.ingest_many(jsonb, text[], text) to graphium_user;
