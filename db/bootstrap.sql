-- What a superuser (or a hosted service's equivalent) runs once per database, before `graphium migrate`.
-- Everything after this file deploys as a login role that is no superuser:
--
--   grant graphium_owner, graphium_keeper, graphium_cypher to my_deployer with inherit false, set true;
--
-- Safe to run again, and safe to run in several databases of one cluster at the same instant: roles are
-- cluster-wide, so another database may be making them right now. No rollback ever drops a role.

-- Whoever may create schemas here can make one with the superuser's name, and "$user" is where names are looked up first:
-- then a function of theirs would run as the superuser, and pgvector would be theirs to replace.
set search_path = pg_catalog, pg_temp;

-- 1. Extensions. Neither is trusted, so only a superuser can create them. `vector` may already live in any schema.
create extension if not exists vector with schema public;
create extension if not exists age;

-- 2. Roles, none of which can log in.
--    owner   owns schemas, tables and public functions, and is itself under the forced row-level security
--    keeper  owns the few functions that must see past the caller: triggers, counters, checks, erasure, identity
--    cypher  owns graphium.cypher() and can only read the graphs
--    reader < user < app, admin   for people and programs
do $roles$
declare
  v_role text;
  v_comment text;
  v_grant record;
begin
  for v_role, v_comment in values
    ('graphium_owner',  'Graphium: owns schemas, tables and public functions, and is under row-level security itself.'),
    ('graphium_keeper', 'Graphium: owns the few functions that see past the caller.'),
    ('graphium_cypher', 'Graphium: owns graphium.cypher(), and reads the graphs.'),
    ('graphium_reader', 'Graphium: may read; for principals who only read.'),
    ('graphium_user',   'Graphium: may read and write; for principals.'),
    ('graphium_app',    'Graphium: may name the caller; for application servers.'),
    ('graphium_admin',  'Graphium: may name a tenant and holds all of its scopes; makes tenants and principals.')
  loop
    if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
      begin
        execute format('create role %I nologin nosuperuser nobypassrls nocreatedb nocreaterole noreplication', v_role);
      exception when duplicate_object or unique_violation then
        null; -- another database made it between the look and the deed
      end;
    end if;
    if shobj_description(to_regrole(v_role), 'pg_authid') is distinct from v_comment then
      begin
        execute format('comment on role %I is %L', v_role, v_comment);
      exception when unique_violation or internal_error then
        null; -- the same
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
comment on schema graphium is 'Graphium: the tables and functions that callers use.';
comment on schema graphium_private is 'Graphium: helpers, trigger functions, settings, records of deploys. No caller has USAGE.';

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

-- 4. Apache AGE. By default everybody may call every function of it, and they read and write any graph, past row-level
-- security, from inside a Cypher text too. So nobody may, but:
--    owner   makes graphs and their labels, and removes the catalog rows of a damaged one
--    keeper  builds the vertices and edges that mirror the taxonomy
--    cypher  calls what a read-only query needs: operators, casts, scalar and aggregate functions. Not among them: what
--            writes (_cypher_*_clause), walks paths (age_vle, …), reads vertices by id (age_startnode, age_endnode),
--            looks at other graphs (age_graph_stats, …), forges (agtype_typecast_*) or crashes on a truth value (age_to*list).
-- Run this again after `alter extension age update`, which gives new functions to everybody; graphium doctor notices.
do $age$
declare
  v_change record;
begin
  grant usage on schema ag_catalog to graphium_owner, graphium_keeper, graphium_cypher;
  grant select, delete on ag_catalog.ag_graph, ag_catalog.ag_label to graphium_owner;
  grant select on ag_catalog.ag_graph, ag_catalog.ag_label to graphium_keeper, graphium_cypher;
  for v_change in
    with wanted as (
      select p.oid, g.grantee::regrole::oid as grantee
        from (values
          ('graphium_owner', '_label_id create_elabel create_graph create_vlabel'),
          ('graphium_keeper', '_graphid agtype_build_map agtype_ne graphid_eq'),
          ('graphium_cypher', '_ag_enforce_edge_uniqueness _ag_enforce_edge_uniqueness2 _ag_enforce_edge_uniqueness3 _ag_enforce_edge_uniqueness4
            _agtype_build_edge _agtype_build_path _agtype_build_vertex _label_name
            age_abs age_acos age_asin age_atan age_atan2 age_avg age_ceil age_collect age_cos age_cot age_degrees age_e age_end_id age_eq_tilde
            age_exists age_exp age_floor age_head age_id age_isempty age_keys age_label age_labels age_last age_left age_length age_log age_log10
            age_ltrim age_max age_min age_nodes age_percentilecont age_percentiledisc age_pi age_properties age_radians age_rand
            age_relationships age_reverse age_right age_round age_rtrim age_sign age_sin age_size age_split age_sqrt age_start_id
            age_stdev age_stdevp age_substring age_sum age_tail age_tan age_timestamp age_toboolean age_tofloat age_tointeger age_tolower
            age_tostring age_toupper age_trim age_type age_unnest
            agtype_access_operator agtype_access_slice agtype_add agtype_any_add agtype_any_div agtype_any_eq agtype_any_ge agtype_any_gt
            agtype_any_le agtype_any_lt agtype_any_mod agtype_any_mul agtype_any_ne agtype_any_sub agtype_build_list agtype_build_map
            agtype_build_map_nonull agtype_concat agtype_contains agtype_div agtype_eq agtype_ge agtype_gt agtype_hash_cmp agtype_in_operator agtype_le agtype_lt
            agtype_mod agtype_mul agtype_ne agtype_neg agtype_pow agtype_string_match_contains agtype_string_match_ends_with
            agtype_string_match_starts_with agtype_sub agtype_to_bool agtype_to_graphid agtype_to_int8 bool_to_agtype float8_to_agtype
            graphid_eq int8_to_agtype')
        ) as g(grantee, names)
        join pg_catalog.pg_proc p on p.proname = any (regexp_split_to_array(g.names, '\s+')) and p.pronamespace = 'ag_catalog'::regnamespace
    ), present as (
      select p.oid, a.grantee
        from pg_catalog.pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
       where p.pronamespace = 'ag_catalog'::regnamespace
         and a.grantee in (0, 'graphium_owner'::regrole, 'graphium_keeper'::regrole, 'graphium_cypher'::regrole)
    )
    (select 'revoke execute on function %s from %s' as change, e.* from (table present except table wanted) as e)
    union all
    (select 'grant execute on function %s to %s', m.* from (table wanted except table present) as m)
  loop
    execute format(v_change.change, v_change.oid::regprocedure, case v_change.grantee when 0 then 'public' else v_change.grantee::regrole::text end);
  end loop;
  -- Under row-level security the planner uses an index or a statistic only for an operator that cannot leak what it reads.
  -- These three compare two 64-bit numbers, and may; without them a traversal of two hops takes hundreds of times longer.
  begin
    alter function ag_catalog.graphid_eq(ag_catalog.graphid, ag_catalog.graphid) leakproof;
    alter function ag_catalog.graphid_lt(ag_catalog.graphid, ag_catalog.graphid) leakproof;
    alter function ag_catalog.graphid_gt(ag_catalog.graphid, ag_catalog.graphid) leakproof;
  exception when insufficient_privilege then
    raise warning 'graph traversals will be slow: only a superuser can mark ag_catalog.graphid_eq, graphid_lt and graphid_gt leakproof';
  end;
end
$age$;

reset search_path;
