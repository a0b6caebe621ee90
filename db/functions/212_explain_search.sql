-- How search_context would look for something, and why: one row for the vector, one for the words, with the same arguments.
--
-- path: exact; hnsw; postings. reason: the rule of _choose_scan (202_search_vectors.sql) that decides, by the name of its setting.
-- index_name: what is read. admitted: how many of the statements that the caller may see the filters let through, of those with
--   a vector, or of those that have one of the words.
-- Which scan is taken depends on counters over all rows, hidden ones too. Only who sees all (graphium_admin) is told what they
--   say, and how far the search had to look along the index for this very query. To others the path is told as far as it
--   follows from what they see: from the index, which is no secret (docs/side-channels.md), and from rows that are admitted for them.
-- Refuses what search_context refuses. Writes nothing.
--
-- example:
--   select graphium.ingest_context('performance', 'feedback', 'Ada', '[{"content": "Ada prefers written feedback.", "embedding": [1, 0, 0]}]');
--   select part, path, index_name, reason, admitted from graphium.explain_search(query_embedding => '[1, 1, 0]', families => '{performance}');
set local role graphium_owner;

create or replace function graphium.explain_search(query_embedding @extschema:vector@.vector = null, query_text text = null, match_count int = 10,
    families text[] = null, genera text[] = null, specimens text[] = null, memory_types text[] = null, layer_kinds text[] = null,
    since timestamptz = null, until timestamptz = null, embedding_model text = null)
  returns table (part text, path text, index_name text, reason text, admitted bigint)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off
as $explain_search$
-- @plpgsql_check_options: security_warnings = off
-- (the filter that stands in the query was written by _write_filter: nothing but columns and constants)
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_tenant constant graphium.tenants := (select t from graphium.tenants t where t.id = v_tenant_id);
  v_words constant text[] := case when query_text is null then '{}' when query_embedding is null then graphium_private._query_words(query_text, v_tenant.language)
                                  else (graphium_private._read_query(v_tenant_id, query_text, null)).words end;
  v_sees_all constant boolean := graphium_private.caller_scopes() is null;
  v_taxa record;
  v_choice record;
  v_filter text;
begin
  perform graphium_private._require_model(v_tenant, embedding_model), graphium_private._require_between('match_count', match_count, 1, 1000);
  if query_embedding is not null then
    perform graphium_private._require_comparable(query_embedding, v_tenant.dimensions, v_tenant.embedding_model, 'query_embedding');
  elsif query_text is null then
    perform graphium_private._raise_error('MG008', 'query_embedding and query_text are both NULL', 'Give a vector of the tenant''s model, a text, or both.');
  end if;
  perform graphium_private._require_filters(memory_types collate "C", layer_kinds, since, until);
  v_taxa := graphium_private._find_taxa(v_tenant.id, families collate "C", genera, specimens);

  if query_embedding is not null then
    part := 'vector';
    v_filter := graphium_private._write_filter('kg_embeddings', v_taxa.level, v_taxa.ids, memory_types collate "C", layer_kinds, since, until);
    execute format('select count(*) from graphium.kg_embeddings r where r.tenant_id = %L::uuid %s', v_tenant.id, v_filter) into admitted;
    v_choice := graphium_private._choose_scan(v_tenant.id, v_tenant.dimensions, v_taxa.level, v_taxa.ids, memory_types collate "C", since, until);
    path := v_choice.scan;
    reason := v_choice.reason;
    if v_sees_all and path = 'hnsw' then
      path := (graphium_private._nearest(v_tenant.id, v_tenant.dimensions, query_embedding, v_filter, match_count,
                 case when v_words = '{}' then match_count else graphium_private._pool(match_count) end)).path;
    elsif not v_sees_all and v_choice.has_index and num_nonnulls(v_taxa.level, memory_types, since, until) > 0 then
      path := 'exact or hnsw';
      reason := 'exact where the filters admit no more vectors than exact_scan_max (by taxon) or exact_label_max (by type and time), hidden ones included; else the tenant''s index';
    end if;
    index_name := case when path ~ 'hnsw' then graphium_private._hnsw_index_name(v_tenant.id) end;
    return next;
  end if;

  if query_text is not null then
    part := 'words';
    path := 'postings';
    index_name := 'postings_pkey';
    reason := format('%s distinct words, each looked up under every audience that the caller is of', cardinality(v_words));
    v_filter := graphium_private._write_filter('kg_statements', v_taxa.level, v_taxa.ids, memory_types collate "C", layer_kinds, since, until);
    execute format($query$
      select count(*) from graphium.kg_statements r
       where r.tenant_id = %1$L::uuid %2$s
         and r.id in (select p.statement_id from graphium_private.postings p
                       where p.tenant_id = %1$L::uuid and p.audience_key = any ($1) and p.word_key = any ($2)) $query$,
      v_tenant.id, v_filter) into admitted using graphium_private._held_audiences(v_tenant.id), graphium_private._keys_of(v_words);
    return next;
  end if;
end
$explain_search$;
comment on function graphium.explain_search(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, text) is
  'How search_context would look, and why: which path, which index, by which rule, and how many visible statements the filters admit. What depends on hidden rows is told to graphium_admin only. Writes nothing.';
revoke all on function graphium.explain_search(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, text) from public;
grant execute on function graphium.explain_search(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, text) to graphium_reader;
