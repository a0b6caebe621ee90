-- For counting statements by taxon (context_tree): who may see a row is in no index, for an audience can be larger than an index
-- entry. But a row that everyone in the tenant may see says so by being in the first of these; it is counted without being read.
-- Foreign keys look statements up by kg_statements_in_specimen.
set local role graphium_owner;
set local lock_timeout = '10s';

-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_statements_open on graphium.kg_statements (tenant_id, family_id, genus_id, specimen_id)
 where cardinality(required_scopes) = 0;
-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_statements_gated on graphium.kg_statements (tenant_id, family_id, genus_id, specimen_id)
 where cardinality(required_scopes) > 0;
-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.kg_statements_specimen;
