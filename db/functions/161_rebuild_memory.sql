-- rebuild_memory(): makes all that is derived from a tenant's statements anew where it is wrong: counts, sums and summaries of
-- families, words, the copies in kg_embeddings, projections. Returns how many of check_memory()'s lines are gone. Due
-- after triggers did not fire: disabled, or in a session of session_replication_role = replica; until then a count that is
-- too low can refuse a deletion. What is not derived stays, and check_memory() goes on naming it: rows without what they
-- hang on (an embedding without its statement is deleted), vectors of another model. graphium_admin only; `tenant` as in check_memory().
--
-- Races: it holds the lock of every family of the tenant until it commits, so it must see what their last holders committed:
-- REPEATABLE READ is refused.
--
-- example:
--   select graphium.rebuild_memory('acme');
set local role graphium_keeper;

create or replace function graphium.rebuild_memory(tenant text = null) returns int
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $rebuild_memory$
declare
  v_tenant graphium.tenants := graphium_private._named_tenant(tenant);
  v_wrong int;
  v_statements uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'invalid_transaction_state', message = 'rebuild_memory() needs a READ COMMITTED transaction',
      hint = 'Call it outside of a REPEATABLE READ or SERIALIZABLE transaction.';
  end if;
  perform graphium_private._lock_families(v_tenant.id, array(select f.id from graphium.dh_families f where f.tenant_id = v_tenant.id));
  v_wrong := (select count(*) from graphium.check_memory(v_tenant.slug));
  if v_wrong = 0 then
    return 0;
  end if;

  -- Counts and sums first: the triggers on embeddings add to them.
  insert into graphium_private.family_counters (tenant_id, family_id)
  select f.tenant_id, f.id from graphium.dh_families f where f.tenant_id = v_tenant.id on conflict do nothing;
  insert into graphium_private.family_sums (tenant_id, family_id)
  select f.tenant_id, f.id from graphium.dh_families f where f.tenant_id = v_tenant.id on conflict do nothing;
  perform graphium_private._refresh_family(f.tenant_id, f.id) from graphium.dh_families f where f.tenant_id = v_tenant.id;

  -- Projections: the next ingest into a large family makes them (064_projections.sql).
  delete from graphium_private.directions d where d.tenant_id = v_tenant.id;
  delete from graphium_private.projections p where p.tenant_id = v_tenant.id;

  delete from graphium.kg_embeddings e
   where e.tenant_id = v_tenant.id and not exists (select from graphium.kg_statements s where s.tenant_id = e.tenant_id and s.id = e.statement_id);
  update graphium.kg_embeddings e
     set family_id = s.family_id, genus_id = s.genus_id, specimen_id = s.specimen_id, memory_type = s.memory_type, layer_kind = s.layer_kind,
         required_scopes = s.required_scopes, happened_at = coalesce(s.occurred_at, s.created_at)
    from graphium.kg_statements s
   where e.tenant_id = v_tenant.id and s.tenant_id = e.tenant_id and s.id = e.statement_id
     and (e.family_id, e.genus_id, e.specimen_id, e.memory_type, e.layer_kind, e.required_scopes, e.happened_at)
         is distinct from
         (s.family_id, s.genus_id, s.specimen_id, s.memory_type, s.layer_kind, s.required_scopes, coalesce(s.occurred_at, s.created_at));

  v_statements := array(select c.statement_id from graphium_private._check_postings(v_tenant.id) as c);
  delete from graphium_private.postings p where p.tenant_id = v_tenant.id and p.statement_id = any (v_statements);
  perform graphium_private._note_audiences(array_agg(s.tenant_id), array_agg(graphium_private._audience(s.required_scopes)::text))
     from graphium.kg_statements s where s.tenant_id = v_tenant.id and s.id = any (v_statements);
  insert into graphium_private.postings (tenant_id, audience_key, statement_id, word_key, occurrences, length, required_scopes)
  select s.tenant_id, p.audience_key, s.id, p.word_key, p.occurrences, p.length, s.required_scopes
    from graphium.kg_statements s, lateral graphium_private._postings_of(s.family_id, s.content, s.content_hash, s.required_scopes, v_tenant.language) as p
   where s.tenant_id = v_tenant.id and s.id = any (v_statements)
   order by p.audience_key, p.word_key, s.id;

  -- Those triggers may be the ones that do not fire.
  perform graphium_private._refresh_family(f.tenant_id, f.id) from graphium.dh_families f where f.tenant_id = v_tenant.id;
  return v_wrong - (select count(*) from graphium.check_memory(v_tenant.slug));
end
$rebuild_memory$;
comment on function graphium.rebuild_memory(text) is
  'Makes counts, summaries, words and copies of a tenant''s statements anew where check_memory() finds them wrong, and returns how many of its lines are gone. What is not derived (rows without what they hang on) stays. NULL: the tenant named with set_caller.';
revoke all on function graphium.rebuild_memory(text) from public;
grant execute on function graphium.rebuild_memory(text) to graphium_admin;
