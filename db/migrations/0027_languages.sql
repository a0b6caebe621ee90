-- A tenant has a language, by which words are stemmed and some are none. It is fixed, as the embedding model is: postings depend on it.
set local role graphium_owner;
set local lock_timeout = '10s';

alter table graphium.tenants add column if not exists language text not null default 'english';
alter table graphium.tenants alter column language set statistics 0; -- as of all columns of text
comment on column graphium.tenants.language is 'By which search stems words: a language that PostgreSQL has a stemmer for, or ''simple'' (words as they are).';

-- words_v1 with a language: for 'english' the same words. Stored postings depend on it, so it never changes.
create or replace function graphium_private.words_v2(content text, language text) returns text[]
  language plpgsql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $words$
declare
  c_unspaced constant text := '\u0E01-\u0EFF\u1000-\u109F\u1780-\u17FF\u3041-\u30FA\u30FC-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uAC00-\uD7A3\uF900-\uFAFF\U00020000-\U0003FFFF';
  c_single constant text := '\u2600-\u27BF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\U0001F000-\U0003FFFF';
  c_marks constant text := '\u0300-\u036F\u0483-\u0487\u0591-\u05BD\u0610-\u061A\u064B-\u065F\u0670\u06D6-\u06ED\u0900-\u0963\u0966-\u0DFF\u0F71-\u0F87\u200C\u200D';
  v_dictionary constant regdictionary := concat('pg_catalog.', case when language <> 'simple' then language || '_stem' else 'simple' end)::regdictionary;
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
      from string_to_table(btrim(v_text, ' '), ' ') as t(token), unnest(ts_lexize(v_dictionary, t.token)) as w(word)
     where t.token <> '');
end
$words$;
comment on function graphium_private.words_v2(text, text) is
  'The words of a text in a language as search compares them, with repetitions, version 2. Stored postings depend on it, so it never changes.';
revoke all on function graphium_private.words_v2(text, text) from public;
grant execute on function graphium_private.words_v2(text, text) to graphium_keeper;
