-- Triggers that keep what is derived from statements equal to them, in the same transaction: the counts of a family, its
-- summary, and the filter columns copied into kg_embeddings. All are set-based, once per SQL statement. All are
-- keeper-owned definers: a caller who does not see the family must still move its counters, and on a cascade
-- PostgreSQL 17 runs triggers as the caller where 18 runs them as the table's owner.
-- Lock order: they take family rows in id order, before they look at them, so that whoever writes without this project's
-- functions (which lock before: 040_locks.sql) is counted by the audience that the family has by then.
-- An INSERT is what happens all the time: its queries are static, so that a session plans them once. (Such a plan is used for one
-- row and for many, hence `offset 0`: each family is looked up once, by its key, never found by a scan of all.)
set local role graphium_keeper;

-- pgvector's own state of avg(): double precision, element 1 is how many vectors were accumulated.
create or replace aggregate graphium_private.vector_state(@extschema:vector@.vector) (
  sfunc = @extschema:vector@.vector_accum, stype = double precision[], initcond = '{0}', parallel = safe,
  combinefunc = @extschema:vector@.vector_combine);
comment on aggregate graphium_private.vector_state(@extschema:vector@.vector) is 'Sum of vectors in double precision, as the array {how many, sums…}.';
revoke all on function graphium_private.vector_state(@extschema:vector@.vector) from public;

-- ---------------------------------------------------------------- families: birth, change of audience
create or replace function graphium_private._on_families_born() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_families_born$
begin
  insert into graphium_private.family_counters (tenant_id, family_id) select n.tenant_id, n.id from new_rows n;
  insert into graphium_private.family_sums (tenant_id, family_id) select n.tenant_id, n.id from new_rows n;
  return null;
end
$on_families_born$;
comment on function graphium_private._on_families_born() is 'Trigger: counters and an empty sum for each new family.';
revoke all on function graphium_private._on_families_born() from public;

-- The mean of `n` vectors whose sum is in `state`; NULL when there are none, or when they cancel out so far that what is
-- left is rounding. `mass` bounds that rounding: each of state[1] additions was off by at most 2^-53 of at most mass.
create or replace function graphium_private._mean(state double precision[], n bigint, mass double precision, out mean @extschema:vector@.vector, out is_precise boolean)
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $mean$
declare
  v_error double precision;
  v_length double precision;
begin
  is_precise := n = 0 or state is not null;
  if n = 0 or state is null then
    return;
  end if;
  v_error := state[1] * mass * 2.0 ^ -53;
  state[1] := n;
  mean := @extschema:vector@.vector_avg(state);
  v_length := n * @extschema:vector@.vector_norm(mean);
  is_precise := v_error <= 1e-7 * v_length;
  if v_length <= v_error then
    mean := null;
  end if;
end
$mean$;
comment on function graphium_private._mean(double precision[], bigint, double precision) is
  'Mean from a running sum, and whether the sum''s rounding error is surely below 1e-7 of its length.';
revoke all on function graphium_private._mean(double precision[], bigint, double precision) from public;

-- Everything about one family from its rows: how a sum is made afresh, and what check_memory() compares with.
create or replace function graphium_private._summarize_family(p_tenant_id uuid, p_family_id uuid,
    out statements bigint, out embeddings bigint, out visible_statements bigint,
    out state double precision[], out summed bigint, out mass double precision)
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $summarize_family$
declare
  v_audience text[] := (select f.required_scopes from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = p_family_id);
begin
  select count(*), count(*) filter (where graphium_private._audience_includes(s.required_scopes, v_audience))
    into statements, visible_statements
    from graphium.kg_statements s
   where s.tenant_id = p_tenant_id and s.family_id = p_family_id;
  select count(*), graphium_private.vector_state(e.embedding) filter (where i.is_included), count(*) filter (where i.is_included),
         coalesce(sum(@extschema:vector@.vector_norm(e.embedding)) filter (where i.is_included), 0)
    into embeddings, state, summed, mass
    from graphium.kg_embeddings e, lateral (select graphium_private._audience_includes(e.required_scopes, v_audience)) as i(is_included)
   where e.tenant_id = p_tenant_id and e.family_id = p_family_id;
end
$summarize_family$;
comment on function graphium_private._summarize_family(uuid, uuid) is 'Counts and sum of one family, computed from its rows.';
revoke all on function graphium_private._summarize_family(uuid, uuid) from public;

create or replace function graphium_private._refresh_family(p_tenant_id uuid, p_family_id uuid, p_sum_only boolean default false) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $refresh_family$
declare
  v_new record := graphium_private._summarize_family(p_tenant_id, p_family_id);
begin
  update graphium_private.family_sums u set state = v_new.state, embeddings = v_new.summed, mass = v_new.mass
   where u.tenant_id = p_tenant_id and u.family_id = p_family_id;
  update graphium.dh_families f set summary_embedding = (graphium_private._mean(v_new.state, v_new.summed, v_new.mass)).mean
   where f.tenant_id = p_tenant_id and f.id = p_family_id;
  if not p_sum_only then
    update graphium_private.family_counters c set statements = v_new.statements, embeddings = v_new.embeddings
     where c.tenant_id = p_tenant_id and c.family_id = p_family_id;
    update graphium.dh_families f set statement_count = v_new.visible_statements
     where f.tenant_id = p_tenant_id and f.id = p_family_id;
  end if;
end
$refresh_family$;
comment on function graphium_private._refresh_family(uuid, uuid, boolean) is
  'Sets sum and summary of one family afresh from its rows, and unless p_sum_only its counters: in a trigger on embeddings, the one that counts their statements is still to come.';
revoke all on function graphium_private._refresh_family(uuid, uuid, boolean) from public;

create or replace function graphium_private._on_family_audience_changed() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_family_audience_changed$
begin
  perform graphium_private._refresh_family(new.tenant_id, new.id);
  delete from graphium_private.directions d where d.tenant_id = new.tenant_id and d.family_id = new.id; -- made of what its readers see
  return null;
end
$on_family_audience_changed$;
comment on function graphium_private._on_family_audience_changed() is 'Trigger: another audience sums other statements.';
revoke all on function graphium_private._on_family_audience_changed() from public;

-- ---------------------------------------------------------------- statements: counts, copies, immutability
create or replace function graphium_private._on_statements_changed() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_statements_changed$
declare
  v_rows refcursor;
  v_delta record;
begin
  if tg_op = 'UPDATE' then
    -- The hot update only counts a match: leave at once. (Not joined: for the first row that differs the planner would look through both
    -- tables row by row, and there is none.)
    if not exists (select n.tenant_id, n.id, n.genus_id, n.specimen_id, n.memory_type, n.layer_kind, n.required_scopes, n.occurred_at, n.created_at from new_rows n
                   except
                   select o.tenant_id, o.id, o.genus_id, o.specimen_id, o.memory_type, o.layer_kind, o.required_scopes, o.occurred_at, o.created_at from old_rows o) then
      return null;
    end if;
  end if;

  if tg_op = 'INSERT' then
    open v_rows for select distinct n.tenant_id, n.family_id from new_rows n order by 1, 2;
  else
    open v_rows for select distinct o.tenant_id, o.family_id from old_rows o order by 1, 2;
  end if;
  loop
    fetch v_rows into v_delta;
    exit when not found;
    perform from graphium.dh_families f where f.tenant_id = v_delta.tenant_id and f.id = v_delta.family_id for no key update;
  end loop;
  close v_rows;

  if tg_op = 'INSERT' then
    open v_rows for
      with families as materialized (
        select d.tenant_id, d.family_id, f.required_scopes
          from (select distinct n.tenant_id, n.family_id from new_rows n) as d,
               lateral (select f.required_scopes from graphium.dh_families f where f.tenant_id = d.tenant_id and f.id = d.family_id offset 0) as f
      )
      select n.tenant_id, n.family_id, count(*) as statements,
             count(*) filter (where graphium_private._audience_includes(n.required_scopes, f.required_scopes)) as visible
        from new_rows n
        join families f on f.tenant_id = n.tenant_id and f.family_id = n.family_id
       group by n.tenant_id, n.family_id
       order by n.tenant_id, n.family_id;
  else
    open v_rows for execute format($query$
      select r.tenant_id, r.family_id, sum(r.sign) as statements,
             coalesce(sum(r.sign) filter (where graphium_private._audience_includes(r.required_scopes, f.required_scopes)), 0) as visible
        from (%s select tenant_id, family_id, required_scopes, -1 as sign from old_rows) as r
        join graphium.dh_families f on f.tenant_id = r.tenant_id and f.id = r.family_id
       group by r.tenant_id, r.family_id
       order by r.tenant_id, r.family_id $query$,
      case when tg_op = 'UPDATE' then 'select tenant_id, family_id, required_scopes, 1 as sign from new_rows union all' end);
  end if;
  loop
    fetch v_rows into v_delta;
    exit when not found;
    if v_delta.visible <> 0 then
      update graphium.dh_families f set statement_count = f.statement_count + v_delta.visible
       where f.tenant_id = v_delta.tenant_id and f.id = v_delta.family_id;
    end if;
    if v_delta.statements <> 0 then
      update graphium_private.family_counters c set statements = c.statements + v_delta.statements
       where c.tenant_id = v_delta.tenant_id and c.family_id = v_delta.family_id;
    end if;
  end loop;
  close v_rows;

  if tg_op = 'UPDATE' then
    update graphium.kg_embeddings e
       set genus_id = n.genus_id, specimen_id = n.specimen_id, memory_type = n.memory_type, layer_kind = n.layer_kind,
           required_scopes = n.required_scopes, happened_at = coalesce(n.occurred_at, n.created_at)
      from new_rows n
     where e.tenant_id = n.tenant_id and e.statement_id = n.id
       and (e.genus_id, e.specimen_id, e.memory_type, e.layer_kind, e.required_scopes, e.happened_at)
           is distinct from
           (n.genus_id, n.specimen_id, n.memory_type, n.layer_kind, n.required_scopes, coalesce(n.occurred_at, n.created_at));
  end if;
  return null;
end
$on_statements_changed$;
comment on function graphium_private._on_statements_changed() is
  'Trigger: moves the counts of the families concerned, and refreshes the copies of changed filter columns in kg_embeddings.';
revoke all on function graphium_private._on_statements_changed() from public;

-- A foreign key's cascade deletes embeddings one by one, and each would move the family's sum. This row trigger sorts
-- before the foreign key's own and deletes those of the whole SQL statement at once; for its later rows nothing is left.
create or replace function graphium_private._on_statement_deleted() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_statement_deleted$
begin
  if exists (select from graphium.kg_embeddings e where e.tenant_id = old.tenant_id and e.statement_id = old.id) then
    delete from graphium.kg_embeddings e using old_rows o where e.tenant_id = o.tenant_id and e.statement_id = o.id;
  end if;
  return null;
end
$on_statement_deleted$;
comment on function graphium_private._on_statement_deleted() is 'Trigger: deletes the embeddings of all deleted statements in one go.';
revoke all on function graphium_private._on_statement_deleted() from public;

-- What was folded into a specimen's statements goes with them, and first: a variant of this very transaction, said about
-- another specimen that goes too, loses that one, is checked again by PostgreSQL, and would find its statement gone (23503).
create or replace function graphium_private._on_specimen_going() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_specimen_going$
begin
  delete from graphium.kg_statement_variants v
   using graphium.kg_statements s
   where s.tenant_id = old.tenant_id and s.specimen_id = old.id
     and v.tenant_id = old.tenant_id and v.statement_id = s.id;
  return old;
end
$on_specimen_going$;
comment on function graphium_private._on_specimen_going() is 'Trigger: deletes the variants of a specimen''s statements before the cascades begin.';
revoke all on function graphium_private._on_specimen_going() from public;

create or replace function graphium_private._refuse_content_change() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $refuse_content_change$
begin
  perform graphium_private._raise_error('MG003', 'the content of a statement never changes',
    'Delete the statement (graphium.forget_context) and ingest the new wording (graphium.ingest_context).');
  return null;
end
$refuse_content_change$;
comment on function graphium_private._refuse_content_change() is 'Trigger: MG003.';
revoke all on function graphium_private._refuse_content_change() from public;

create or replace function graphium_private._refuse_move() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $refuse_move$
begin
  perform graphium_private._raise_error('MG008', format('%s: tenant_id, id and family_id never change', tg_table_name),
    'A specimen can move to another genus of its family (graphium.move_specimen); nothing moves between families.');
  return null;
end
$refuse_move$;
comment on function graphium_private._refuse_move() is 'Trigger: nothing moves between families or tenants.';
revoke all on function graphium_private._refuse_move() from public;

-- ---------------------------------------------------------------- embeddings: the summary
create or replace function graphium_private._on_embeddings_changed() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_embeddings_changed$
declare
  v_rows refcursor;
  v_delta record;
  v_sum graphium_private.family_sums;
  v_mean record;
begin
  if tg_op <> 'DELETE' then
    if exists (select from new_rows n join graphium.tenants t on t.id = n.tenant_id
                where @extschema:vector@.vector_dims(n.embedding) <> t.dimensions) then
      perform graphium_private._raise_error('MG005', 'embedding: its number of dimensions is not that of the tenant''s model',
        'graphium.caller() tells the model and its dimensions.');
    end if;
  end if;

  if tg_op = 'INSERT' then
    open v_rows for select distinct n.tenant_id, n.family_id from new_rows n order by 1, 2;
  else
    open v_rows for select distinct o.tenant_id, o.family_id from old_rows o order by 1, 2;
  end if;
  loop
    fetch v_rows into v_delta;
    exit when not found;
    perform from graphium.dh_families f where f.tenant_id = v_delta.tenant_id and f.id = v_delta.family_id for no key update;
  end loop;
  close v_rows;

  if tg_op = 'INSERT' then
    open v_rows for
      with families as materialized (
        select d.tenant_id, d.family_id, f.required_scopes
          from (select distinct n.tenant_id, n.family_id from new_rows n) as d,
               lateral (select f.required_scopes from graphium.dh_families f where f.tenant_id = d.tenant_id and f.id = d.family_id offset 0) as f
      )
      select n.tenant_id, n.family_id, count(*) as embeddings,
             graphium_private.vector_state(n.embedding) filter (where i.is_included) as state,
             count(*) filter (where i.is_included) as summed,
             sum(@extschema:vector@.vector_norm(n.embedding)) filter (where i.is_included) as mass
        from new_rows n
        join families f on f.tenant_id = n.tenant_id and f.family_id = n.family_id,
             lateral (select graphium_private._audience_includes(n.required_scopes, f.required_scopes)) as i(is_included)
       group by n.tenant_id, n.family_id
       order by n.tenant_id, n.family_id;
  else
    open v_rows for execute format($query$
      select r.tenant_id, r.family_id, sum(r.sign) as embeddings,
             graphium_private.vector_state(case when r.sign > 0 then r.embedding
               else r.embedding operator(@extschema:vector@.-) r.embedding operator(@extschema:vector@.-) r.embedding end) filter (where i.is_included) as state,
             coalesce(sum(r.sign) filter (where i.is_included), 0) as summed,
             sum(@extschema:vector@.vector_norm(r.embedding)) filter (where i.is_included) as mass
        from (%s select tenant_id, family_id, required_scopes, embedding, -1 as sign from old_rows) as r
        join graphium.dh_families f on f.tenant_id = r.tenant_id and f.id = r.family_id,
             lateral (select graphium_private._audience_includes(r.required_scopes, f.required_scopes)) as i(is_included)
       group by r.tenant_id, r.family_id
       order by r.tenant_id, r.family_id $query$,
      case when tg_op = 'UPDATE' then 'select tenant_id, family_id, required_scopes, embedding, 1 as sign from new_rows union all' end);
  end if;
  loop
    fetch v_rows into v_delta;
    exit when not found;
    if v_delta.embeddings <> 0 then
      update graphium_private.family_counters c set embeddings = c.embeddings + v_delta.embeddings
       where c.tenant_id = v_delta.tenant_id and c.family_id = v_delta.family_id;
    end if;
    continue when v_delta.mass is null; -- nothing that the family's readers may all see

    update graphium_private.family_sums u
       set state = case when u.embeddings + v_delta.summed > 0 then @extschema:vector@.vector_combine(coalesce(u.state, '{0}'), v_delta.state) end,
           embeddings = u.embeddings + v_delta.summed,
           mass = case when u.embeddings + v_delta.summed > 0 then u.mass + v_delta.mass else 0 end
     where u.tenant_id = v_delta.tenant_id and u.family_id = v_delta.family_id
    returning u.* into v_sum;
    v_mean := graphium_private._mean(v_sum.state, v_sum.embeddings, v_sum.mass);
    if v_mean.is_precise then
      update graphium.dh_families f set summary_embedding = v_mean.mean
       where f.tenant_id = v_delta.tenant_id and f.id = v_delta.family_id;
    else
      perform graphium_private._refresh_family(v_delta.tenant_id, v_delta.family_id, p_sum_only => true);
    end if;
  end loop;
  close v_rows;
  return null;
end
$on_embeddings_changed$;
comment on function graphium_private._on_embeddings_changed() is
  'Trigger: adds to and takes from the sums of the families concerned, and sets their summaries.';
revoke all on function graphium_private._on_embeddings_changed() from public;

-- ---------------------------------------------------------------- tenants
create or replace function graphium_private._refuse_model_change() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $refuse_model_change$
begin
  if exists (select from graphium.kg_embeddings e where e.tenant_id = old.id) then
    perform graphium_private._raise_error('MG008', format('embedding_model: tenant "%s" has vectors of %s', old.slug, old.embedding_model),
      'Vectors of two models never meet: make another tenant for the new model and ingest there.');
  end if;
  return new;
end
$refuse_model_change$;
comment on function graphium_private._refuse_model_change() is 'Trigger: a tenant with vectors keeps its embedding model.';
revoke all on function graphium_private._refuse_model_change() from public;

-- ---------------------------------------------------------------- the triggers themselves belong to the tables' owner
grant execute on function graphium_private._on_families_born(), graphium_private._on_family_audience_changed(),
  graphium_private._on_statements_changed(), graphium_private._on_statement_deleted(), graphium_private._on_specimen_going(), graphium_private._refuse_content_change(),
  graphium_private._refuse_move(), graphium_private._on_embeddings_changed(), graphium_private._refuse_model_change() to graphium_owner;
set local role graphium_owner;

create or replace trigger families_born after insert on graphium.dh_families
  referencing new table as new_rows for each statement execute function graphium_private._on_families_born();
create or replace trigger family_audience_changed after update of required_scopes on graphium.dh_families
  for each row when (old.required_scopes is distinct from new.required_scopes)
  execute function graphium_private._on_family_audience_changed();

create or replace trigger statements_inserted after insert on graphium.kg_statements
  referencing new table as new_rows for each statement execute function graphium_private._on_statements_changed();
create or replace trigger statements_updated after update on graphium.kg_statements
  referencing old table as old_rows new table as new_rows for each statement execute function graphium_private._on_statements_changed();
create or replace trigger statements_deleted after delete on graphium.kg_statements
  referencing old table as old_rows for each statement execute function graphium_private._on_statements_changed();
-- triggers fire in the order of their names, and a foreign key's is called "RI_ConstraintTrigger…"
create or replace trigger "00_statement_deleted" after delete on graphium.kg_statements
  referencing old table as old_rows for each row execute function graphium_private._on_statement_deleted();
create or replace trigger variants_go_first before delete on graphium.dh_specimens
  for each row execute function graphium_private._on_specimen_going();
create or replace trigger content_is_immutable before update of content on graphium.kg_statements
  for each row when (old.content is distinct from new.content) execute function graphium_private._refuse_content_change();

-- on the partitions too, for a superuser who writes to one directly: what goes through the parent fires the parent's only
do $embedding_triggers$
declare
  v_table regclass;
begin
  foreach v_table in array array(select relid::regclass from pg_partition_tree('graphium.kg_embeddings')) loop
    execute format('create or replace trigger embeddings_inserted after insert on %s
                      referencing new table as new_rows for each statement execute function graphium_private._on_embeddings_changed()', v_table);
    execute format('create or replace trigger embeddings_updated after update on %s
                      referencing old table as old_rows new table as new_rows for each statement execute function graphium_private._on_embeddings_changed()', v_table);
    execute format('create or replace trigger embeddings_deleted after delete on %s
                      referencing old table as old_rows for each statement execute function graphium_private._on_embeddings_changed()', v_table);
  end loop;
end
$embedding_triggers$;

do $refuse_move_triggers$
declare
  v_table regclass;
begin
  foreach v_table in array array['graphium.dh_genera', 'graphium.dh_specimens', 'graphium.kg_statements']::regclass[] loop
    execute format('create or replace trigger nothing_moves_between_families before update of tenant_id, id, family_id on %s
                      for each row when (old.tenant_id is distinct from new.tenant_id or old.id is distinct from new.id
                        or old.family_id is distinct from new.family_id)
                      execute function graphium_private._refuse_move()', v_table);
  end loop;
end
$refuse_move_triggers$;

create or replace trigger embedding_model_is_fixed before update of embedding_model, dimensions on graphium.tenants
  for each row when ((old.embedding_model, old.dimensions) is distinct from (new.embedding_model, new.dimensions))
  execute function graphium_private._refuse_model_change();

-- ---------------------------------------------------------------- truncate
set local role graphium_keeper;
create or replace function graphium_private._on_memory_truncated() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_memory_truncated$
begin
  if tg_table_name = 'kg_statements' then
    update graphium.dh_families set statement_count = 0 where statement_count <> 0;
    update graphium_private.family_counters set statements = 0 where statements <> 0;
  else
    update graphium.dh_families set summary_embedding = null where summary_embedding is not null;
    update graphium_private.family_counters set embeddings = 0 where embeddings <> 0;
    update graphium_private.family_sums set state = null, embeddings = 0, mass = 0 where embeddings <> 0;
  end if;
  return null;
end
$on_memory_truncated$;
comment on function graphium_private._on_memory_truncated() is 'Trigger: no statements, no counts; no embeddings, no summaries. The one function that is meant to reach every tenant.';
revoke all on function graphium_private._on_memory_truncated() from public;
grant execute on function graphium_private._on_memory_truncated() to graphium_owner;
set local role graphium_owner;
create or replace trigger statements_truncated after truncate on graphium.kg_statements
  for each statement execute function graphium_private._on_memory_truncated();
create or replace trigger embeddings_truncated after truncate on graphium.kg_embeddings
  for each statement execute function graphium_private._on_memory_truncated();
