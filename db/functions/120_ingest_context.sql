-- Puts statements about one specimen into memory. All or nothing; one row per input, in input order.
--
-- statements: a JSON array of {content, embedding: [..] | null, memory_type?, layer_kind?, required_scopes?, occurred_at?,
--   source?, position?, metadata?, exact_only?}. Other keys are refused. embedding may also be a string in pgvector's text
--   form ("[0.1,0.2]"), which is read three times faster; null: stored without a vector, found by words.
-- Family, genus and specimen are made when new, born with required_scopes. A statement's audience is its own
--   required_scopes, else the call's, else its specimen's.
-- Dedup: an input that is an existing statement of the family (equal text after the fold, or cosine >= 0.999; same audience,
--   visible to the caller) is not inserted: the existing row's access_count goes up, it takes memory_type and layer_kind where
--   the input chose them, and what the input said differently is kept in kg_statement_variants. So too within the batch.
-- Concurrency: inputs are parsed first; then the family is locked until the end of the transaction, so two sessions that
--   ingest the same sentence wait for each other and the second sees the first's row. Under REPEATABLE READ or SERIALIZABLE
--   the second gets a serialization failure (40001) instead: retry the transaction. To write to several families in one
--   transaction take them in the same order everywhere.
--
-- example:
--   select graphium.set_caller('acme');
--   select ordinal, statement_id, deduplicated, memory_type, layer_kind
--     from graphium.ingest_context(family => 'performance', genus => 'feedback', specimen => 'Ada',
--       statements => '[{"content": "Ada prefers written feedback.", "embedding": null},
--                       {"content": "Ada prefers written feedback", "embedding": null}]');
set local role graphium_owner;

create or replace function graphium.ingest_context(family text, genus text, specimen text, statements jsonb, required_scopes text[] = null, embedding_model text = null)
  returns setof graphium.ingested
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $ingest_context$
declare
  v_tenant_id uuid := graphium_private._require_writer();
  v_family_name text collate "C" := graphium_private._clean_name(family, 'family');
  v_genus_name text collate "C" := graphium_private._clean_name(genus, 'genus');
  v_specimen_name text collate "C" := graphium_private._clean_name(specimen, 'specimen');
  v_call_scopes text[] := case when required_scopes is not null then graphium_private._clean_scopes(required_scopes, 'required_scopes') end;
  v_inputs graphium_private.incoming[] := graphium_private._parse_statements(v_tenant_id, statements, embedding_model collate "C");
  v_family_id uuid := (graphium_private._lock_or_make_families(v_tenant_id, array[v_family_name], coalesce(v_call_scopes, '{}') collate "C"))[1];
  v_specimen graphium.dh_specimens := graphium_private._find_or_make_specimen(v_tenant_id, v_family_id,
    graphium_private._find_or_make_genus(v_tenant_id, v_family_id, v_genus_name), v_specimen_name, coalesce(v_call_scopes, '{}') collate "C");
begin
  return query select * from graphium_private._remember(v_tenant_id,
    graphium_private._place_inputs(v_inputs, array[v_specimen], array_fill(1, array[cardinality(v_inputs)]), v_call_scopes collate "C"));
end
$ingest_context$;
comment on function graphium.ingest_context(text, text, text, jsonb, text[], text) is
  'Puts statements about one specimen into memory, classified, deduplicated and with their vectors; makes family, genus and specimen when new (born with required_scopes). All or nothing. statements: a JSON array of objects with content, embedding (array, pgvector text, or null), and optionally memory_type, layer_kind, required_scopes, occurred_at, source, position, metadata, exact_only; a statement''s audience is its own required_scopes, else the call''s, else its specimen''s. Content is at most 2,000,000 characters, metadata 1,000,000 bytes, an audience 64 scopes. Returns a row per input: the statement that it is now, whether it existed already (with the cosine similarity, 1 when only the texts could be compared), and its labels and audience.';
revoke all on function graphium.ingest_context(text, text, text, jsonb, text[], text) from public;
grant execute on function graphium.ingest_context(text, text, text, jsonb, text[], text) to graphium_user;
