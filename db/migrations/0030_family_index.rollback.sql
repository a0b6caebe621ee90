set local role graphium_owner;
drop index if exists graphium.kg_embeddings_in_family;
create index kg_embeddings_in_family on graphium.kg_embeddings (tenant_id, family_id);
