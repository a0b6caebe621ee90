-- Names the caller for the transaction (or, with is_local => false, for the session). A trusted application calls it at
-- the start of each transaction; an admin names the tenant he works for; a principal may only narrow his own scopes.
-- tenant NULL: a principal's own; nobody else has one. scopes NULL: not named, which leaves a principal all of his own and an application none; '{}': none at all.
-- Behind a transaction-mode pooler never use is_local => false: the next client of that server connection would be you.
-- For a login with graphium.pooled = on it is refused (docs/poolers.md).
--
-- example:
--   select graphium.set_caller(tenant => 'acme', scopes => '{hr}');
--   select tenant, scopes from graphium.caller();
set local role graphium_keeper;

create or replace function graphium.set_caller(tenant text, scopes text[] = '{}', is_local boolean = true) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $set_caller$
declare
  v_tenant text := case when tenant is not null then graphium_private._clean_name(tenant, 'tenant', 100) end;
  v_scopes text[] := graphium_private._clean_scopes(scopes, 'scopes');
  v_setting text := case when scopes is null then '' else v_scopes::text end;
  v_caller record;
begin
  if set_caller.is_local is not true then
    perform graphium_private._require_boolean('is_local', set_caller.is_local);
    if graphium_private._is_pooled() then
      perform graphium_private._raise_error('MG008', 'is_local: false is refused, because graphium.pooled is on for this login: the next client of the connection would be this caller',
        'Leave is_local out, and call set_caller() at the start of each transaction.');
    end if;
  end if;
  perform set_config('graphium.scopes', '', true); -- whatever a last client left there, even what is no list
  v_caller := graphium_private.resolve_caller();
  if tenant is null and v_caller.role = 'principal' then
    v_tenant := v_caller.tenant;
  elsif tenant is null then
    perform graphium_private._raise_error('MG008', 'tenant must not be NULL: this login is no principal, who has one', 'Name the tenant too, or log in as a principal.');
  end if;
  if v_caller.role is null then
    perform graphium_private._raise_error('MG001', format('role "%s" may not name a tenant', session_user),
      'Connect as a member of graphium_app, or bind this role to a tenant with graphium.add_principal().');
  end if;
  if not exists (select from graphium.tenants t where t.slug = v_tenant)
     or (v_caller.role = 'principal' and v_caller.tenant <> v_tenant) then
    perform graphium_private._raise_error('MG002', format('tenant: no tenant "%s" for this caller', v_tenant),
      case v_caller.role when 'principal' then format('This login is the tenant "%s" and no other: leave the tenant out (NULL).', v_caller.tenant)
        else 'Check the spelling; an administrator creates tenants with graphium.create_tenant().' end);
  end if;
  perform set_config('graphium.tenant', v_tenant, set_caller.is_local),
          set_config('graphium.scopes', v_setting, set_caller.is_local),
          set_config('graphium.named', graphium_private._caller_mark(v_tenant, v_setting), true);
end
$set_caller$;
comment on function graphium.set_caller(text, text[], boolean) is
  'Names tenant and scopes of the caller, for this transaction only unless is_local is false, which a login with graphium.pooled = on may not say. An admin holds all scopes of the tenant whatever he names; a principal can only narrow his own, and may leave the tenant out (NULL). scopes NULL: a principal''s are not narrowed, an application has none.';
revoke all on function graphium.set_caller(text, text[], boolean) from public;
grant execute on function graphium.set_caller(text, text[], boolean) to graphium_reader;
