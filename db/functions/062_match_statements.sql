-- Dedup: which inputs of a batch are statements that exist already. As if the inputs came one at a time, in order:
--   an input matches a statement of its family that the caller sees, has the same audience, and
--     has equal text after the fold (the oldest such), or else
--     a cosine similarity of at least dedup_similarity (the most similar; of equals the oldest), unless either is exact_only;
--   otherwise it is new, and later inputs of the batch may match it, or the vector that it gave to a statement without one.
-- Exact: no approximate index decides whether a neighbour exists, and single precision does not decide at the threshold.
-- Where a family or a batch is large, projections (064_projections.sql) rule out what cannot be near. The caller holds the
-- family's lock, so nobody else is inserting. Runs as graphium_owner under the policies: hidden statements are
-- not there. Equal text is looked up with its audience, which the caller holds, so that no hidden row is even touched.
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

-- A few inputs are matched by plans made once a session: planning takes longer than they do. Such plans know nothing of what
-- the tables have become since; more inputs, which would suffer from that, are planned for.
create or replace function graphium_private._match_statements(p_tenant_id uuid, p_inputs graphium_private.incoming[])
  returns graphium_private.incoming[]
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $match_statements$
declare
  v_threshold constant double precision := (select s.value from graphium_private.settings s where s.name = 'dedup_similarity');
  v_almost constant double precision := v_threshold - 1e-5; -- as far as <=> may be off
  v_count constant int := cardinality(p_inputs);
  v_keys constant text[] := array(select graphium_private.sentence_key_v1(i.family_id, i.content_hash, i.audience) from unnest(p_inputs) as i order by i.ordinal);
  v_scopes constant text[] := array(select (graphium_private._posting_scopes(i.audience))[1] from unnest(p_inputs) as i order by i.ordinal); -- any scope of the audience will do
  v_same_text uuid[] := array_fill(null::uuid, array[v_count]);
  v_near uuid[] := array_fill(null::uuid, array[v_count]);
  v_near_similarity double precision[] := array_fill(null::double precision, array[v_count]);
  v_may_give boolean[] := array_fill(true, array[v_count]); -- may others match it by its vector, once it is decided what it is?
  v_gave_to uuid[] := array_fill(null::uuid, array[v_count]); -- the statement whose vector is this input's
  v_bare uuid[] := '{}';        -- statements that have no vector yet; of new ones …
  v_is_bare boolean[] := array_fill(false, array[v_count]); -- … whether the one that this input became has none
  v_first constant int[] := array(select min(k.ordinal) over (partition by k.key) from unnest(v_keys) with ordinality as k(key, ordinal) order by k.ordinal); -- with the same text and audience
  v_new int[] := array_fill(null::int, array[v_count]); -- of the first of equal inputs: which of them became a new statement
  v_match record;
  v_id uuid;
  v_earlier uuid;
  v_owner int;
  v_similarity double precision;
  v_pair_index int := 1;
  v_later int[] := '{}';        -- pairs within the batch …
  v_before int[] := '{}';
  v_alike double precision[] := '{}'; -- … and their similarity
  v_reach constant double precision := (select graphium_private._reach(v_threshold, t.dimensions) from graphium.tenants t where t.id = p_tenant_id);
  v_directions @extschema:vector@.vector[];
  -- of the family that is at hand, where comparing each with each would take too long: its statements and where they and the
  -- inputs are; pairs that are close, of which the earlier may be a statement (then 0 or less)
  v_ids uuid[];
  v_theirs @extschema:vector@.vector[];
  v_projections @extschema:vector@.vector[];
  v_close_later int[];
  v_close_earlier int[];
  v_family record;
  v_is_projected_family boolean;
begin
  if v_count > 8 then
    perform set_config('plan_cache_mode', 'force_custom_plan', true);
  end if;
  for v_match in
    select distinct on (n.ordinal) n.ordinal::int as ordinal, s.id, s.exact_only,
           exists (select from graphium.kg_embeddings e where e.tenant_id = p_tenant_id and e.statement_id = s.id) as has_vector
      from unnest(v_keys, v_scopes) with ordinality as n(key, scope, ordinal),
           -- look-ups by the whole key, whatever the planner thinks of tables that it has no statistics of
           lateral (select p.statement_id from graphium_private.postings p
                     where p.tenant_id = p_tenant_id and p.scope = n.scope and p.word = n.key offset 0) as p,
           lateral (select s.id, s.exact_only from graphium.kg_statements s where s.tenant_id = p_tenant_id and s.id = p.statement_id offset 0) as s
     order by n.ordinal, s.id
  loop
    v_same_text[v_match.ordinal] := v_match.id;
    v_may_give[v_match.ordinal] := not (v_match.has_vector or v_match.exact_only);
    if not v_match.has_vector and v_match.id <> all (v_bare) then
      v_bare := v_bare || v_match.id;
    end if;
  end loop;

  -- Family by family: no plan can compare vectors across them, and a family that is large has its own way.
  for v_family in
    select i.family_id as id, array_agg(i order by i.ordinal) as inputs
      from unnest(p_inputs) as i
     where i.embedding is not null and not i.exact_only
     group by i.family_id
  loop
    v_directions := graphium_private._directions(p_tenant_id, v_family.id, v_reach);
    v_is_projected_family := v_directions is not null;
    v_ids := '{}';
    v_theirs := '{}';
    v_close_later := '{}';
    v_close_earlier := '{}';
    if not v_is_projected_family and cardinality(v_family.inputs) > 1
       and cardinality(v_family.inputs) * (cardinality(v_family.inputs) + 2 * (select count(*) from graphium.kg_embeddings e where e.tenant_id = p_tenant_id and e.family_id = v_family.id))
           >= graphium_private._setting('projected_batch_min') ^ 2 then
      v_directions := graphium_private._find_directions(array(
        select i.embedding from unnest(v_family.inputs) with ordinality as i
         order by i.ordinality % greatest(1, cardinality(v_family.inputs) / 32), i.ordinality limit 32));
      select array_agg(e.statement_id), array_agg(graphium_private._project(e.embedding, v_directions))
        into v_ids, v_theirs
        from graphium.kg_embeddings e
       where e.tenant_id = p_tenant_id and e.family_id = v_family.id;
    end if;
    if v_directions is not null then
      v_projections := array(select case when i.family_id = v_family.id and not i.exact_only and i.embedding is not null then graphium_private._project(i.embedding, v_directions) end
                               from unnest(p_inputs) as i order by i.ordinal);
      if cardinality(v_family.inputs) > 1 then
        select array_agg(c.later - coalesce(cardinality(v_ids), 0)), array_agg(c.earlier - coalesce(cardinality(v_ids), 0))
          into v_close_later, v_close_earlier
          from graphium_private._near_in_batch(v_theirs || v_projections, coalesce(cardinality(v_ids), 0), v_reach) as c;
      end if;
    end if;

    for v_match in
      with near as materialized (
        select c.ordinal, c.statement_id
          from graphium_private._near_in_family(p_tenant_id, v_family.id, v_family.inputs, v_projections, v_reach) as c
         where v_is_projected_family
        union all
        select c.later, v_ids[c.earlier + cardinality(v_ids)] from unnest(v_close_later, v_close_earlier) as c(later, earlier) where c.earlier <= 0
      ), almost as materialized (
        select n.ordinal, e.statement_id, e.embedding as theirs, n.embedding as ours
          from unnest(v_family.inputs) as n
          join graphium.kg_embeddings e
            on e.tenant_id = p_tenant_id and e.family_id = v_family.id
           and 1 - (e.embedding operator(@extschema:vector@.<=>) n.embedding) >= v_almost
           and graphium_private._audience(e.required_scopes) = n.audience
         where v_same_text[n.ordinal] is null and v_directions is null
        union all
        select n.ordinal, e.statement_id, e.embedding, n.embedding
          from near c
          join unnest(v_family.inputs) as n on n.ordinal = c.ordinal,
               lateral (select e.statement_id, e.embedding from graphium.kg_embeddings e
                         where e.tenant_id = p_tenant_id and e.statement_id = c.statement_id
                           and 1 - (e.embedding operator(@extschema:vector@.<=>) n.embedding) >= v_almost
                           and graphium_private._audience(e.required_scopes) = n.audience
                        offset 0) as e
         where v_same_text[n.ordinal] is null
      )
      select distinct on (a.ordinal) a.ordinal, a.statement_id, p.similarity
        from almost a,
             lateral (select graphium_private._similarity(a.theirs, a.ours, v_threshold)) as p(similarity),
             lateral (select from graphium.kg_statements s where s.tenant_id = p_tenant_id and s.id = a.statement_id and not s.exact_only offset 0) as s
       where p.similarity >= v_threshold
       order by a.ordinal, p.similarity desc, a.statement_id
    loop
      v_near[v_match.ordinal] := v_match.statement_id;
      v_near_similarity[v_match.ordinal] := v_match.similarity;
    end loop;
    continue when cardinality(v_family.inputs) = 1;

    -- Pairs inside the batch: `later` is an input that may be new, `earlier` one whose vector may be a statement's by then.
    with near as materialized (
      select c.later, c.earlier from unnest(v_close_later, v_close_earlier) as c(later, earlier) where c.earlier > 0
      union all
      select a.ordinal, b.ordinal
        from unnest(v_family.inputs) as a
        join unnest(v_family.inputs) as b on b.ordinal < a.ordinal
         and 1 - (a.embedding operator(@extschema:vector@.<=>) b.embedding) >= v_almost
       where v_directions is null
    ), almost as materialized (
      select a.ordinal as later, b.ordinal as earlier, a.embedding as ours, b.embedding as theirs
        from near c
        join unnest(v_family.inputs) as a on a.ordinal = c.later
        join unnest(v_family.inputs) as b on b.ordinal = c.earlier
       where v_same_text[a.ordinal] is null and v_may_give[b.ordinal]
         and (b.audience = a.audience) is true -- or else a plan may begin with all pairs of one audience
    )
    select v_later || array_agg(a.later), v_before || array_agg(a.earlier), v_alike || array_agg(p.similarity)
      into v_later, v_before, v_alike
      from almost a, lateral (select graphium_private._similarity(a.theirs, a.ours, v_threshold)) as p(similarity)
     where p.similarity >= v_threshold;
  end loop;
  if v_later <> '{}' then
    select array_agg(p.later order by p.later, p.similarity desc, p.earlier), array_agg(p.earlier order by p.later, p.similarity desc, p.earlier),
           array_agg(p.similarity order by p.later, p.similarity desc, p.earlier)
      into v_later, v_before, v_alike
      from unnest(v_later, v_before, v_alike) as p(later, earlier, similarity);
  end if;

  for v_input in 1..v_count loop
    v_owner := v_new[v_first[v_input]];
    if v_same_text[v_input] is not null then
      v_id := v_same_text[v_input];
      v_owner := null;
    elsif v_owner is not null then
      v_id := p_inputs[v_owner].id;
      v_may_give[v_input] := not p_inputs[v_owner].exact_only;
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
        v_new[v_first[v_input]] := v_input;
        v_is_bare[v_input] := true;
      end if;
    end if;
    if p_inputs[v_input].embedding is not null and (v_is_bare[v_owner] or v_id = any (v_bare)) then
      if v_owner is not null then
        v_is_bare[v_owner] := false;
      else
        v_bare := array_remove(v_bare, v_id);
      end if;
      if v_may_give[v_input] then
        v_gave_to[v_input] := v_id;
      end if;
    end if;
    p_inputs[v_input].id := v_id;
    p_inputs[v_input].is_new := v_owner is not distinct from v_input;
  end loop;
  return p_inputs;
end
$match_statements$;
comment on function graphium_private._match_statements(uuid, graphium_private.incoming[]) is
  'The inputs of a batch, each with the id of the statement that it is: an existing one of its family, an earlier new one of the batch, or (is_new) a new one.';
revoke all on function graphium_private._match_statements(uuid, graphium_private.incoming[]) from public;
