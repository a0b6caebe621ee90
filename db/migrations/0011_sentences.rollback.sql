set local role graphium_owner;
create index if not exists kg_statements_same_text on graphium.kg_statements (tenant_id, family_id, content_hash);
alter table graphium_private.postings no force row level security;
delete from graphium_private.postings where starts_with(word, '=');
alter table graphium_private.postings force row level security;
drop function if exists graphium_private.sentence_key_v1(uuid, bytea, text[]);
comment on table graphium_private.postings is
  'Inverted index: one row per statement and distinct word of it. Derived from kg_statements by triggers; no foreign key, because its only index starts with the word.';
