-- Nothing that people wrote stands in the order of an index any more. Who writes a row of his own next to hidden ones sees whether a
-- page had to be split for it (by the WAL or the pages that EXPLAIN counts, or the size of the index), under SERIALIZABLE what it
-- collides with, and so compares his text with theirs: half by half, letter by letter. Names and sources are now in their indexes by
-- _masked(column), and postings by keys of scope and word: hashes with a key that only the keeper and the owner read (decision 0100).
set local role graphium_owner;
set local lock_timeout = '10s';

create table if not exists graphium_private.index_key (
  is_the_only boolean primary key default true check (is_the_only),
  key bytea not null
);
comment on table graphium_private.index_key is
  'The secret of the hashes that names, sources, words and scopes are indexed by; made once. A dump carries it: indexes and postings go by it.';
revoke all on graphium_private.index_key from public;
grant select on graphium_private.index_key to graphium_keeper;
insert into graphium_private.index_key (key) values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())))
on conflict do nothing;

-- Immutable, because the key never changes. Of a cost that makes no plan compute it row by row where the index has it. By the table's index, or
-- where sequential scans are switched off one would seem so dear that it is compiled. The owner's, because pg_restore makes indexes
-- before it grants anything: then nobody else may read the key.
create or replace function graphium_private._masked(p_text text) returns bytea
  language plpgsql immutable strict parallel safe security definer cost 10000 set search_path = pg_catalog, pg_temp
as $masked$
declare
  v_key bytea;
begin
  select k.key into strict v_key from graphium_private.index_key k where k.is_the_only;
  return substring(sha256(v_key || convert_to(p_text, 'UTF8')) for 16);
end
$masked$;
comment on function graphium_private._masked(text) is 'A keyed hash. What indexes of names and sources are on: equal for equal texts, and their order says nothing.';
revoke all on function graphium_private._masked(text) from public;
grant execute on function graphium_private._masked(text) to graphium_keeper;

-- squawk-ignore require-concurrent-index-deletion
drop index if exists graphium.dh_families_named, graphium.dh_genera_named, graphium.dh_specimens_named, graphium.kg_statements_in_source, graphium.kg_statement_variants_in_source;
-- squawk-ignore ban-drop-function
drop function if exists graphium_private._indexed_text(text);
-- squawk-ignore require-concurrent-index-creation
create unique index dh_families_named on graphium.dh_families (tenant_id, graphium_private._masked(name));
-- squawk-ignore require-concurrent-index-creation
create unique index dh_genera_named on graphium.dh_genera (tenant_id, family_id, graphium_private._masked(name));
-- squawk-ignore require-concurrent-index-creation
create unique index dh_specimens_named on graphium.dh_specimens (tenant_id, genus_id, graphium_private._masked(name));
-- squawk-ignore require-concurrent-index-creation
create index kg_statements_in_source on graphium.kg_statements (tenant_id, graphium_private._masked(source), position)
 where graphium_private._masked(source) is not null;
-- squawk-ignore require-concurrent-index-creation
create index kg_statement_variants_in_source on graphium.kg_statement_variants (tenant_id, graphium_private._masked(source), position)
 where graphium_private._masked(source) is not null;
-- An index that computes is sampled for the planner, in vain.
alter index graphium.dh_families_named alter column 2 set statistics 0;
alter index graphium.dh_genera_named alter column 3 set statistics 0;
alter index graphium.dh_specimens_named alter column 3 set statistics 0;
alter index graphium.kg_statements_in_source alter column 2 set statistics 0;
alter index graphium.kg_statement_variants_in_source alter column 2 set statistics 0;

-- Their bodies depend on the columns; functions/200_postings.sql makes them anew.
-- squawk-ignore ban-drop-function
drop function if exists graphium_private._check_postings(uuid), graphium_private._posted_scopes(uuid);
create or replace function graphium_private._key_to_be(p_text text) returns bigint
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
  return ('x' || encode(substring(sha256((select k.key from graphium_private.index_key k) || convert_to(p_text, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;
-- squawk-ignore changing-column-type
alter table graphium_private.postings alter column scope type bigint using graphium_private._key_to_be(scope), alter column word type bigint using graphium_private._key_to_be(word);
-- squawk-ignore ban-drop-function
drop function graphium_private._key_to_be(text);
-- squawk-ignore renaming-column
alter table graphium_private.postings rename column scope to scope_key;
-- squawk-ignore renaming-column
alter table graphium_private.postings rename column word to word_key;
comment on column graphium_private.postings.scope_key is 'Keyed hash of a scope of the statement''s audience; of '''' for an open one.';
comment on column graphium_private.postings.word_key is 'Keyed hash of the word.';

-- Cells of projections are hashed too (functions/064_projections.sql). They are derived: the next ingest makes them anew.
truncate graphium_private.projections, graphium_private.directions;
