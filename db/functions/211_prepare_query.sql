-- What a question says besides its topic: who it names, and when.
--
-- specimens: visible specimens whose names stand in the text as whole words, in any case, longest first ("Ada Lovelace"
--   before "Ada"), in the order of the text; NULL when there are none, so that it can be given to search_context as it is.
-- dense_text: the text without those names (and their 's), for embedding: in a vector a name pulls up greetings. The
--   whole text when nothing else is in it.
-- since, until: the time that the text names, NULL when it names none: a date ("2024-05-08", "8 May 2024", "May 8th"), a
--   month, a year, today, yesterday, this or last week (from Monday), month or year, "3 weeks ago", "the last 10 days".
--   "since", "after", "before" and "until" in front of it leave one side open, "the week before" does not. A date without a year is the latest one
--   that has begun. English; in the session's time zone; relative to `now`, which a caller may set.
-- Never an error, whatever the text. Writes nothing.
--
-- example:
--   select dense_text, specimens, since, until from graphium.prepare_query('What did Ada say about feedback last week?');
set local role graphium_owner;

-- (search_context reads its query_text by it, too.)
create or replace function graphium_private._read_query(p_tenant_id uuid, p_text text, p_now timestamptz,
    out dense_text text, out words text[], out specimens text[], out specimen_ids uuid[], out family_ids uuid[], out since timestamptz, out until timestamptz) returns record
  language plpgsql stable parallel unsafe security invoker
as $read_query$
declare
  v_language constant text := (select t.language from graphium.tenants t where t.id = p_tenant_id);
  v_text text := normalize(p_text, NFC);
  v_lower text := lower(regexp_replace(v_text, '[[:space:]]+', ' ', 'g') collate pg_catalog.pg_c_utf8);
  v_named record;
  v_pattern text;
begin
  dense_text := v_text;
  for v_named in
    select s.name, array_agg(s.id) as ids, array_agg(s.family_id) as families from graphium.dh_specimens s
     where s.tenant_id = p_tenant_id and position(lower(s.name collate pg_catalog.pg_c_utf8) in v_lower) > 0
     group by s.name order by char_length(s.name) desc, s.name collate "C"
  loop
    v_pattern := graphium_private._whole_word(v_named.name);
    if dense_text collate pg_catalog.pg_c_utf8 ~* v_pattern then
      dense_text := regexp_replace(dense_text collate pg_catalog.pg_c_utf8, v_pattern, ' ', 'gi');
      specimens := specimens || v_named.name;
      specimen_ids := specimen_ids || v_named.ids;
      family_ids := family_ids || v_named.families;
    end if;
  end loop;
  specimens := nullif(array(select n from unnest(specimens) as n
                                     order by position(lower(n collate pg_catalog.pg_c_utf8) in v_lower), char_length(n) desc, n collate "C"), '{}');
  dense_text := btrim(regexp_replace(dense_text, '[[:space:]]+', ' ', 'g'));
  words := graphium_private._query_words(dense_text, v_language);
  if specimens is null or words = '{}' then
    dense_text := v_text;
    words := graphium_private._query_words(v_text, v_language);
  end if;
  begin
    select t.since, t.until into since, until from graphium_private._find_time(v_lower, coalesce(p_now, statement_timestamp())) as t;
  exception when datetime_field_overflow then
    null; -- "last year" of the first year there is: no time that anything could have happened at
  end;
end
$read_query$;
comment on function graphium_private._read_query(uuid, text, timestamptz) is 'What prepare_query says of a text, with the words to look for and the ids of who is named.';
revoke all on function graphium_private._read_query(uuid, text, timestamptz) from public;

create or replace function graphium_private._require_finite(p_now timestamptz) returns void
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_finite$
begin
  if not isfinite(p_now) then
    perform graphium_private._raise_error('MG008', 'now must be a finite time', 'Leave it out for the time of the call.');
  end if;
end
$require_finite$;
comment on function graphium_private._require_finite(timestamptz) is 'MG008 for an infinite now.';
revoke all on function graphium_private._require_finite(timestamptz) from public;

create or replace function graphium.prepare_query(query_text text, now timestamptz = null)
  returns table (dense_text text, specimens text[], since timestamptz, until timestamptz)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off
as $prepare_query$
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_asked graphium_private.asked;
begin
  perform graphium_private._require_finite(prepare_query.now);
  v_asked := graphium_private._read_query(v_tenant_id, query_text, prepare_query.now);
  dense_text := v_asked.dense_text;
  specimens := v_asked.specimens;
  since := v_asked.since;
  until := v_asked.until;
  return next;
end
$prepare_query$;
comment on function graphium.prepare_query(text, timestamptz) is
  'Reads a question: the text to embed (known names taken out), the visible specimens that it names (NULL: none), and the time that it names, relative to now. Writes nothing.';
revoke all on function graphium.prepare_query(text, timestamptz) from public;
grant execute on function graphium.prepare_query(text, timestamptz) to graphium_reader;

-- Where words are not set apart by spaces a name needs no boundary.
create or replace function graphium_private._whole_word(p_name text) returns text
  language sql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
  return concat(
    case when left(p_name, 1) collate pg_catalog.pg_c_utf8 ~ '[[:alnum:]]' and left(p_name, 1) !~ '[\u0E01-\u0EFF\u1000-\u109F\u1780-\u17FF\u3041-\u30FF\u3400-\u9FFF\uAC00-\uD7A3]' then '(?<![[:alnum:]])' end,
    '(?:', regexp_replace(regexp_replace(p_name, '([][\\.*+?(){}^$|-])', '\\\1', 'g'), '[[:space:]]+', '[[:space:]]+', 'g'), ')',
    case when right(p_name, 1) collate pg_catalog.pg_c_utf8 ~ '[[:alnum:]]' and right(p_name, 1) !~ '[\u0E01-\u0EFF\u1000-\u109F\u1780-\u17FF\u3041-\u30FF\u3400-\u9FFF\uAC00-\uD7A3]' then '(?:[''\u2019]s)?(?![[:alnum:]])' end);
comment on function graphium_private._whole_word(text) is 'A regular expression for the name as a whole word, with or without ''s.';
revoke all on function graphium_private._whole_word(text) from public;

create or replace function graphium_private._find_time(p_lower text, p_now timestamptz, out since timestamptz, out until timestamptz)
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $find_time$
declare
  c_side constant text := '(?:\m(since|after|before|until|till)\s+(?:the\s+)?)?';
  c_month constant text := '(jan|january|feb|february|mar|march|apr|april|may|jun|june|jul|july|aug|august|sep|sept|september|oct|october|nov|november|dec|december)';
  c_year constant text := '((?:19|20)[0-9]{2})';
  c_day constant text := '([0-9]{1,2})(?:st|nd|rd|th)?';
  c_numbers constant text[] := '{one,two,three,four,five,six,seven,eight,nine,ten}';
  v_match text[];
  v_year int;
  v_month int;
  v_day int;
  v_unit text;
begin
  -- 1. a day, a month or a year by its name, the most exact first
  if p_lower ~ (c_side || '\m' || c_year || '-[0-9]{1,2}-[0-9]{1,2}\M') then
    v_match := regexp_match(p_lower, c_side || '\m' || c_year || '-([0-9]{1,2})-([0-9]{1,2})\M');
    v_year := v_match[2]; v_month := v_match[3]; v_day := v_match[4];
  elsif p_lower ~ ('\m' || c_day || '\s+(?:of\s+)?' || c_month || '\M') then
    v_match := regexp_match(p_lower, c_side || '\m' || c_day || '\s+(?:of\s+)?' || c_month || '\M(?:\.?,?\s+' || c_year || '\M)?');
    v_day := v_match[2]; v_month := array_position('{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}'::text[], left(v_match[3], 3)); v_year := v_match[4];
  elsif p_lower ~ ('\m' || c_month || '\M\.?\s+' || c_day || '\M') then
    v_match := regexp_match(p_lower, c_side || '\m' || c_month || '\M\.?\s+' || c_day || '\M(?:,?\s+' || c_year || '\M)?');
    v_month := array_position('{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}'::text[], left(v_match[2], 3)); v_day := v_match[3]; v_year := v_match[4];
  elsif p_lower ~ ('\m' || c_month || '\M\.?,?\s+(?:of\s+)?' || c_year || '\M') then
    v_match := regexp_match(p_lower, c_side || '\m' || c_month || '\M\.?,?\s+(?:of\s+)?' || c_year || '\M');
    v_month := array_position('{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}'::text[], left(v_match[2], 3)); v_year := v_match[3];
  elsif p_lower ~ ('\m' || c_year || '-[0-9]{2}\M') then
    v_match := regexp_match(p_lower, c_side || '\m' || c_year || '-([0-9]{2})\M');
    v_year := v_match[2]; v_month := v_match[3];
  -- 2. relative to now
  elsif p_lower ~ '\m(today|yesterday)\M' then
    v_unit := 'day';
    since := date_trunc('day', p_now) - case when p_lower ~ '\myesterday\M' then interval '1 day' else interval '0' end;
  elsif p_lower ~ '\m(this|last|past|previous)\s+(week|month|year)\M' then
    v_match := regexp_match(p_lower, c_side || '\m(this|last|past|previous)\s+(week|month|year)\M');
    v_unit := v_match[3];
    since := date_trunc(v_unit, p_now) - case v_match[2] when 'this' then interval '0' else ('1 ' || v_unit)::interval end;
  elsif p_lower ~ '\m(last|past|previous)\s+([a-z]+|[0-9]{1,3})\s+(day|week|month|year)s\M' then
    v_match := regexp_match(p_lower, '\m(?:last|past|previous)\s+([a-z]+|[0-9]{1,3})\s+(day|week|month|year)s\M');
    since := p_now - (coalesce(array_position(c_numbers, v_match[1])::text, substring(v_match[1] from '^[0-9]+$')) || ' ' || v_match[2])::interval;
    until := case when since is not null then p_now end;
    return;
  elsif p_lower ~ '\m(an?|[a-z]+|[0-9]{1,3})\s+(day|week|month|year)s?\s+ago\M' then
    v_match := regexp_match(p_lower, c_side || '\m([a-z]+|[0-9]{1,3})\s+(day|week|month|year)s?\s+ago\M');
    v_unit := v_match[3];
    since := date_trunc(v_unit, p_now - (coalesce(array_position(c_numbers, v_match[2])::text, substring(v_match[2] from '^[0-9]+$'), case when v_match[2] in ('a', 'an') then '1' end) || ' ' || v_unit)::interval);
  -- 3. a month or a year alone; "may" and "march" are also other words
  elsif p_lower ~ ('\m(in|during|since|after|before|until|till|last|this|of)\s+' || c_month || '\M') then
    v_match := regexp_match(p_lower, '\m(in|during|since|after|before|until|till|last|this|of)\s+' || c_month || '\M');
    v_month := array_position('{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}'::text[], left(v_match[2], 3));
  elsif p_lower ~ ('\m(in|during|since|after|before|until|till|of|year)\s+' || c_year || '\M(?![-.,]?[0-9])') then
    v_match := regexp_match(p_lower, '\m(in|during|since|after|before|until|till|of|year)\s+' || c_year || '\M(?![-.,]?[0-9])');
    v_year := v_match[2];
  end if;

  if v_month is not null or v_year is not null then
    v_unit := case when v_day is not null then 'day' when v_month is not null then 'month' else 'year' end;
    if coalesce(v_month, 1) not between 1 and 12 then
      return;
    end if;
    -- without a year: the latest one in which that day exists and has begun
    for v_back in 0..8 loop
      since := make_timestamptz(coalesce(v_year, extract(year from p_now)::int - v_back), coalesce(v_month, 1), 1, 0, 0, 0);
      if coalesce(v_day, 1) between 1 and extract(day from since + interval '1 month' - interval '1 day') then
        since := since + make_interval(days => coalesce(v_day, 1) - 1);
        exit when v_year is not null or since <= p_now;
      end if;
      since := null;
      exit when v_year is not null;
    end loop;
  end if;
  until := since + ('1 ' || v_unit)::interval;
  if v_match[1] in ('since', 'after') then
    since := case v_match[1] when 'since' then since else until end;
    until := null;
  elsif v_match[1] in ('before', 'until', 'till') then
    until := case v_match[1] when 'before' then since else until end;
    since := null;
    v_unit := substring(p_lower from '\m(day|week|month|year)\s+before\M');
    if v_match[1] = 'before' and v_unit is not null then
      since := until - ('1 ' || v_unit)::interval;
    end if;
  end if;
end
$find_time$;
comment on function graphium_private._find_time(text, timestamptz) is 'The time that a lower-case English text names, as [since, until); NULL where open.';
revoke all on function graphium_private._find_time(text, timestamptz) from public;
