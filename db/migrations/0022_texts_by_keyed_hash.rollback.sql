-- What is hashed cannot be read back: words are posted anew from the statements, by functions that are about to go.
set local role graphium_owner;
set local lock_timeout = '10s';

create or replace function graphium_private._indexed_text(p_text text) returns text
  language plpgsql immutable strict parallel safe security invoker cost 10000
as $indexed$
begin
  return p_text;
end
$indexed$;
comment on function graphium_private._indexed_text(text) is 'Its argument. What indexes of names and sources are on: only who may execute it can use them.';
revoke all on function graphium_private._indexed_text(text) from public;
grant execute on function graphium_private._indexed_text(text) to graphium_keeper;

drop index if exists graphium.dh_families_named, graphium.dh_genera_named, graphium.dh_specimens_named, graphium.kg_statements_in_source, graphium.kg_statement_variants_in_source;
create unique index dh_families_named on graphium.dh_families (tenant_id, graphium_private._indexed_text(name));
create unique index dh_genera_named on graphium.dh_genera (tenant_id, family_id, graphium_private._indexed_text(name));
create unique index dh_specimens_named on graphium.dh_specimens (tenant_id, genus_id, graphium_private._indexed_text(name));
create index kg_statements_in_source on graphium.kg_statements (tenant_id, graphium_private._indexed_text(source), position)
 where graphium_private._indexed_text(source) is not null;
create index kg_statement_variants_in_source on graphium.kg_statement_variants (tenant_id, graphium_private._indexed_text(source), position)
 where graphium_private._indexed_text(source) is not null;

drop function if exists graphium_private._check_postings(uuid);
alter table graphium_private.postings no force row level security;
alter table graphium.kg_statements no force row level security;
truncate graphium_private.postings;
alter table graphium_private.postings
  alter column audience_key type text collate "C" using '', alter column word_key type text collate "C" using '';
alter table graphium_private.postings rename column audience_key to scope;
alter table graphium_private.postings rename column word_key to word;
comment on column graphium_private.postings.scope is 'A scope of the statement''s audience; '''' for an open one.';
comment on column graphium_private.postings.word is null;
insert into graphium_private.postings (tenant_id, scope, statement_id, word, occurrences, length, required_scopes)
select s.tenant_id, c.scope, s.id, w.word, w.occurrences, w.length, s.required_scopes
  from graphium.kg_statements s,
       lateral (select u.word, count(*)::int as occurrences, cardinality(graphium_private.words_v1(s.content)) as length from unnest(graphium_private.words_v1(s.content)) as u(word) group by u.word
                union all
                select graphium_private.sentence_key_v1(s.family_id, s.content_hash, s.required_scopes), 1, 0) as w,
       lateral (select distinct u.scope from unnest(case when cardinality(s.required_scopes) = 0 or 'public' = any (s.required_scopes) then '{""}'::text[] else s.required_scopes end) as u(scope)) as c;
alter table graphium_private.postings force row level security;
alter table graphium.kg_statements force row level security;
truncate graphium_private.projections, graphium_private.directions;

comment on table graphium_private.postings is
  'Inverted index: one row per statement, scope of its audience and distinct word of it, of which one stands for the sentence as a whole (sentence_key_v1). Derived from kg_statements by triggers; no foreign key, because its only index does not start with the statement.';
drop table if exists graphium_private.audiences;
drop table if exists graphium_private.index_key;
drop function if exists graphium_private._masked(text);
