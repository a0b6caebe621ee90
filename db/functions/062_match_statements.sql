-- Dedup: which inputs of a batch are statements that exist already. As if the inputs came one at a time, in order:
--   an input matches a statement of its family that the caller sees, has the same audience, and
--     has equal text after the fold (the oldest such), or else
--     a cosine similarity of at least dedup_similarity (the most similar; of equals the oldest), unless either is exact_only;
--   otherwise it is new, and later inputs of the batch may match it, or the vector that it gave to a statement without one.
-- Exact: no approximate index decides whether a neighbour exists, and single precision does not decide at the threshold.
-- Where a family or a batch is large, projections (064_projections.sql) rule out what cannot be near. The caller holds the
-- family's lock, so nobody else is inserting. Runs as graphium_owner under the policies: hidden statements are
-- not there. Equal text is looked up with its audience, which the caller holds, so that no hidden row is even touched.
-- A family's embeddings are read in the order of what is the same for all, under enable_sort = off: only kg_embeddings_in_family has that. Of a
-- tenant that the statistics do not know, every index promises one row, and by another one each family would read the whole tenant. (jit = off:
-- before PostgreSQL 18 a forbidden sort counts as a cost that everything is worth compiling for.)
set local role graphium_owner;

-- pgvector's <=> adds up in single precision: off by some 1e-6 at 384 dimensions. What it puts within 1e-5 of the
-- threshold is added up again in double precision.
create or replace function graphium_private._similarity(a @extschema:vector@.vector, b @extschema:vector@.vector, threshold double precision) returns double precision
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $similarity$
declare
  v_similarity double precision := 1 - (a operator(@extschema:vector@.<=>) b);
begin
  if abs(v_similarity - threshold) < 1e-5 then
    select sum(x::double precision * y) / sqrt(sum(x::double precision * x) * sum(y::double precision * y))
      into v_similarity
      from unnest(a::real[], b::real[]) as e(x, y);
  end if;
  return v_similarity;
end
$similarity$;
comment on function graphium_private._similarity(@extschema:vector@.vector, @extschema:vector@.vector, double precision) is
  'Cosine similarity, exact about which side of the threshold it is on.';
revoke all on function graphium_private._similarity(@extschema:vector@.vector, @extschema:vector@.vector, double precision) from public;

-- ---------------------------------------------------------------- the steps
-- They run under the settings of _match_statements, which is last.

-- For each input: the statement that has its text already; whether others may match it by its vector, once it is decided what
-- it is; the first input with the same text and audience. And those of the statements that have no vector yet.
create or replace function graphium_private._find_same_text(p_tenant_id uuid, p_inputs graphium_private.incoming[], out same_text uuid[], out may_give boolean[], out first int[], out bare uuid[])
  language plpgsql stable parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $find_same_text$
declare
  v_texts constant text[] := array(select graphium_private.sentence_key_v1(i.family_id, i.content_hash, i.audience) from unnest(p_inputs) as i order by i.ordinal);
  v_audiences constant text[] := array(select i.audience::text from unnest(p_inputs) as i order by i.ordinal);
  v_hashes constant bytea[] := array(select i.content_hash from unnest(p_inputs) as i order by i.ordinal);
  v_match record;
begin
  same_text := array_fill(null::uuid, array[cardinality(p_inputs)]);
  may_give := array_fill(true, array[cardinality(p_inputs)]);
  first := array(select min(k.ordinal) over (partition by k.key) from unnest(v_texts) with ordinality as k(key, ordinal) order by k.ordinal);
  bare := '{}';
  for v_match in
    select distinct on (n.ordinal) n.ordinal::int as ordinal, s.id, s.exact_only,
           exists (select from graphium.kg_embeddings e where e.tenant_id = p_tenant_id and e.statement_id = s.id) as has_vector
      from unnest(graphium_private._keys_of(v_texts), graphium_private._keys_of(v_audiences), v_hashes) with ordinality as n(word_key, audience_key, content_hash, ordinal),
           -- look-ups by the whole key, whatever the planner thinks of tables that it has no statistics of
           lateral (select p.statement_id from graphium_private.postings p
                     where p.tenant_id = p_tenant_id and p.audience_key = n.audience_key and p.word_key = n.word_key offset 0) as p,
           lateral (select s.id, s.exact_only from graphium.kg_statements s
                     where s.tenant_id = p_tenant_id and s.id = p.statement_id and s.content_hash = n.content_hash offset 0) as s
     order by n.ordinal, s.id
  loop
    same_text[v_match.ordinal] := v_match.id;
    may_give[v_match.ordinal] := not (v_match.has_vector or v_match.exact_only);
    if not v_match.has_vector and v_match.id <> all (bare) then
      bare := bare || v_match.id;
    end if;
  end loop;
end
$find_same_text$;
comment on function graphium_private._find_same_text(uuid, graphium_private.incoming[]) is
  'Which inputs of a batch have the text and audience of a statement of their family, or of an input before them; which may be matched by their vectors; which of those statements have none.';
revoke all on function graphium_private._find_same_text(uuid, graphium_private.incoming[]) from public;

-- Where comparing each with each would take too long: the pairs that projections leave. p_of_family are the inputs that have to be
-- compared, of one family; the batch has p_count.
create or replace function graphium_private._find_candidates(p_tenant_id uuid, p_family_id uuid, p_of_family graphium_private.incoming[], p_count int, p_threshold double precision) returns graphium_private.likeness[]
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $find_candidates$
declare
  v_reach constant double precision := (select graphium_private._reach(p_threshold, t.dimensions) from graphium.tenants t where t.id = p_tenant_id);
  v_directions @extschema:vector@.vector[] := graphium_private._directions(p_tenant_id, p_family_id, v_reach);
  v_is_projected_family constant boolean := v_directions is not null;
  v_ids uuid[] := '{}'; -- of a family without projections: its statements, and where they are
  v_theirs @extschema:vector@.vector[] := '{}';
  v_ours @extschema:vector@.vector[];
begin
  if not v_is_projected_family then
    if cardinality(p_of_family) = 1
       or cardinality(p_of_family) * (cardinality(p_of_family) + 2 * (select count(*) from (select from graphium.kg_embeddings e where e.tenant_id = p_tenant_id and e.family_id = p_family_id order by graphium_private._is_ours_to_read(e.tenant_id) offset 0) as e))
          < graphium_private._setting('projected_batch_min') ^ 2 then
      return null;
    end if;
    v_directions := graphium_private._find_directions(array(
      select i.embedding from unnest(p_of_family) with ordinality as i
       order by i.ordinality % greatest(1, cardinality(p_of_family) / 32), i.ordinality limit 32));
    select coalesce(array_agg(e.statement_id), '{}'), coalesce(array_agg(graphium_private._project(e.embedding, v_directions)), '{}')
      into v_ids, v_theirs
      from (select e.statement_id, e.embedding from graphium.kg_embeddings e
             where e.tenant_id = p_tenant_id and e.family_id = p_family_id order by graphium_private._is_ours_to_read(e.tenant_id) offset 0) as e;
  end if;
  v_ours := array(select case when i.ordinal is not null then graphium_private._project(i.embedding, v_directions) end
                    from generate_series(1, p_count) as n left join unnest(p_of_family) as i on i.ordinal = n order by n);
  return array(
    select (c.ordinal, null, c.statement_id, null)::graphium_private.likeness
      from graphium_private._near_in_family(p_tenant_id, p_family_id, p_of_family, v_ours, v_reach) as c
     where v_is_projected_family
    union all
    select (c.later - cardinality(v_ids), case when c.earlier > cardinality(v_ids) then c.earlier - cardinality(v_ids) end, v_ids[c.earlier], null)::graphium_private.likeness
      from graphium_private._near_in_batch(v_theirs || v_ours, cardinality(v_ids), v_reach) as c
     where cardinality(p_of_family) > 1);
end
$find_candidates$;
comment on function graphium_private._find_candidates(uuid, uuid, graphium_private.incoming[], int, double precision) is
  'What may be alike, of the inputs of one family with its statements and among each other, where projections pay; NULL where each is to be compared with each.';
revoke all on function graphium_private._find_candidates(uuid, uuid, graphium_private.incoming[], int, double precision) from public;

-- For inputs whose text is new: the most similar statement.
create or replace function graphium_private._find_near_statements(p_tenant_id uuid, p_family_id uuid, p_of_family graphium_private.incoming[], p_candidates graphium_private.likeness[], p_same_text uuid[], p_threshold double precision)
  returns graphium_private.likeness[]
  language plpgsql stable parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $find_near_statements$
declare
  v_almost constant double precision := p_threshold - 1e-5; -- as far as <=> may be off
begin
  return array(
    with almost as materialized (
      select n.ordinal, e.statement_id, e.embedding as theirs, n.embedding as ours
        from unnest(p_of_family) as n
        join (select e.statement_id, e.embedding, e.required_scopes from graphium.kg_embeddings e
               where e.tenant_id = p_tenant_id and e.family_id = p_family_id
               order by graphium_private._is_ours_to_read(e.tenant_id)
              offset 0) as e
          on 1 - (e.embedding operator(@extschema:vector@.<=>) n.embedding) >= v_almost
         and graphium_private._audience(e.required_scopes) = n.audience
       where p_same_text[n.ordinal] is null and p_candidates is null
      union all
      select n.ordinal, e.statement_id, e.embedding, n.embedding
        from unnest(p_candidates) as c
        join unnest(p_of_family) as n on n.ordinal = c.later,
             lateral (select e.statement_id, e.embedding from graphium.kg_embeddings e
                       where e.tenant_id = p_tenant_id and e.statement_id = c.statement_id
                         and 1 - (e.embedding operator(@extschema:vector@.<=>) n.embedding) >= v_almost
                         and graphium_private._audience(e.required_scopes) = n.audience
                      offset 0) as e
       where c.statement_id is not null and p_same_text[n.ordinal] is null
    )
    select distinct on (a.ordinal) (a.ordinal, null, a.statement_id, p.similarity)::graphium_private.likeness
      from almost a,
           lateral (select graphium_private._similarity(a.theirs, a.ours, p_threshold)) as p(similarity),
           lateral (select from graphium.kg_statements s where s.tenant_id = p_tenant_id and s.id = a.statement_id and not s.exact_only offset 0) as s
     where p.similarity >= p_threshold
     order by a.ordinal, p.similarity desc, a.statement_id);
end
$find_near_statements$;
comment on function graphium_private._find_near_statements(uuid, uuid, graphium_private.incoming[], graphium_private.likeness[], uuid[], double precision) is
  'For each input of a family that has a near statement there: the most similar, of equals the oldest.';
revoke all on function graphium_private._find_near_statements(uuid, uuid, graphium_private.incoming[], graphium_private.likeness[], uuid[], double precision) from public;

-- Pairs inside the batch: `later` is an input that may be new, `earlier` one whose vector may be a statement's by then.
create or replace function graphium_private._find_near_inputs(p_of_family graphium_private.incoming[], p_candidates graphium_private.likeness[], p_same_text uuid[], p_may_give boolean[], p_threshold double precision)
  returns graphium_private.likeness[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $find_near_inputs$
begin
  return array(
    with near as materialized (
      select c.later, c.earlier from unnest(p_candidates) as c where c.earlier is not null
      union all
      select a.ordinal, b.ordinal
        from unnest(p_of_family) as a
        join unnest(p_of_family) as b on b.ordinal < a.ordinal
         and 1 - (a.embedding operator(@extschema:vector@.<=>) b.embedding) >= p_threshold - 1e-5
       where p_candidates is null
    ), almost as materialized (
      select a.ordinal as later, b.ordinal as earlier, a.embedding as ours, b.embedding as theirs
        from near c
        join unnest(p_of_family) as a on a.ordinal = c.later
        join unnest(p_of_family) as b on b.ordinal = c.earlier
       where p_same_text[a.ordinal] is null and p_may_give[b.ordinal]
         and (b.audience = a.audience) is true -- or else a plan may begin with all pairs of one audience
    )
    select (a.later, a.earlier, null, p.similarity)::graphium_private.likeness
      from almost a, lateral (select graphium_private._similarity(a.theirs, a.ours, p_threshold)) as p(similarity)
     where p.similarity >= p_threshold);
end
$find_near_inputs$;
comment on function graphium_private._find_near_inputs(graphium_private.incoming[], graphium_private.likeness[], uuid[], boolean[], double precision) is
  'Inputs of a family that are near an earlier one of the same batch.';
revoke all on function graphium_private._find_near_inputs(graphium_private.incoming[], graphium_private.likeness[], uuid[], boolean[], double precision) from public;

-- One input after the other, as if each had come alone.
create or replace function graphium_private._decide_matches(p_inputs graphium_private.incoming[], p_same_text uuid[], p_may_give boolean[], p_first int[], p_bare uuid[], p_near graphium_private.likeness[], p_pairs graphium_private.likeness[])
  returns graphium_private.incoming[]
  language plpgsql volatile parallel safe security invoker set search_path = pg_catalog, pg_temp
as $decide_matches$
declare
  v_count constant int := cardinality(p_inputs);
  v_near constant uuid[] := array(select l.statement_id from generate_series(1, v_count) as n left join unnest(p_near) as l on l.later = n order by n);
  v_near_similarity constant double precision[] := array(select l.similarity from generate_series(1, v_count) as n left join unnest(p_near) as l on l.later = n order by n);
  v_later int[];      -- p_pairs, the most similar first
  v_before int[];
  v_alike double precision[];
  v_pair_index int := 1;
  v_gave_to uuid[] := array_fill(null::uuid, array[v_count]); -- the statement whose vector is this input's
  v_is_bare boolean[] := array_fill(false, array[v_count]);   -- whether the new statement that this input became has no vector yet
  v_new int[] := array_fill(null::int, array[v_count]);       -- of the first of equal inputs: which of them became a new statement
  v_id uuid;
  v_earlier uuid;
  v_owner int;
  v_similarity double precision;
begin
  select array_agg(p.later order by p.later, p.similarity desc, p.earlier), array_agg(p.earlier order by p.later, p.similarity desc, p.earlier),
         array_agg(p.similarity order by p.later, p.similarity desc, p.earlier)
    into v_later, v_before, v_alike
    from unnest(p_pairs) as p;
  for v_input in 1..v_count loop
    v_owner := v_new[p_first[v_input]];
    if p_same_text[v_input] is not null then
      v_id := p_same_text[v_input];
      v_owner := null;
    elsif v_owner is not null then
      v_id := p_inputs[v_owner].id;
      p_may_give[v_input] := not p_inputs[v_owner].exact_only;
    else
      v_id := v_near[v_input];
      v_similarity := v_near_similarity[v_input];
      while v_later[v_pair_index] <= v_input loop
        v_earlier := v_gave_to[v_before[v_pair_index]];
        if v_later[v_pair_index] = v_input and v_earlier is not null
           and (v_similarity is null or v_alike[v_pair_index] > v_similarity
                or (v_alike[v_pair_index] = v_similarity and v_earlier < v_id)) then
          v_id := v_earlier;
          v_similarity := v_alike[v_pair_index];
        end if;
        v_pair_index := v_pair_index + 1;
      end loop;
      if v_id is null then
        v_id := graphium_private.new_id();
        v_owner := v_input;
        v_new[p_first[v_input]] := v_input;
        v_is_bare[v_input] := true;
      end if;
    end if;
    if p_inputs[v_input].embedding is not null and (v_is_bare[v_owner] or v_id = any (p_bare)) then
      if v_owner is not null then
        v_is_bare[v_owner] := false;
      else
        p_bare := array_remove(p_bare, v_id);
      end if;
      if p_may_give[v_input] then
        v_gave_to[v_input] := v_id;
      end if;
    end if;
    p_inputs[v_input].id := v_id;
    p_inputs[v_input].is_new := v_owner is not distinct from v_input;
  end loop;
  return p_inputs;
end
$decide_matches$;
comment on function graphium_private._decide_matches(graphium_private.incoming[], uuid[], boolean[], int[], uuid[], graphium_private.likeness[], graphium_private.likeness[]) is
  'The inputs with the ids of the statements that they are, decided in their order from what is equal and what is near.';
revoke all on function graphium_private._decide_matches(graphium_private.incoming[], uuid[], boolean[], int[], uuid[], graphium_private.likeness[], graphium_private.likeness[]) from public;

-- A few inputs are matched by plans made once a session: planning takes longer than they do. Such plans know nothing of what
-- the tables have become since; more inputs, which would suffer from that, are planned for.
create or replace function graphium_private._match_statements(p_tenant_id uuid, p_inputs graphium_private.incoming[])
  returns graphium_private.incoming[]
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_sort = off set jit = off
as $match_statements$
declare
  v_threshold constant double precision := graphium_private._setting('dedup_similarity');
  v_known record;
  v_family record;
  v_candidates graphium_private.likeness[];
  v_near graphium_private.likeness[] := '{}';
  v_pairs graphium_private.likeness[] := '{}';
begin
  if cardinality(p_inputs) > 8 then
    perform set_config('plan_cache_mode', 'force_custom_plan', true);
  end if;
  v_known := graphium_private._find_same_text(p_tenant_id, p_inputs);
  -- Family by family: no plan can compare vectors across them, and a family that is large has its own way.
  for v_family in
    select i.family_id as id, array_agg(i order by i.ordinal) as inputs
      from unnest(p_inputs) as i
     where i.embedding is not null and not i.exact_only
     group by i.family_id
  loop
    v_candidates := graphium_private._find_candidates(p_tenant_id, v_family.id, v_family.inputs, cardinality(p_inputs), v_threshold);
    v_near := v_near || graphium_private._find_near_statements(p_tenant_id, v_family.id, v_family.inputs, v_candidates, v_known.same_text, v_threshold);
    if cardinality(v_family.inputs) > 1 then
      v_pairs := v_pairs || graphium_private._find_near_inputs(v_family.inputs, v_candidates, v_known.same_text, v_known.may_give, v_threshold);
    end if;
  end loop;
  return graphium_private._decide_matches(p_inputs, v_known.same_text, v_known.may_give, v_known.first, v_known.bare, v_near, v_pairs);
end
$match_statements$;
comment on function graphium_private._match_statements(uuid, graphium_private.incoming[]) is
  'The inputs of a batch, each with the id of the statement that it is: an existing one of its family, an earlier new one of the batch, or (is_new) a new one.';
revoke all on function graphium_private._match_statements(uuid, graphium_private.incoming[]) from public;
