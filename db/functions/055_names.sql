-- Looking up names and sources, in indexes that no caller can use himself: they are on _masked(text), a hash with a secret
-- (migrations/0022). Keeper-owned, because under the policies a condition on it could not use the index: it is not leakproof. What they return is not
-- shown to anybody: ids are looked up again under the policies, and a position is of what the caller sees.
set local role graphium_keeper;

create or replace function graphium_private._ids_named(p_tenant_id uuid, p_kind text, p_parent_ids uuid[], p_names text[]) returns uuid[]
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $ids_named$
declare
  v_keys constant bytea[] := array(select graphium_private._masked(n) from unnest(p_names) as n);
begin
  case p_kind
    when 'family' then
      return array(select f.id from graphium.dh_families f where f.tenant_id = p_tenant_id and graphium_private._masked(f.name) = any (v_keys));
    when 'genus' then
      if p_parent_ids is null then
        return array(select g.id from graphium.dh_genera g where g.tenant_id = p_tenant_id and graphium_private._masked(g.name) = any (v_keys));
      end if;
      return array(select g.id from graphium.dh_genera g where g.tenant_id = p_tenant_id and g.family_id = any (p_parent_ids) and graphium_private._masked(g.name) = any (v_keys));
    when 'specimen' then
      if p_parent_ids is null then
        return array(select s.id from graphium.dh_specimens s where s.tenant_id = p_tenant_id and graphium_private._masked(s.name) = any (v_keys));
      end if;
      return array(select s.id from graphium.dh_specimens s where s.tenant_id = p_tenant_id and s.genus_id = any (p_parent_ids) and graphium_private._masked(s.name) = any (v_keys));
  end case;
end
$ids_named$;
comment on function graphium_private._ids_named(uuid, text, uuid[], text[]) is
  'Ids of families, genera (in these families, or NULL: in any) or specimens (in these genera, or any) of these names, hidden ones too: to be looked up again under the policies.';
revoke all on function graphium_private._ids_named(uuid, text, uuid[], text[]) from public;
grant execute on function graphium_private._ids_named(uuid, text, uuid[], text[]) to graphium_owner;

create or replace function graphium_private._last_position(p_tenant_id uuid, p_source text, p_scopes text[]) returns bigint
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $last_position$
declare
  v_key constant bytea := graphium_private._masked(p_source);
begin
  return greatest(
    (select s.position from graphium.kg_statements s
      where s.tenant_id = p_tenant_id and graphium_private._masked(s.source) = v_key and graphium_private.is_visible(s.required_scopes, p_scopes)
      order by s.position desc nulls last limit 1),
    (select v.position from graphium.kg_statement_variants v
       join graphium.kg_statements s on s.tenant_id = v.tenant_id and s.id = v.statement_id
      where v.tenant_id = p_tenant_id and graphium_private._masked(v.source) = v_key and graphium_private.is_visible(s.required_scopes, p_scopes)
      order by v.position desc nulls last limit 1));
end
$last_position$;
comment on function graphium_private._last_position(uuid, text, text[]) is
  'The highest position of a source among statements, and variants of statements, that a caller with these scopes (NULL: all) sees; NULL when there is none.';
revoke all on function graphium_private._last_position(uuid, text, text[]) from public;
grant execute on function graphium_private._last_position(uuid, text, text[]) to graphium_owner;
