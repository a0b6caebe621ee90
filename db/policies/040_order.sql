-- What a caller's own conditions may look at. Row-level security alone leaves that to the planner, which runs a condition
-- such as content = 'x', whose operator is leakproof and cheap, before the policy's: on every row of the table. It shows no
-- hidden row, but EXPLAIN (ANALYZE) tells whether the policy was asked at all, that is, whether any tenant has a row with x.
-- So for callers' own queries a second, restrictive policy goes first, by its cost; our functions run as graphium_owner and are
-- spared it. Its two conditions:
--   is true        the row's tenant is the caller's. uuid_eq costs nothing (hardening.sql), and among equals policies come first:
--                  nothing goes before it. (Without `is true` the planner would put it after those that cost as much.)
--   is_seen()      the whole rule, is_seen_under() for what follows another row. They cost next to nothing (031, 032), so that only
--                  conditions that cost nothing (`x is null`, `jsonb[x] is null`) go before them; and all do, where nobody could
--                  set uuid_eq's cost. is_seen() takes 1 microsecond a row.
-- What is left is what one guesses about hidden rows of one's own tenant: docs/security.md, "Plans and statistics".
set local role graphium_owner;

do $order$
declare
  c_caller constant text := '(select graphium_private.caller_tenant_id()), (select graphium_private.caller_scopes())';
  v_table regclass;
  v_tenant name;
  v_rule text;
begin
  for v_table, v_tenant, v_rule in
    select c.oid::regclass, case c.relname when 'tenants' then 'id' else 'tenant_id' end,
           case c.relname
             when 'dh_genera' then format('graphium_private.is_seen_under(tenant_id, family_id, null, null, %s)', c_caller)
             when 'kg_statement_variants' then format('graphium_private.is_seen_under(tenant_id, null, null, statement_id, %s)', c_caller)
             when 'dh_symbioses' then format('graphium_private.is_seen_under(tenant_id, source_family_id, source_specimen_id, source_statement_id, %1$s)
                                              and graphium_private.is_seen_under(tenant_id, target_family_id, target_specimen_id, target_statement_id, %1$s)', c_caller)
             when 'tenants' then format('graphium_private.is_seen(id, ''{}'', %s)', c_caller)
             else format('graphium_private.is_seen(tenant_id, %s, %s)',
                         case when exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'required_scopes' and not a.attisdropped)
                              then 'required_scopes' else '''{}''' end, c_caller) end
      from pg_class c
     where c.relnamespace = 'graphium'::regnamespace and c.relkind in ('r', 'p') and has_any_column_privilege('graphium_reader', c.oid, 'select')
     union all
    select p.relid::regclass, 'tenant_id', format('graphium_private.is_seen(tenant_id, required_scopes, %s)', c_caller)
      from pg_partition_tree('graphium.kg_embeddings') as p where p.level > 0
  loop
    execute format('drop policy if exists before_conditions_of_callers on %s', v_table);
    execute format('create policy before_conditions_of_callers on %s as restrictive for select to graphium_reader
                      using ((%s = (select graphium_private.caller_tenant_id())) is true and %s)', v_table, v_tenant, v_rule);
    execute format('comment on policy before_conditions_of_callers on %s is ''The same rule, tried before the conditions of a caller''''s own query.''', v_table);
  end loop;
end
$order$;
