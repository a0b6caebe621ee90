set local role graphium_owner;
create index if not exists kg_statements_open on graphium.kg_statements (tenant_id, family_id, genus_id, specimen_id)
 where cardinality(required_scopes) = 0;
create index if not exists kg_statements_gated on graphium.kg_statements (tenant_id, family_id, genus_id, specimen_id)
 where cardinality(required_scopes) > 0;
drop index if exists graphium.kg_statements_count_open;
drop index if exists graphium.kg_statements_count_gated;
drop index if exists graphium.kg_statements_count_many_scopes;
