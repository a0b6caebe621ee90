-- Audiences: what required_scopes mean. Empty, or with 'public' among them: everyone in the tenant ("open").
set local role graphium_owner;

-- The rules below have bodies that are parsed when they are made, so no search_path can reach into them, and no
-- SET, so that they are inlined into policies and queries. In is_visible the caller's scopes stand once: a sub-select in
-- an argument that is used twice would not be inlined; neither would a STRICT function be. NULL scopes are an admin's.
create or replace function graphium_private.is_visible(required_scopes text[], caller_scopes text[]) returns boolean
  language sql immutable parallel safe security invoker
  return cardinality(required_scopes) = 0
      or 'public' = any (required_scopes)
      or required_scopes && coalesce(caller_scopes, required_scopes);
comment on function graphium_private.is_visible(text[], text[]) is
  'The rule: a row is visible when its audience is open or the caller holds at least one of its scopes. NULL caller_scopes: all.';
revoke all on function graphium_private.is_visible(text[], text[]) from public;
grant execute on function graphium_private.is_visible(text[], text[]) to graphium_reader, graphium_owner, graphium_keeper, graphium_cypher;

create or replace function graphium_private._audience(required_scopes text[]) returns text[]
  language sql immutable parallel safe security invoker
  return case when 'public' = any (required_scopes) then '{}'::text[] else required_scopes end;
comment on function graphium_private._audience(text[]) is
  'Canonical form of stored (sorted, distinct) scopes: audiences are the same exactly when these are equal.';
revoke all on function graphium_private._audience(text[]) from public;
grant execute on function graphium_private._audience(text[]) to graphium_keeper;

drop function if exists graphium_private._posting_scopes(text[]); -- words were posted by scope

create or replace function graphium_private._audience_includes(wider text[], narrower text[]) returns boolean
  language sql immutable parallel safe security invoker
  return cardinality(graphium_private._audience(wider)) = 0
      or (cardinality(graphium_private._audience(narrower)) > 0 and narrower <@ wider);
comment on function graphium_private._audience_includes(text[], text[]) is
  'Whether everybody who may see a row with the audience `narrower` may see one with `wider`.';
revoke all on function graphium_private._audience_includes(text[], text[]) from public;
grant execute on function graphium_private._audience_includes(text[], text[]) to graphium_keeper;

create or replace function graphium_private._clean_scopes(scopes text[], argument text) returns text[]
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $clean_scopes$
declare
  v_scope text;
  v_clean text[] := '{}';
begin
  -- an audience is copied to whatever hangs on its row, words included
  if array_ndims(scopes) > 1 then
    perform graphium_private._raise_error('MG008', format('%s is a list of lists', argument), 'Give one list of scopes: ''{hr,sales}''.');
  elsif cardinality(scopes) > 64 then
    perform graphium_private._raise_error('MG008', format('%s: %s scopes, at most 64 are allowed', argument, cardinality(scopes)),
      'Give one scope to those who share these, and use that.');
  end if;
  foreach v_scope in array coalesce(scopes, '{}') loop
    v_clean := v_clean || graphium_private._clean_name(v_scope, argument || ': a scope', 200);
  end loop;
  return array(select distinct s collate "C" from unnest(v_clean) as s order by 1);
end
$clean_scopes$;
comment on function graphium_private._clean_scopes(text[], text) is
  'Scopes as they are stored: NFC, trimmed, distinct, sorted by code point; blank or NULL ones and lists of lists are refused (MG008).';
revoke all on function graphium_private._clean_scopes(text[], text) from public;
grant execute on function graphium_private._clean_scopes(text[], text) to graphium_keeper;

-- How names are compared and stored: without white space around them, of any kind that Unicode has, in NFC.
create or replace function graphium_private._trim(name text) returns text
  language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
  return normalize(regexp_replace(name,
    '^[\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]+|[\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]+$', '', 'g'), NFC);
comment on function graphium_private._trim(text) is 'A name without white space around it, in NFC.';
revoke all on function graphium_private._trim(text) from public;
grant execute on function graphium_private._trim(text) to graphium_keeper;

create or replace function graphium_private._clean_name(name text, argument text, longest int default 200) returns text
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $clean_name$
declare
  v_name text := graphium_private._trim(name);
begin
  if graphium_private.fold_v1(v_name) = '' is not false then -- of what nobody sees there is no name either
    perform graphium_private._raise_error('MG008', format('%s must not be NULL or blank', argument),
      format('Give a text of 1 to %s characters.', longest));
  elsif char_length(v_name) > longest then
    perform graphium_private._raise_error('MG008', format('%s is %s characters long, at most %s are allowed', argument, char_length(v_name), longest),
      format('Give a text of 1 to %s characters.', longest));
  end if;
  return v_name;
end
$clean_name$;
comment on function graphium_private._clean_name(text, text, int) is
  'A name as it is stored: trimmed of Unicode white space, NFC, 1 to `longest` characters; else MG008 names the argument.';
revoke all on function graphium_private._clean_name(text, text, int) from public;
grant execute on function graphium_private._clean_name(text, text, int) to graphium_keeper;

-- Nobody writes a row that he could not read (the policies' WITH CHECK says so too, less helpfully).
create or replace function graphium_private._require_held(scopes text[], argument text) returns void
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $require_held$
begin
  if not graphium_private.is_visible(scopes, graphium_private.caller_scopes()) then
    perform graphium_private._raise_error('MG006', format('%s: the caller holds none of the scopes {%s}, so could not read what it writes', argument, array_to_string(scopes, ', ')),
      'Include a scope that the caller holds, or leave the audience open.');
  end if;
end
$require_held$;
comment on function graphium_private._require_held(text[], text) is 'MG006 unless the caller could read a row with this audience.';
revoke all on function graphium_private._require_held(text[], text) from public;
grant execute on function graphium_private._require_held(text[], text) to graphium_keeper;
