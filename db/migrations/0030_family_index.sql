-- While a tenant is being imported the statistics do not know it, every index that begins with tenant_id promises one row, and chance
-- decides which is read. Dedup reads a family in an order that only this index has (062_match_statements.sql),
-- and that tells nothing of the rows, as a column of theirs would to who counts what is read.
set local role graphium_owner;
set local lock_timeout = '10s';

-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.kg_embeddings_in_family;
-- squawk-ignore require-concurrent-index-creation
create index kg_embeddings_in_family on graphium.kg_embeddings (tenant_id, family_id, graphium_private._is_ours_to_read(tenant_id));
