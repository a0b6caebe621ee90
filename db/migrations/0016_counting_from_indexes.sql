-- For counting statements by taxon (context_tree) from indexes alone, gated ones too: the policy asks for the audience, so it is in
-- the index where it is sure to fit. Three scopes do: 200 characters each, of 4 bytes at most; an entry may have 2,704 bytes.
-- The genus says which family, so these are smaller than the two that they stand in for.
set local role graphium_owner;
set local lock_timeout = '10s';

-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_statements_count_open on graphium.kg_statements (tenant_id, genus_id, specimen_id)
 where cardinality(required_scopes) = 0;
-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_statements_count_gated on graphium.kg_statements (tenant_id, genus_id, specimen_id) include (required_scopes)
 where cardinality(required_scopes) between 1 and 3;
-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_statements_count_many_scopes on graphium.kg_statements (tenant_id, genus_id, specimen_id)
 where cardinality(required_scopes) > 3;
-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.kg_statements_open;
-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.kg_statements_gated;
