-- A filter by family and type or time read the whole family, and all its pages: of five families of 82,000 rows the 18,000 of 90 days
-- took as long as all of them. This index finds what is admitted. Its condition is as in 0019: only our functions can use it.
set local role graphium_owner;
set local lock_timeout = '10s';

-- squawk-ignore require-concurrent-index-creation
create index if not exists kg_embeddings_of_family on graphium.kg_embeddings (tenant_id, family_id, memory_type, happened_at)
 where graphium_private._is_ours_to_read(tenant_id);

insert into graphium_private.settings (name, value, note) values
  ('bm25_step', 10000, 'A search by words scores the rarest words first: so many postings at a time, or twice as many as there are candidates. Less makes it look more often whether the rest can be left out, and that takes a millisecond each time.')
on conflict (name) do nothing;
