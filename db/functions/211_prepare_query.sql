-- What a question says besides its topic: who it names, and when.
--
-- specimens: visible specimens whose names stand in the text as whole words, in any case, longest first ("Ada Lovelace"
--   before "Ada"), in the order of the text; NULL when there are none, so that it can be given to search_context as it is.
-- dense_text: the text without those names (and their 's), for embedding: in a vector a name pulls up greetings. The
--   whole text when nothing else is in it.
-- since, until: the time that the first 1,000 characters name, NULL when they name none (docs/search.md lists what is read). English; in the session's
--   time zone; relative to `now`, which a caller may set. More than one time is one from the earliest to the latest. What can be read but for a part
--   of it ("Quarter 2 of this year") is not read at all.
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
  -- a capital sets a name apart: M month, W day of the week, Y year, L "last year" (p_lower has none)
  c_to constant text := '(?: ?[-\u2013] ?| (?:and|or|to|until|till|through) (?:the )?)'; -- from one day of a month to another
  c_days constant text := '[0-9]{1,2}(?:st|nd|rd|th)?(?:' || c_to || '[0-9]{1,2}(?:st|nd|rd|th)?)?';
  c_time constant text := '\m(?:' || concat_ws('|',
    '(?:19|20)[0-9]{2}-(?:[0-9]{1,2}-[0-9]{1,2}|[0-9]{2})',
    '(?:W[a-z]+,? (?:the )?)?(?:' || c_days || ' (?:of )?)?M[a-z]+(?:\.? ' || c_days || '(?! (?:of )?M))?(?:\.?,? (?:of )?[YL][0-9]{4})?',
    '[YL][0-9]{4}|yesterday|today|last night|this morning',
    '(?:W[a-z]+|(?:this|last|past|previous) (?:week|month)|(?:last|past|previous) weekend)(?: of)?',
    '(?:last|past|previous) [a-z0-9]+ (?:day|week|month|year)s',
    '[a-z0-9.,-]+ (?:day|week|month|year)s? ago(?: today)?') || ')\M';
  c_side constant text := 'since|after|before|until|till';
  c_week constant text := '(?:(?:first|second|third|fourth) )?week of';
  c_unread constant text := 'and|or|to|through|twenty|thirty|(?:quarter|half|q[1-4])(?: [0-9])?(?: of| in)?|(?:weeks?|weekend) (?:of|in)|(?:spring|summer|autumn|fall|winter) of';
  c_sides constant text[] := string_to_array(c_side, '|');
  c_lead constant text := c_side || '|' || c_week || '|in|during|of|last|this|year|on|from|between|' || c_unread;
  c_next constant text := '(?:,|,? (?:and|or|to|through|' || c_side || ')| ?[-\u2013])(?: ?(?:in|on|of|' || c_side || ')\M)? ?(?:the )?';
  v_text text := left(p_lower, 1000);
  v_run text;
  v_lead text;
  v_side text;
  v_number text;
  v_is_ordered boolean;
  v_is_shared boolean;
  v_sides text[] = '{}';
  v_times text[] = '{}';
  v_named text[];
  v_sinces timestamptz[] = '{}';
  v_untils timestamptz[] = '{}';
  v_periods interval[] = '{}';
  v_days int[];
  v_year int;
  v_month int;
  v_item text;
  v_unit text;
  v_start timestamptz;
  v_end timestamptz;
  v_period interval;
begin
  if v_text !~ '\m(?:[a-z]*day|night|morning|weekend|ago|(?:day|week|month|year)s?|(?:19|20)[0-9]{2}|jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec|january|february|march|april|august|(?:sept|nov|dec)ember|october)\M' then
    return;
  end if;
  v_text := replace(replace(v_text, 'a couple of ', 'two '), 'couple of ', 'two ');
  v_text := regexp_replace(v_text, '\m(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?|oct(?:ober)?|(?:sept|nov|dec)ember|nov|dec)\M', 'M\&', 'g');
  v_text := regexp_replace(v_text, '\m(?:mon|tues|wednes|thurs|fri|satur|sun)day\M', 'W\&', 'g');
  v_text := regexp_replace(v_text, '\m(?:19|20)[0-9]{2}\M(?!-[0-9]{1,2}\M|[.,][0-9])', 'Y\&', 'g');
  v_text := replace(replace(replace(v_text, 'past year', 'last year'), 'previous year', 'last year'), 'last year', 'L' || extract(year from p_now) - 1);
  v_text := replace(v_text, 'this year', 'L' || extract(year from p_now));
  if v_text like '% Mmay %' then -- "in March, and may I ask"
    v_text := regexp_replace(v_text, '(and|or) Mmay (i|we|you|he|she|it|they|not|be|have)\M', '\1 may \2', 'g');
  end if;

  -- 1. the times, in runs ("in March, April and May 2026")
  for v_run in select m[1] from regexp_matches(v_text, '(?:\m(?:' || c_lead || ') (?:the )?)?' || c_time || '(?:' || c_next || c_time || ')*', 'g') as m loop
    v_lead := substring(v_run from '^(' || c_lead || ')\M');
    v_run := substr(v_run, coalesce(length(v_lead) + 2, 1));
    -- names alone are also other words ("may", "march", 2000): only after a word that tells
    if v_run ~ ('^(?:the )?(?:Y[0-9]+(?:' || c_next || 'Y[0-9]+)*|[MW][a-z]+(?:' || c_next || '[MW][a-z]+)*)$') then
      continue when v_lead is null
        or not (v_lead = any (c_sides) or v_lead like '% week of' or v_lead = any (case when v_run like '%W%' then '{on,last}' else '{in,during,of,last,this,year}' end::text[])
                or v_lead in ('from', 'between') and v_run ~ '[MWY].*[MWY]');
    end if;
    if not v_lead = any (c_sides || '{in,during,of,last,this,year,on,from,between}'::text[]) and not (v_lead = 'week of' and v_run ~ '[0-9]' or v_lead like '% week of') then
      return;
    end if;
    for v_item in select m[1] from regexp_matches(concat_ws(' ', v_lead, v_run), '(?:\m(?:' || c_side || '|to|through|' || c_week || ') (?:the )?)?' || c_time, 'g') as m loop
      v_side := substring(v_item from '^(' || c_side || '|to|through|' || c_week || ') ');
      v_sides := v_sides || coalesce(v_side, '');
      v_times := v_times || regexp_replace(substr(v_item, coalesce(length(v_side) + 2, 1)), '^the ', '');
    end loop;
    v_is_ordered := v_lead in ('from', 'between') or v_sides[2] in ('to', 'through', 'until', 'till') or v_run ~ '[-\u2013] ?[MWYL]';
  end loop;

  -- 2. each of them as [since, until); a year that is named once holds for all
  v_named := array(select distinct substring(t from '[YL](....)') from unnest(v_times) as t where t like any ('{%Y%,%L%}'));
  v_is_shared := cardinality(v_named) = 1 and exists (select from unnest(v_times) as t where t like '%M%' and not t like any ('{%Y%,%L%}'));
  for v_i in 1..cardinality(v_times) loop
    v_item := v_times[v_i];
    if v_item like '% of' then -- "the last Monday of May"
      return;
    end if;
    v_period := null;
    v_unit := null;
    v_year := substring(v_item from '[YL](....)');
    v_month := array_position('{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}'::text[], substr(v_item, nullif(strpos(v_item, 'M'), 0) + 1, 3));
    v_days := '{}';
    if v_month is not null then
      v_days := array(select d[1]::int from regexp_matches(v_item, '\m([0-9]{1,2})(?:st|nd|rd|th)?\M', 'g') as d order by 1);
    elsif v_item like '____-%' and v_item not like '% %' then
      v_year := split_part(v_item, '-', 1);
      v_month := split_part(v_item, '-', 2);
      v_days := (string_to_array(v_item, '-'))[3:3];
    end if;
    if v_month is not null or v_year is not null then
      if v_month is null and v_is_shared then -- "last year in March"
        v_sinces := v_sinces || null::timestamptz;
        v_untils := v_untils || null::timestamptz;
        v_periods := v_periods || null::interval;
        continue;
      end if;
      v_period := case when v_year is null then interval '1 year' end;
      v_year := coalesce(v_year, case when v_is_shared then v_named[1]::int end);
      v_unit := case when v_days <> '{}' then 'day' when v_month is not null then 'month' else 'year' end;
      if coalesce(v_month, 1) not between 1 and 12 then
        return;
      end if;
      -- without a year: the latest one in which that day exists and has begun
      for v_back in 0..8 loop
        v_start := make_timestamptz(coalesce(v_year, extract(year from p_now)::int - v_back), coalesce(v_month, 1), 1, 0, 0, 0);
        if v_days = '{}' or v_days[1] > 0 and v_days[cardinality(v_days)] <= extract(day from v_start + interval '1 month' - interval '1 day') then
          v_start := v_start + make_interval(days => coalesce(v_days[1], 1) - 1);
          exit when v_year is not null or v_start <= p_now;
        end if;
        v_start := null;
        exit when v_year is not null;
      end loop;
      v_end := v_start + ('1 ' || v_unit)::interval + make_interval(days => coalesce(v_days[cardinality(v_days)] - v_days[1], 0));
    elsif left(v_item, 1) = 'W' then
      v_period := interval '7 days';
      v_start := date_trunc('day', p_now)
        - make_interval(days => 1 + (extract(isodow from p_now)::int - array_position('{mon,tue,wed,thu,fri,sat,sun}'::text[], substr(v_item, 2, 3)) + 6) % 7);
      v_end := v_start + interval '1 day';
    elsif v_item like '%s' or v_item like '% ago%' then -- "last 3 days", "3 days ago"
      v_number := split_part(v_item, ' ', case when v_item like '%s' then 2 else 1 end);
      v_unit := rtrim(split_part(v_item, ' ', case when v_item like '%s' then 3 else 2 end), 's');
      v_start := p_now - (coalesce(array_position('{one,two,three,four,five,six,seven,eight,nine,ten}'::text[], v_number)::text,
        case when v_number in ('a', 'an') then '1' else substring(v_number from '^[0-9]{1,3}$') end) || ' ' || v_unit)::interval;
      v_end := p_now;
      if v_item not like '%s' then
        v_start := date_trunc(v_unit, v_start);
        v_end := v_start + ('1 ' || v_unit)::interval;
      end if;
    elsif v_item like '%weekend' then
      v_end := date_trunc('week', p_now);
      v_start := v_end - interval '2 days';
    else
      v_unit := case when v_item like any ('{%week,%month}') then split_part(v_item, ' ', 2) else 'day' end;
      v_start := date_trunc(v_unit, p_now) - case when v_item like 'this%' or v_item = 'today' then interval '0' else ('1 ' || v_unit)::interval end;
      v_end := v_start + ('1 ' || v_unit)::interval;
    end if;
    if v_start is null then
      return;
    end if;
    if v_sides[v_i] = 'week of' then
      v_start := date_trunc('week', v_start);
      v_end := v_start + interval '7 days';
    elsif v_sides[v_i] like '% week of' then
      v_start := v_start + make_interval(weeks => array_position('{first,second,third,fourth}'::text[], split_part(v_sides[v_i], ' ', 1)) - 1);
      v_end := v_start + interval '7 days';
      if v_unit is distinct from 'month' then
        return;
      end if;
    end if;
    v_sinces := v_sinces || v_start;
    v_untils := v_untils || v_end;
    v_periods := v_periods || v_period;
  end loop;

  -- 3. from the earliest to the latest of them; in "from November to February" the first is the one before the second
  if v_is_ordered and cardinality(v_sinces) = 2 and v_sinces[1] > v_sinces[2] then
    if v_periods[1] is not null then
      v_sinces[1] := v_sinces[1] - v_periods[1];
      v_untils[1] := v_untils[1] - v_periods[1];
    elsif v_periods[2] is not null then
      v_sinces[2] := v_sinces[2] + v_periods[2];
      v_untils[2] := v_untils[2] + v_periods[2];
    end if;
  end if;
  select min(case t.side when 'after' then t.until else t.since end) filter (where t.side not in ('before', 'until', 'till')),
         max(case t.side when 'before' then t.since else t.until end) filter (where t.side not in ('since', 'after'))
    into since, until from unnest(v_sinces, v_untils, v_sides) as t(since, until, side);
  if v_sides && '{since,after}' and not v_sides && '{before,until,till,to,through}' then
    until := null;
  elsif v_sides[1] in ('before', 'until', 'till') and not v_sides && '{since,after}' then
    since := null;
  end if;
  if v_sides = '{before}' then
    since := until - ('1 ' || substring(v_text from '\m(day|week|month|year) before\M'))::interval;
  end if;
  if since >= until then
    since := null;
    until := null;
  end if;
end
$find_time$;
comment on function graphium_private._find_time(text, timestamptz) is 'The time that a lower-case English text names, as [since, until); NULL where open.';
revoke all on function graphium_private._find_time(text, timestamptz) from public;
