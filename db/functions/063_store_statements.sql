-- Writing what _match_statements decided. The caller holds the family's lock. Inputs come with their id filled in.
set local role graphium_owner;

create or replace function graphium_private._insert_statements(p_tenant_id uuid, p_new graphium_private.incoming[]) returns void
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $insert_statements$
begin
  insert into graphium.kg_statements (tenant_id, id, family_id, genus_id, specimen_id, content, memory_type, layer_kind, rule, rules_version,
                                      is_type_chosen, is_layer_chosen, required_scopes, exact_only, occurred_at, source, position, metadata)
  select p_tenant_id, n.id, n.family_id, n.genus_id, n.specimen_id, n.content, n.memory_type, n.layer_kind, n.rule,
         case when n.rule is not null then graphium_private._rules_version() end,
         n.own_memory_type is not null, n.own_layer_kind is not null, n.required_scopes, n.exact_only, n.occurred_at, n.source, n.position, n.metadata
    from unnest(p_new) as n
   where n.is_new;
  insert into graphium.kg_embeddings (tenant_id, statement_id, family_id, genus_id, specimen_id, memory_type, layer_kind, required_scopes, happened_at, embedding)
  select p_tenant_id, n.id, n.family_id, n.genus_id, n.specimen_id, n.memory_type, n.layer_kind, n.required_scopes,
         coalesce(n.occurred_at, now()), n.embedding
    from unnest(p_new) as n
   where n.is_new and n.embedding is not null;
end
$insert_statements$;
comment on function graphium_private._insert_statements(uuid, graphium_private.incoming[]) is 'Inserts the new ones of these statements, and their embeddings.';
revoke all on function graphium_private._insert_statements(uuid, graphium_private.incoming[]) from public;

-- A fold adds 1 to the access_count of its statement, gives it the labels that the caller chose (a caller's own label
-- always wins, the latest last; this is also how one makes a known sentence preloaded), keeps what the input said
-- differently, and gives its vector to a statement that was stored without one.
create or replace function graphium_private._fold_statements(p_tenant_id uuid, p_folded graphium_private.incoming[]) returns void
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $fold_statements$
begin
  update graphium.kg_statements s
     set access_count = s.access_count + m.folds, last_accessed_at = now(),
         memory_type = coalesce(m.own_memory_type, s.memory_type), layer_kind = coalesce(m.own_layer_kind, s.layer_kind),
         is_type_chosen = s.is_type_chosen or m.own_memory_type is not null,
         is_layer_chosen = s.is_layer_chosen or m.own_layer_kind is not null,
         (rule, rules_version) = (select s.rule, s.rules_version -- of no use once both labels are chosen
                                   where not ((s.is_type_chosen or m.own_memory_type is not null) and (s.is_layer_chosen or m.own_layer_kind is not null)))
    from (select n.id, count(*) as folds,
                 (array_agg(n.own_memory_type order by n.ordinal desc) filter (where n.own_memory_type is not null))[1] as own_memory_type,
                 (array_agg(n.own_layer_kind order by n.ordinal desc) filter (where n.own_layer_kind is not null))[1] as own_layer_kind
            from unnest(p_folded) as n group by n.id) as m
   where s.tenant_id = p_tenant_id and s.id = m.id;

  insert into graphium.kg_statement_variants as v
    (tenant_id, statement_id, variant_key, content, specimen_id, source, position, occurred_at, metadata, seen_count)
  select p_tenant_id, d.id, d.variant_key, d.content, d.specimen_id, d.source, d.position, d.occurred_at, d.metadata, count(*)
    from (select n.id, w.*,
                 substring(sha256(convert_to(jsonb_build_array(w.content, w.specimen_id, w.source, w.position, extract(epoch from w.occurred_at), w.metadata)::text, 'UTF8')) for 16) as variant_key
            from unnest(p_folded) as n
            join graphium.kg_statements s on s.tenant_id = p_tenant_id and s.id = n.id,
                 -- what is the statement's own is no difference
                 lateral (select nullif(n.content, s.content) as content,
                                 nullif(n.specimen_id, s.specimen_id) as specimen_id,
                                 case when (n.source, coalesce(n.position, s.position)) is distinct from (s.source, s.position) then n.source end as source,
                                 case when (n.source, n.position) is distinct from (s.source, s.position) then n.position end as position,
                                 nullif(n.occurred_at, s.occurred_at) as occurred_at,
                                 case when n.metadata = s.metadata then '{}' else n.metadata end as metadata) as w
           where num_nonnulls(w.content, w.specimen_id, w.source, w.position, w.occurred_at) > 0 or w.metadata <> '{}') as d
   group by d.id, d.variant_key, d.content, d.specimen_id, d.source, d.position, d.occurred_at, d.metadata
   order by d.id, d.variant_key
  on conflict (tenant_id, statement_id, graphium_private._indexed_key(variant_key))
  do update set seen_count = v.seen_count + excluded.seen_count, last_seen_at = now();

  with given as materialized (
    select distinct on (s.id) s.id, s.family_id, s.genus_id, s.specimen_id, s.memory_type, s.layer_kind, s.required_scopes,
           coalesce(s.occurred_at, s.created_at) as happened_at, n.embedding, n.exact_only
      from unnest(p_folded) as n
      join graphium.kg_statements s on s.tenant_id = p_tenant_id and s.id = n.id
     where n.embedding is not null
       and not exists (select from graphium.kg_embeddings e where e.tenant_id = p_tenant_id and e.statement_id = n.id)
     order by s.id, n.ordinal),
  stored as (
    insert into graphium.kg_embeddings (tenant_id, statement_id, family_id, genus_id, specimen_id, memory_type, layer_kind, required_scopes, happened_at, embedding)
    select p_tenant_id, g.id, g.family_id, g.genus_id, g.specimen_id, g.memory_type, g.layer_kind, g.required_scopes, g.happened_at, g.embedding
      from given g)
  update graphium.kg_statements s set exact_only = true
    from given g
   where s.tenant_id = p_tenant_id and s.id = g.id and g.exact_only and not s.exact_only;
end
$fold_statements$;
comment on function graphium_private._fold_statements(uuid, graphium_private.incoming[]) is
  'Counts folds, keeps what was said differently as variants, and adds a vector where the statement had none.';
revoke all on function graphium_private._fold_statements(uuid, graphium_private.incoming[]) from public;

-- Places in their sources for new statements that name a source and no place: after the last that the caller sees (the
-- first is 1), in input order. Explicit places earlier in the same call count, those of folded inputs too (they become variants). A folded
-- input without a place stays without: it is the same sentence again, not another place.
-- Never beyond the 18 digits that a place may be given with: an export could not be imported.
create or replace function graphium_private._place_in_source(p_tenant_id uuid, p_inputs graphium_private.incoming[]) returns graphium_private.incoming[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $place_in_source$
declare
  v_last jsonb := '{}';
  v_in graphium_private.incoming;
begin
  for v_index in 1..cardinality(p_inputs) loop
    v_in := p_inputs[v_index];
    continue when v_in.source is null;
    if not v_last ? v_in.source then
      v_last := v_last || jsonb_build_object(v_in.source, greatest(0,
        graphium_private._last_position(p_tenant_id, v_in.source, graphium_private.caller_scopes())));
    end if;
    if v_in.position is null and v_in.is_new then
      v_in.position := least((v_last ->> v_in.source)::bigint + 1, 999999999999999999);
      p_inputs[v_index] := v_in;
    end if;
    if v_in.position is not null then
      v_last := v_last || jsonb_build_object(v_in.source, greatest((v_last ->> v_in.source)::bigint, v_in.position));
    end if;
  end loop;
  return p_inputs;
end
$place_in_source$;
comment on function graphium_private._place_in_source(uuid, graphium_private.incoming[]) is 'The same inputs, with a position wherever a new one has a source.';
revoke all on function graphium_private._place_in_source(uuid, graphium_private.incoming[]) from public;

-- What ingest_context() and ingest_many() do once the inputs are parsed, their families locked and their specimens known.
create or replace function graphium_private._remember(p_tenant_id uuid, p_inputs graphium_private.incoming[]) returns setof graphium.ingested
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $remember$
declare
  v_inputs constant graphium_private.incoming[] := graphium_private._place_in_source(p_tenant_id, graphium_private._match_statements(p_tenant_id, p_inputs));
  v_folded constant graphium_private.incoming[] := array(select i from unnest(v_inputs) as i where not i.is_new order by i.ordinal);
begin
  if cardinality(v_folded) < cardinality(v_inputs) then
    perform graphium_private._insert_statements(p_tenant_id, v_inputs);
  end if;
  if v_folded = '{}' then -- they are stored as they came in
    return query
      select i.ordinal, i.id, false, null::real, i.memory_type, i.layer_kind, i.required_scopes
        from unnest(v_inputs) as i
       order by i.ordinal;
    return;
  end if;
  perform graphium_private._fold_statements(p_tenant_id, v_folded);
  return query
    select i.ordinal, i.id, not i.is_new, case when not i.is_new then coalesce(1 - (e.embedding operator(@extschema:vector@.<=>) i.embedding), 1) end::real,
           s.memory_type, s.layer_kind, s.required_scopes
      from unnest(v_inputs) as i
      join graphium.kg_statements s on s.tenant_id = p_tenant_id and s.id = i.id
      left join graphium.kg_embeddings e on e.tenant_id = p_tenant_id and e.statement_id = case when not i.is_new then i.id end
     order by i.ordinal;
end
$remember$;
comment on function graphium_private._remember(uuid, graphium_private.incoming[]) is 'Stores inputs, or folds them into what is there, and says what became of each.';
revoke all on function graphium_private._remember(uuid, graphium_private.incoming[]) from public;
