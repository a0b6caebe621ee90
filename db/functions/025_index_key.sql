-- What stands for a text in an index: hashes with a secret (migrations/0022), so that the order of an index says nothing about
-- the texts of rows that are hidden. Equality is all that look-ups need. SHA-256 is one of which nobody finds out the secret, however many
-- texts he has the hashes of.
set local role graphium_owner;

-- By the table's index: where sequential scans are switched off one would seem so dear that it is compiled.
create or replace function graphium_private._index_key() returns bytea
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $index_key$
begin
  return (select k.key from graphium_private.index_key k where k.is_the_only);
end
$index_key$;
comment on function graphium_private._index_key() is 'The secret that keys of postings and projections are hashed with.';
revoke all on function graphium_private._index_key() from public;
grant execute on function graphium_private._index_key() to graphium_keeper;

-- (Inlined: a body that is parsed when it is made, no SET, and stable, as convert_to() is.)
create or replace function graphium_private._key_of(p_text text, p_key bytea) returns bigint
  language sql stable parallel safe security invoker
  return ('x' || encode(substring(sha256(p_key || convert_to(p_text, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;
comment on function graphium_private._key_of(text, bytea) is 'What a scope, a word or an audience stands by.';
revoke all on function graphium_private._key_of(text, bytea) from public;
grant execute on function graphium_private._key_of(text, bytea) to graphium_keeper;

create or replace function graphium_private._keys_of(p_texts text[]) returns bigint[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $keys_of$
declare
  v_key constant bytea := graphium_private._index_key();
begin
  return array(select graphium_private._key_of(t.text, v_key) from unnest(p_texts) with ordinality as t(text, n) order by t.n);
end
$keys_of$;
comment on function graphium_private._keys_of(text[]) is 'The keys under which scopes and words are posted, in the order given.';
revoke all on function graphium_private._keys_of(text[]) from public;
grant execute on function graphium_private._keys_of(text[]) to graphium_keeper;
