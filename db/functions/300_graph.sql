-- The AGE graph of a tenant: its name, the ids in it, and how it is made, guarded and dropped.
--
-- A graph holds nothing that is not in a relational row. Every vertex and edge is a pure function of exactly one row
-- (320_graph_mirror.sql), down to its graphid: 16 bits of label, then 48 bits of a hash of the row's uuid. So nothing has to
-- be looked up to find a row's vertex, no sequence is drawn from, a rebuilt graph has the same ids as before, and an id
-- says nothing about how many other vertices there are. Two of a million specimens of one tenant share 48 bits with a
-- chance of 0.2 %; the second one's insert then fails (23505), and a new attempt, having a new uuid, succeeds.
--
-- Label tables carry two plain columns beside AGE's own, inherited from the two parents of all label tables:
--   anchor_id        what must be seen for the row to be seen: the family that it hangs on (a Family: itself), or, for a
--                    Specimen, which may be seen without its family, the tenant
--   required_scopes  the audience of the specimen among vertex or edge ends; open for everything else
-- from which one policy, the same on all eight tables, tells whether the caller sees the row. The family's own audience is
-- not copied: changing it changes nothing here. The parents need the policy too: a pattern without a label reads the
-- children through them.
set local role graphium_owner;

create or replace function graphium_private._graph_name(p_tenant_id uuid) returns name
  language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
  return ('graphium_' || replace(p_tenant_id::text, '-', ''))::name;
comment on function graphium_private._graph_name(uuid) is 'Name of the tenant''s graph and of its schema. Needs no quoting.';
revoke all on function graphium_private._graph_name(uuid) from public;
grant execute on function graphium_private._graph_name(uuid) to graphium_keeper, graphium_cypher;

-- Inlined into the mirror's statements, hence without SET. Labels are numbered in the order in which _create_graph()
-- makes them: Family 3, Genus 4, Specimen 5, HAS_GENUS 6, HAS_SPECIMEN 7, CONTAINS_SPECIMEN 8.
-- An edge has the hash of the row at its lower end: a genus has one HAS_GENUS, a specimen one of each of the others.
create or replace function graphium_private._graph_id(p_label int, p_id uuid) returns ag_catalog.graphid
  language sql immutable parallel safe security invoker
as $graph_id$
  select ag_catalog._graphid(p_label, greatest(pg_catalog.uuid_hash_extended(p_id, 0) operator(pg_catalog.&) 281474976710655, 1))
$graph_id$;
comment on function graphium_private._graph_id(int, uuid) is 'The id that a relational row has in the graph, as a vertex or edge of the label with that number. Inlined, hence no SET.';
revoke all on function graphium_private._graph_id(int, uuid) from public;
grant execute on function graphium_private._graph_id(int, uuid) to graphium_keeper;

-- Policy helper, evaluated once per scan of a label table (a hashed sub-plan), not per row. It reads tables as
-- graphium_owner, under their own policies: there is one rule, and it is written there.
create or replace function graphium_private.visible_anchors(p_tenant_id uuid) returns setof uuid
  language sql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp rows 100
as $visible_anchors$
  select f.id from graphium.dh_families f where f.tenant_id = p_tenant_id
  union all
  select t.id from graphium.tenants t where t.id = p_tenant_id
$visible_anchors$;
comment on function graphium_private.visible_anchors(uuid) is
  'Policy helper of the graphs: the families of that tenant that the caller may see, and its own id; nothing of any tenant but his own.';
revoke all on function graphium_private.visible_anchors(uuid) from public;
grant execute on function graphium_private.visible_anchors(uuid) to graphium_cypher;

-- Raise the number in the comment that it leaves on the schema whenever this changes: graphs that bear it are not done again.
create or replace function graphium_private._protect_graph(p_tenant_id uuid) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $protect_graph$
declare
  v_graph name := graphium_private._graph_name(p_tenant_id);
  v_seal constant text := 'Graph of a Graphium tenant, guarded as of 2';
  v_is_new boolean := obj_description(v_graph::text::regnamespace, 'pg_namespace') is null;
  v_table name;
begin
  if obj_description(v_graph::text::regnamespace, 'pg_namespace') = v_seal then
    return;
  end if;
  execute format('grant usage on schema %1$I to graphium_cypher, graphium_keeper', v_graph);
  -- By AGE's own list: "all tables in schema", as any search of pg_class by schema, reads the tables of all tenants.
  for v_table in
    select c.relname
      from ag_catalog.ag_label l
      join pg_class c on c.oid = l.relation
     where l.graph = (select g.graphid from ag_catalog.ag_graph g where g.name = v_graph)
     order by l.id
  loop
    execute format('grant select, insert, delete, truncate on %I.%I to graphium_keeper', v_graph, v_table);
    execute format('grant select on %I.%I to graphium_cypher', v_graph, v_table);
    execute format('alter table %I.%I enable row level security, force row level security', v_graph, v_table);
    if not v_is_new then
      execute format('drop policy if exists tenant_and_scope_isolation on %I.%I', v_graph, v_table);
      execute format('drop policy if exists keeper_sees_all on %I.%I', v_graph, v_table);
    end if;
    execute format('create policy tenant_and_scope_isolation on %I.%I for select to graphium_cypher
                      using (anchor_id in (select graphium_private.visible_anchors(%L))
                             and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes())))',
                   v_graph, v_table, p_tenant_id);
    execute format('create policy keeper_sees_all on %I.%I to graphium_keeper using (true) with check (true)', v_graph, v_table);
  end loop;
  -- Names and scopes are in no planner's statistics (migrations/0010). The label tables are children of these two.
  foreach v_table in array '{_ag_label_vertex,_ag_label_edge}'::name[] loop
    execute format('alter table %I.%I alter column properties set statistics 0, alter column required_scopes set statistics 0', v_graph, v_table);
  end loop;
  execute format('comment on schema %I is %L', v_graph, v_seal);
end
$protect_graph$;
comment on function graphium_private._protect_graph(uuid) is 'Grants and policies of one graph, unless it has them as this version makes them.';
revoke all on function graphium_private._protect_graph(uuid) from public;
grant execute on function graphium_private._protect_graph(uuid) to graphium_keeper;

-- AGE finds its own operators by the search path, hence ag_catalog in it.
create or replace function graphium_private._create_graph(p_tenant_id uuid) returns void
  language plpgsql volatile parallel unsafe security definer
  set search_path = ag_catalog, pg_temp set client_min_messages = warning
as $create_graph$
declare
  v_graph name := graphium_private._graph_name(p_tenant_id);
  v_table name;
  v_column name;
begin
  perform ag_catalog.create_graph(v_graph);
  for v_table in values ('_ag_label_vertex'), ('_ag_label_edge') loop
    execute format('alter table %I.%I add column anchor_id uuid not null, add column required_scopes text[] not null default %L', v_graph, v_table, '{}');
  end loop;
  -- All labels at once, and in this order: AGE numbers them from 3, and two sessions that made one at first use would collide.
  for v_table in values ('Family'), ('Genus'), ('Specimen') loop
    execute format('select ag_catalog.create_vlabel(%L, %L)', v_graph, v_table);
  end loop;
  for v_table in values ('HAS_GENUS'), ('HAS_SPECIMEN'), ('CONTAINS_SPECIMEN') loop
    execute format('select ag_catalog.create_elabel(%L, %L)', v_graph, v_table);
  end loop;
  if ag_catalog._label_id(v_graph, 'Family') <> 3 or ag_catalog._label_id(v_graph, 'CONTAINS_SPECIMEN') <> 8 then
    raise exception 'this version of Apache AGE numbers labels in a way that the graph mirror does not know';
  end if;
  -- What AGE 1.7 does by itself, and 1.5 not. (Edges are found by their ends, never by their ids.)
  for v_table, v_column in
    select c.relname, a.attname
      from ag_catalog.ag_label l
      join pg_catalog.pg_class c on c.oid = l.relation
      join pg_catalog.pg_attribute a on a.attrelid = c.oid
     where l.graph = (select g.graphid from ag_catalog.ag_graph g where g.name = v_graph) and c.relname !~ '^_'
       and a.attname = any (case when c.relname ~ '^[A-Z_]*$' then '{start_id,end_id}' else '{id}' end::text[])
       and not exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indkey[0] = a.attnum)
  loop
    if v_column = 'id' then
      execute format('alter table %I.%I add primary key (id)', v_graph, v_table);
    else
      execute format('create index on %I.%I (%I)', v_graph, v_table, v_column);
    end if;
  end loop;
  perform graphium_private._protect_graph(p_tenant_id);
end
$create_graph$;
comment on function graphium_private._create_graph(uuid) is 'Makes the tenant''s graph with all its labels, empty and guarded.';
revoke all on function graphium_private._create_graph(uuid) from public;
grant execute on function graphium_private._create_graph(uuid) to graphium_keeper;

-- Not AGE's drop_graph(): that one stumbles over a graph whose catalog rows are damaged.
create or replace function graphium_private._drop_graph(p_tenant_id uuid) returns void
  language plpgsql volatile parallel unsafe security definer
  set search_path = ag_catalog, pg_temp set client_min_messages = warning
as $drop_graph$
declare
  v_graph name := graphium_private._graph_name(p_tenant_id);
begin
  delete from ag_catalog.ag_label l using ag_catalog.ag_graph g where g.name = v_graph and l.graph = g.graphid;
  delete from ag_catalog.ag_graph g where g.name = v_graph;
  if to_regnamespace(v_graph::text) is not null then
    -- A session that has read the graph remembers that the schema is one, and AGE 1.7 does not let go of it: any change
    -- of the schema's own row, such as this, makes the session forget.
    execute format('revoke usage on schema %I from graphium_cypher', v_graph);
    execute format('drop schema %I cascade', v_graph);
  end if;
end
$drop_graph$;
comment on function graphium_private._drop_graph(uuid) is 'Drops the tenant''s graph, sound, damaged or missing.';
revoke all on function graphium_private._drop_graph(uuid) from public;
grant execute on function graphium_private._drop_graph(uuid) to graphium_keeper;

set local role graphium_keeper;

create or replace function graphium_private._protect_graphs() returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $protect_graphs$
begin
  perform graphium_private._protect_graph(t.id)
     from graphium.tenants t
    where to_regnamespace(graphium_private._graph_name(t.id)::text) is not null
    order by t.id;
end
$protect_graphs$;
comment on function graphium_private._protect_graphs() is 'Grants and policies of every tenant''s graph.';
revoke all on function graphium_private._protect_graphs() from public;
