-- check_graph(): every difference between a tenant's graph and its rows. Empty when they are equal.
-- graphium_admin only; `tenant` NULL means the tenant that the admin has named by set_caller(). Read only.
--
-- example:
--   select graphium.set_caller(tenant => 'acme');
--   select problem, label, id, detail from graphium.check_graph();
set local role graphium_keeper;

-- What each relational row is in the graph: the mirror's triggers say the same about the rows of one statement.
create or replace function graphium_private._expected_graph(p_tenant_id uuid)
  returns table (label name, row_id uuid, id ag_catalog.graphid, start_id ag_catalog.graphid, end_id ag_catalog.graphid,
                 properties ag_catalog.agtype, anchor_id uuid, required_scopes text[])
  language sql stable parallel safe security invoker
as $expected_graph$
  select 'Family'::name, f.id, graphium_private._graph_id(3, f.id), null::ag_catalog.graphid, null::ag_catalog.graphid, ag_catalog.agtype_build_map('id', f.id::text, 'name', f.name), f.id, '{}'::text[]
    from graphium.dh_families f where f.tenant_id = p_tenant_id
  union all
  select 'Genus', g.id, graphium_private._graph_id(4, g.id), null::ag_catalog.graphid, null::ag_catalog.graphid, ag_catalog.agtype_build_map('id', g.id::text, 'name', g.name), g.family_id, '{}'::text[]
    from graphium.dh_genera g where g.tenant_id = p_tenant_id
  union all
  select 'Specimen', s.id, graphium_private._graph_id(5, s.id), null::ag_catalog.graphid, null::ag_catalog.graphid, ag_catalog.agtype_build_map('id', s.id::text, 'name', s.name), s.tenant_id, s.required_scopes
    from graphium.dh_specimens s where s.tenant_id = p_tenant_id
  union all
  select 'HAS_GENUS', g.id, graphium_private._graph_id(6, g.id), graphium_private._graph_id(3, g.family_id), graphium_private._graph_id(4, g.id),
         ag_catalog.agtype_build_map(), g.family_id, '{}'::text[]
    from graphium.dh_genera g where g.tenant_id = p_tenant_id
  union all
  select 'HAS_SPECIMEN', s.id, graphium_private._graph_id(7, s.id), graphium_private._graph_id(4, s.genus_id), graphium_private._graph_id(5, s.id),
         ag_catalog.agtype_build_map(), s.family_id, s.required_scopes
    from graphium.dh_specimens s where s.tenant_id = p_tenant_id
  union all
  select 'CONTAINS_SPECIMEN', s.id, graphium_private._graph_id(8, s.id), graphium_private._graph_id(3, s.family_id), graphium_private._graph_id(5, s.id),
         ag_catalog.agtype_build_map(), s.family_id, s.required_scopes
    from graphium.dh_specimens s where s.tenant_id = p_tenant_id
$expected_graph$;
comment on function graphium_private._expected_graph(uuid) is 'Vertices and edges that the tenant''s graph should have, from its rows. Inlined, so that one label costs one label; hence no SET.';
revoke all on function graphium_private._expected_graph(uuid) from public;

-- What Cypher cannot do without, and what guards it. A restored database fails the first of these: AGE keeps the oid of a
-- graph's schema, which pg_restore gives anew.
create or replace function graphium_private._check_graph_catalog(p_tenant_id uuid) returns table (label name, detail text)
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $check_graph_catalog$
declare
  v_graph name := graphium_private._graph_name(p_tenant_id);
  v_graph_id oid := (select g.graphid from ag_catalog.ag_graph g where g.name = v_graph);
begin
  if to_regnamespace(v_graph::text) is null then
    return query select null::name, 'the schema of the graph is missing';
    return;
  elsif not exists (select from pg_namespace n where n.nspname = v_graph and n.nspowner = 'graphium_owner'::regrole) then
    return query select null::name, 'the schema of the graph belongs to another role than graphium_owner'; -- whose views and triggers would run as us
    return;
  end if;
  if v_graph_id is null then
    return query select null::name, 'AGE does not know the graph';
  elsif v_graph_id <> v_graph::text::regnamespace::oid then
    return query select null::name, 'AGE knows the graph by an outdated oid, as after pg_restore';
  end if;
  return query
    with wanted (label, number, kind) as (
      values ('_ag_label_vertex'::name, 1, 'v'), ('_ag_label_edge', 2, 'e'), ('Family', 3, 'v'), ('Genus', 4, 'v'), ('Specimen', 5, 'v'),
             ('HAS_GENUS', 6, 'e'), ('HAS_SPECIMEN', 7, 'e'), ('CONTAINS_SPECIMEN', 8, 'e')
    ), tables as (
      select c.relname as label, c.oid, c.relowner, c.relrowsecurity and c.relforcerowsecurity as is_guarded,
             array(select p.polname::text from pg_policy p where p.polrelid = c.oid order by p.polname) as policies,
             array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attname) as columns
        from pg_class c where c.relnamespace = v_graph::text::regnamespace and c.relkind = 'r'
    ), known as (
      select l.name as label, l.id as number, l.kind, l.relation::oid as oid from ag_catalog.ag_label l where l.graph = v_graph_id
    )
    select coalesce(w.label, t.label, k.label), found.detail
      from wanted w
      full join tables t on t.label = w.label
      full join known k on k.label = coalesce(w.label, t.label),
      lateral (values
        (w.label is null, 'there is no such label in a Graphium graph'),
        (t.label is null and w.label is not null, 'the table of the label is missing'),
        (k.label is null and w.label is not null and v_graph_id is not null, 'AGE does not know the label'),
        (k.number <> w.number or k.kind::text <> w.kind or k.oid <> t.oid, 'AGE knows the label by another number, kind or table'),
        (t.relowner <> 'graphium_owner'::regrole, 'the table belongs to another role than graphium_owner'),
        (not t.is_guarded, 'row-level security is not forced'),
        (t.policies <> '{keeper_sees_all,tenant_and_scope_isolation}', 'it has other policies than keeper_sees_all and tenant_and_scope_isolation'),
        (t.columns <> case w.kind when 'v' then '{anchor_id,id,properties,required_scopes}'::text[]
                        else '{anchor_id,end_id,id,properties,required_scopes,start_id}' end, 'it has other columns')
      ) as found(is_so, detail)
     where found.is_so
     order by 1, 2;
end
$check_graph_catalog$;
comment on function graphium_private._check_graph_catalog(uuid) is 'What is wrong with a tenant''s graph before one looks at its rows.';
revoke all on function graphium_private._check_graph_catalog(uuid) from public;
grant execute on function graphium_private._check_graph_catalog(uuid) to graphium_cypher;

create or replace function graphium.check_graph(tenant text = null) returns table (problem text, label text, id uuid, detail text)
  language plpgsql stable parallel unsafe security definer set search_path = ag_catalog, pg_temp set client_min_messages = warning
as $check_graph$
declare
  v_tenant_id uuid := (graphium_private._named_tenant(tenant)).id;
  v_graph name := graphium_private._graph_name(v_tenant_id);
begin
  return query select 'damaged catalog', c.label::text, null::uuid, c.detail from graphium_private._check_graph_catalog(v_tenant_id) as c;
  if exists (select from unnest('{_ag_label_vertex,_ag_label_edge,Family,Genus,Specimen,HAS_GENUS,HAS_SPECIMEN,CONTAINS_SPECIMEN}'::name[]) as w(label)
              where to_regclass(format('%I.%I', v_graph, w.label)) is null)
    or exists (select from graphium_private._check_graph_catalog(v_tenant_id) as c
                where c.detail in ('it has other columns', 'the schema of the graph belongs to another role than graphium_owner'))
  then
    return; -- nothing to compare with
  end if;
  return query execute format($compare$
    with vertices as (
      select c.relname as label, v.id, v.properties, v.anchor_id, v.required_scopes
        from %1$I._ag_label_vertex v join pg_catalog.pg_class c on c.oid = v.tableoid
    ), edges as (
      select c.relname as label, e.id, e.start_id, e.end_id, e.properties, e.anchor_id, e.required_scopes
        from %1$I._ag_label_edge e join pg_catalog.pg_class c on c.oid = e.tableoid
    ), actual as (
      select r.*, row_number() over (partition by r.label, r.id) as copy
        from (select v.label, v.id, null::graphid as start_id, null::graphid as end_id, v.properties, v.anchor_id, v.required_scopes from vertices v
              union all
              select e.* from edges e) as r
    ), compared as (
      select coalesce(e.label, a.label) as label, e.row_id, case when coalesce(e.label, a.label) in ('_ag_label_vertex', 'Family', 'Genus', 'Specimen') then 'vertex' else 'edge' end as kind,
             e.id as expected_id, a.id as actual_id,
             a.properties <> e.properties as other_properties, a.properties,
             (a.start_id, a.end_id) is distinct from (e.start_id, e.end_id) as other_ends,
             (a.anchor_id, a.required_scopes) is distinct from (e.anchor_id, e.required_scopes) as other_audience
        from graphium_private._expected_graph($1) e
        full join actual a on a.label = e.label and a.id = e.id and a.copy = 1
    )
    select f.problem || case when f.problem in ('missing', 'extra') then ' ' || c.kind else '' end, c.label::text, c.row_id, f.detail
      from compared c,
      lateral (values
        (c.actual_id is null, 'missing', null),
        (c.expected_id is null, 'extra', format('graphid %%s, properties %%s', c.actual_id, c.properties)),
        (c.actual_id is not null and c.expected_id is not null and c.other_properties, 'wrong property', format('properties %%s', c.properties)),
        (c.actual_id is not null and c.expected_id is not null and c.other_ends, 'wrong end', null),
        (c.actual_id is not null and c.expected_id is not null and c.other_audience, 'wrong audience', null)
      ) as f(is_so, problem, detail)
     where f.is_so
    union all
    select 'dangling edge', e.label::text, null, format('graphid %%s, from %%s to %%s', e.id, e.start_id, e.end_id)
      from edges e
     where not exists (select from vertices v where v.id = e.start_id)
        or not exists (select from vertices v where v.id = e.end_id)
    order by 1, 2, 3, 4 $compare$, v_graph) using v_tenant_id;
end
$check_graph$;
comment on function graphium.check_graph(text) is
  'Every difference between a tenant''s graph and its families, genera and specimens: missing or extra vertices and edges, wrong properties, ends or audiences, dangling edges, a damaged catalog. Empty when they are equal.';
revoke all on function graphium.check_graph(text) from public;
grant execute on function graphium.check_graph(text) to graphium_admin;
