-- Login roles bound to a tenant. graphium_admin only. Keeper-owned: it holds the admin option on graphium_user and
-- graphium_reader, and nothing else could write the table that decides who one is. A change is effective with the next
-- statement of every session, open ones included (docs/principals.md says what a statement is that runs already). The
-- binding decides, the grant only opens the functions: roles are cluster-wide, so another database may need the grant, and
-- remove_principal leaves it. Without a binding it is nobody's.
--
-- A binding is in force while the role of that name is the one that was bound, by oid. Not by name alone: whoever makes a
-- dropped role's name anew would inherit its memory. Not by oid alone: in a database restored into another cluster, the
-- oid may be anybody's. So a renamed or re-made role, or a restored database, is bound again by add_principal(); until then
-- such a login is nobody, even where it is a member of graphium_app.
--
-- example:
--   select graphium.add_principal('example_analyst', 'acme', '{hr}', read_only => true);
--   select role_name, tenant, scopes, read_only, is_in_force from graphium.list_principals() where tenant = 'acme';
--   select graphium.remove_principal('example_analyst');
set local role graphium_keeper;

create or replace function graphium_private._require_role_name(role_name text) returns void
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_role_name$
begin
  if coalesce(role_name, '') = '' then
    perform graphium_private._raise_error('MG008', 'role_name must not be NULL or blank', 'Give the name of a login role.');
  end if;
end
$require_role_name$;
comment on function graphium_private._require_role_name(text) is 'MG008 for what can be no role''s name.';
revoke all on function graphium_private._require_role_name(text) from public;

create or replace function graphium.add_principal(role_name text, tenant text, scopes text[], read_only boolean = false) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $add_principal$
declare
  c_ours constant text[] := '{graphium_reader,graphium_user,graphium_app,graphium_admin,graphium_owner,graphium_keeper,graphium_cypher}';
  c_too_powerful constant text[] := '{graphium_app,graphium_admin,graphium_owner,graphium_keeper,graphium_cypher,pg_read_all_data,pg_write_all_data,pg_read_server_files,pg_write_server_files,pg_execute_server_program}';
  v_tenant text := graphium_private._clean_name(tenant, 'tenant', 100);
  v_scopes text[] := graphium_private._clean_scopes(scopes, 'scopes');
  v_grants constant text := case when read_only then 'graphium_reader' else 'graphium_user' end;
  v_role pg_catalog.pg_roles;
begin
  perform graphium_private._require_admin_role(), graphium_private._require_role_name(role_name), graphium_private._require_boolean('read_only', read_only);
  if scopes is null then
    perform graphium_private._raise_error('MG008', 'scopes must not be NULL', 'Give the scopes that it holds at most; ''{}'' holds none.');
  end if;
  select r.* into v_role from pg_catalog.pg_roles r where r.rolname = add_principal.role_name collate "C";
  if v_role.oid is null then
    perform graphium_private._raise_error('MG002', format('role_name: there is no role "%s"', role_name), 'Create it first: create role … login.');
  end if;
  if v_role.rolname = any (c_ours) then
    perform graphium_private._raise_error('MG008', format('role_name: "%s" is one of Graphium''s own roles, which stand for rights and not for somebody', role_name),
      'Bind the login role of a person or a tool.');
  end if;
  -- (One that is bound already may be locked for a while.)
  if not v_role.rolcanlogin and not exists (select from graphium.principals p where p.role_name = v_role.rolname) then
    perform graphium_private._raise_error('MG008', format('role_name: "%s" may not log in, and who one is goes by the login', role_name),
      format('alter role %I login; or bind the logins that are its members.', role_name));
  end if;
  if v_role.rolsuper or v_role.rolbypassrls
     or exists (select from unnest(c_too_powerful) as g(name) where pg_has_role(v_role.oid, g.name, 'member')) then
    perform graphium_private._raise_error('MG008', format('role_name: "%s" is too powerful to be bound to one tenant', role_name),
      'A principal is no superuser, has no BYPASSRLS, and is no member of ' || array_to_string(c_too_powerful, ', ') || '.');
  end if;
  if not exists (select from graphium.tenants t where t.slug = v_tenant) then
    perform graphium_private._raise_error('MG002', format('tenant: no tenant "%s"', v_tenant), 'graphium.list_tenants() lists them.');
  end if;

  insert into graphium.principals as p (role_name, role_oid, tenant, scopes, read_only)
  values (v_role.rolname, v_role.oid, v_tenant, v_scopes, add_principal.read_only)
  on conflict on constraint principals_pkey
  do update set role_oid = excluded.role_oid, tenant = excluded.tenant, scopes = excluded.scopes, read_only = excluded.read_only;
  -- Its rights, but not to be it: who may SET ROLE to it may also give it a password, and settings, for everybody.
  if not exists (select from pg_catalog.pg_auth_members m  -- once more would be a NOTICE
                  where m.roleid = v_grants::pg_catalog.regrole and m.member = v_role.oid and m.grantor = current_user::pg_catalog.regrole and not m.set_option) then
    execute format('grant %I to %I with inherit true, set false', v_grants, v_role.rolname);
  end if;
end
$add_principal$;
comment on function graphium.add_principal(text, text, text[], boolean) is
  'Binds a login role to one tenant with at most these scopes (again: rebinds it, as after a rename or a restore), and grants it graphium_user, or graphium_reader when read_only.';
revoke all on function graphium.add_principal(text, text, text[], boolean) from public;
grant execute on function graphium.add_principal(text, text, text[], boolean) to graphium_admin;

create or replace function graphium.remove_principal(role_name text) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $remove_principal$
begin
  perform graphium_private._require_admin_role(), graphium_private._require_role_name(role_name);
  delete from graphium.principals p where p.role_name = remove_principal.role_name collate "C";
  if not found then
    perform graphium_private._raise_error('MG002', format('role_name: "%s" is not bound to a tenant', role_name), 'graphium.list_principals() lists those that are.');
  end if;
end
$remove_principal$;
comment on function graphium.remove_principal(text) is 'Unbinds a login role, which may be gone already, from its tenant; open sessions lose access at once. Its membership in graphium_user or graphium_reader stays (another database may need it), and gives nothing without a binding.';
revoke all on function graphium.remove_principal(text) from public;
grant execute on function graphium.remove_principal(text) to graphium_admin;

create or replace function graphium.list_principals()
  returns table (role_name name, tenant text, scopes text[], read_only boolean, is_in_force boolean, created_at timestamptz)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $list_principals$
begin
  perform graphium_private._require_admin_role();
  return query
    select p.role_name, p.tenant, p.scopes, p.read_only,
           exists (select from pg_catalog.pg_roles r where r.rolname = p.role_name and r.oid = p.role_oid), p.created_at
      from graphium.principals p
     order by p.role_name;
end
$list_principals$;
comment on function graphium.list_principals() is
  'All bindings of login roles in this database, by name. is_in_force is false where the role was dropped, re-made or renamed since, or the database restored into another cluster: such a login is nobody until add_principal() binds it again.';
revoke all on function graphium.list_principals() from public;
grant execute on function graphium.list_principals() to graphium_admin;
