-- The ranking of a search by vector and words. What is ranked is a pool: the nearest by vector and the best by rare words. Nothing is
-- read but the pool's own rows and their postings, all visible to the caller; so are the numbers that words are weighed by.
--
--   words = Σ over the query's words of the most of: the word's BM25 score in the statement, in the one before it in its source
--           × word_of_previous, two before × half of that, in the one after × word_of_next, two after × half of that; ÷ the highest of the pool
--   base  = (1 - lexical_weight) · cosine, scaled to 0…1 over the pool + lexical_weight · words
--           + named_specimen_boost + named_family_boost + named_time_boost (half within 7 days after) - question_penalty
--   score = base + source_boost · (Σ of the five best bases of its source, none below 0) ÷ 5
--
-- Neighbours are those in the pool, at a position one or two off. A statement without a source is a source of its own.
-- A pool that has none of the words, when the query names nobody and no time, stays in the vector's order.
set local role graphium_owner;

create or replace function graphium_private._rank_pool(p_tenant_id uuid, p_query @extschema:vector@.vector, p_near graphium_private.hit[], p_matched uuid[], p_audiences bigint[],
    p_asked graphium_private.asked, p_min_similarity real, p_count int) returns graphium_private.ranked[]
  language plpgsql stable parallel unsafe security invoker
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_nestloop = off
as $rank_pool$
declare
  v_keys constant bigint[] := graphium_private._keys_of(p_asked.words);
  -- the end of the seven days; at the end of time there are no more
  v_late constant timestamptz := case when p_asked.since is not null then least(p_asked.until, '290000-01-01 00:00:00+00') + interval '7 days' end;
  v_specimen constant double precision := graphium_private._setting('named_specimen_boost');
  v_family constant double precision := graphium_private._setting('named_family_boost');
  v_time constant double precision := graphium_private._setting('named_time_boost');
  v_question constant double precision := graphium_private._setting('question_penalty');
  v_near graphium_private.hit[];
  v_ids uuid[] := array(select n.statement_id from unnest(p_near) as n);
  v_words_only constant uuid[] := array(select m from unnest(p_matched) as m except select n from unnest(v_ids) as n);
  v_pool graphium_private.candidate[];
  v_posted graphium_private.posted[];
begin
  v_ids := v_ids || v_words_only;
  v_posted := array(
    select (p.statement_id, p.word_key, p.occurrences, p.length)::graphium_private.posted
      from graphium_private.postings p
     where p.tenant_id = p_tenant_id and p.audience_key = any (p_audiences) and p.word_key = any (v_keys) and p.statement_id = any (v_ids));
  if v_posted = '{}' and num_nonnulls(p_asked.specimens, p_asked.since, p_asked.until) = 0 then
    return array(
      select (n.statement_id, n.similarity, n.score, n.n, null, null, null, null, null, null)::graphium_private.ranked
        from unnest(p_near) with ordinality as n(statement_id, similarity, score, no_edge, no_kind, n)
       where p_min_similarity is null or n.similarity >= p_min_similarity
       order by n.n limit p_count);
  end if;

  -- what only words found gets its similarity too; none without a vector
  v_near := p_near || array(
    select (e.statement_id, 1 - (e.embedding operator(@extschema:vector@.<=>) p_query), null, null, null)::graphium_private.hit
      from graphium.kg_embeddings e
     where e.tenant_id = p_tenant_id and e.statement_id = any (v_words_only));
  v_pool := array(
    select (s.id, n.similarity,
            array[case when s.specimen_id = any (p_asked.specimen_ids) then v_specimen else 0 end,
                  case when s.family_id = any (p_asked.family_ids) then v_family else 0 end,
                  case when num_nonnulls(p_asked.since, p_asked.until) = 0 then 0
                       when s.happened_at >= coalesce(p_asked.since, '-infinity') and s.happened_at < coalesce(p_asked.until, 'infinity') then v_time
                       when s.happened_at >= p_asked.until and s.happened_at < v_late then v_time / 2
                       else 0 end,
                  case when right(rtrim(s.content), 1) in ('?', '？', '؟') then -v_question else 0 end],
            case when s.source is not null then dense_rank() over (order by s.source collate "C") end, s.position)::graphium_private.candidate
      from (select r.id, r.specimen_id, r.family_id, coalesce(r.occurred_at, r.created_at) as happened_at, r.content, r.source, r.position
              from graphium.kg_statements r
             where r.tenant_id = p_tenant_id and r.id = any (v_ids)) as s
      left join unnest(v_near) as n on n.statement_id = s.id);
  return graphium_private._fuse(v_pool, v_posted, p_min_similarity, p_count);
end
$rank_pool$;
comment on function graphium_private._rank_pool(uuid, @extschema:vector@.vector, graphium_private.hit[], uuid[], bigint[], graphium_private.asked, real, int) is
  'The best of a pool (the nearest, and what words found), by meaning, words and whatever else the query says.';
revoke all on function graphium_private._rank_pool(uuid, @extschema:vector@.vector, graphium_private.hit[], uuid[], bigint[], graphium_private.asked, real, int) from public;

-- Reads no memory: arithmetic on what is given, and settings.
create or replace function graphium_private._fuse(p_pool graphium_private.candidate[], p_posted graphium_private.posted[], p_min_similarity real, p_count int) returns graphium_private.ranked[]
  language plpgsql stable parallel safe security invoker
  set plan_cache_mode = force_generic_plan set enable_nestloop = off set work_mem = '32MB'
as $fuse$
declare
  c_near_end constant bigint := 9223372036854775800; -- beyond, a place has no neighbours: there is no bigint for them
  v_k1 constant double precision := graphium_private._setting('bm25_k1');
  v_b constant double precision := graphium_private._setting('bm25_b');
  v_previous constant double precision := graphium_private._setting('word_of_previous');
  v_next constant double precision := graphium_private._setting('word_of_next');
  v_lexical constant double precision := graphium_private._setting('lexical_weight');
  v_source constant double precision := graphium_private._setting('source_boost');
begin
  return array(
    with pool as materialized (
      select c.statement_id, c.similarity, c.similarity::double precision as cosine, c.boosts, c.source, c.position from unnest(p_pool) as c
    ), frequencies as (
      select p.word_key, ln(1 + (cardinality(p_pool) - count(*) + 0.5) / (count(*) + 0.5)) as weight from unnest(p_posted) as p group by p.word_key
    ), own as materialized (
      select o.statement_id, o.word_key, f.weight * o.occurrences / (o.occurrences + v_k1 * (1 - v_b + v_b * o.length / l.mean)) as score
        from unnest(p_posted) as o
        join frequencies f on f.word_key = o.word_key
       cross join (select avg(d.length)::double precision as mean from (select distinct p.statement_id, p.length from unnest(p_posted) as p) as d) as l
    ), said as ( -- at each place the words that count there for being said nearby
      select c.source, c.position + d.step as position, o.word_key, max(o.score * d.share) as score
        from own o
        join pool c on c.statement_id = o.statement_id
       cross join (values (1, v_previous), (2, v_previous / 2), (-1, v_next), (-2, v_next / 2)) as d(step, share)
       where c.source is not null and c.position between -c_near_end and c_near_end and d.share > 0
       group by c.source, c.position + d.step, o.word_key
    ), words as (
      select w.statement_id, sum(w.score) as score, array_agg(w.word_key) filter (where w.is_own) as word_keys, array_agg(w.word_key) filter (where not w.is_own) as nearby_keys
        from (select h.statement_id, h.word_key, max(h.score) as score, bool_or(h.is_own) as is_own
                from (select o.statement_id, o.word_key, o.score, true as is_own from own o
                      union all
                      select c.statement_id, s.word_key, s.score, false from said s join pool c on c.source = s.source and c.position = s.position) as h
               group by h.statement_id, h.word_key) as w
       group by w.statement_id
    ), scored as (
      select p.statement_id, p.similarity, p.boosts, p.source, w.word_keys, w.nearby_keys, w.score / max(w.score) over () as words,
             coalesce((p.cosine - min(p.cosine) over ()) / nullif(max(p.cosine) over () - min(p.cosine) over (), 0), (p.cosine is not null)::int) as nearness
        from pool p
        left join words w on w.statement_id = p.statement_id
    ), based as (
      select s.*, (1 - v_lexical) * s.nearness + v_lexical * coalesce(s.words, 0) + s.boosts[1] + s.boosts[2] + s.boosts[3] + s.boosts[4] as base
        from scored s
    ), placed as (
      select b.*, row_number() over (partition by b.source order by b.base desc, b.statement_id) as place,
             case when b.similarity is not null then row_number() over (order by b.similarity desc nulls last, b.statement_id) end as dense_rank,
             case when b.words is not null then row_number() over (order by b.words desc nulls last, b.statement_id) end as lexical_rank
        from based b
    ), fused as (
      select p.*, v_source / 5 * case when p.source is null then greatest(p.base, 0) else sum(greatest(p.base, 0)) filter (where p.place <= 5) over (partition by p.source) end as around
        from placed p
    )
    select (f.statement_id, f.similarity, f.base + f.around, f.dense_rank, f.lexical_rank, f.words, f.word_keys, f.nearby_keys, f.boosts, f.around)::graphium_private.ranked
      from fused f
     where p_min_similarity is null or f.similarity >= p_min_similarity
     order by (f.base + f.around)::real desc, f.statement_id
     limit p_count);
end
$fuse$;
comment on function graphium_private._fuse(graphium_private.candidate[], graphium_private.posted[], real, int) is 'The best of a pool by the formula in this file''s head, each with the parts of its score.';
revoke all on function graphium_private._fuse(graphium_private.candidate[], graphium_private.posted[], real, int) from public;

-- Of each hit, by its id: why it is there. Before superseded hits are put below.
create or replace function graphium_private._explain_hits(p_tenant_id uuid, p_hits graphium_private.hit[], p_ranked graphium_private.ranked[], p_words text[], p_is_by_vector boolean) returns jsonb
  language plpgsql stable parallel unsafe security invoker
as $explain_hits$
declare
  v_keys constant bigint[] := graphium_private._keys_of(p_words);
  v_audiences constant bigint[] := graphium_private._held_audiences(p_tenant_id);
begin
  return (
    select jsonb_object_agg(h.statement_id,
             case when h.symbiosis_id is not null then jsonb_build_object('symbiosis_id', h.symbiosis_id, 'symbiosis_kind', h.symbiosis_kind)
                  when r.statement_id is not null then jsonb_strip_nulls(jsonb_build_object(
                    'similarity', r.similarity, 'dense_rank', r.dense_rank, 'lexical_rank', r.lexical_rank, 'words_score', r.words,
                    'words', (select jsonb_agg(w.word order by w.n) from unnest(p_words, v_keys) with ordinality as w(word, key, n) where w.key = any (r.word_keys)),
                    'words_nearby', (select jsonb_agg(w.word order by w.n) from unnest(p_words, v_keys) with ordinality as w(word, key, n) where w.key = any (r.nearby_keys)),
                    'named_specimen', nullif(r.boosts[1], 0), 'named_family', nullif(r.boosts[2], 0), 'named_time', nullif(r.boosts[3], 0), 'question', nullif(r.boosts[4], 0),
                    'source', r.around))
                  when p_is_by_vector then jsonb_build_object('similarity', h.similarity, 'dense_rank', h.n)
                  else jsonb_build_object('lexical_rank', h.n,
                    'words', (select jsonb_agg(w.word order by w.n) from unnest(p_words, v_keys) with ordinality as w(word, key, n)
                               where exists (select from graphium_private.postings p
                                              where p.tenant_id = p_tenant_id and p.audience_key = any (v_audiences) and p.word_key = w.key and p.statement_id = h.statement_id))) end)
      from unnest(p_hits) with ordinality as h(statement_id, similarity, score, symbiosis_id, symbiosis_kind, n)
      left join unnest(p_ranked) as r on r.statement_id = h.statement_id);
end
$explain_hits$;
comment on function graphium_private._explain_hits(uuid, graphium_private.hit[], graphium_private.ranked[], text[], boolean) is 'Why each hit was found, and what its score is made of, by its id.';
revoke all on function graphium_private._explain_hits(uuid, graphium_private.hit[], graphium_private.ranked[], text[], boolean) from public;
