-- What stands for a text in an index: hashes with a secret (migrations/0022), so that the order of an index says nothing about
-- the texts of rows that are hidden. Equality is all that look-ups need.
set local role graphium_owner;

-- By its index: where sequential scans are switched off one would seem so dear that it is compiled.
create or replace function graphium_private._index_seed() returns bigint
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $index_seed$
begin
  return (select k.seed from graphium_private.index_key k where k.is_the_only);
end
$index_seed$;
comment on function graphium_private._index_seed() is 'The secret that keys of postings and projections are hashed with.';
revoke all on function graphium_private._index_seed() from public;
grant execute on function graphium_private._index_seed() to graphium_keeper;

create or replace function graphium_private._keys_of(p_texts text[]) returns bigint[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $keys_of$
declare
  v_seed constant bigint := graphium_private._index_seed();
begin
  return array(select hashtextextended(t.text, v_seed) from unnest(p_texts) with ordinality as t(text, n) order by t.n);
end
$keys_of$;
comment on function graphium_private._keys_of(text[]) is 'The keys under which scopes and words are posted, in the order given.';
revoke all on function graphium_private._keys_of(text[]) from public;
grant execute on function graphium_private._keys_of(text[]) to graphium_keeper;
