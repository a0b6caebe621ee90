-- Nothing that people wrote stands in the order of an index any more. Who writes a row of his own next to hidden ones sees whether a
-- page had to be split for it (by the WAL or the pages that EXPLAIN counts, or the size of the index), under SERIALIZABLE what it
-- collides with, and so compares his text with theirs: half by half, letter by letter. Names and sources are now in their indexes by
-- _masked(column), and postings by keys of audience and word: hashes with a key that only the keeper and the owner read (decision 0100).
-- By audience, no longer by scope: who may write for {legal,hr} because he holds hr wrote into the range of {legal}.
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

create table if not exists graphium_private.audiences (
  tenant_id uuid not null references graphium.tenants on delete cascade,
  key bigint not null,
  scope_keys bigint[] not null
);
-- Not unique: the second of two that use an audience for the first time would have to wait for the first.
create index if not exists audiences_of_tenant on graphium_private.audiences (tenant_id, key);
comment on table graphium_private.audiences is
  'Audiences that statements of a tenant have or had, by keyed hashes: what a search by words looks under. Made by triggers; two that are first at once make a row each.';
comment on column graphium_private.audiences.key is 'Of the audience as a whole.';
comment on column graphium_private.audiences.scope_keys is 'Of its scopes; none when it is open.';
alter table graphium_private.audiences enable row level security;
alter table graphium_private.audiences force row level security;
revoke all on graphium_private.audiences from public;
grant select, insert, update, delete on graphium_private.audiences to graphium_keeper;

-- Their bodies depend on the columns; functions/200_postings.sql makes the one anew.
-- squawk-ignore ban-drop-function
drop function if exists graphium_private._check_postings(uuid), graphium_private._posted_scopes(uuid);
-- Said to be immutable, so that the millions of rows below ask for the secret once.
create or replace function graphium_private._secret() returns bytea
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $secret$
begin
  return (select k.key from graphium_private.index_key k);
end
$secret$;
create or replace function graphium_private._key_to_be(p_text text) returns bigint
  language sql immutable parallel safe security invoker
  return ('x' || encode(substring(sha256(graphium_private._secret() || convert_to(p_text, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;
alter table graphium_private.postings no force row level security;
alter table graphium_private.audiences no force row level security;
delete from graphium_private.postings p
 using graphium_private.postings q
 where q.tenant_id = p.tenant_id and q.word = p.word and q.statement_id = p.statement_id and q.scope < p.scope;
insert into graphium_private.audiences (tenant_id, key, scope_keys)
select a.tenant_id, graphium_private._key_to_be(a.audience::text), array(select graphium_private._key_to_be(s.scope) from unnest(a.audience) as s(scope))
  from (select distinct p.tenant_id, case when 'public' = any (p.required_scopes) then '{}' else p.required_scopes end as audience from graphium_private.postings p) as a;
-- squawk-ignore changing-column-type
alter table graphium_private.postings alter column scope type bigint using graphium_private._key_to_be((case when 'public' = any (required_scopes) then '{}' else required_scopes end)::text), alter column word type bigint using graphium_private._key_to_be(word);
alter table graphium_private.postings force row level security;
alter table graphium_private.audiences force row level security;
-- squawk-ignore ban-drop-function
drop function graphium_private._key_to_be(text), graphium_private._secret();
-- squawk-ignore renaming-column
alter table graphium_private.postings rename column scope to audience_key;
-- squawk-ignore renaming-column
alter table graphium_private.postings rename column word to word_key;
comment on column graphium_private.postings.audience_key is 'Keyed hash of the statement''s audience.';
comment on column graphium_private.postings.word_key is 'Keyed hash of the word.';
comment on table graphium_private.postings is
  'Inverted index: one row per statement and distinct word of it, of which one stands for the sentence as a whole (sentence_key_v1). Derived from kg_statements by triggers; no foreign key, because its only index does not start with the statement.';

-- Cells of projections are hashed too (functions/064_projections.sql). They are derived: the next ingest makes them anew.
truncate graphium_private.projections, graphium_private.directions;
