-- What a superuser (or a hosted service's equivalent) runs once per database, before `graphium migrate`.
-- Everything after this file deploys as a login role that is no superuser:
--
--   grant graphium_owner, graphium_keeper, graphium_cypher to my_deployer with inherit false, set true;
--
-- Safe to run again, and safe to run in several databases of one cluster at the same instant: roles are
-- cluster-wide, so another database may be making them right now. No rollback ever drops a role.

-- 1. Extensions. Neither is trusted, so only a superuser can create them. `vector` may already live in any schema.
create extension if not exists vector;
create extension if not exists age;

-- 2. Roles, none of which can log in.
--    owner   owns schemas, tables and public functions, and is itself under the forced row-level security
--    keeper  owns the few functions that must see past the caller: triggers, counters, checks, erasure, identity
--    cypher  owns graphium.cypher() and can only read the graphs
--    reader < user < app, admin   for people and programs
do $roles$
declare
  v_role text;
  v_grant record;
begin
  foreach v_role in array array['graphium_owner', 'graphium_keeper', 'graphium_cypher',
                                'graphium_reader', 'graphium_user', 'graphium_app', 'graphium_admin']
  loop
    if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
      begin
        execute format('create role %I nologin nosuperuser nobypassrls nocreatedb nocreaterole noreplication', v_role);
      exception when duplicate_object or unique_violation then
        null; -- another database made it between the look and the deed
      end;
    end if;
  end loop;

  -- A principal is given graphium_user (or graphium_reader) by graphium.add_principal(), which the keeper owns:
  -- hence the keeper's admin option, without the right to use what those roles hold.
  for v_grant in
    select * from (values
      ('graphium_reader', 'graphium_user',   'inherit true, set true'),
      ('graphium_user',   'graphium_app',    'inherit true, set true'),
      ('graphium_user',   'graphium_admin',  'inherit true, set true'),
      ('graphium_reader', 'graphium_keeper', 'admin true, inherit false, set false'),
      ('graphium_user',   'graphium_keeper', 'admin true, inherit false, set false')) as g(granted, member, options)
  loop
    if not exists (select from pg_catalog.pg_auth_members m
                    where m.roleid = v_grant.granted::regrole and m.member = v_grant.member::regrole) then
      begin
        execute format('grant %I to %I with %s', v_grant.granted, v_grant.member, v_grant.options);
      exception when unique_violation then
        null;
      end;
    end if;
  end loop;
end
$roles$;

-- 3. Schemas, and what their owner needs to create more of its own (one schema per tenant's graph).
create schema if not exists graphium authorization graphium_owner;
create schema if not exists graphium_private authorization graphium_owner;
grant usage on schema ag_catalog to graphium_owner, graphium_keeper, graphium_cypher;

do $database$
declare
  v_vector name := (select n.nspname from pg_catalog.pg_extension e
                      join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector');
  v_preload text := (select split_part(s.setting, '=', 2)
                       from pg_catalog.pg_db_role_setting d, unnest(d.setconfig) as s(setting)
                      where d.setdatabase = (select oid from pg_catalog.pg_database where datname = current_database())
                        and d.setrole = 0 and s.setting like 'session\_preload\_libraries=%');
begin
  execute format('grant create on database %I to graphium_owner, graphium_keeper', current_database());
  execute format('grant usage on schema %I to graphium_owner, graphium_keeper, graphium_cypher, graphium_reader', v_vector);
  -- AGE must be loaded before the first Cypher call of a session: spare every client its LOAD 'age'.
  if v_preload is null or not 'age' = any (string_to_array(replace(replace(v_preload, '"', ''), ' ', ''), ',')) then
    execute format('alter database %I set session_preload_libraries = %s', current_database(),
                   (select string_agg(quote_ident(btrim(l)), ', ')
                      from unnest(string_to_array(replace(coalesce(v_preload || ',', '') || 'age', '"', ''), ',')) as l
                     where btrim(l) <> ''));
  end if;
end
$database$;
