set local role graphium_owner;
set local lock_timeout = '10s';
alter table graphium.kg_statements
  drop column if exists rules_version,
  drop column if exists is_type_chosen,
  drop column if exists is_layer_chosen;
comment on column graphium.kg_statements.rule is 'Id of the rule that classified it; NULL when the caller chose both labels.';
