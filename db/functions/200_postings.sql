-- Keeps the inverted index of words (graphium_private.postings) equal to the statements, in the same transaction: once
-- per SQL statement, set-based. Keeper-owned, because a cascade also deletes statements that the caller does not see.
-- A statement's content and its tenant's language never change and words_v2() is immutable, so the words of a deleted row say which postings go.
-- A word is posted under the statement's audience, with which the index begins: a search looks under the audiences that its caller
-- is of, and comes upon no posting that is hidden from him. Else PostgreSQL's counters, and EXPLAIN's of pages, would tell him
-- whether hidden statements have the word (docs/decisions/0070). And nobody writes where what is hidden from him stands, as he would if
-- words were posted under each scope. Audiences and words are posted by keyed hashes (025_index_key.sql): from where his own words come
-- to stand nobody learns anything.
-- One word more stands for the sentence as a whole (sentence_key_v1): dedup finds equal text by it.
set local role graphium_keeper;

-- As an array, so that a posting is found by its whole key (word_key = any): joined with a list of words, the planner may
-- look for it by tenant and statement, which reads all of the tenant's postings for each statement.
create or replace function graphium_private._distinct_words(content text, language text) returns text[]
  language sql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
  return array(select distinct u.word from unnest(graphium_private.words_v2(content, language)) as u(word));
comment on function graphium_private._distinct_words(text, text) is 'The words of a text, each once.';
revoke all on function graphium_private._distinct_words(text, text) from public;

-- (Inlined: a body that is parsed when it is made, and no SET.)
create or replace function graphium_private._postings_of(family_id uuid, content text, content_hash bytea, required_scopes text[], language text)
  returns table (audience_key bigint, word_key bigint, word text, occurrences int, length int)
  language sql stable parallel safe security invoker
begin atomic
  select graphium_private._key_of(graphium_private._audience(required_scopes)::text, (select graphium_private._index_key())), graphium_private._key_of(w.word, (select graphium_private._index_key())),
         w.word, w.occurrences, w.length
    from (select graphium_private.words_v2(content, language) as words offset 0) as d,
         lateral (select u.word, count(*)::int as occurrences, cardinality(d.words) as length from unnest(d.words) as u(word) group by u.word
                  union all
                  select graphium_private.sentence_key_v1(family_id, content_hash, required_scopes) as word, 1 as occurrences, 0 as length) as w;
end;
comment on function graphium_private._postings_of(uuid, text, bytea, text[], text) is 'The postings of a statement.';
revoke all on function graphium_private._postings_of(uuid, text, bytea, text[], text) from public;

-- An audience stays when its last statement goes: by then another transaction may be writing for it.
create or replace function graphium_private._note_audiences(p_tenant_ids uuid[], p_audiences text[]) returns void
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $note_audiences$
begin
  insert into graphium_private.audiences (tenant_id, key, scope_keys)
  select a.tenant_id, a.key, graphium_private._keys_of(a.audience::text[])
    from (select d.tenant_id, d.audience, graphium_private._key_of(d.audience, (select graphium_private._index_key())) as key
            from (select distinct u.tenant_id, u.audience from unnest(p_tenant_ids, p_audiences) as u(tenant_id, audience)) as d) as a
   where not exists (select from graphium_private.audiences k where k.tenant_id = a.tenant_id and k.key = a.key);
end
$note_audiences$;
comment on function graphium_private._note_audiences(uuid[], text[]) is 'Enters audiences, by their text, that postings are about to be under.';
revoke all on function graphium_private._note_audiences(uuid[], text[]) from public;

create or replace function graphium_private._on_statement_words_changed() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_statement_words_changed$
begin
  -- in the order of the index: a quarter faster than statement by statement
  if tg_op = 'INSERT' then
    perform graphium_private._note_audiences(array_agg(n.tenant_id), array_agg(graphium_private._audience(n.required_scopes)::text)) from new_rows n;
    insert into graphium_private.postings (tenant_id, audience_key, statement_id, word_key, occurrences, length, required_scopes)
    select n.tenant_id, p.audience_key, n.id, p.word_key, p.occurrences, p.length, n.required_scopes
      from new_rows n
      join graphium.tenants t on t.id = n.tenant_id,
           lateral graphium_private._postings_of(n.family_id, n.content, n.content_hash, n.required_scopes, t.language) as p
     order by n.tenant_id, p.audience_key, p.word_key, n.id;
  elsif tg_op = 'UPDATE' then
    -- The hot update only counts a match: leave at once. (Not joined, here and below: a plan of a first small update, kept, would look
    -- through both tables row by row.)
    if exists (select n.tenant_id, n.id, n.required_scopes from new_rows n except select o.tenant_id, o.id, o.required_scopes from old_rows o) then
      delete from graphium_private.postings p
       using (select o.tenant_id, o.id, graphium_private._key_of(graphium_private._audience(o.required_scopes)::text, (select graphium_private._index_key())) as audience_key,
                     graphium_private._keys_of(graphium_private._distinct_words(o.content, t.language) || graphium_private.sentence_key_v1(o.family_id, o.content_hash, o.required_scopes)) as word_keys
                from (select r.tenant_id, r.id, r.family_id, r.content, r.content_hash, r.required_scopes from old_rows r
                      except
                      select r.tenant_id, r.id, r.family_id, r.content, r.content_hash, r.required_scopes from new_rows r) as o
                join graphium.tenants t on t.id = o.tenant_id
              offset 0) as c
       where p.tenant_id = c.tenant_id and p.audience_key = c.audience_key and p.word_key = any (c.word_keys) and p.statement_id = c.id;
      perform graphium_private._note_audiences(array_agg(n.tenant_id), array_agg(graphium_private._audience(n.required_scopes)::text)) from new_rows n;
      insert into graphium_private.postings (tenant_id, audience_key, statement_id, word_key, occurrences, length, required_scopes)
      select n.tenant_id, p.audience_key, n.id, p.word_key, p.occurrences, p.length, n.required_scopes
        from (select r.tenant_id, r.id, r.family_id, r.content, r.content_hash, r.required_scopes from new_rows r
              except
              select r.tenant_id, r.id, r.family_id, r.content, r.content_hash, r.required_scopes from old_rows r) as n
        join graphium.tenants t on t.id = n.tenant_id,
             lateral graphium_private._postings_of(n.family_id, n.content, n.content_hash, n.required_scopes, t.language) as p
       order by n.tenant_id, p.audience_key, p.word_key, n.id;
    end if;
  elsif tg_op = 'DELETE' then
    -- a tenant that is gone has no language any more, and takes all of its postings along
    if exists (select from old_rows o where not exists (select from graphium.tenants t where t.id = o.tenant_id)) then
      delete from graphium_private.postings p
       where p.tenant_id = any (array(select distinct o.tenant_id from old_rows o where not exists (select from graphium.tenants t where t.id = o.tenant_id)));
    end if;
    delete from graphium_private.postings p
     using (select o.tenant_id, o.id, graphium_private._key_of(graphium_private._audience(o.required_scopes)::text, (select graphium_private._index_key())) as audience_key,
                   graphium_private._keys_of(graphium_private._distinct_words(o.content, t.language) || graphium_private.sentence_key_v1(o.family_id, o.content_hash, o.required_scopes)) as word_keys
              from old_rows o join graphium.tenants t on t.id = o.tenant_id offset 0) as c
     where p.tenant_id = c.tenant_id and p.audience_key = c.audience_key and p.word_key = any (c.word_keys) and p.statement_id = c.id;
  else
    delete from graphium_private.postings;
  end if;
  return null;
end
$on_statement_words_changed$;
comment on function graphium_private._on_statement_words_changed() is
  'Trigger: adds, deletes and re-scopes the postings of the statements concerned; a truncate empties them all.';
revoke all on function graphium_private._on_statement_words_changed() from public;
grant execute on function graphium_private._on_statement_words_changed() to graphium_owner;

create or replace function graphium_private._check_postings(p_tenant_id uuid) returns table (statement_id uuid, detail text)
  language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp
begin atomic
  with wanted as (
    select s.id, w.audience_key, w.word_key, w.word, w.occurrences, w.length, s.required_scopes
      from graphium.kg_statements s
      join graphium.tenants t on t.id = s.tenant_id,
           lateral graphium_private._postings_of(s.family_id, s.content, s.content_hash, s.required_scopes, t.language) as w
     where s.tenant_id = p_tenant_id
  )
  select coalesce(w.id, p.statement_id), 'its words and its postings differ' || coalesce(format(', e.g. in "%s"', min(w.word)), '')
    from wanted w
    full join (select p.* from graphium_private.postings p where p.tenant_id = p_tenant_id) as p on p.statement_id = w.id and p.audience_key = w.audience_key and p.word_key = w.word_key
   where not exists (select from graphium_private.audiences a where a.tenant_id = p_tenant_id and a.key = w.audience_key)
      or w.occurrences is distinct from p.occurrences or w.length is distinct from p.length or w.required_scopes is distinct from p.required_scopes
   group by 1;
end;
comment on function graphium_private._check_postings(uuid) is 'For check_memory: statements of a tenant whose postings are not what their content and audience say.';
revoke all on function graphium_private._check_postings(uuid) from public;

drop function if exists graphium_private._posted_scopes(uuid); -- an admin's search looked under each scope
drop function if exists graphium_private._postings_of(uuid, text, bytea, text[]), graphium_private._distinct_words(text); -- all words were English

set local role graphium_owner;
create or replace trigger words_inserted after insert on graphium.kg_statements
  referencing new table as new_rows for each statement execute function graphium_private._on_statement_words_changed();
create or replace trigger words_updated after update on graphium.kg_statements
  referencing old table as old_rows new table as new_rows for each statement execute function graphium_private._on_statement_words_changed();
create or replace trigger words_deleted after delete on graphium.kg_statements
  referencing old table as old_rows for each statement execute function graphium_private._on_statement_words_changed();
create or replace trigger words_truncated after truncate on graphium.kg_statements
  for each statement execute function graphium_private._on_statement_words_changed();
