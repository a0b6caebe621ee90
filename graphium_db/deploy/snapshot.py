"""The catalog as stable text, so that a review sees every change of structure and of power.

Object ids, dates and order of creation are left out: two databases with the same text are the same to their users.
"""

from __future__ import annotations

from typing import Any

import psycopg

# Each query returns lines. They run with an empty search_path, so that every name comes out qualified.
_OURS = "('graphium'::regnamespace, 'graphium_private'::regnamespace)"

_FUNCTIONS = f"""
select format(E'%s\\n  %s, %s, parallel %s, %s, owner %s\\n  %s\\n  body %s', p.oid::regprocedure::text
         || case p.prokind when 'p' then '' else ' -> ' || pg_get_function_result(p.oid) end,
         l.lanname, case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
         case p.proparallel when 's' then 'safe' when 'r' then 'restricted' else 'unsafe' end,
         case when p.prosecdef then 'definer' else 'invoker' end
           || case when p.proisstrict then ', strict' else '' end
           || case when p.proleakproof then ', leakproof' else '' end,
         pg_get_userbyid(p.proowner),
         coalesce((select string_agg('set ' || s, ', ' order by s collate "C") from unnest(p.proconfig) as s),
                  'no setting')
           || coalesce(E'\\n  arguments ' || nullif(pg_get_function_arguments(p.oid), ''), ''),
         md5(coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)))
  from pg_proc p join pg_language l on l.oid = p.prolang
 where p.pronamespace in {_OURS}
"""

_POLICIES = f"""
select format(E'%s on %s\\n  %s for %s to %s\\n  using %s\\n  with check %s',
         quote_ident(p.polname), p.polrelid::regclass,
         case when p.polpermissive then 'permissive' else 'restrictive' end,
         case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
                       else 'all' end,
         (select string_agg(name, ', ' order by name)
            from (select case r when 0 then 'public' else pg_get_userbyid(r) end as name
                    from unnest(p.polroles) as r) as roles),
         coalesce(pg_get_expr(p.polqual, p.polrelid), '-'), coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '-'))
  from pg_policy p join pg_class c on c.oid = p.polrelid
 where c.relnamespace in {_OURS}
"""

# Not-null constraints are rows of pg_constraint on PostgreSQL 18 only; the column's line has them on both.
_TABLES = f"""
with t as (select c.* from pg_class c where c.relnamespace in {_OURS})
select t.oid::regclass || ' ' || line from t cross join lateral (
  select format('00 %s, owner %s%s%s%s',
           case t.relkind when 'r' then 'table' when 'p' then 'partitioned table' when 'v' then 'view'
                          when 'm' then 'materialized view' when 'S' then 'sequence' else 'type' end,
           pg_get_userbyid(t.relowner),
           case when t.relrowsecurity then ', row security' else '' end
             || case when t.relforcerowsecurity then ' forced' else '' end,
           coalesce(', with ' || array_to_string(t.reloptions, ', '), ''),
           coalesce(', partition ' || pg_get_expr(t.relpartbound, t.oid), '')
             || coalesce(', by ' || pg_get_partkeydef(t.oid), '')
             || coalesce(E'\\n' || pg_get_viewdef(t.oid), ''))
   where t.relkind in ('r', 'p', 'v', 'm', 'S', 'c')
  union all
  select format('10.%s %s %s%s%s%s', lpad(row_number() over (order by a.attnum)::text, 2, '0'), quote_ident(a.attname),
           format_type(a.atttypid, a.atttypmod), case when a.attnotnull then ' not null' else '' end,
           coalesce(case a.attgenerated when '' then ' default ' else ' generated ' end
                    || pg_get_expr(d.adbin, d.adrelid), ''),
           case when a.attstorage <> y.typstorage then ' storage ' || a.attstorage::text else '' end)
    from pg_attribute a join pg_type y on y.oid = a.atttypid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and t.relkind in ('r', 'p', 'v', 'm', 'c')
  union all
  select format('20 constraint %s %s', quote_ident(k.conname), pg_get_constraintdef(k.oid))
    from pg_constraint k where k.conrelid = t.oid and k.contype <> 'n'
  union all
  select '30 ' || pg_get_indexdef(i.indexrelid) || case when i.indisvalid then '' else ' INVALID' end
    from pg_index i where i.indrelid = t.oid
  union all
  select '40 ' || pg_get_triggerdef(g.oid) from pg_trigger g where g.tgrelid = t.oid and not g.tgisinternal
) as lines(line)
"""

# One line per object: who may do what with it. Owners' own rights are theirs by nature, so they are left out.
_PRIVILEGES = f"""
with acl as (
  select 'schema ' || n.oid::regnamespace as object, n.nspowner as owner,
         coalesce(n.nspacl, acldefault('n', n.nspowner)) as acl
    from pg_namespace n where n.oid in {_OURS}
  union all
  select 'table ' || c.oid::regclass, c.relowner,
         coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))
    from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v', 'm', 'S')
  union all
  select 'column ' || a.attrelid::regclass || '.' || quote_ident(a.attname), c.relowner, a.attacl
    from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relnamespace in {_OURS} and a.attacl is not null
  union all
  select 'function ' || p.oid::regprocedure, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
    from pg_proc p where p.pronamespace in {_OURS}
  union all
  select 'type ' || t.oid::regtype, t.typowner, t.typacl
    from pg_type t where t.typnamespace in {_OURS} and t.typacl is not null
)
select object || coalesce((
  select string_agg(E'\\n  ' || who || ': ' || what, '' order by who) from (
    select case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end as who,
           string_agg(lower(x.privilege_type) || case when x.is_grantable then ' with grant option' else '' end,
                      ', ' order by x.privilege_type) as what
      from aclexplode(acl.acl) as x where x.grantee <> acl.owner group by 1) as g), E'\\n  nobody')
  from acl
union all
select format(E'role %s\\n  %s%s', rolname,
         coalesce(nullif(concat_ws(', ',
             case when rolsuper then 'SUPERUSER' end, case when rolbypassrls then 'BYPASSRLS' end,
             case when rolcanlogin then 'LOGIN' end, case when rolcreaterole then 'CREATEROLE' end,
             case when rolcreatedb then 'CREATEDB' end, case when rolreplication then 'REPLICATION' end),
           ''), 'may nothing by itself'),
         (select string_agg(format(E'\\n  member of %s%s%s%s', pg_get_userbyid(m.roleid),
                              case when m.inherit_option then ', inherits' else '' end,
                              case when m.set_option then ', may set role' else '' end,
                              case when m.admin_option then ', may grant it' else '' end),
                            '' order by m.roleid::regrole::text)
            from pg_auth_members m where m.member = r.oid))
  from pg_roles r where rolname ^@ 'graphium_'
"""

# What the role behind graphium.cypher() may call in AGE: everything else in ag_catalog is out of a query's reach.
_AG_CATALOG = """
select p.oid::regprocedure || ': ' || (
         select string_agg(who, ', ' order by who)
           from (select case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end as who
                   from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as x
                  where x.grantee <> p.proowner) as grantees)
  from pg_proc p
 where p.pronamespace = 'ag_catalog'::regnamespace
   and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as x
                where x.grantee <> p.proowner)
"""

_SECTIONS = {
    "functions": _FUNCTIONS,
    "policies": _POLICIES,
    "tables": _TABLES,
    "privileges": _PRIVILEGES,
    "ag_catalog": _AG_CATALOG,
}


def snapshot(conn: psycopg.Connection[Any]) -> dict[str, str]:
    """Text per section: `functions`, `policies`, `tables`, `privileges`, `ag_catalog`. Reads the catalog only."""
    with conn.transaction():
        conn.execute("set local search_path = ''")
        return {
            name: "".join(sorted(f"{row[0]}\n" for row in conn.execute(query.encode()).fetchall()))
            for name, query in _SECTIONS.items()
        }
