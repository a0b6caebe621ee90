-- Changes the audience of families, specimens or statements; with cascade also of what is inside them, as far as the
-- caller sees it. Returns how many rows got another audience. All or nothing: an edit after which the caller could not
-- see a row is refused (MG006), an id that is missing or hidden is not found (MG007). Summaries, vectors' copies, words
-- and the graph follow in the same transaction, and graphium.scope_edits says who did it. Statements whose audiences
-- become equal are not merged afterwards.
-- A keyword is compared as it is written, whatever collation a caller gave it (where that reads 'statement' as 'family' the edit would be of more).
-- Lock order: the families by id first, like every writer.
--
-- example:
--   select graphium.set_caller('acme', '{hr}');
--   select graphium.set_required_scopes('statement', statement_id, '{}') from graphium.recall_context(page_size => 1);
--   select row_kind, old_scopes, row_count, losing_scopes, losing_everyone
--     from graphium.preview_required_scopes('statement', array(select statement_id from graphium.recall_context(specimen => 'Ada')), '{hr}');
--   select graphium.set_many_required_scopes('statement', array(select statement_id from graphium.recall_context(specimen => 'Ada')), '{hr}');
--   select graphium.set_many_required_scopes('statement', array(select statement_id from graphium.recall_context(specimen => 'Ada')), '{}');
set local role graphium_owner;

drop function if exists graphium_private._families_of(uuid, text, uuid[]), graphium_private._edit_scopes(uuid, text, uuid[], text[], boolean); -- without the argument's name

-- The families of rows that the caller sees. Missing and hidden ones are not found, in the same words.
create or replace function graphium_private._families_of(p_tenant_id uuid, p_kind text, p_ids uuid[], p_argument text = 'id') returns uuid[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $families_of$
declare
  v_families uuid[];
  v_missing bigint;
  v_first_missing uuid;
begin
  with seen as (
    select f.id, f.id as family_id from graphium.dh_families f where p_kind = 'family' and f.tenant_id = p_tenant_id and f.id = any (p_ids)
    union all
    select g.id, g.family_id from graphium.dh_genera g where p_kind = 'genus' and g.tenant_id = p_tenant_id and g.id = any (p_ids)
    union all
    select s.id, s.family_id from graphium.dh_specimens s where p_kind = 'specimen' and s.tenant_id = p_tenant_id and s.id = any (p_ids)
    union all
    select s.id, s.family_id from graphium.kg_statements s where p_kind = 'statement' and s.tenant_id = p_tenant_id and s.id = any (p_ids)
  )
  select array_agg(distinct s.family_id), count(*) filter (where s.id is null),
         (array_agg(i.id order by i.n) filter (where s.id is null))[1]
    into v_families, v_missing, v_first_missing
    from unnest(p_ids) with ordinality as i(id, n)
    left join seen s on s.id = i.id;
  if v_missing > 0 then
    perform graphium_private._raise_error('MG007', format('%s: no %s with the id %s', p_argument, p_kind, coalesce(v_first_missing::text, 'NULL')),
      'graphium.context_tree() and graphium.recall_context() list ids.');
  end if;
  return coalesce(v_families, '{}');
end
$families_of$;
comment on function graphium_private._families_of(uuid, text, uuid[], text) is 'The families of rows that the caller sees; MG007 when one of them is missing or hidden.';
revoke all on function graphium_private._families_of(uuid, text, uuid[], text) from public;

create or replace function graphium_private._family_of(p_tenant_id uuid, p_kind text, p_id uuid) returns uuid
  language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $family_of$
  select (graphium_private._families_of(p_tenant_id, p_kind, array[p_id]))[1]
$family_of$;
comment on function graphium_private._family_of(uuid, text, uuid) is 'The family of one row that the caller sees; MG007 when it is missing or hidden.';
revoke all on function graphium_private._family_of(uuid, text, uuid) from public;

create or replace function graphium_private._checked_edit(p_kind text, p_scopes text[], p_cascade boolean) returns text[]
  language plpgsql stable parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $checked_edit$
declare
  v_scopes text[] := graphium_private._clean_scopes(p_scopes, 'required_scopes');
begin
  if p_scopes is null then
    perform graphium_private._raise_error('MG008', 'required_scopes must not be NULL', 'Give an array of scopes; ''{}'' opens it to everyone in the tenant.');
  end if;
  if p_kind is null or p_kind not in ('family', 'specimen', 'statement') then
    perform graphium_private._raise_error('MG008', format('kind must be family, specimen or statement, got %s', coalesce(quote_literal(p_kind), 'NULL')), 'A genus follows its family.');
  end if;
  perform graphium_private._require_boolean('cascade', p_cascade);
  return v_scopes;
end
$checked_edit$;
comment on function graphium_private._checked_edit(text, text[], boolean) is 'The audience as it will be stored; MG008 where an argument of an edit is none.';
revoke all on function graphium_private._checked_edit(text, text[], boolean) from public;

create or replace function graphium_private._edit_scopes(p_tenant_id uuid, p_kind text, p_ids uuid[], p_scopes text[], p_cascade boolean, p_argument text) returns int
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $edit_scopes$
declare
  v_scopes constant text[] := graphium_private._checked_edit(p_kind, p_scopes, p_cascade);
  v_families uuid[];
  v_rows int;
  v_changed int := 0;
begin
  v_families := graphium_private._families_of(p_tenant_id, p_kind, p_ids, p_argument);
  perform graphium_private._lock_families(p_tenant_id, v_families);
  perform graphium_private._families_of(p_tenant_id, p_kind, p_ids, p_argument); -- still there, now that nobody else can touch them?
  perform graphium_private._require_held(v_scopes, 'required_scopes');

  if p_kind = 'family' then
    update graphium.dh_families f set required_scopes = v_scopes
     where f.tenant_id = p_tenant_id and f.id = any (p_ids) and f.required_scopes <> v_scopes;
    get diagnostics v_rows = row_count;
    v_changed := v_changed + v_rows;
  end if;
  if p_kind = 'specimen' or (p_kind = 'family' and p_cascade) then
    update graphium.dh_specimens s set required_scopes = v_scopes
     where s.tenant_id = p_tenant_id and s.family_id = any (v_families) and (p_kind = 'family' or s.id = any (p_ids)) and s.required_scopes <> v_scopes;
    get diagnostics v_rows = row_count;
    v_changed := v_changed + v_rows;
  end if;
  if p_kind = 'statement' or p_cascade then
    update graphium.kg_statements s set required_scopes = v_scopes
     where s.tenant_id = p_tenant_id and s.family_id = any (v_families)
       and (p_kind = 'family' or (p_kind = 'specimen' and s.specimen_id = any (p_ids)) or (p_kind = 'statement' and s.id = any (p_ids)))
       and s.required_scopes <> v_scopes;
    get diagnostics v_rows = row_count;
    v_changed := v_changed + v_rows;
  end if;
  return v_changed;
end
$edit_scopes$;
comment on function graphium_private._edit_scopes(uuid, text, uuid[], text[], boolean, text) is 'The steps of both set_required_scopes functions: check, lock, check again, write.';
revoke all on function graphium_private._edit_scopes(uuid, text, uuid[], text[], boolean, text) from public;

create or replace function graphium.set_many_required_scopes(kind text, ids uuid[], required_scopes text[], cascade boolean = false) returns int
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $set_many_required_scopes$
begin
  if ids is null then
    perform graphium_private._raise_error('MG008', 'ids must not be NULL', 'Give an array of ids; ''{}'' changes nothing.');
  end if;
  return graphium_private._edit_scopes(graphium_private._require_writer(), lower(kind) collate "C", ids, required_scopes, cascade, 'ids');
end
$set_many_required_scopes$;
comment on function graphium.set_many_required_scopes(text, uuid[], text[], boolean) is
  'set_required_scopes() for many families, specimens or statements at once: all of them or none. Returns how many rows changed.';
revoke all on function graphium.set_many_required_scopes(text, uuid[], text[], boolean) from public;
grant execute on function graphium.set_many_required_scopes(text, uuid[], text[], boolean) to graphium_user;

create or replace function graphium.set_required_scopes(kind text, id uuid, required_scopes text[], cascade boolean = false) returns int
  language sql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $set_required_scopes$
  select graphium_private._edit_scopes(graphium_private._require_writer(), lower(kind) collate "C", array[id], required_scopes, cascade, 'id')
$set_required_scopes$;
comment on function graphium.set_required_scopes(text, uuid, text[], boolean) is
  'Sets who may see a family, specimen or statement (with cascade: and what the caller sees inside it), and returns how many rows changed.';
revoke all on function graphium.set_required_scopes(text, uuid, text[], boolean) from public;
grant execute on function graphium.set_required_scopes(text, uuid, text[], boolean) to graphium_user;

-- What such an edit would do, and refuse, without doing it: for a screen that asks before. One row for each kind of row and each audience
-- that would change, with how many rows of it the caller sees, and who would lose sight of them: holders of one of losing_scopes that hold no
-- scope of the new audience; everybody who holds none of those where losing_everyone (it was open). losing_principals, by the names of
-- their logins, is for an admin: to others that list is empty, as the table of principals is. Writes nothing, and locks nothing: between
-- this and the edit somebody else may write.
create or replace function graphium.preview_required_scopes(kind text, ids uuid[], required_scopes text[], cascade boolean = false)
  returns table (row_kind text, old_scopes text[], row_count bigint, losing_scopes text[], losing_everyone boolean, losing_principals text[])
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off
as $preview_required_scopes$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_kind constant text collate "C" := lower(kind) collate "C";
  v_scopes constant text[] := graphium_private._checked_edit(v_kind, required_scopes, cascade);
  v_families uuid[];
begin
  if ids is null then
    perform graphium_private._raise_error('MG008', 'ids must not be NULL', 'Give an array of ids; ''{}'' changes nothing.');
  end if;
  v_families := graphium_private._families_of(v_tenant_id, v_kind, ids, 'ids');
  perform graphium_private._require_held(v_scopes, 'required_scopes');
  return query
  with touched as (
    select 'family' as row_kind, f.required_scopes from graphium.dh_families f
     where v_kind = 'family' and f.tenant_id = v_tenant_id and f.id = any (ids)
    union all
    select 'specimen', s.required_scopes from graphium.dh_specimens s
     where (v_kind = 'specimen' or (v_kind = 'family' and cascade)) and s.tenant_id = v_tenant_id and s.family_id = any (v_families)
       and (v_kind = 'family' or s.id = any (ids))
    union all
    select 'statement', s.required_scopes from graphium.kg_statements s
     where (v_kind = 'statement' or cascade) and s.tenant_id = v_tenant_id and s.family_id = any (v_families)
       and (v_kind = 'family' or (v_kind = 'specimen' and s.specimen_id = any (ids)) or (v_kind = 'statement' and s.id = any (ids)))
  ), audiences as (
    select t.row_kind, t.required_scopes as old_scopes, count(*) as row_count,
           graphium_private.is_visible(v_scopes, '{}') as is_opened, graphium_private.is_visible(t.required_scopes, '{}') as was_open
      from touched t where t.required_scopes <> v_scopes
     group by t.row_kind, t.required_scopes
  )
  select a.row_kind, a.old_scopes, a.row_count,
         case when a.is_opened or a.was_open then '{}' else array(select o from unnest(a.old_scopes) as o where o <> all (v_scopes) order by o collate "C") end,
         a.was_open and not a.is_opened,
         array(select p.role_name::text from graphium.principals p
                where graphium_private.is_visible(a.old_scopes, p.scopes) and not graphium_private.is_visible(v_scopes, p.scopes)
                order by p.role_name::text collate "C")
    from audiences a
   order by array_position('{family,specimen,statement}', a.row_kind), a.old_scopes;
end
$preview_required_scopes$;
comment on function graphium.preview_required_scopes(text, uuid[], text[], boolean) is
  'What set_many_required_scopes() would change, by kind of row and audience so far, and who would lose sight of it; refuses what that refuses. Writes nothing.';
revoke all on function graphium.preview_required_scopes(text, uuid[], text[], boolean) from public;
grant execute on function graphium.preview_required_scopes(text, uuid[], text[], boolean) to graphium_user;
