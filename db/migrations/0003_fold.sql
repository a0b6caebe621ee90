-- Functions that stored values depend on. They never change: another rule is another version beside this one.
set local role graphium_owner;
set local lock_timeout = '10s';

-- Time-ordered ids (UUID version 7). PostgreSQL 18 has them, and keeps them in order inside one session;
-- for 17 the same layout is built from the clock, its 12 sub-millisecond bits included (RFC 9562, method 3).
do $new_id$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create or replace function graphium_private.new_id() returns uuid
      language sql volatile parallel safe security invoker set search_path = pg_catalog, pg_temp
      return uuidv7();
  else
    create or replace function graphium_private.new_id() returns uuid
      language plpgsql volatile parallel safe security invoker set search_path = pg_catalog, pg_temp
    as $body$
    declare
      v_micros bigint := floor(extract(epoch from clock_timestamp()) * 1000000);
      v_id bytea := uuid_send(gen_random_uuid());
      v_fraction int := ((v_micros % 1000) * 4096) / 1000;
    begin
      v_id := overlay(v_id placing substring(int8send(v_micros / 1000) from 3) from 1 for 6);
      v_id := set_byte(v_id, 6, 112 | (v_fraction >> 8));
      v_id := set_byte(v_id, 7, v_fraction & 255);
      return encode(v_id, 'hex')::uuid;
    end
    $body$;
  end if;
end
$new_id$;
comment on function graphium_private.new_id() is 'A fresh time-ordered uuid (version 7).';
revoke all on function graphium_private.new_id() from public;
grant execute on function graphium_private.new_id() to graphium_keeper;

-- The fold: texts that fold alike are the same statement. NFC, white space, quotes and dashes (an em dash is a dash
-- between spaces, with or without them), the final full stop or exclamation mark (never the question mark), and case,
-- except in tokens whose case means something: those with a digit, a path character or a capital after their first
-- letter (iPhone, O'Brien, US, /srv/Data, v2B), other than in a contraction's ending (I'M, Don'T).
-- Not NFKC: 10² is not 102. Of its foldings only those that change a form and no meaning: full-width ASCII, ℃ and ℉. Joiners (U+200C, U+200D) stay: in Persian, Indic scripts and emoji they carry meaning. So do
-- direction overrides (U+202D, U+202E), which change what is read.
-- Folding a fold changes nothing: invisible characters go before NFC, because one of them can keep a letter and its
-- accent apart, and NFC comes once more after case, because some letters compose in lower case only (H̱, ẖ).
create function graphium_private.fold_v1(content text) returns text
  language plpgsql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $fold$
declare
  v_text text;
  v_stripped text;
begin
  -- soft hyphen, zero-width space, direction marks, embeddings and isolates, word joiner, byte order mark: seen by nobody
  v_text := translate(content,
    U&'\00AD\061C\200B\200E\200F\202A\202B\202C\2060\2066\2067\2068\2069\FEFF', '');
  if octet_length(v_text) > length(v_text) then
    v_text := translate(v_text, $$！＂＃＄％＆＇（）＊＋，－．／０１２３４５６７８９：；＜＝＞？＠ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴＵＶＷＸＹＺ［＼］＾＿｀ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚ｛｜｝～$$,
                                $$!"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`abcdefghijklmnopqrstuvwxyz{|}~$$);
    v_text := normalize(replace(replace(v_text, U&'\2103', U&'\00B0C'), U&'\2109', U&'\00B0F'), NFC);
    v_text := translate(v_text, U&'\2018\2019\201A\201B\201C\201D\201E\201F\00AB\00BB\2010\2011\2012\2013\2212',
                                $$''''""""""-----$$);
  end if;
  v_text := regexp_replace(v_text, '[\u2014\u2015]+', ' - ', 'g');
  v_text := btrim(regexp_replace(v_text, '[\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]+', ' ', 'g'), ' ');
  -- a mark that stands alone (git add .) is a word, not punctuation
  v_stripped := regexp_replace(v_text, U&'([^ .!\3002\FF0E\FF01\0964])[.!\3002\FF0E\FF01\0964]+$', '\1');

  if v_stripped = lower(v_stripped collate pg_catalog.pg_c_utf8) then
    return v_stripped;
  end if;
  return normalize((
    select string_agg(
             case when w.word = w.lowered
                    -- digits of other scripts and raised or lowered ones are digits too
                    or w.word ~ '[[:digit:]\u00B2\u00B3\u00B9\u2070-\u2089\u0660-\u0669\u06F0-\u06F9\u0966-\u096F\uFF10-\uFF19]' collate pg_catalog.pg_c_utf8
                    or w.word ~ '[/\\_@:=#~%&$*+<>|^{}]' collate pg_catalog.pg_c_utf8
                    or w.word ~ '[^.]\.[^.]' collate pg_catalog.pg_c_utf8
                    or w.after_first <> lower(w.after_first collate pg_catalog.pg_c_utf8)
                  then w.word else w.lowered end, ' ' order by w.n)
      from (select t.word, t.n, lower(t.word collate pg_catalog.pg_c_utf8) as lowered,
                   substr(regexp_replace(t.word, '^[^[:alpha:]]+|''(s|m|t|d|ll|re|ve)[^[:alpha:]]*$' collate pg_catalog.pg_c_utf8, '', 'gi'), 2) as after_first
              from string_to_table(v_stripped, ' ') with ordinality as t(word, n)) as w), NFC);
end
$fold$;
comment on function graphium_private.fold_v1(text) is
  'The careful fold, version 1: two texts with equal folds are the same statement. Stored hashes depend on it, so it never changes.';

create function graphium_private.fold_hash_v1(content text) returns bytea
  language plpgsql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
as $hash$
begin
  -- convert_to() is only STABLE, for databases whose conversions change; UTF-8 to UTF-8 never does
  return substring(sha256(convert_to(graphium_private.fold_v1(content), 'UTF8')) for 16);
end
$hash$;
comment on function graphium_private.fold_hash_v1(text) is 'The first 16 bytes of SHA-256 over fold_v1().';

revoke all on function graphium_private.fold_v1(text), graphium_private.fold_hash_v1(text) from public;
grant execute on function graphium_private.fold_v1(text), graphium_private.fold_hash_v1(text) to graphium_keeper;
