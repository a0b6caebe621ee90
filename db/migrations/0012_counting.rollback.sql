set local role graphium_owner;
create index if not exists kg_statements_specimen on graphium.kg_statements (tenant_id, family_id, genus_id, specimen_id);
drop index if exists graphium.kg_statements_open;
drop index if exists graphium.kg_statements_gated;
