-- What a caller's own conditions may look at. Row-level security alone leaves that to the planner, which runs a condition
-- such as content = 'x', whose operator is leakproof and cheap, before the policy's: on every row of the table. It shows no
-- hidden row, but EXPLAIN (ANALYZE) tells whether the policy was asked at all, that is, whether any tenant has a row with x.
-- So for callers' own queries a second, restrictive policy goes first, by its cost; our functions run as graphium_owner and are
-- spared it. Its two conditions:
--   is true        the row's tenant is the caller's. uuid_eq costs nothing (hardening.sql), and among equals policies come first:
--                  nothing goes before it. (Without `is true` the planner would put it after those that cost as much.)
--   is_seen()      the whole rule. It costs next to nothing (030_audience.sql), so that only conditions that cost nothing (`x is
--                  null`, `jsonb[x] is null`) go before it; and all does, where nobody could set uuid_eq's cost. 1 microsecond a row.
-- What is left is what one guesses about hidden rows of one's own tenant: docs/security.md, "Plans and statistics".
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
                      using ((%s = (select graphium_private.caller_tenant_id())) is true
                             and graphium_private.is_seen(%s, (select graphium_private.caller_tenant_id()), (select graphium_private.caller_scopes())))',
                   v_table, split_part(v_arguments, ',', 1), v_arguments);
  end loop;
end
$order$;
