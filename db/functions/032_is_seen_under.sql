-- For db/policies/040_order.sql, beside is_seen() (031): rows that have no audience of their own follow another row. Keeper-owned,
-- because a policy's sub-select on that row would be put after conditions of the caller's own, and inside a function of his
-- it would be the tables' policies again. Callers cannot name it; it asks about the tenant and the scopes that the policy gives it. Plans that a
-- client has printed would have ids of hidden rows in them.
set local role graphium_keeper;

create or replace function graphium_private.is_seen_under(tenant_id uuid, family_id uuid, specimen_id uuid, statement_id uuid, caller_tenant_id uuid, caller_scopes text[]) returns boolean
  language plpgsql stable parallel safe security definer cost 1e-30 set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $is_seen_under$
begin
  return tenant_id = caller_tenant_id
     and graphium_private.is_visible(
           case when statement_id is not null then (select s.required_scopes from graphium.kg_statements s where s.tenant_id = caller_tenant_id and s.id = is_seen_under.statement_id)
                when specimen_id is not null then (select s.required_scopes from graphium.dh_specimens s where s.tenant_id = caller_tenant_id and s.id = is_seen_under.specimen_id)
                else (select f.required_scopes from graphium.dh_families f where f.tenant_id = caller_tenant_id and f.id = is_seen_under.family_id) end,
           caller_scopes);
end
$is_seen_under$;
comment on function graphium_private.is_seen_under(uuid, uuid, uuid, uuid, uuid, text[]) is
  'The rule as the first condition of a caller''s own query, for a row that follows the narrowest of these: a row is seen when that one is.';
revoke all on function graphium_private.is_seen_under(uuid, uuid, uuid, uuid, uuid, text[]) from public;
grant execute on function graphium_private.is_seen_under(uuid, uuid, uuid, uuid, uuid, text[]) to graphium_reader;
