-- What a caller's own conditions may look at. Row-level security alone leaves that to the planner, which runs a condition
-- such as content = 'x', whose operator is leakproof and cheap, before the policy's: on every row of the table. It shows no
-- hidden row, but EXPLAIN (ANALYZE) tells whether the policy was asked at all, that is, whether any tenant has a row with x.
-- So for callers' own queries a second, restrictive policy goes first, by its cost (030_audience.sql): what comes after it sees
-- visible rows only. It takes 1 microsecond a row, and our functions, which run as graphium_owner, are spared it. What is left is
-- what index conditions tell inside of one's own tenant, and a condition that costs nothing (`is null`): docs/security.md.
set local role graphium_owner;

do $order$
declare
  v_table regclass;
  v_arguments text;
begin
  for v_table, v_arguments in
    select c.oid::regclass, format('%s, %s', case when c.oid = 'graphium.tenants'::regclass then 'id' else 'tenant_id' end,
             case when exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'required_scopes' and not a.attisdropped)
                  then 'required_scopes' else '''{}''' end)
      from pg_class c
     where c.relnamespace = 'graphium'::regnamespace and c.relkind in ('r', 'p') and has_any_column_privilege('graphium_reader', c.oid, 'select')
     union all
    select p.relid::regclass, 'tenant_id, required_scopes'
      from pg_partition_tree('graphium.kg_embeddings') as p where p.level > 0
  loop
    execute format('drop policy if exists before_conditions_of_callers on %s', v_table);
    execute format('create policy before_conditions_of_callers on %s as restrictive for select to graphium_reader
                      using (graphium_private.is_seen(%s, (select graphium_private.caller_tenant_id()), (select graphium_private.caller_scopes())))',
                   v_table, v_arguments);
  end loop;
end
$order$;
