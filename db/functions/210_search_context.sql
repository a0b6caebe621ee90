-- The statements that answer a query, best first, then those that symbioses lead to from there.
--
-- query_embedding: ranked by cosine. query_text: ranked by its words (BM25, words ORed). Both: the best of
--   either kind are ranked by both, by what was said around them, and by whom and when the text names (205_rank_pool.sql); names
--   are no words then, as they are none in the vector (prepare_query), and `now` is what "last week" is relative to. Neither: MG008. A text
--   none of whose words is anywhere ('', punctuation, stop words) adds nothing, and alone returns nothing; no text is an error.
-- similarity is the plain cosine of query_embedding and the statement, however it was found; NULL without vectors.
--   score orders the primary hits: the cosine, the BM25 score, or the fused number; comparable inside one result only.
-- Filters: NULL is none, '{}' is "nothing matches", names that do not exist or are hidden match nothing. Names of genera
--   and specimens are looked for in the whole tenant, or under the families (and genera) that are named too.
--   Labels that do not exist are refused, and a since that is not before until.
--   since <= coalesce(occurred_at, created_at) < until. min_similarity needs a query_embedding and drops what is below
--   it or has no vector.
-- match_count primary hits come back whenever so many visible rows match, however many hidden rows are nearer. Then at
--   most symbiosis_count rows from the other ends of visible edges that touch a primary hit (_follow_symbioses), which
--   ignore the filters on family, genus and specimen, and hold to all others. is_superseded: a visible edge of kind
--   supersedes points at the row. Ties are broken by id.
--   The primary hits that others of them supersede come below these.
-- explain: explanation says why each hit is there: its ranks by vector and by words, the words of the query that it and what was said around it
--   have, and what was added to its score for whom and when the query names, for being a question, and for its source; or the edge that led to it.
-- A row is returned whenever the caller may see it; the name of a family, genus or specimen that he may not see is NULL.
-- Writes nothing: runs in a READ ONLY transaction and on a replica. Reads one snapshot.
--
-- example:
--   select graphium.ingest_context('performance', 'feedback', 'Ada', '[{"content": "Ada prefers written feedback.", "embedding": [1, 0, 0]}]');
--   select rank, content, specimen, similarity, score
--     from graphium.search_context(query_embedding => '[1, 1, 0]', query_text => 'how does she want feedback?',
--                                  match_count => 5, families => '{performance}', since => '2020-01-01');
set local role graphium_owner;

create or replace function graphium_private._pool(p_count int) returns int
  language sql stable parallel safe security invoker
  return least(greatest(2 * p_count, graphium_private._setting('fusion_pool')::int), 1000);
comment on function graphium_private._pool(int) is 'How many of the nearest a search by vector and words ranks, with half as many that words find.';
revoke all on function graphium_private._pool(int) from public;

-- The primary hits of a search by vector, by words, or both, best first; with both, ranked says why they are.
drop function if exists graphium_private._search(graphium.tenants, @extschema:vector@.vector, text[], text, uuid[], text[], text[], timestamptz, timestamptz, real, int); -- it was told words only
create or replace function graphium_private._search(p_tenant graphium.tenants, p_query @extschema:vector@.vector, p_asked graphium_private.asked,
    p_level text, p_ids uuid[], p_memory_types text[], p_layer_kinds text[], p_since timestamptz, p_until timestamptz, p_min_similarity real, p_count int,
    out hits graphium_private.hit[], out ranked graphium_private.ranked[])
  language plpgsql stable parallel unsafe security invoker
as $search$
declare
  v_is_filtered constant boolean := num_nonnulls(p_level, p_memory_types, p_layer_kinds, p_since, p_until) > 0;
  v_is_both constant boolean := p_query is not null and cardinality(p_asked.words) > 0;
  v_pool constant int := case when v_is_both then graphium_private._pool(p_count) else p_count end;
  -- by words half as many: on conversations more changed nothing
  v_words_pool constant int := greatest(p_count, v_pool / 2);
  v_filter text := '';
  v_choice record;
  v_audiences bigint[];
  v_matched uuid[];
begin
  if p_query is not null then
    if v_is_filtered then
      v_filter := graphium_private._write_filter('kg_embeddings', p_level, p_ids, p_memory_types, p_layer_kinds, p_since, p_until);
    end if;
    v_choice := graphium_private._choose_scan(p_tenant.id, p_tenant.dimensions, p_level, p_ids, p_memory_types, p_since, p_until);
    if v_choice.by_label then
      v_filter := v_filter || ' and graphium_private._is_ours_to_read(r.tenant_id)'; -- the condition of the indexes on type and time
    end if;
    if v_choice.scan = 'hnsw' then
      hits := (graphium_private._nearest(p_tenant.id, p_tenant.dimensions, p_query, v_filter, p_count, v_pool)).hits;
    else
      hits := graphium_private._scan_exactly(p_tenant.id, p_query, v_filter, v_pool);
    end if;
  end if;
  if cardinality(p_asked.words) > 0 then
    v_filter := graphium_private._write_filter('kg_statements', p_level, p_ids, p_memory_types, p_layer_kinds, p_since, p_until);
  end if;
  if v_is_both then
    v_audiences := graphium_private._held_audiences(p_tenant.id);
    v_matched := graphium_private._match_rarest(p_tenant.id, p_asked.words, v_audiences, v_filter, v_words_pool);
    -- hardly anything has a vector: then a common word must do
    if cardinality(hits) < p_count and cardinality(array(select m from unnest(v_matched) as m union select h.statement_id from unnest(hits) as h)) < p_count then
      v_matched := array(select m.statement_id from graphium_private._match_words(p_tenant.id, p_asked.words, v_filter, v_words_pool) as m);
    end if;
    ranked := graphium_private._rank_pool(p_tenant.id, p_query, hits, v_matched, v_audiences, p_asked, p_min_similarity, p_count);
    hits := array(select (r.statement_id, r.similarity, r.score, null, null)::graphium_private.hit from unnest(ranked) as r);
  elsif p_query is null then
    hits := array(
      select (m.statement_id, null, m.score, null, null)::graphium_private.hit
        from graphium_private._match_words(p_tenant.id, p_asked.words, v_filter, p_count) as m
       order by m.score desc, m.statement_id);
  elsif p_min_similarity is not null then
    hits := array(select n from unnest(hits) as n where n.similarity >= p_min_similarity);
  end if;
end
$search$;
comment on function graphium_private._search(graphium.tenants, @extschema:vector@.vector, graphium_private.asked, text, uuid[], text[], text[], timestamptz, timestamptz, real, int) is
  'The primary hits of a search: by vector, by words, or by both; and of both the parts of their scores.';
revoke all on function graphium_private._search(graphium.tenants, @extschema:vector@.vector, graphium_private.asked, text, uuid[], text[], text[], timestamptz, timestamptz, real, int) from public;

drop function if exists graphium.search_context(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, double precision, boolean, int, text); -- it was not told of now
create or replace function graphium.search_context(query_embedding @extschema:vector@.vector = null, query_text text = null, match_count int = 10,
    families text[] = null, genera text[] = null, specimens text[] = null, memory_types text[] = null, layer_kinds text[] = null,
    since timestamptz = null, until timestamptz = null, min_similarity double precision = null,
    follow_symbiosis boolean = true, symbiosis_count int = 5, embedding_model text = null, now timestamptz = null, explain boolean = false)
  returns table (rank int, statement_id uuid, content text, family text, genus text, specimen text, memory_type text, layer_kind text,
    similarity real, score real, is_symbiosis boolean, symbiosis_kind text, symbiosis_id uuid, is_superseded boolean,
    access_count bigint, required_scopes text[], occurred_at timestamptz, created_at timestamptz, source text, "position" bigint, metadata jsonb, explanation jsonb)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set plan_cache_mode = force_generic_plan
as $search_context$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_tenant graphium.tenants;
  v_asked graphium_private.asked;
  -- no cosine is beyond ±2, and a larger number is no real
  v_min_similarity real := case when min_similarity is not null then greatest(least(min_similarity, 2), -2) end;
  v_level text;
  v_ids uuid[];
  v_hits graphium_private.hit[];
  v_ranked graphium_private.ranked[];
  v_followed graphium_private.hit[];
  v_why jsonb;
  v_superseded uuid[] := '{}';
begin
  select t.* into v_tenant from graphium.tenants t where t.id = v_tenant_id;
  if embedding_model is not null then
    perform graphium_private._require_model(v_tenant, embedding_model);
  end if;
  if query_embedding is null and query_text is null then
    perform graphium_private._raise_error('MG008', 'query_embedding and query_text are both NULL', 'Give a vector of the tenant''s model, a text, or both.');
  end if;
  if query_embedding is not null then
    perform graphium_private._require_comparable(query_embedding, v_tenant.dimensions, v_tenant.embedding_model, 'query_embedding');
  elsif min_similarity is not null then
    perform graphium_private._raise_error('MG008', 'min_similarity is given without a query_embedding', 'Only a vector has a similarity: leave min_similarity out, or give query_embedding.');
  end if;
  if (match_count between 1 and 1000 and symbiosis_count between 0 and 1000 and num_nulls(follow_symbiosis, explain) = 0) is not true then
    perform graphium_private._require_between('match_count', match_count, 1, 1000),
            graphium_private._require_between('symbiosis_count', symbiosis_count, 0, 1000),
            graphium_private._require_boolean('follow_symbiosis', follow_symbiosis),
            graphium_private._require_boolean('explain', explain);
  end if;
  if num_nonnulls(memory_types, layer_kinds, since, until, min_similarity) > 0 then
    perform graphium_private._require_filters(memory_types collate "C", layer_kinds, since, until, min_similarity);
  end if;

  perform graphium_private._require_finite(search_context.now);
  if query_embedding is not null and query_text is not null then
    v_asked := graphium_private._read_query(v_tenant_id, query_text, search_context.now);
  else
    v_asked := row(null, case when query_text is null then '{}' else graphium_private._query_words(query_text, v_tenant.language) end, null, null, null, null, null)::graphium_private.asked;
  end if;
  if num_nonnulls(families, genera, specimens) > 0 then
    select t.level, t.ids into v_level, v_ids from graphium_private._find_taxa(v_tenant_id, families collate "C", genera, specimens) as t;
  end if;
  if (query_embedding is null and v_asked.words = '{}') or v_ids = '{}' or memory_types = '{}' or layer_kinds = '{}' then
    return;
  end if;

  select s.hits, s.ranked into v_hits, v_ranked
    from graphium_private._search(v_tenant, query_embedding, v_asked, v_level, v_ids, memory_types collate "C", layer_kinds, since, until, v_min_similarity, match_count) as s;
  if explain then
    v_why := graphium_private._explain_hits(v_tenant_id, v_hits, v_ranked, v_asked.words, query_embedding is not null);
  end if;
  if v_hits <> '{}' and graphium_private._has_symbioses(v_tenant_id) then
    v_superseded := graphium_private._superseded(v_tenant_id, array(select h.statement_id from unnest(v_hits) as h));
    if v_superseded <> '{}' then
      v_hits := graphium_private._below_replacements(v_tenant_id, v_hits);
    end if;
    if follow_symbiosis and symbiosis_count > 0 then
      v_followed := graphium_private._follow_symbioses(v_tenant_id, array(select h.statement_id from unnest(v_hits) as h), query_embedding, v_asked.words,
        memory_types collate "C", layer_kinds, since, until, v_min_similarity, symbiosis_count);
      if v_followed <> '{}' then
        v_hits := v_hits || v_followed;
        v_superseded := v_superseded || graphium_private._superseded(v_tenant_id, array(select h.statement_id from unnest(v_followed) as h));
        if explain then
          v_why := v_why || graphium_private._explain_hits(v_tenant_id, v_followed, null, '{}', false);
        end if;
      end if;
    end if;
  end if;

  return query
    select h.n::int, s.id, s.content, f.name, g.name, p.name, s.memory_type, s.layer_kind,
           h.similarity, h.score, h.symbiosis_id is not null, h.symbiosis_kind, h.symbiosis_id, s.id = any (v_superseded),
           s.access_count, s.required_scopes, s.occurred_at, s.created_at, s.source, s.position, s.metadata, v_why -> s.id::text
      from unnest(v_hits) with ordinality as h(statement_id, similarity, score, symbiosis_id, symbiosis_kind, n)
      join graphium.kg_statements s on s.tenant_id = v_tenant_id and s.id = h.statement_id
      left join graphium.dh_families f on f.tenant_id = v_tenant_id and f.id = s.family_id
      left join graphium.dh_genera g on g.tenant_id = v_tenant_id and g.id = s.genus_id
      left join graphium.dh_specimens p on p.tenant_id = v_tenant_id and p.id = s.specimen_id
     order by h.n;
end
$search_context$;
comment on function graphium.search_context(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, double precision, boolean, int, text, timestamptz, boolean) is
  'Searches memory by vector, by words, or by both, under filters (NULL: none, ''{}'' and unknown names: nothing matches, unknown labels: MG008). The best match_count statements come first, then at most symbiosis_count that visible symbioses lead to from them. similarity is the cosine; score orders the primary hits. Writes nothing.';
revoke all on function graphium.search_context(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, double precision, boolean, int, text, timestamptz, boolean) from public;
grant execute on function graphium.search_context(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, double precision, boolean, int, text, timestamptz, boolean) to graphium_reader;
