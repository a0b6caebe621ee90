-- For db/policies/040_order.sql: the rule of 030_audience.sql once more, as a function that is not inlined and pretends to cost
-- nothing, so that the planner puts it before every condition of a caller's own. (A cost of 0 is not allowed here; db/hardening.sql
-- gives it.) A file by itself, because the next `create or replace` takes that cost away again: it is applied only when it changes.
set local role graphium_owner;

create or replace function graphium_private.is_seen(tenant_id uuid, required_scopes text[], caller_tenant_id uuid, caller_scopes text[]) returns boolean
  language plpgsql immutable parallel safe security invoker cost 1e-30 set search_path = pg_catalog, pg_temp
as $is_seen$
begin
  return tenant_id = caller_tenant_id
     and (cardinality(required_scopes) = 0 or 'public' = any (required_scopes) or required_scopes && coalesce(caller_scopes, required_scopes));
end
$is_seen$;
comment on function graphium_private.is_seen(uuid, text[], uuid, text[]) is
  'The rule as the first condition of a caller''s own query: a row is seen when it is of the caller''s tenant and is_visible().';
revoke all on function graphium_private.is_seen(uuid, text[], uuid, text[]) from public;
grant execute on function graphium_private.is_seen(uuid, text[], uuid, text[]) to graphium_reader;
