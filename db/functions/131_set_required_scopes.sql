-- Changes the audience of a family, a specimen or a statement; with cascade also of what is inside it, as far as the
-- caller sees it. Returns how many rows got another audience. An edit after which the caller could not see the row is
-- refused (MG006), a row that is missing or hidden is not found (MG007). Summaries, vectors' copies and the graph follow
-- in the same transaction. Statements whose audiences become equal are not merged afterwards.
-- Lock order: the family first, like every writer.
--
-- example:
--   select graphium.set_caller('acme');
--   select count(graphium.set_required_scopes('statement', statement_id, '{}')) from graphium.recall_context(page_size => 1);
set local role graphium_owner;

create or replace function graphium.set_required_scopes(kind text, id uuid, required_scopes text[], cascade boolean = false) returns int
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $set_required_scopes$
#variable_conflict use_column
declare
  c_kind constant text := lower(set_required_scopes.kind);
  c_id constant uuid := set_required_scopes.id;
  v_tenant_id uuid := graphium_private._require_writer();
  v_scopes text[];
  v_family_id uuid;
  v_rows int;
  v_changed int := 0;
begin
  if set_required_scopes.required_scopes is null then
    perform graphium_private._raise_error('MG008', 'required_scopes must not be NULL', 'Give an array of scopes; ''{}'' opens it to everyone in the tenant.');
  end if;
  v_scopes := graphium_private._clean_scopes(set_required_scopes.required_scopes, 'required_scopes');
  if c_kind is null or c_kind not in ('family', 'specimen', 'statement') then
    perform graphium_private._raise_error('MG008', format('kind must be family, specimen or statement, got %s', coalesce(quote_literal(kind), 'NULL')), 'A genus follows its family.');
  end if;

  v_family_id := graphium_private._family_of(v_tenant_id, c_kind, c_id);
  perform graphium_private._lock_families(v_tenant_id, array[v_family_id]);
  perform graphium_private._family_of(v_tenant_id, c_kind, c_id); -- still there, now that nobody else can touch it?
  perform graphium_private._require_held(v_scopes, 'required_scopes');

  if c_kind = 'family' then
    update graphium.dh_families f set required_scopes = v_scopes
     where f.tenant_id = v_tenant_id and f.id = c_id and f.required_scopes <> v_scopes;
    get diagnostics v_rows = row_count;
    v_changed := v_changed + v_rows;
  end if;
  if c_kind = 'specimen' or (c_kind = 'family' and cascade) then
    update graphium.dh_specimens s set required_scopes = v_scopes
     where s.tenant_id = v_tenant_id and s.family_id = v_family_id and (c_kind = 'family' or s.id = c_id) and s.required_scopes <> v_scopes;
    get diagnostics v_rows = row_count;
    v_changed := v_changed + v_rows;
  end if;
  if c_kind = 'statement' or cascade then
    update graphium.kg_statements s set required_scopes = v_scopes
     where s.tenant_id = v_tenant_id and s.family_id = v_family_id
       and (c_kind = 'family' or (c_kind = 'specimen' and s.specimen_id = c_id) or (c_kind = 'statement' and s.id = c_id))
       and s.required_scopes <> v_scopes;
    get diagnostics v_rows = row_count;
    v_changed := v_changed + v_rows;
  end if;
  return v_changed;
end
$set_required_scopes$;
comment on function graphium.set_required_scopes(text, uuid, text[], boolean) is
  'Sets who may see a family, specimen or statement (with cascade: and what the caller sees inside it), and returns how many rows changed.';
revoke all on function graphium.set_required_scopes(text, uuid, text[], boolean) from public;
grant execute on function graphium.set_required_scopes(text, uuid, text[], boolean) to graphium_user;

create or replace function graphium_private._family_of(p_tenant_id uuid, p_kind text, p_id uuid) returns uuid
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $family_of$
declare
  v_family_id uuid := case p_kind
    when 'family' then (select f.id from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = p_id)
    when 'genus' then (select g.family_id from graphium.dh_genera g where g.tenant_id = p_tenant_id and g.id = p_id)
    when 'specimen' then (select s.family_id from graphium.dh_specimens s where s.tenant_id = p_tenant_id and s.id = p_id)
    when 'statement' then (select s.family_id from graphium.kg_statements s where s.tenant_id = p_tenant_id and s.id = p_id)
  end;
begin
  if v_family_id is null then
    perform graphium_private._raise_error('MG007', format('id: no %s with the id %s', p_kind, coalesce(p_id::text, 'NULL')), 'graphium.context_tree() and graphium.recall_context() list ids.');
  end if;
  return v_family_id;
end
$family_of$;
comment on function graphium_private._family_of(uuid, text, uuid) is 'The family of a row that the caller sees; MG007 for one that is missing or hidden, in the same words.';
revoke all on function graphium_private._family_of(uuid, text, uuid) from public;
