-- rebuild_graph(): drops a tenant's graph and makes it anew from the rows; returns how many vertices and edges it has now.
-- Mends every damage, and is the step that is due after pg_restore. graphium_admin only; `tenant` as in check_graph().
--
-- Races: it waits for every transaction that has written to the graph, and holds off those that would, until it commits. So
-- it must see what those have committed, which a transaction with an older snapshot cannot: REPEATABLE READ is refused.
-- Lock order: the label tables, in the order in which the mirror's triggers take them.
--
-- example:
--   select graphium.set_caller(tenant => 'acme');
--   select graphium.rebuild_graph();
set local role graphium_keeper;

create or replace function graphium.rebuild_graph(tenant text = null) returns bigint
  language plpgsql volatile parallel unsafe security definer set search_path = ag_catalog, pg_temp set client_min_messages = warning set lock_timeout = '10s'
as $rebuild_graph$
declare
  v_tenant_id uuid := (graphium_private._named_tenant(tenant)).id;
  v_graph name := graphium_private._graph_name(v_tenant_id);
  v_label text;
  v_rows bigint;
  v_written bigint := 0;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'invalid_transaction_state', message = 'rebuild_graph() needs a READ COMMITTED transaction',
      hint = 'Call it outside of a REPEATABLE READ or SERIALIZABLE transaction.';
  end if;
  perform graphium_private._graph_path(v_tenant_id, false); -- refuses a schema that is not ours
  foreach v_label in array '{Family,Genus,HAS_GENUS,Specimen,HAS_SPECIMEN,CONTAINS_SPECIMEN}'::text[] loop
    if to_regclass(format('%I.%I', v_graph, v_label)) is not null then
      execute format('lock table %I.%I in access exclusive mode', v_graph, v_label);
    end if;
  end loop;
  perform graphium_private._drop_graph(v_tenant_id);
  perform graphium_private._create_graph(v_tenant_id);
  foreach v_label in array '{Family,Genus,Specimen}'::text[] loop
    execute format('insert into %I.%I (id, properties, anchor_id, required_scopes)
                    select e.id, e.properties, e.anchor_id, e.required_scopes from graphium_private._expected_graph($1) e where e.label = $2', v_graph, v_label)
      using v_tenant_id, v_label;
    get diagnostics v_rows = row_count;
    v_written := v_written + v_rows;
  end loop;
  foreach v_label in array '{HAS_GENUS,HAS_SPECIMEN,CONTAINS_SPECIMEN}'::text[] loop
    execute format('insert into %I.%I (id, start_id, end_id, properties, anchor_id, required_scopes)
                    select e.id, e.start_id, e.end_id, e.properties, e.anchor_id, e.required_scopes from graphium_private._expected_graph($1) e where e.label = $2', v_graph, v_label)
      using v_tenant_id, v_label;
    get diagnostics v_rows = row_count;
    v_written := v_written + v_rows;
  end loop;
  return v_written;
end
$rebuild_graph$;
comment on function graphium.rebuild_graph(text) is
  'Drops a tenant''s graph and makes it anew from its families, genera and specimens. Mends every damage, and a graph that came out of pg_restore. Returns the number of vertices and edges.';
revoke all on function graphium.rebuild_graph(text) from public;
grant execute on function graphium.rebuild_graph(text) to graphium_admin;
