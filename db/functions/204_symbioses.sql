-- Along symbioses. An end of an edge covers a statement when it is the statement's family and, where it is narrowed, the
-- statement's genus, specimen or the statement itself. Edges are read under their policy: an edge with a hidden end is
-- not there.
set local role graphium_owner;

-- The policy of an edge looks for both its ends in three tables, which takes the planner some 6 ms each time. So edges
-- are read by these two functions only, whose plans are made once per connection (force_generic_plan).

-- Where the edges that touch one of the statements lead, in either direction: one row per region at the other end, with
-- the first edge to it. The narrower ids of an end suffice: a genus, a specimen or a statement has one family only.
create or replace function graphium_private._regions_touching(p_tenant_id uuid, p_statements uuid[])
  returns table (level text, id uuid, edge_id uuid, kind text)
  language plpgsql stable parallel safe security invoker set plan_cache_mode = force_generic_plan
as $regions_touching$
#variable_conflict use_column
begin
  return query
  with touched as materialized (
    select array_agg(distinct s.family_id) as families, array_agg(distinct s.genus_id) as genera, array_agg(distinct s.specimen_id) as specimens
      from graphium.kg_statements s
     where s.tenant_id = p_tenant_id and s.id = any (p_statements)
  ), edges as (
    select y.*,
           y.source_family_id = any (t.families)
             and (y.source_genus_id is null or y.source_genus_id = any (t.genera))
             and (y.source_specimen_id is null or y.source_specimen_id = any (t.specimens))
             and (y.source_statement_id is null or y.source_statement_id = any (p_statements)) as touches_by_source,
           y.target_family_id = any (t.families)
             and (y.target_genus_id is null or y.target_genus_id = any (t.genera))
             and (y.target_specimen_id is null or y.target_specimen_id = any (t.specimens))
             and (y.target_statement_id is null or y.target_statement_id = any (p_statements)) as touches_by_target
      from graphium.dh_symbioses y, touched t
     where y.tenant_id = p_tenant_id
       and (y.source_family_id = any ((select families from touched)::uuid[]) or y.target_family_id = any ((select families from touched)::uuid[]))
  )
  select distinct on (r.id) r.level, r.id, e.id, e.kind
    from edges e, lateral (
      select case when e.target_statement_id is not null then 'statement' when e.target_specimen_id is not null then 'specimen'
                  when e.target_genus_id is not null then 'genus' else 'family' end,
             coalesce(e.target_statement_id, e.target_specimen_id, e.target_genus_id, e.target_family_id)
       where e.touches_by_source
      union all
      select case when e.source_statement_id is not null then 'statement' when e.source_specimen_id is not null then 'specimen'
                  when e.source_genus_id is not null then 'genus' else 'family' end,
             coalesce(e.source_statement_id, e.source_specimen_id, e.source_genus_id, e.source_family_id)
       where e.touches_by_target) as r(level, id)
   order by r.id, e.id;
end
$regions_touching$;
comment on function graphium_private._regions_touching(uuid, uuid[]) is
  'The other ends of all visible edges that touch one of the statements: level, id, and the first edge to it.';
revoke all on function graphium_private._regions_touching(uuid, uuid[]) from public;

create or replace function graphium_private._superseded(p_tenant_id uuid, p_statements uuid[]) returns uuid[]
  language plpgsql stable parallel safe security invoker set plan_cache_mode = force_generic_plan
as $superseded$
declare
  v_ends uuid[] := array(
    select coalesce(y.target_statement_id, y.target_specimen_id, y.target_genus_id, y.target_family_id)
      from graphium.dh_symbioses y
     where y.tenant_id = p_tenant_id and y.kind = 'supersedes'
       and y.target_family_id = any (array(select distinct s.family_id from graphium.kg_statements s where s.tenant_id = p_tenant_id and s.id = any (p_statements))));
begin
  if v_ends = '{}' then
    return v_ends;
  end if;
  return array(select s.id from graphium.kg_statements s
                where s.tenant_id = p_tenant_id and s.id = any (p_statements)
                  and (s.id = any (v_ends) or s.specimen_id = any (v_ends) or s.genus_id = any (v_ends) or s.family_id = any (v_ends)));
end
$superseded$;
comment on function graphium_private._superseded(uuid, uuid[]) is 'Those of the statements that a visible edge of kind supersedes points at.';
revoke all on function graphium_private._superseded(uuid, uuid[]) from public;

-- Each hit comes after all in the list that replace it, as far down as it must; nothing else changes places. What replaces what replaces it does,
-- too; in a circle all come after the last. By edges, not by pairs of hits: a family may replace a family.
create or replace function graphium_private._below_replacements(p_tenant_id uuid, p_hits graphium_private.hit[]) returns graphium_private.hit[]
  language plpgsql stable parallel safe security invoker set plan_cache_mode = force_generic_plan
as $below_replacements$
begin
  return (
    with recursive listed as materialized (
      select h.*, s.family_id, s.genus_id, s.specimen_id
        from unnest(p_hits) with ordinality as h(statement_id, similarity, score, symbiosis_id, symbiosis_kind, n)
        join graphium.kg_statements s on s.tenant_id = p_tenant_id and s.id = h.statement_id
    ), covered as materialized (
      select l.n, u.id from listed l, lateral unnest(array[l.family_id, l.genus_id, l.specimen_id, l.statement_id]) as u(id)
    ), edges as materialized (
      select y.id, coalesce(y.source_statement_id, y.source_specimen_id, y.source_genus_id, y.source_family_id) as source,
             coalesce(y.target_statement_id, y.target_specimen_id, y.target_genus_id, y.target_family_id) as target
        from graphium.dh_symbioses y
       where y.tenant_id = p_tenant_id and y.kind = 'supersedes'
         and y.target_family_id = any (array(select l.family_id from listed l)) and y.source_family_id = any (array(select l.family_id from listed l))
    ), lasts as materialized ( -- the last place of what an edge comes from
      select e.id, e.target, max(c.n) as n from edges e join covered c on c.id = e.source group by e.id, e.target
    ), steps as materialized ( -- from an edge to those that replace what it comes from
      select distinct e.id, f.id as next
        from edges e join covered c on c.id = e.source join covered d on d.n = c.n join lasts f on f.target = d.id
    ), reached (n, edge_id) as (
      select c.n, f.id from covered c join lasts f on f.target = c.id
      union
      select r.n, s.next from reached r join steps s on s.id = r.edge_id
    ), placed as (
      select r.n, max(f.n) as last, count(*) as above from reached r join lasts f on f.id = r.edge_id group by r.n
    )
    select array_agg((l.statement_id, l.similarity, l.score, l.symbiosis_id, l.symbiosis_kind)::graphium_private.hit
                     order by greatest(l.n, p.last), coalesce(p.above, 0), l.n)
      from listed l
      left join placed p on p.n = l.n);
end
$below_replacements$;
comment on function graphium_private._below_replacements(uuid, graphium_private.hit[]) is 'The hits, each that a visible edge of kind supersedes points at below those that it comes from.';
revoke all on function graphium_private._below_replacements(uuid, graphium_private.hit[]) from public;

-- From the primary hits over every edge that touches one of them, in both directions, to what is at the other end:
-- ranked together by similarity to the query, best p_count in all. No primary hit again; each row once, with its edge
-- (the first by id, where several lead to it).
-- Filters on memory type, layer and time hold here too, and so does min_similarity; those on family, genus and specimen
-- do not: leaving them is what an edge is for. A region is entered by what the query has: its vector, or its words where
-- a statement (or the query) has no vector. An end that is a single statement is taken in any case, however unlike.
create or replace function graphium_private._follow_symbioses(p_tenant_id uuid, p_primary uuid[], p_query @extschema:vector@.vector, p_words text[],
    p_memory_types text[], p_layer_kinds text[], p_since timestamptz, p_until timestamptz, p_min_similarity real, p_count int) returns graphium_private.hit[]
  language plpgsql stable parallel safe security invoker
as $follow_symbioses$
declare
  v_ends record;    -- where their edges lead: ids with the edge to each, and the ids by level
  v_filter text;    -- rows there, as SQL
  v_found graphium_private.hit[] := '{}';
begin
  select array_agg(r.id) as ids, array_agg(r.edge_id) as edges, array_agg(r.kind) as kinds,
         array_agg(r.id) filter (where r.level = 'family') as families, array_agg(r.id) filter (where r.level = 'genus') as genera,
         array_agg(r.id) filter (where r.level = 'specimen') as specimens, array_agg(r.id) filter (where r.level = 'statement') as statements
    into v_ends
    from graphium_private._regions_touching(p_tenant_id, p_primary) as r;
  if v_ends.ids is null then
    return v_found;
  end if;

  v_filter := format(' and r.%%1$I <> all (%L::uuid[]) and (%s)%%2$s', p_primary, concat_ws(' or ',
    case when v_ends.families is not null then format('r.family_id = any (%L::uuid[])', v_ends.families) end,
    case when v_ends.genera is not null then format('r.genus_id = any (%L::uuid[])', v_ends.genera) end,
    case when v_ends.specimens is not null then format('r.specimen_id = any (%L::uuid[])', v_ends.specimens) end,
    case when v_ends.statements is not null then format('r.%%1$I = any (%L::uuid[])', v_ends.statements) end));

  if p_query is not null then
    v_found := array(
      select n
        from unnest(graphium_private._scan_exactly(p_tenant_id, p_query,
               format(v_filter, 'statement_id', graphium_private._write_filter('kg_embeddings', null, null, p_memory_types, p_layer_kinds, p_since, p_until)), p_count)) as n
       where p_min_similarity is null or n.similarity >= p_min_similarity);
  end if;
  v_filter := format(v_filter, 'id', graphium_private._write_filter('kg_statements', null, null, p_memory_types, p_layer_kinds, p_since, p_until));
  if cardinality(v_found) < p_count and p_min_similarity is null then
    -- what has no vector (or no query vector to compare with)
    if p_query is not null then
      v_filter := v_filter || format(' and not exists (select from graphium.kg_embeddings e where e.tenant_id = %L::uuid and e.statement_id = r.id)', p_tenant_id);
    end if;
    if cardinality(p_words) > 0 then
      v_found := v_found || array(
        select (m.statement_id, null, case when p_query is null then m.score else 0 end, null, null)::graphium_private.hit
          from graphium_private._match_words(p_tenant_id, p_words, v_filter, p_count - cardinality(v_found)) as m
         order by m.score desc, m.statement_id);
    end if;
    if v_ends.statements is not null then
      execute format($query$
        select $1 || array(select (r.id, null, 0, null, null)::graphium_private.hit
                             from graphium.kg_statements r
                            where r.tenant_id = %1$L::uuid and r.id = any (%2$L::uuid[]) and r.id <> all (%3$L::uuid[]) %4$s
                            order by r.id limit %5$s) $query$,
        p_tenant_id, v_ends.statements, array(select f.statement_id from unnest(v_found) as f), v_filter, p_count)
        into v_found using v_found;
    end if;
  end if;

  return array(
    select (f.statement_id, f.similarity, f.score, e.edge, e.kind)::graphium_private.hit
      from unnest(v_found) with ordinality as f(statement_id, similarity, score, no_edge, no_kind, n)
      join graphium.kg_statements s on s.tenant_id = p_tenant_id and s.id = f.statement_id,
           lateral (select e.edge, e.kind from unnest(v_ends.ids, v_ends.edges, v_ends.kinds) as e(id, edge, kind)
                     where e.id in (s.family_id, s.genus_id, s.specimen_id, s.id) order by e.edge limit 1) as e
     order by f.n
     limit p_count);
end
$follow_symbioses$;
comment on function graphium_private._follow_symbioses(uuid, uuid[], @extschema:vector@.vector, text[], text[], text[], timestamptz, timestamptz, real, int) is
  'The best statements at the other ends of the edges that touch a primary hit, each with the edge that led to it.';
revoke all on function graphium_private._follow_symbioses(uuid, uuid[], @extschema:vector@.vector, text[], text[], text[], timestamptz, timestamptz, real, int) from public;

-- Most tenants have no edge at all, and to find that out under the policy of edges takes as long as a small search. Keeper-owned,
-- for it asks about edges that the caller may not see; it only spares looking where there is nothing to find.
set local role graphium_keeper;

create or replace function graphium_private._has_symbioses(p_tenant_id uuid) returns boolean
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $has_symbioses$
begin
  return exists (select from graphium.dh_symbioses y where y.tenant_id = p_tenant_id);
end
$has_symbioses$;
comment on function graphium_private._has_symbioses(uuid) is 'Whether the tenant has any edge, seen or not: if not, nobody need look for one.';
revoke all on function graphium_private._has_symbioses(uuid) from public;
grant execute on function graphium_private._has_symbioses(uuid) to graphium_owner;
