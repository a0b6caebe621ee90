-- Who may call what in ag_catalog, and what the planner is told of some functions, compared with what db/bootstrap.sql and db/hardening.sql say. `alter extension age update` gives each new
-- function to everybody; then a superuser runs db/bootstrap.sql again. Called by graphium doctor.
set local role graphium_keeper;

-- The same names as in db/bootstrap.sql, which runs before there are functions (a test compares the two).
create or replace function graphium_private._ag_catalog_grants() returns table (grantee name, names text)
  language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $ag_catalog_grants$
  values
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
$ag_catalog_grants$;
comment on function graphium_private._ag_catalog_grants() is 'Names of the functions of Apache AGE that our roles may execute, as db/bootstrap.sql grants them.';
revoke all on function graphium_private._ag_catalog_grants() from public;

create or replace function graphium_private._check_cypher_grants() returns table (problem text, function text)
  language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $check_cypher_grants$
  with wanted as (
    select p.oid, g.grantee::text
      from graphium_private._ag_catalog_grants() as g
      join pg_proc p on p.proname = any (regexp_split_to_array(g.names, '\s+')) and p.pronamespace = 'ag_catalog'::regnamespace
  ), present as (
    select p.oid, case a.grantee when 0 then 'everybody' else pg_get_userbyid(a.grantee) end as grantee
      from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
     where p.pronamespace = 'ag_catalog'::regnamespace
       and (a.grantee = 0 or pg_get_userbyid(a.grantee) in ('graphium_owner', 'graphium_keeper', 'graphium_cypher'))
  )
  select format('%s may execute it, and should not', e.grantee), e.oid::regprocedure::text from (table present except table wanted) as e
  union all
  select format('%s may not execute it, and should', m.grantee), m.oid::regprocedure::text from (table wanted except table present) as m
  union all
  select 'it is not marked leakproof: traversals are slow', p.oid::regprocedure::text
    from pg_proc p
   where p.pronamespace = 'ag_catalog'::regnamespace and p.proname in ('graphid_eq', 'graphid_lt', 'graphid_gt') and not p.proleakproof
  union all
  select 'it is marked leakproof: EXPLAIN tells what hidden names begin with', p.oid::regprocedure::text
    from pg_proc p
   where p.pronamespace = 'pg_catalog'::regnamespace and p.proleakproof
     and p.proargtypes::oid[] && array['text'::regtype, 'character'::regtype, 'character varying'::regtype, 'bytea'::regtype]::oid[]
     and not exists (select from pg_operator o where o.oprcode = p.oid and o.oprname in ('=', '<>'))
  union all
  select 'its cost is not 0: EXPLAIN tells whether a hidden row has a text that is guessed', p.oid::regprocedure::text
    from pg_proc p
   where p.oid in ('pg_catalog.uuid_eq(uuid, uuid)'::regprocedure, 'graphium_private.is_seen(uuid, text[], uuid, text[])'::regprocedure,
                   'graphium_private.is_seen_under(uuid, uuid, uuid, uuid, uuid, text[])'::regprocedure) and p.procost <> 0
  union all
  select case when p.proname = 'pg_export_snapshot' then 'everybody can keep with it what is erased, hidden or removed later'
              when p.proname = 'pg_lock_status' then 'everybody sees in it which hidden rows a SERIALIZABLE transaction has read'
              when p.proname ~ 'advisory|address' then 'everybody can fill the lock table of the whole server with it'
              when p.proname ~ 'brin' then 'everybody can end autovacuums with it'
              else 'everybody sees in it what other sessions do' end, p.oid::regprocedure::text
    from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
   where p.pronamespace = 'pg_catalog'::regnamespace and a.grantee = 0
     and p.proname ~ '^(pg_lock_status|pg_export_snapshot|pg_blocking_pids|pg_safe_snapshot_blocking_pids|pg_isolation_test_session_is_blocked|pg_stat_get_(backend_)?(io|wal)|pg_stat_get_slru|pg_logical_emit_message|pg_get_multixact_members|pg_xact_status|pg_get_object_address|brin_(summarize_new_values|summarize_range|desummarize_range)|pg_stat_get_(numscans|lastscan|tuples_.+|live_tuples|dead_tuples|mod_since_analyze|ins_since_vacuum|blocks_.+|db_.+)|pg_(try_)?advisory_(xact_)?lock(_shared)?)$'
  union all
  select 'it is not there, or off: anybody can make all others wait, by commands that lock before they ask for rights', format('event trigger %s', w.name)
    from (values ('graphium_lock_waits_begin'), ('graphium_lock_waits_end')) as w(name)
   where not exists (select from pg_event_trigger e where e.evtname = w.name and e.evtenabled in ('O', 'A'))
  order by 1, 2
$check_cypher_grants$;
comment on function graphium_private._check_cypher_grants() is
  'What differs in ag_catalog, and in the marks of pg_catalog''s functions, from what db/bootstrap.sql and db/hardening.sql make of them. Empty when right: graphium.cypher() can reach nothing else, and EXPLAIN tells no more than docs/security.md says.';
revoke all on function graphium_private._check_cypher_grants() from public;
grant execute on function graphium_private._check_cypher_grants() to graphium_owner;
