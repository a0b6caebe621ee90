-- Near-duplicates without comparing with everything, and without missing one. Two unit vectors whose cosine is at least
-- dedup_similarity are at most `reach` apart (0.0447 at 0.999), and a projection onto directions at right angles to each
-- other brings points closer or leaves them: so are their projections. Whatever is further away in a few coordinates
-- along which the vectors vary most cannot be a near-duplicate; of 100,000 vectors of a family about one is left, and
-- the exact comparison (062_match_statements.sql) decides about that.
--   directions: any would be exact; only the speed depends on them. They are found in a sample: the direction in which the
--     two halves of the sample lie furthest apart, and again at right angles to those before. The sample is of vectors that
--     all readers of the family see: who counts what his ingests read measures directions, and solves them for what they were made of.
--     Where there are few of those, any directions are taken, which leave some hundred candidates more. They go, until the next
--     ingest, when the audience of the family changes, or one of the sample is forgotten, or hidden from some of them.
--   cell: the first six coordinates on a grid as wide as two reaches, as one number. A near-duplicate is in one of the
--     64 cells at the corners of the box around a vector, which are found by equality: leakproof, so that the index serves under the policies.
--     What is stored is a hash of it, with a secret that is another for each audience (_grid): a look-up comes upon no row that is hidden from
--     the caller, who holds the audience, and the order of the index does not tell where hidden vectors are.
--   single precision: `reach` has room for all rounding, so a vector may as well be projected by another machine.
-- Families below projected_family_min have neither; the ingest that finds one above it makes both (30 to 60 µs and 0.4 kB of WAL per vector), and
-- anew when the family has become four times as large or dedup_similarity another. Triggers follow every change of embeddings.
-- Who makes or follows them holds the family's lock, so no vector is left out.
set local role graphium_owner;

create or replace function graphium_private._reach(p_similarity double precision, p_dimensions int) returns double precision
  language sql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
  -- Per coordinate 2 × (dimensions + 3) roundings of at most 2^-24, over 8 coordinates; directions are unit vectors at
  -- right angles to 1e-5 (_find_directions).
  return 1.0001 * sqrt(2 * (1 - least(p_similarity, 1))) + 6 * (p_dimensions + 3) * 2.0 ^ -24;
comment on function graphium_private._reach(double precision, int) is 'How far apart unit vectors of at least that cosine can be, along any directions, with all rounding.';
revoke all on function graphium_private._reach(double precision, int) from public;

create or replace function graphium_private._project(p_embedding @extschema:vector@.vector, p_directions @extschema:vector@.vector[]) returns @extschema:vector@.vector
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $project$
declare
  v_unit constant @extschema:vector@.vector := @extschema:vector@.l2_normalize(p_embedding);
begin
  return array(select @extschema:vector@.inner_product(v_unit, d.direction) from unnest(p_directions) as d(direction))::@extschema:vector@.vector;
end
$project$;
comment on function graphium_private._project(@extschema:vector@.vector, @extschema:vector@.vector[]) is 'The coordinates of an embedding, scaled to length 1, along directions.';
revoke all on function graphium_private._project(@extschema:vector@.vector, @extschema:vector@.vector[]) from public;
grant execute on function graphium_private._project(@extschema:vector@.vector, @extschema:vector@.vector[]) to graphium_keeper;

-- No SET, so that these two are inlined; their bodies were parsed when they were made.
create or replace function graphium_private._cell(p_at real[], p_reach double precision) returns bigint
  language sql immutable parallel safe security invoker
  return (floor(coalesce(p_at[1], 0) / (2 * p_reach)) + 64 * floor(coalesce(p_at[2], 0) / (2 * p_reach)) + 4096 * floor(coalesce(p_at[3], 0) / (2 * p_reach))
        + 262144 * floor(coalesce(p_at[4], 0) / (2 * p_reach)) + 16777216 * floor(coalesce(p_at[5], 0) / (2 * p_reach))
        + 1073741824 * floor(coalesce(p_at[6], 0) / (2 * p_reach)))::bigint;
comment on function graphium_private._cell(real[], double precision) is
  'The cell of the grid that a projection is in. Far cells may share a number: that costs a comparison, no more.';
revoke all on function graphium_private._cell(real[], double precision) from public;
grant execute on function graphium_private._cell(real[], double precision) to graphium_keeper;

create or replace function graphium_private._cell_at_corner(p_at real[], p_reach double precision, p_corner int) returns bigint
  language sql immutable parallel safe security invoker
  return (floor(coalesce(p_at[1], 0) / (2 * p_reach) + (p_corner & 1) - 0.5) + 64 * floor(coalesce(p_at[2], 0) / (2 * p_reach) + (p_corner >> 1 & 1) - 0.5)
        + 4096 * floor(coalesce(p_at[3], 0) / (2 * p_reach) + (p_corner >> 2 & 1) - 0.5) + 262144 * floor(coalesce(p_at[4], 0) / (2 * p_reach) + (p_corner >> 3 & 1) - 0.5)
        + 16777216 * floor(coalesce(p_at[5], 0) / (2 * p_reach) + (p_corner >> 4 & 1) - 0.5) + 1073741824 * floor(coalesce(p_at[6], 0) / (2 * p_reach) + (p_corner >> 5 & 1) - 0.5))::bigint;
comment on function graphium_private._cell_at_corner(real[], double precision, int) is
  'The cell at corner 0 to 63 of the box that is everything within reach of a projection. The box is as wide as a cell: it has a part in no others.';
revoke all on function graphium_private._cell_at_corner(real[], double precision, int) from public;

create or replace function graphium_private._grid(p_audience text[]) returns bigint
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $grid$
begin
  return graphium_private._key_of(graphium_private._audience(p_audience)::text, graphium_private._index_key());
end
$grid$;
comment on function graphium_private._grid(text[]) is 'The secret that the cells of an audience are hashed with.';
revoke all on function graphium_private._grid(text[]) from public;
grant execute on function graphium_private._grid(text[]) to graphium_keeper;

create or replace function graphium_private._find_directions(p_sample @extschema:vector@.vector[]) returns @extschema:vector@.vector[]
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $find_directions$
declare
  v_units constant @extschema:vector@.vector[] := array(select @extschema:vector@.l2_normalize(s) from unnest(p_sample) as s);
  v_mean constant @extschema:vector@.vector := (select @extschema:vector@.avg(u) from unnest(v_units) as u);
  v_dimensions constant int := @extschema:vector@.vector_dims(v_mean);
  v_found @extschema:vector@.vector[] := '{}';
  v_direction @extschema:vector@.vector;
  v_before @extschema:vector@.vector;
begin
  for v_number in 1..least(8, v_dimensions, cardinality(v_units)) loop
    v_direction := v_units[v_number] operator(@extschema:vector@.-) v_mean;
    for v_round in 0..3 loop
      if v_round > 0 then
        select @extschema:vector@.avg(u) filter (where s.is_above) operator(@extschema:vector@.-) @extschema:vector@.avg(u) filter (where not s.is_above)
          into v_direction
          from unnest(v_units) as u, lateral (select @extschema:vector@.inner_product(u operator(@extschema:vector@.-) v_mean, v_direction) > 0) as s(is_above);
      end if;
      -- at right angles to those before; a second time for what the first left by rounding
      for v_again in 1..2 loop
        exit when v_direction is null;
        v_direction := @extschema:vector@.l2_normalize(v_direction);
        foreach v_before in array v_found loop
          v_direction := v_direction operator(@extschema:vector@.-)
            (v_before operator(@extschema:vector@.*) array_fill(@extschema:vector@.inner_product(v_direction, v_before), array[v_dimensions])::@extschema:vector@.vector);
        end loop;
        if @extschema:vector@.vector_norm(v_direction) < 0.01 then -- nothing but rounding
          v_direction := null;
        end if;
      end loop;
      exit when v_direction is null;
    end loop;
    continue when v_direction is null;
    v_found := v_found || @extschema:vector@.l2_normalize(v_direction);
  end loop;
  return case when v_found = '{}' then v_units[1:1] else v_found end; -- nothing varies: then any direction will do
end
$find_directions$;
comment on function graphium_private._find_directions(@extschema:vector@.vector[]) is
  'Up to 8 unit vectors at right angles along which the sample, scaled to length 1, varies most.';
revoke all on function graphium_private._find_directions(@extschema:vector@.vector[]) from public;
grant execute on function graphium_private._find_directions(@extschema:vector@.vector[]) to graphium_keeper;

create or replace function graphium_private._arbitrary_vectors(p_count int, p_dimensions int) returns @extschema:vector@.vector[]
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $arbitrary_vectors$
begin
  return array(select array(select ((hashint8extended(i, n) & 65535) - 32767.5) / 32768 from generate_series(1, p_dimensions) as i order by i)::real[]::@extschema:vector@.vector
                 from generate_series(1, p_count) as n order by n);
end
$arbitrary_vectors$;
comment on function graphium_private._arbitrary_vectors(int, int) is 'The same vectors at every call, in all directions.';
revoke all on function graphium_private._arbitrary_vectors(int, int) from public;
grant execute on function graphium_private._arbitrary_vectors(int, int) to graphium_keeper;

-- ---------------------------------------------------------------- look-ups, under the caller's policies
-- enable_seqscan, and a sub-select per cell that `offset 0` keeps apart: no statistics tell how few rows a cell has, and a
-- wrong plan would read the whole family.
create or replace function graphium_private._near_in_family(p_tenant_id uuid, p_family_id uuid, p_inputs graphium_private.incoming[], p_projections @extschema:vector@.vector[], p_reach double precision)
  returns table (ordinal int, statement_id uuid)
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan set enable_seqscan = off
as $near_in_family$
begin
  return query
    select i.ordinal::int, n.statement_id
      from (select n.ordinal, p_projections[n.ordinal] as projection, graphium_private._grid(n.audience) as grid from unnest(p_inputs) as n offset 0) as i,
           lateral (select hashint8extended(graphium_private._cell_at_corner(i.projection::real[], p_reach, c.corner), i.grid) as cell
                      from generate_series(0, 63) as c(corner) offset 0) as c,
           lateral (select p.statement_id
                      from graphium_private.projections p
                     where p.tenant_id = p_tenant_id and p.family_id = p_family_id and p.cell = c.cell
                       and p.projection operator(@extschema:vector@.<->) i.projection <= p_reach
                    offset 0) as n
     where i.projection is not null;
end
$near_in_family$;
comment on function graphium_private._near_in_family(uuid, uuid, graphium_private.incoming[], @extschema:vector@.vector[], double precision) is
  'Statements of a family whose audience is an input''s, and whose projection is within reach of the input''s: every near-duplicate is among them.';
revoke all on function graphium_private._near_in_family(uuid, uuid, graphium_private.incoming[], @extschema:vector@.vector[], double precision) from public;

-- Three coordinates, so 8 corners (those that are above in the three that are left out): in a batch it is the corners that cost.
create or replace function graphium_private._near_in_batch(p_projections @extschema:vector@.vector[], p_first int, p_reach double precision)
  returns table (later int, earlier int)
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan
as $near_in_batch$
begin
  return query
    with inputs as materialized (
      select i.ordinal::int as ordinal, i.projection, (i.projection::real[])[1:3] as at
        from unnest(p_projections) with ordinality as i(projection, ordinal)
       where i.projection is not null
    )
    select a.ordinal, b.ordinal
      from (select i.ordinal, i.projection, graphium_private._cell_at_corner(i.at, p_reach, c.corner) as cell from inputs i, generate_series(56, 63) as c(corner) where i.ordinal > p_first) as a
      join (select i.ordinal, i.projection, graphium_private._cell(i.at, p_reach) as cell from inputs i) as b
        on b.cell = a.cell and b.ordinal < a.ordinal
       and b.projection operator(@extschema:vector@.<->) a.projection <= p_reach;
end
$near_in_batch$;
comment on function graphium_private._near_in_batch(@extschema:vector@.vector[], int, double precision) is
  'Pairs of projections within reach of each other, the later of them behind p_first: every near-duplicate is among them.';
revoke all on function graphium_private._near_in_batch(@extschema:vector@.vector[], int, double precision) from public;

-- ---------------------------------------------------------------- what is stored
set local role graphium_keeper;

create or replace function graphium_private._directions(p_tenant_id uuid, p_family_id uuid, p_reach double precision) returns @extschema:vector@.vector[]
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $directions$
declare
  v_family record;
  v_sampled uuid[];
  v_sample @extschema:vector@.vector[];
  v_directions @extschema:vector@.vector[];
begin
  select c.embeddings, d.embeddings as embeddings_then, d.reach, d.directions
    into v_family
    from graphium_private.family_counters c
    left join graphium_private.directions d on d.tenant_id = c.tenant_id and d.family_id = c.family_id
   where c.tenant_id = p_tenant_id and c.family_id = p_family_id;
  if v_family.reach = p_reach and v_family.embeddings < 4 * v_family.embeddings_then then
    return v_family.directions;
  elsif v_family.reach is null and v_family.embeddings < graphium_private._setting('projected_family_min') then
    return null;
  end if;

  delete from graphium_private.directions d where d.tenant_id = p_tenant_id and d.family_id = p_family_id; -- and with them projections
  -- Ids begin with the time and end at random.
  select array_agg(e.statement_id order by e.place), array_agg(e.embedding order by e.place)
    into v_sampled, v_sample
    from (select e.statement_id, e.embedding, row_number() over (order by right(e.statement_id::text, 12), e.statement_id) as place
            from graphium.kg_embeddings e
            join graphium.dh_families f on f.tenant_id = e.tenant_id and f.id = e.family_id
           where e.tenant_id = p_tenant_id and e.family_id = p_family_id
             and graphium_private._audience_includes(e.required_scopes, f.required_scopes)
           order by place limit 512) as e;
  if coalesce(cardinality(v_sample), 0) < 32 then
    v_sampled := '{}';
    v_sample := graphium_private._arbitrary_vectors(64, (select t.dimensions from graphium.tenants t where t.id = p_tenant_id));
  end if;
  v_directions := graphium_private._find_directions(v_sample);
  insert into graphium_private.directions (tenant_id, family_id, embeddings, reach, directions, sampled)
  values (p_tenant_id, p_family_id, v_family.embeddings, p_reach, v_directions, v_sampled);
  insert into graphium_private.projections (tenant_id, family_id, statement_id, cell, required_scopes, projection)
  select p_tenant_id, p_family_id, e.statement_id, hashint8extended(graphium_private._cell(e.projection::real[], p_reach), graphium_private._grid(e.required_scopes)), e.required_scopes, e.projection
    from (select e.statement_id, e.required_scopes, graphium_private._project(e.embedding, v_directions) as projection
            from graphium.kg_embeddings e
           where e.tenant_id = p_tenant_id and e.family_id = p_family_id offset 0) as e;
  return v_directions;
end
$directions$;
comment on function graphium_private._directions(uuid, uuid, double precision) is
  'The directions that a large family is projected onto, made now where there are none, or none that serve; NULL for a small family. The caller holds the family''s lock.';
revoke all on function graphium_private._directions(uuid, uuid, double precision) from public;
grant execute on function graphium_private._directions(uuid, uuid, double precision) to graphium_owner;

-- `is true`, so that no plan looks for a statement by its tenant, which is the beginning of the other index.
create or replace function graphium_private._on_embeddings_moved() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_embeddings_moved$
begin
  if tg_op = 'TRUNCATE' then
    delete from graphium_private.directions;
    return null;
  elsif tg_op = 'UPDATE' then
    -- Once a vector that they were made of is another, or gone, or not for all readers of the family any more, directions would tell of it.
    delete from graphium_private.directions d using old_rows o
     where d.tenant_id = o.tenant_id and d.family_id = o.family_id and o.statement_id = any (d.sampled)
       and not exists (select from new_rows n
                         join graphium.dh_families f on f.tenant_id = n.tenant_id and f.id = n.family_id
                        where n.tenant_id = o.tenant_id and n.statement_id = o.statement_id and n.family_id = o.family_id
                          and graphium_private._audience_includes(n.required_scopes, f.required_scopes) and n.embedding operator(@extschema:vector@.=) o.embedding);
    update graphium_private.projections p
       set required_scopes = n.required_scopes, cell = hashint8extended(graphium_private._cell(p.projection::real[], d.reach), graphium_private._grid(n.required_scopes))
      from new_rows n
      join graphium_private.directions d on d.tenant_id = n.tenant_id and d.family_id = n.family_id
     where p.statement_id = n.statement_id and (p.tenant_id = n.tenant_id) is true and p.required_scopes <> n.required_scopes;
    delete from graphium_private.projections p using old_rows o
     where p.statement_id = o.statement_id and (p.tenant_id = o.tenant_id) is true
       and not exists (select from new_rows n
                        where n.tenant_id = o.tenant_id and n.statement_id = o.statement_id and n.family_id = o.family_id
                          and n.embedding operator(@extschema:vector@.=) o.embedding);
  elsif tg_op = 'DELETE' then
    delete from graphium_private.directions d using old_rows o
     where d.tenant_id = o.tenant_id and d.family_id = o.family_id and o.statement_id = any (d.sampled);
    delete from graphium_private.projections p using old_rows o where p.statement_id = o.statement_id and (p.tenant_id = o.tenant_id) is true;
    delete from graphium_private.directions d
     using graphium_private.family_counters c
     where (d.tenant_id, d.family_id) in (select o.tenant_id, o.family_id from old_rows o)
       and c.tenant_id = d.tenant_id and c.family_id = d.family_id
       and 4 * c.embeddings < graphium_private._setting('projected_family_min');
  end if;
  if tg_op <> 'DELETE' then
    insert into graphium_private.projections (tenant_id, family_id, statement_id, cell, required_scopes, projection)
    select n.tenant_id, n.family_id, n.statement_id, hashint8extended(graphium_private._cell(n.projection::real[], n.reach), graphium_private._grid(n.required_scopes)), n.required_scopes, n.projection
      from (select n.tenant_id, n.family_id, n.statement_id, n.required_scopes, d.reach, graphium_private._project(n.embedding, d.directions) as projection
              from new_rows n
              join graphium_private.directions d on d.tenant_id = n.tenant_id and d.family_id = n.family_id
             where tg_op = 'INSERT'
                or not exists (select from graphium_private.projections p where p.statement_id = n.statement_id and (p.tenant_id = n.tenant_id) is true)
            offset 0) as n;
  end if;
  return null;
end
$on_embeddings_moved$;
comment on function graphium_private._on_embeddings_moved() is
  'Trigger: projects new embeddings of projected families, takes deleted ones away, and with those of a shrunken family its directions; follows audiences.';
revoke all on function graphium_private._on_embeddings_moved() from public;
grant execute on function graphium_private._on_embeddings_moved() to graphium_owner;

create or replace function graphium_private._check_projections(p_tenant_id uuid) returns table (statement_id uuid, detail text)
  language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp
begin atomic
  select coalesce(e.statement_id, p.statement_id),
         case when p.statement_id is null then 'it is missing among the projections of its family'
              when e.statement_id is null then 'a projection without its embedding'
              else 'its projection is not that of its vector and audience' end
    from (select e.statement_id, e.family_id, e.required_scopes, d.reach, graphium_private._project(e.embedding, d.directions) as projection
            from graphium.kg_embeddings e
            join graphium_private.directions d on d.tenant_id = e.tenant_id and d.family_id = e.family_id
           where e.tenant_id = p_tenant_id offset 0) as e
    full join (select p.* from graphium_private.projections p where p.tenant_id = p_tenant_id) as p on p.statement_id = e.statement_id
   where e.family_id is distinct from p.family_id or e.required_scopes is distinct from p.required_scopes
      or (e.projection operator(@extschema:vector@.<->) p.projection <= 0.001) is not true
      or p.cell is distinct from hashint8extended(graphium_private._cell(p.projection::real[], e.reach), graphium_private._grid(p.required_scopes));
end;
comment on function graphium_private._check_projections(uuid) is 'For check_memory: embeddings of projected families whose projection is missing or is not theirs.';
revoke all on function graphium_private._check_projections(uuid) from public;

-- After embeddings_inserted and its like (050_memory_triggers.sql), which lock the families and count: triggers fire in
-- the order of their names.
set local role graphium_owner;
do $projection_triggers$
declare
  v_table regclass;
begin
  foreach v_table in array array(select relid::regclass from pg_partition_tree('graphium.kg_embeddings')) loop
    execute format('create or replace trigger projections_follow_insert after insert on %s
                      referencing new table as new_rows for each statement execute function graphium_private._on_embeddings_moved()', v_table);
    execute format('create or replace trigger projections_follow_update after update on %s
                      referencing old table as old_rows new table as new_rows for each statement execute function graphium_private._on_embeddings_moved()', v_table);
    execute format('create or replace trigger projections_follow_delete after delete on %s
                      referencing old table as old_rows for each statement execute function graphium_private._on_embeddings_moved()', v_table);
  end loop;
end
$projection_triggers$;
create or replace trigger projections_follow_truncate after truncate on graphium.kg_embeddings
  for each statement execute function graphium_private._on_embeddings_moved();
