-- A statement says by which version of the rules it was labelled, and which of its labels a caller chose: so that a new rule set can label
-- again what an older one did, and leave the rest (functions/501_reclassify.sql).
set local role graphium_owner;
set local lock_timeout = '10s';

-- What is there was labelled by version 1; the default fills it in without a rewrite, and then goes.
alter table graphium.kg_statements add column if not exists rules_version int default 1;
-- squawk-ignore ban-drop-default
alter table graphium.kg_statements alter column rules_version drop default;
alter table graphium.kg_statements add column if not exists is_type_chosen boolean not null default false;
alter table graphium.kg_statements add column if not exists is_layer_chosen boolean not null default false;
comment on column graphium.kg_statements.rule is 'Id of the rule that gave the labels which the caller did not choose; NULL when he chose both.';
comment on column graphium.kg_statements.rules_version is 'Version of the rule set that `rule` is of.';
comment on column graphium.kg_statements.is_type_chosen is 'Whether a caller chose memory_type: then no rule changes it.';
comment on column graphium.kg_statements.is_layer_chosen is 'Whether a caller chose layer_kind: then no rule changes it.';

-- Who chose was not on record. A label other than the rule's was chosen; one that is the rule's own may have been, and counts as given by it.
-- The table is locked anyhow, and until the commit its owner sees every row.
alter table graphium.kg_statements no force row level security;
update graphium.kg_statements s
   set is_type_chosen = w.is_type_chosen, is_layer_chosen = w.is_layer_chosen, rules_version = case when s.rule is not null then 1 end
  from (select o.tenant_id, o.id,
               o.rule is null or o.memory_type <> split_part(o.rule, '.', 1) as is_type_chosen,
               o.rule is null or (o.layer_kind = 'preloaded')
                 <> (o.rule in ('fact.name', 'fact.since', 'fact.identity', 'preference.favorite', 'preference.like', 'advice.standing')) as is_layer_chosen
          from graphium.kg_statements o
         where o.rules_version = 1) as w
 where s.tenant_id = w.tenant_id and s.id = w.id and (w.is_type_chosen or w.is_layer_chosen);
alter table graphium.kg_statements force row level security;
