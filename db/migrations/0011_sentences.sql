-- Equal text is found by a key that only those who may read the text can come upon. kg_statements.content_hash did the job
-- until now, and its index told others: whoever asked for the hash of a sentence that he guessed, or ingested the guess, had
-- the hidden row fetched and then taken away by its policy, which EXPLAIN (ANALYZE) and PostgreSQL's counters show. The new key
-- is of the text, the family and the audience together, in a table that no caller reads; an ingest asks for it with
-- audiences that its caller holds, so it touches no row that is hidden from him. The hash stays, in no index.
set local role graphium_owner;
set local lock_timeout = '10s';

-- Stored keys depend on it, so it never changes: another key is another version beside this one.
create or replace function graphium_private.sentence_key_v1(family_id uuid, content_hash bytea, required_scopes text[]) returns text
  language plpgsql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
as $sentence_key$
begin
  -- convert_to() is only STABLE, for databases whose conversions change; UTF-8 to UTF-8 never does. No word begins with "=".
  return '=' || encode(substring(sha256(uuid_send(family_id) || content_hash
           || convert_to(case when 'public' = any (required_scopes) then '{}' else required_scopes::text end, 'UTF8')) for 16), 'hex');
end
$sentence_key$;
comment on function graphium_private.sentence_key_v1(uuid, bytea, text[]) is
  'What a sentence stands by in graphium_private.postings, beside its words: equal for equal text, family and audience. Stored keys depend on it, so it never changes.';
revoke all on function graphium_private.sentence_key_v1(uuid, bytea, text[]) from public;
grant execute on function graphium_private.sentence_key_v1(uuid, bytea, text[]) to graphium_keeper;

-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.kg_statements_same_text;

-- The tables are locked anyhow, and until the commit their owner sees every row.
alter table graphium.kg_statements no force row level security;
alter table graphium_private.postings no force row level security;
insert into graphium_private.postings (tenant_id, statement_id, word, occurrences, length, required_scopes)
select s.tenant_id, s.id, graphium_private.sentence_key_v1(s.family_id, s.content_hash, s.required_scopes), 1, 0, s.required_scopes
  from graphium.kg_statements s
on conflict do nothing;
alter table graphium.kg_statements force row level security;
alter table graphium_private.postings force row level security;

comment on table graphium_private.postings is
  'Inverted index: one row per statement and distinct word of it, and one for the sentence as a whole (sentence_key_v1). Derived from kg_statements by triggers; no foreign key, because its only index starts with the word.';
