set local role graphium_owner;
set local lock_timeout = '10s';
drop index if exists graphium.dh_families_named, graphium.dh_genera_named, graphium.dh_specimens_named, graphium.kg_statement_variants_once,
  graphium.kg_statements_in_source, graphium.kg_statement_variants_in_source;
alter table graphium.dh_families add constraint dh_families_tenant_id_name_key unique (tenant_id, name);
alter table graphium.dh_genera add constraint dh_genera_tenant_id_family_id_name_key unique (tenant_id, family_id, name);
alter table graphium.dh_specimens add constraint dh_specimens_tenant_id_genus_id_name_key unique (tenant_id, genus_id, name);
alter table graphium.kg_statement_variants add constraint kg_statement_variants_pkey primary key (tenant_id, statement_id, variant_key);
create index if not exists kg_statements_of_source on graphium.kg_statements (tenant_id, source, position) where source is not null;
create index if not exists kg_statement_variants_of_source on graphium.kg_statement_variants (tenant_id, source, position) where source is not null;
drop function if exists graphium_private._indexed_text(text);
drop function if exists graphium_private._indexed_key(bytea);
