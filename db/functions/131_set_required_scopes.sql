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

create or replace function graphium_private._edit_scopes(p_tenant_id uuid, p_kind text, p_ids uuid[], p_scopes text[], p_cascade boolean, p_argument text) returns int
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $edit_scopes$
declare
  v_scopes text[] := graphium_private._clean_scopes(p_scopes, 'required_scopes');
  v_families uuid[];
  v_rows int;
  v_changed int := 0;
begin
  if p_scopes is null then
    perform graphium_private._raise_error('MG008', 'required_scopes must not be NULL', 'Give an array of scopes; ''{}'' opens it to everyone in the tenant.');
  end if;
  if p_kind is null or p_kind not in ('family', 'specimen', 'statement') then
    perform graphium_private._raise_error('MG008', format('kind must be family, specimen or statement, got %s', coalesce(quote_literal(p_kind), 'NULL')), 'A genus follows its family.');
  end if;
  perform graphium_private._require_boolean('cascade', p_cascade);

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
