-- Who the database thinks you are, and which embedding model your tenant uses. One row, or MG001.
-- role: principal, app or admin. source: where the tenant comes from (principals, setting). NULL scopes: all (an admin).
--
-- example:
--   select tenant, scopes, role, embedding_model, dimensions from graphium.caller();
set local role graphium_keeper;

create or replace function graphium.caller(out tenant text, out scopes text[], out role text, out source text, out embedding_model text, out dimensions int)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $caller$
declare
  v_tenant_id uuid := graphium_private._require_caller();
begin
  select c.tenant, c.scopes, c.role, c.source, t.embedding_model, t.dimensions
    into tenant, scopes, role, source, embedding_model, dimensions
    from graphium_private.resolve_caller() c
    join graphium.tenants t on t.id = v_tenant_id;
end
$caller$;
comment on function graphium.caller() is
  'The caller as the database sees it: tenant, scopes (NULL: all), role (principal, app, admin), where they come from, and the tenant''s embedding model with its dimensions.';
revoke all on function graphium.caller() from public;
grant execute on function graphium.caller() to graphium_reader;
