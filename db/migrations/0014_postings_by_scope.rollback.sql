set local role graphium_owner;
set local lock_timeout = '10s';

alter table graphium_private.postings no force row level security;
alter table graphium_private.postings drop constraint if exists postings_pkey;
delete from graphium_private.postings p
 using graphium_private.postings q
 where q.tenant_id = p.tenant_id and q.word = p.word and q.statement_id = p.statement_id and q.scope < p.scope;
alter table graphium_private.postings drop column if exists scope;
alter table graphium_private.postings add constraint postings_pkey primary key (tenant_id, word, statement_id);
alter table graphium_private.postings force row level security;
comment on table graphium_private.postings is
  'Inverted index: one row per statement and distinct word of it, and one for the sentence as a whole (sentence_key_v1). Derived from kg_statements by triggers; no foreign key, because its only index starts with the word.';
