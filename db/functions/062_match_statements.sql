-- Dedup: which inputs of a batch are statements that exist already. As if the inputs came one at a time, in order:
--   an input matches a statement of its family that the caller sees, has the same audience, and
--     has equal text after the fold (the oldest such), or else
--     a cosine similarity of at least dedup_similarity (the most similar; of equals the oldest), unless either is exact_only;
--   otherwise it is new, and later inputs of the batch may match it.
-- Exact: no index decides whether a neighbour exists. The caller holds the family's lock, so nobody else is inserting.
-- Runs as graphium_owner under the policies: hidden statements are not there.
set local role graphium_owner;

create or replace function graphium_private._match_statements(p_tenant_id uuid, p_family_id uuid, p_inputs graphium_private.incoming[])
  returns graphium_private.incoming[]
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $match_statements$
declare
  v_threshold constant double precision := (select s.value from graphium_private.settings s where s.name = 'dedup_similarity');
  v_count constant int := cardinality(p_inputs);
  v_same_text uuid[] := array_fill(null::uuid, array[v_count]);
  v_near uuid[] := array_fill(null::uuid, array[v_count]);
  v_near_similarity double precision[] := array_fill(null::double precision, array[v_count]);
  v_new_id uuid[] := array_fill(null::uuid, array[v_count]);
  v_new_keys text[] := '{}';   -- text and audience of the new ones, and …
  v_new_ordinals int[] := '{}'; -- … which inputs they are
  v_key text;
  v_match record;
  v_id uuid;
  v_similarity double precision;
  v_pair_index int := 1;
  v_pairs record;
begin
  for v_match in
    select distinct on (n.ordinal) n.ordinal, s.id
      from unnest(p_inputs) as n
      join graphium.kg_statements s
        on s.tenant_id = p_tenant_id and s.family_id = p_family_id and s.content_hash = n.content_hash
       and graphium_private._audience(s.required_scopes) = n.audience
     order by n.ordinal, s.id
  loop
    v_same_text[v_match.ordinal] := v_match.id;
  end loop;

  for v_match in
    with near as materialized (
      select n.ordinal, e.statement_id, 1 - (e.embedding operator(@extschema:vector@.<=>) n.embedding) as similarity
        from unnest(p_inputs) as n
        join graphium.kg_embeddings e
          on e.tenant_id = p_tenant_id and e.family_id = p_family_id
         and 1 - (e.embedding operator(@extschema:vector@.<=>) n.embedding) >= v_threshold
         and graphium_private._audience(e.required_scopes) = n.audience
       where v_same_text[n.ordinal] is null and not n.exact_only and n.embedding is not null
    )
    select distinct on (near.ordinal) near.ordinal, near.statement_id, near.similarity
      from near
      join graphium.kg_statements s on s.tenant_id = p_tenant_id and s.id = near.statement_id and not s.exact_only
     order by near.ordinal, near.similarity desc, near.statement_id
  loop
    v_near[v_match.ordinal] := v_match.statement_id;
    v_near_similarity[v_match.ordinal] := v_match.similarity;
  end loop;

  -- Pairs inside the batch, for the inputs that may turn out new.
  select array_agg(a.ordinal order by a.ordinal, p.similarity desc, b.ordinal) as later,
         array_agg(b.ordinal order by a.ordinal, p.similarity desc, b.ordinal) as earlier,
         array_agg(p.similarity order by a.ordinal, p.similarity desc, b.ordinal) as similarity
    into v_pairs
    from unnest(p_inputs) as a
    join unnest(p_inputs) as b on b.ordinal < a.ordinal and b.audience = a.audience,
         lateral (select 1 - (a.embedding operator(@extschema:vector@.<=>) b.embedding)) as p(similarity)
   where v_same_text[a.ordinal] is null and not a.exact_only and a.embedding is not null
     and v_same_text[b.ordinal] is null and not b.exact_only and b.embedding is not null
     and p.similarity >= v_threshold;

  for v_input in 1..v_count loop
    v_key := encode(p_inputs[v_input].content_hash, 'hex') || p_inputs[v_input].audience::text;
    if v_same_text[v_input] is not null then
      v_id := v_same_text[v_input];
    elsif v_key = any (v_new_keys) then
      v_id := v_new_id[v_new_ordinals[array_position(v_new_keys, v_key)]];
    else
      v_id := v_near[v_input];
      v_similarity := v_near_similarity[v_input];
      while v_pairs.later[v_pair_index] <= v_input loop
        if v_pairs.later[v_pair_index] = v_input and v_new_id[v_pairs.earlier[v_pair_index]] is not null
           and (v_similarity is null or v_pairs.similarity[v_pair_index] > v_similarity) then
          v_id := v_new_id[v_pairs.earlier[v_pair_index]];
          v_similarity := v_pairs.similarity[v_pair_index];
        end if;
        v_pair_index := v_pair_index + 1;
      end loop;
      if v_id is null then
        v_id := graphium_private.new_id();
        v_new_id[v_input] := v_id;
        v_new_keys := v_new_keys || v_key;
        v_new_ordinals := v_new_ordinals || v_input;
      end if;
    end if;
    p_inputs[v_input].id := v_id;
    p_inputs[v_input].is_new := v_new_id[v_input] is not null;
  end loop;
  return p_inputs;
end
$match_statements$;
comment on function graphium_private._match_statements(uuid, uuid, graphium_private.incoming[]) is
  'The inputs of a batch, each with the id of the statement that it is: an existing one, an earlier new one of the batch, or (is_new) a new one.';
revoke all on function graphium_private._match_statements(uuid, uuid, graphium_private.incoming[]) from public;
