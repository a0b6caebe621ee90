-- The statements that answer a query, best first, then those that symbioses lead to from there.
--
-- query_embedding: ranked by cosine. query_text: ranked by its words (BM25, words ORed). Both: the two scores, each scaled
--   to 0…1 over the best candidates of either kind, are added with the setting lexical_weight. Neither: MG008. A text
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
  return least(greatest(4 * p_count, graphium_private._setting('fusion_pool')::int), 1000);
comment on function graphium_private._pool(int) is 'How many candidates of either kind a search by vector and words ranks together.';
revoke all on function graphium_private._pool(int) from public;

-- The primary hits of a search by vector, by words, or both, best first.
create or replace function graphium_private._search(p_tenant graphium.tenants, p_query @extschema:vector@.vector, p_words text[],
    p_level text, p_ids uuid[], p_memory_types text[], p_layer_kinds text[], p_since timestamptz, p_until timestamptz, p_min_similarity real, p_count int)
  returns graphium_private.hit[]
  language plpgsql stable parallel unsafe security invoker
as $search$
declare
  v_is_filtered constant boolean := num_nonnulls(p_level, p_memory_types, p_layer_kinds, p_since, p_until) > 0;
  v_filter text := '';
  v_weight double precision;
  v_choice record;
  v_pool int := p_count;
  v_near graphium_private.hit[];
  v_matched graphium_private.hit[];
begin
  if p_query is not null and cardinality(p_words) > 0 then
    v_pool := graphium_private._pool(p_count);
  end if;
  if p_query is not null then
    if v_is_filtered then
      v_filter := graphium_private._write_filter('kg_embeddings', p_level, p_ids, p_memory_types, p_layer_kinds, p_since, p_until);
    end if;
    v_choice := graphium_private._choose_scan(p_tenant.id, p_tenant.dimensions, p_level, p_ids, p_memory_types, p_since, p_until);
    if v_choice.by_label then
      v_filter := v_filter || ' and graphium_private._is_ours_to_read(r.tenant_id)'; -- the condition of the indexes on type and time
    end if;
    if v_choice.scan = 'hnsw' then
      v_near := (graphium_private._nearest(p_tenant.id, p_tenant.dimensions, p_query, v_filter, v_pool)).hits;
    else
      v_near := graphium_private._scan_exactly(p_tenant.id, p_query, v_filter, v_pool);
    end if;
  end if;
  if cardinality(p_words) > 0 then
    v_matched := array(
      select (m.statement_id, null, m.score, null, null)::graphium_private.hit
        from graphium_private._match_words(p_tenant.id, p_words,
               graphium_private._write_filter('kg_statements', p_level, p_ids, p_memory_types, p_layer_kinds, p_since, p_until), v_pool,
               array(select n.statement_id from unnest(v_near) as n)) as m
       order by m.score desc, m.statement_id);
  end if;

  if coalesce(v_matched, '{}') = '{}' then
    return case when p_min_similarity is null then v_near[:p_count]
                else array(select n from unnest(v_near[:p_count]) as n where n.similarity >= p_min_similarity) end;
  elsif v_near is null then
    return v_matched;
  end if;

  -- Both: what the words found gets its similarity too (none without a vector), what the vector found its score by words.
  v_filter := format(' and r.statement_id = any (%L::uuid[])',
    array(select m.statement_id from unnest(v_matched) as m where m.statement_id <> all (array(select n.statement_id from unnest(v_near) as n))));
  v_near := v_near || graphium_private._scan_exactly(p_tenant.id, p_query, v_filter, cardinality(v_matched));
  v_weight := graphium_private._setting('lexical_weight');
  return array(
    select (f.statement_id, f.similarity, f.score, null, null)::graphium_private.hit
      from (select p.statement_id, p.similarity,
                   ((1 - v_weight) * coalesce((p.similarity - min(p.similarity) over ()) / nullif(max(p.similarity) over () - min(p.similarity) over (), 0),
                                              (p.similarity is not null)::int)
                    + v_weight * p.words / coalesce(nullif(max(p.words) over (), 0), 1))::real as score
              from (select coalesce(n.statement_id, m.statement_id) as statement_id, n.similarity, coalesce(m.score, 0) as words
                      from unnest(v_near) as n
                      full join unnest(v_matched) as m on m.statement_id = n.statement_id) as p) as f
     where p_min_similarity is null or f.similarity >= p_min_similarity
     order by f.score desc, f.statement_id
     limit p_count);
end
$search$;
comment on function graphium_private._search(graphium.tenants, @extschema:vector@.vector, text[], text, uuid[], text[], text[], timestamptz, timestamptz, real, int) is
  'The primary hits of a search: by vector, by words, or by both fused.';
revoke all on function graphium_private._search(graphium.tenants, @extschema:vector@.vector, text[], text, uuid[], text[], text[], timestamptz, timestamptz, real, int) from public;

create or replace function graphium.search_context(query_embedding @extschema:vector@.vector = null, query_text text = null, match_count int = 10,
    families text[] = null, genera text[] = null, specimens text[] = null, memory_types text[] = null, layer_kinds text[] = null,
    since timestamptz = null, until timestamptz = null, min_similarity double precision = null,
    follow_symbiosis boolean = true, symbiosis_count int = 5, embedding_model text = null)
  returns table (rank int, statement_id uuid, content text, family text, genus text, specimen text, memory_type text, layer_kind text,
    similarity real, score real, is_symbiosis boolean, symbiosis_kind text, symbiosis_id uuid, is_superseded boolean,
    access_count bigint, required_scopes text[], occurred_at timestamptz, created_at timestamptz, source text, "position" bigint, metadata jsonb)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set plan_cache_mode = force_generic_plan
as $search_context$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_tenant graphium.tenants;
  v_words text[] := case when query_text is null then '{}' else graphium_private._query_words(query_text) end;
  -- no cosine is beyond ±2, and a larger number is no real
  v_min_similarity real := case when min_similarity is not null then greatest(least(min_similarity, 2), -2) end;
  v_level text;
  v_ids uuid[];
  v_hits graphium_private.hit[];
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
  if (match_count between 1 and 1000 and symbiosis_count between 0 and 1000 and follow_symbiosis is not null) is not true then
    perform graphium_private._require_between('match_count', match_count, 1, 1000),
            graphium_private._require_between('symbiosis_count', symbiosis_count, 0, 1000),
            graphium_private._require_boolean('follow_symbiosis', follow_symbiosis);
  end if;
  if num_nonnulls(memory_types, layer_kinds, since, until, min_similarity) > 0 then
    perform graphium_private._require_filters(memory_types collate "C", layer_kinds, since, until, min_similarity);
  end if;

  if num_nonnulls(families, genera, specimens) > 0 then
    select t.level, t.ids into v_level, v_ids from graphium_private._find_taxa(v_tenant_id, families collate "C", genera, specimens) as t;
  end if;
  if (query_embedding is null and v_words = '{}') or v_ids = '{}' or memory_types = '{}' or layer_kinds = '{}' then
    return;
  end if;

  v_hits := graphium_private._search(v_tenant, query_embedding, v_words, v_level, v_ids, memory_types collate "C", layer_kinds, since, until, v_min_similarity, match_count);
  if v_hits <> '{}' and graphium_private._has_symbioses(v_tenant_id) then
    if follow_symbiosis and symbiosis_count > 0 then
      v_hits := v_hits || graphium_private._follow_symbioses(v_tenant_id, array(select h.statement_id from unnest(v_hits) as h), query_embedding, v_words,
        memory_types collate "C", layer_kinds, since, until, v_min_similarity, symbiosis_count);
    end if;
    v_superseded := graphium_private._superseded(v_tenant_id, array(select h.statement_id from unnest(v_hits) as h));
  end if;

  return query
    select h.n::int, s.id, s.content, f.name, g.name, p.name, s.memory_type, s.layer_kind,
           h.similarity, h.score, h.symbiosis_id is not null, h.symbiosis_kind, h.symbiosis_id, s.id = any (v_superseded),
           s.access_count, s.required_scopes, s.occurred_at, s.created_at, s.source, s.position, s.metadata
      from unnest(v_hits) with ordinality as h(statement_id, similarity, score, symbiosis_id, symbiosis_kind, n)
      join graphium.kg_statements s on s.tenant_id = v_tenant_id and s.id = h.statement_id
      left join graphium.dh_families f on f.tenant_id = v_tenant_id and f.id = s.family_id
      left join graphium.dh_genera g on g.tenant_id = v_tenant_id and g.id = s.genus_id
      left join graphium.dh_specimens p on p.tenant_id = v_tenant_id and p.id = s.specimen_id
     order by h.n;
end
$search_context$;
comment on function graphium.search_context(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, double precision, boolean, int, text) is
  'Searches memory by vector, by words, or by both, under filters (NULL: none, ''{}'' and unknown names: nothing matches, unknown labels: MG008). The best match_count statements come first, then at most symbiosis_count that visible symbioses lead to from them. similarity is the cosine; score orders the primary hits. Writes nothing.';
revoke all on function graphium.search_context(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, double precision, boolean, int, text) from public;
grant execute on function graphium.search_context(@extschema:vector@.vector, text, int, text[], text[], text[], text[], text[], timestamptz, timestamptz, double precision, boolean, int, text) to graphium_reader;
