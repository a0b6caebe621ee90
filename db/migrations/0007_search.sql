-- What searches read besides the memory itself. Words first: which words a statement has, and an inverted index of them. A tsvector's own index cannot be used
-- under row-level security (@@ is not leakproof), has no document frequencies and depends on the database's locale; a
-- row per word and statement is found by equality, which is leakproof, and counts only what the caller may see.
set local role graphium_owner;
set local lock_timeout = '10s';

-- Stored postings depend on it, so it never changes: another rule is another version beside this one.
-- Words are runs of letters, digits and combining marks, after NFKC and lower case, stemmed as English (stop words go);
-- other languages keep their words as they are. Scripts that are written without spaces, and Hangul, give pairs of
-- neighbouring characters, and each ideograph and emoji by itself. Nothing depends on the locale of the database.
create function graphium_private.words_v1(content text) returns text[]
  language plpgsql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $words$
declare
  c_unspaced constant text := '\u0E01-\u0EFF\u1000-\u109F\u1780-\u17FF\u3041-\u30FA\u30FC-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uAC00-\uD7A3\uF900-\uFAFF\U00020000-\U0003FFFF';
  c_single constant text := '\u2600-\u27BF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\U0001F000-\U0003FFFF';
  c_marks constant text := '\u0300-\u036F\u0483-\u0487\u0591-\u05BD\u0610-\u061A\u064B-\u065F\u0670\u06D6-\u06ED\u0900-\u0963\u0966-\u0DFF\u0F71-\u0F87\u200C\u200D';
  v_text text := content;
  v_words text[] := '{}';
begin
  if octet_length(v_text) > char_length(v_text) then -- something beyond ASCII
    v_text := normalize(v_text, NFKC);
    if v_text ~ ('[' || c_unspaced || c_single || ']') then
      v_words := array(
        select w.word
          from (select c.char, lead(c.char) over (order by c.n) as next, lag(c.char) over (order by c.n) as previous
                  from string_to_table(v_text, null) with ordinality as c(char, n)) as c,
               lateral (select c.char ~ ('[' || c_unspaced || ']') as is_unspaced, c.next ~ ('[' || c_unspaced || ']') as next_is, c.previous ~ ('[' || c_unspaced || ']') as previous_is) as k,
               lateral (select c.char || c.next where k.is_unspaced and k.next_is
                        union all
                        select c.char where c.char ~ ('[' || c_single || ']') or (k.is_unspaced and k.next_is is not true and k.previous_is is not true)) as w(word));
      v_text := regexp_replace(v_text, '[' || c_unspaced || c_single || ']+', ' ', 'g');
    end if;
  end if;
  v_text := regexp_replace(lower(v_text collate pg_catalog.pg_c_utf8), '[^[:alnum:]' || c_marks || ']+' collate pg_catalog.pg_c_utf8, ' ', 'g');
  -- an index entry has room for some 2,700 bytes: the few words that are longer than 200 stand by their hash
  return v_words || array(
    select case when octet_length(w.word) > 200 then encode(sha256(convert_to(w.word, 'UTF8')), 'hex') else w.word end
      from string_to_table(btrim(v_text, ' '), ' ') as t(token), unnest(ts_lexize('pg_catalog.english_stem', t.token)) as w(word)
     where t.token <> '');
end
$words$;
comment on function graphium_private.words_v1(text) is
  'The words of a text as search compares them, with repetitions, version 1. Stored postings depend on it, so it never changes.';
revoke all on function graphium_private.words_v1(text) from public;
grant execute on function graphium_private.words_v1(text) to graphium_keeper;

create table graphium_private.postings (
  tenant_id uuid not null,
  statement_id uuid not null,
  occurrences integer not null,
  length integer not null,
  word text collate "C" not null,
  required_scopes text[] not null,
  primary key (tenant_id, word, statement_id)
);
comment on table graphium_private.postings is
  'Inverted index: one row per statement and distinct word of it. Derived from kg_statements by triggers; no foreign key, because its only index starts with the word.';
comment on column graphium_private.postings.occurrences is 'How often the statement has the word.';
comment on column graphium_private.postings.length is 'How many words the statement has in all.';
comment on column graphium_private.postings.required_scopes is 'Copy of the statement''s audience.';

alter table graphium_private.postings enable row level security;
alter table graphium_private.postings force row level security;
grant select, insert, update, delete on graphium_private.postings to graphium_keeper;

insert into graphium_private.settings (name, value, note) values
  ('fusion_pool', 200, 'A search by vector and words ranks the best so many of either kind together (at least 4 × match_count, at most 1,000): a statement that is middling in both may beat one that is good in one.'),
  ('bm25_k1', 1.2, 'BM25: how soon repetitions of a word stop to count. Customary value.'),
  ('bm25_b', 0.4, 'BM25: how far a longer statement must have a word more often. Below the customary 0.75, which is for documents of very different lengths; statements are single sentences.'),
  ('wake_up_window', 1000, 'wake_up_context ranks the newest so many preloaded statements (or token_budget of them, when that is more); older ones are not looked at.')
on conflict (name) do nothing;

-- A statement that a search found, before its row is read. symbiosis_id: the edge that led to it.
create type graphium_private.hit as (
  statement_id uuid,
  similarity real,
  score real,
  symbiosis_id uuid,
  symbiosis_kind text
);
comment on type graphium_private.hit is 'One statement that search_context found, by the query or along a symbiosis.';

-- What recall_context returns; a type, because its arguments and columns share the names family, genus and specimen.
create type graphium.recalled as (
  statement_id uuid,
  content text,
  family text,
  genus text,
  specimen text,
  memory_type text,
  layer_kind text,
  is_superseded boolean,
  access_count bigint,
  required_scopes text[],
  occurred_at timestamptz,
  created_at timestamptz,
  source text,
  "position" bigint,
  metadata jsonb
);
comment on type graphium.recalled is 'One statement that recall_context returns.';
