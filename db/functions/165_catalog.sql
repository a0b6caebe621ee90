-- What a deploy leaves in the catalog, one line per object: the things in our two schemas with their owners (and what a function
-- says), triggers, policies, row-level security, rights of everybody and of our roles, and columns that are kept out of the
-- planner's statistics. `graphium migrate` stores the lines in graphium_private.deployed_catalog and compares them before it runs
-- again (graphium_db/deploy/drift.py, which reads the query in this file: it must not trust a function that somebody may have
-- changed); check_security() compares them too. Not among them is what changes rightly between deploys: the schema of each
-- tenant's graph, indexes, role memberships, and what other roles than ours were granted.
set local role graphium_owner;

create or replace function graphium_private._catalog() returns table (object text, state text, owner text)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $catalog$
with schemas as (
  select n.oid, n.nspowner, n.nspacl from pg_namespace n where n.nspname in ('graphium', 'graphium_private')
), relations as (
  select c.oid, c.relkind, c.relowner, c.relacl, c.relrowsecurity, c.relforcerowsecurity,
         case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' when 'f' then 'foreign table'
                        when 'c' then 'type' else 'table' end as kind
    from pg_class c
   where c.relnamespace in (select s.oid from schemas s)
     and (c.relkind in ('r', 'p', 'v', 'm', 'f', 'c')
          -- that of a serial column goes with its table
          or c.relkind = 'S' and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')))
), routines as (
  select p.* from pg_proc p where p.pronamespace in (select s.oid from schemas s)
), acls(object, part, owner, acl) as (
  select 'schema ' || s.oid::regnamespace, null, s.nspowner, coalesce(s.nspacl, acldefault('n', s.nspowner)) from schemas s
  union all
  select case r.relkind when 'S' then 'sequence ' else 'table ' end || r.oid::regclass, null, r.relowner,
         coalesce(r.relacl, acldefault(case r.relkind when 'S' then 's' else 'r' end::"char", r.relowner))
    from relations r
   where r.relkind <> 'c'
  union all
  select 'table ' || r.oid::regclass, quote_ident(a.attname), r.relowner, a.attacl
    from relations r
    join pg_attribute a on a.attrelid = r.oid
   where a.attacl is not null and not a.attisdropped
  union all
  select 'routine ' || f.oid::regprocedure, null, f.proowner, coalesce(f.proacl, acldefault('f', f.proowner)) from routines f
), lines(object, state, owner) as (
  -- The things: their state begins with their owner.
  select 'schema ' || s.oid::regnamespace, pg_get_userbyid(s.nspowner)::text, s.nspowner from schemas s
  union all
  select r.kind || ' ' || r.oid::regclass, pg_get_userbyid(r.relowner)::text, r.relowner from relations r
  union all
  select 'type ' || t.oid::regtype, pg_get_userbyid(t.typowner)::text, t.typowner
    from pg_type t
   where t.typnamespace in (select s.oid from schemas s) and t.typtype in ('d', 'e', 'r')
  union all
  select 'function ' || f.oid::regprocedure, pg_get_userbyid(f.proowner) || ' ' || md5(concat_ws(E'\n',
           l.lanname, f.prokind, f.provolatile, f.proparallel, f.prosecdef, f.proisstrict, f.proleakproof, greatest(f.procost, 1e-30::real), f.prorows, -- hardening.sql makes a cost of 0 of is_seen's 1e-30
          
           pg_get_function_arguments(f.oid), pg_get_function_result(f.oid), array(select c from unnest(f.proconfig) as c order by c collate "C"),
           coalesce(pg_get_function_sqlbody(f.oid), f.prosrc), f.probin,
           (select concat_ws(' ', a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.agginitval) from pg_aggregate a where a.aggfnoid = f.oid))), f.proowner
    from routines f
    join pg_language l on l.oid = f.prolang
  union all
  select format('trigger %I on %s', g.tgname, r.oid::regclass), md5(pg_get_triggerdef(g.oid) || g.tgenabled::text), r.relowner
    from pg_trigger g
    join relations r on r.oid = g.tgrelid
   where not g.tgisinternal
  union all
  select format('policy %I on %s', p.polname, r.oid::regclass),
         md5(concat_ws(E'\n', p.polpermissive, p.polcmd,
                       (select string_agg(w.name, ',' order by w.name)
                          from (select case o when 0 then 'public' else pg_get_userbyid(o)::text end as name from unnest(p.polroles) as o) as w),
                       coalesce(pg_get_expr(p.polqual, p.polrelid), '-'), coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '-'))), r.relowner
    from pg_policy p
    join relations r on r.oid = p.polrelid
  union all
  select 'row security of ' || r.oid::regclass, case when r.relrowsecurity then 'enabled' else 'disabled' end
           || case when r.relforcerowsecurity then ', forced' else ', not forced' end, r.relowner
    from relations r
   where r.relkind in ('r', 'p')
  union all
  select 'statistics of ' || r.oid::regclass || '.' || quote_ident(a.attname), a.attstattarget::text, r.relowner
    from relations r
    join pg_attribute a on a.attrelid = r.oid
   where a.attnum > 0 and not a.attisdropped and a.attstattarget in (0, 1) and r.relkind in ('r', 'p')
  union all
  select format('grant %s on %s to %s', case when a.part is null then lower(x.privilege_type) else format('%s (%s)', lower(x.privilege_type), a.part) end,
                a.object, g.grantee),
         case when bool_or(x.is_grantable) then 'with grant option' else 'plain' end, a.owner
    from acls a, aclexplode(a.acl) as x, lateral (select case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end as grantee) as g
   where x.grantee <> a.owner
     and g.grantee in ('public', 'graphium_owner', 'graphium_keeper', 'graphium_cypher', 'graphium_reader', 'graphium_user', 'graphium_app', 'graphium_admin')
   group by a.object, a.part, a.owner, x.privilege_type, g.grantee
)
-- A list of another format, which an earlier version left, says nothing.
select l.object, l.state, pg_get_userbyid(l.owner)::text as owner from lines l
union all
select 'this list', 'format 2', 'graphium_owner'
$catalog$;
comment on function graphium_private._catalog() is
  'What a deploy leaves in the catalog and compares with before the next: things and owners, functions, triggers, policies, row-level security, rights of our roles.';
revoke all on function graphium_private._catalog() from public;

-- In PL/pgSQL, because what it reads is made by the deployer, and because a restore may have given it to somebody else.
create or replace function graphium_private._deployed_catalog() returns table (object text, state text)
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $deployed_catalog$
begin
  if to_regclass('graphium_private.deployed_catalog') is null or to_regclass('graphium_private._yoyo_migration') is null
     or not (has_table_privilege('graphium_private.deployed_catalog', 'select') and has_table_privilege('graphium_private.deployed_files', 'select')
             and has_table_privilege('graphium_private._yoyo_migration', 'select')) then
    return;
  end if;
  return query
    select d.object, d.state
      from graphium_private.deployed_catalog d
     where exists (select from graphium_private.deployed_catalog f where f.object = 'this list' and f.state = 'format 2')
       and not exists (
         select from (select 'migrations/' || y.migration_id || '.sql' as path from graphium_private._yoyo_migration y) as m
           full join (select r.path from graphium_private.deployed_files r where r.path ^@ 'migrations/') as r on r.path = m.path
          where m.path is null or r.path is null);
end
$deployed_catalog$;
comment on function graphium_private._deployed_catalog() is
  'The lines of _catalog() as the last deploy left them; none when that is not known, as after migrations that were run by other means.';
revoke all on function graphium_private._deployed_catalog() from public;
