-- Postings are kept by scope: functions/200_postings.sql says why. What is there is posted anew, once for each scope of
-- its audience.
set local role graphium_owner;
set local lock_timeout = '10s';

alter table graphium_private.postings add column if not exists scope text collate "C" not null default '';
-- squawk-ignore ban-drop-default
alter table graphium_private.postings alter column scope drop default;
alter table graphium_private.postings alter column scope set statistics 0; -- as 0010 says
comment on column graphium_private.postings.scope is 'A scope of the statement''s audience; '''' for an open one.';

-- squawk-ignore disallowed-unique-constraint, ban-drop-constraint
alter table graphium_private.postings drop constraint if exists postings_pkey;

-- The table is locked anyhow, and until the commit its owner sees every row.
alter table graphium_private.postings no force row level security;
with restricted as (
  delete from graphium_private.postings p
   where p.scope = '' and cardinality(p.required_scopes) > 0 and 'public' <> all (p.required_scopes)
  returning p.*
)
insert into graphium_private.postings (tenant_id, statement_id, occurrences, length, word, required_scopes, scope)
select r.tenant_id, r.statement_id, r.occurrences, r.length, r.word, r.required_scopes, s.scope
  from restricted r, lateral (select distinct u.scope from unnest(r.required_scopes) as u(scope) where u.scope is not null) as s;
alter table graphium_private.postings force row level security;

-- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
alter table graphium_private.postings add constraint postings_pkey primary key (tenant_id, scope, word, statement_id);

comment on table graphium_private.postings is
  'Inverted index: one row per statement, scope of its audience and distinct word of it, of which one stands for the sentence as a whole (sentence_key_v1). Derived from kg_statements by triggers; no foreign key, because its only index does not start with the statement.';
