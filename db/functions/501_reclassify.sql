-- Labels again, by the rule set that is deployed, what an older one labelled. A label that a caller chose stays; so one who wants to keep a
-- label as it is ingests the sentence again with it. Both see what the caller sees and no more: statements of other audiences
-- keep their labels until somebody who sees them does the same.
--
-- plan_reclassification() writes nothing: one row for each change of rule or label, most statements first, with sample_count contents.
-- reclassify() takes the next batch_size statements behind the id `after`, in the order of their ids, in one transaction, and returns
--   how many it looked at, how many got other labels, and the last id: call it with that until `statements` is 0. Every
--   statement that it looked at then says by which version it was labelled, so an interrupted run goes on where it ended.
-- Lock order: the families by id first, like every writer. A caller who chooses a label meanwhile is waited for, and then wins.
--
-- example:
--   select graphium.set_caller('acme');
--   select rule_before, rule_after, statements, samples from graphium.plan_reclassification();
--   select statements, changed, last_id from graphium.reclassify(batch_size => 1000);
set local role graphium_owner;

create or replace function graphium.plan_reclassification(sample_count int = 3)
  returns table (rule_before text, version_before int, memory_type_before text, layer_kind_before text,
    rule_after text, version_after int, memory_type_after text, layer_kind_after text, statements bigint, samples text[])
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off
as $plan_reclassification$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
begin
  perform graphium_private._require_between('sample_count', sample_count, 0, 100);
  return query
    select g.rule, g.rules_version, g.memory_type, g.layer_kind, g.new_rule, graphium_private._rules_version(), g.new_type, g.new_layer,
           count(*), coalesce(array_agg(left(g.content, 200) order by g.id) filter (where g.number <= sample_count), '{}')
      from (select s.id, s.content, s.rule, s.rules_version, s.memory_type, s.layer_kind, c.rule as new_rule,
                   case when s.is_type_chosen then s.memory_type else c.memory_type end as new_type,
                   case when s.is_layer_chosen then s.layer_kind else c.layer_kind end as new_layer,
                   row_number() over (partition by s.rule, s.rules_version, s.memory_type, s.layer_kind, c.rule, s.is_type_chosen, s.is_layer_chosen order by s.id) as number
              from graphium.kg_statements s, graphium_private._classify_by_rules(s.content) as c
             where s.tenant_id = v_tenant_id and not (s.is_type_chosen and s.is_layer_chosen)
               and s.rules_version is distinct from graphium_private._rules_version()) as g
     where (g.rule, g.memory_type, g.layer_kind) is distinct from (g.new_rule, g.new_type, g.new_layer)
     group by g.rule, g.rules_version, g.memory_type, g.layer_kind, g.new_rule, g.new_type, g.new_layer
     order by count(*) desc, g.rule collate "C", g.rules_version, g.new_rule collate "C", g.memory_type collate "C", g.layer_kind collate "C", g.new_type collate "C", g.new_layer collate "C";
end
$plan_reclassification$;
comment on function graphium.plan_reclassification(int) is
  'What reclassify() would change of what the caller sees: for each rule before and after how many statements, and some of them. Writes nothing.';
revoke all on function graphium.plan_reclassification(int) from public;
grant execute on function graphium.plan_reclassification(int) to graphium_reader;

create or replace function graphium.reclassify(batch_size int = 1000, after uuid = null, out statements int, out changed int, out last_id uuid)
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off
as $reclassify$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._require_writer();
  v_ids uuid[];
  v_families uuid[];
begin
  perform graphium_private._require_between('batch_size', batch_size, 1, 100000);
  select array_agg(b.id order by b.id), array_agg(distinct b.family_id)
    into v_ids, v_families
    from (select s.id, s.family_id
            from graphium.kg_statements s
           where s.tenant_id = v_tenant_id and s.id > coalesce(after, '00000000-0000-0000-0000-000000000000')
             and not (s.is_type_chosen and s.is_layer_chosen) and s.rules_version is distinct from graphium_private._rules_version()
           order by s.id limit batch_size) as b;
  statements := coalesce(cardinality(v_ids), 0);
  changed := 0;
  last_id := v_ids[statements];
  if statements = 0 then
    return;
  end if;
  perform graphium_private._lock_families(v_tenant_id, v_families);
  with labelled as materialized (
    select s.id, s.memory_type, s.layer_kind, c.rule,
           case when s.is_type_chosen then s.memory_type else c.memory_type end as new_type,
           case when s.is_layer_chosen then s.layer_kind else c.layer_kind end as new_layer
      from graphium.kg_statements s, graphium_private._classify_by_rules(s.content) as c
     where s.tenant_id = v_tenant_id and s.id = any (v_ids) and not (s.is_type_chosen and s.is_layer_chosen)
  ), written as (
    update graphium.kg_statements s
       set memory_type = l.new_type, layer_kind = l.new_layer, rule = l.rule, rules_version = graphium_private._rules_version()
      from labelled l
     where s.tenant_id = v_tenant_id and s.id = l.id
    returning (l.memory_type, l.layer_kind) is distinct from (l.new_type, l.new_layer) as is_changed
  )
  select count(*) filter (where w.is_changed) into changed from written w;
end
$reclassify$;
comment on function graphium.reclassify(int, uuid) is
  'Labels the next batch_size statements that the caller sees, and an older rule set labelled, by the deployed one; labels that a caller chose stay. Call it again with after => last_id until statements is 0.';
revoke all on function graphium.reclassify(int, uuid) from public;
grant execute on function graphium.reclassify(int, uuid) to graphium_user;
