-- Edges between families: "source supersedes target". graphium_admin only, in the tenant that he named. An end is
-- {"family": …, "genus"?: …, "specimen"?: …} by name, or {"statement_id": …}. Linking the same ends again keeps the edge
-- (and takes the new note, if one is given).
--
-- example:
--   select graphium.set_caller('acme');
--   select graphium.link_symbiosis('related_to', '{"family": "performance", "genus": "feedback"}', '{"family": "goals"}', 'goals come out of feedback') as id \gset
--   select graphium.unlink_symbiosis(:'id');
set local role graphium_owner;

create or replace function graphium.link_symbiosis(kind text, source jsonb, target jsonb, note text = null) returns uuid
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $link_symbiosis$
declare
  v_tenant_id uuid := graphium_private._require_admin();
  v_kind text collate "C" := lower(kind);
  v_source record;
  v_target record;
  v_id uuid;
begin
  if v_kind is null or v_kind not in ('related_to', 'contradicts', 'supersedes') then
    perform graphium_private._raise_error('MG008', format('kind must be related_to, contradicts or supersedes, got %s', coalesce(quote_literal(kind), 'NULL')), 'Read from source to target: the source supersedes the target.');
  end if;
  v_source := graphium_private._find_end(v_tenant_id, source, 'source');
  v_target := graphium_private._find_end(v_tenant_id, target, 'target');
  if v_source.family_id = v_target.family_id then
    perform graphium_private._raise_error('MG008', 'target: both ends are in the same family', 'A symbiosis joins two families. What a newer statement of the same family replaces is forgotten instead (forget_context).');
  end if;
  insert into graphium.dh_symbioses as y
    (tenant_id, id, kind, note, source_family_id, source_genus_id, source_specimen_id, source_statement_id,
     target_family_id, target_genus_id, target_specimen_id, target_statement_id)
  values (v_tenant_id, graphium_private.new_id(), v_kind, link_symbiosis.note,
          v_source.family_id, v_source.genus_id, v_source.specimen_id, v_source.statement_id,
          v_target.family_id, v_target.genus_id, v_target.specimen_id, v_target.statement_id)
  on conflict on constraint dh_symbioses_once do update set note = coalesce(excluded.note, y.note)
  returning y.id into v_id;
  return v_id;
end
$link_symbiosis$;
comment on function graphium.link_symbiosis(text, jsonb, jsonb, text) is
  'Joins two families, or a genus, specimen or statement in each, by an edge of kind related_to, contradicts or supersedes, read from source to target. An end is {"family": …, "genus": …, "specimen": …} by name, the last two optional, or {"statement_id": …}. Returns its id.';
revoke all on function graphium.link_symbiosis(text, jsonb, jsonb, text) from public;
grant execute on function graphium.link_symbiosis(text, jsonb, jsonb, text) to graphium_admin;

create or replace function graphium.unlink_symbiosis(id uuid) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $unlink_symbiosis$
declare
  v_tenant_id uuid := graphium_private._require_admin();
begin
  delete from graphium.dh_symbioses y where y.tenant_id = v_tenant_id and y.id = unlink_symbiosis.id;
  if not found then
    perform graphium_private._raise_error('MG007', format('id: no symbiosis with the id %s', coalesce(id::text, 'NULL')), 'graphium.dh_symbioses has their ids.');
  end if;
end
$unlink_symbiosis$;
comment on function graphium.unlink_symbiosis(uuid) is 'Deletes an edge.';
revoke all on function graphium.unlink_symbiosis(uuid) from public;
grant execute on function graphium.unlink_symbiosis(uuid) to graphium_admin;

-- A specimen's name is unique inside its genus only, so without a genus it must be the only one of its family.
create or replace function graphium_private._find_end(p_tenant_id uuid, p_end jsonb, p_argument text,
    out family_id uuid, out genus_id uuid, out specimen_id uuid, out statement_id uuid)
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $find_end$
#variable_conflict use_column
declare
  c_hint constant text := 'Give {"family": …}, with "genus" and "specimen" where it is narrower, or {"statement_id": …}.';
  v_genus_id uuid;
  v_named uuid[];
  v_specimens uuid[];
begin
  if jsonb_typeof(p_end) is distinct from 'object'
     or exists (select from jsonb_each(p_end) as e where e.key <> all ('{family,genus,specimen,statement_id}') or jsonb_typeof(e.value) <> 'string')
     or (p_end ? 'family') = (p_end ? 'statement_id')
     or (p_end ? 'statement_id' and (p_end ? 'genus' or p_end ? 'specimen')) then
    perform graphium_private._raise_error('MG008', format('%s is not an end of a symbiosis', p_argument), c_hint);
  end if;

  if p_end ? 'statement_id' then
    begin
      statement_id := (p_end ->> 'statement_id')::uuid;
    exception when invalid_text_representation then
      perform graphium_private._raise_error('MG008', format('%s: statement_id is not a uuid', p_argument), c_hint);
    end;
    family_id := (select s.family_id from graphium.kg_statements s where s.tenant_id = p_tenant_id and s.id = statement_id);
  else
    v_named := graphium_private._ids_named(p_tenant_id, 'family', null, array[graphium_private._clean_name(p_end ->> 'family', p_argument || ': family')]);
    family_id := (select f.id from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = any (v_named));
    if p_end ? 'genus' then
      v_named := graphium_private._ids_named(p_tenant_id, 'genus', array[family_id], array[graphium_private._clean_name(p_end ->> 'genus', p_argument || ': genus')]);
      v_genus_id := (select g.id from graphium.dh_genera g where g.tenant_id = p_tenant_id and g.id = any (v_named));
    end if;
    if p_end ? 'specimen' then
      v_named := graphium_private._ids_named(p_tenant_id, 'specimen', case when p_end ? 'genus' then array[v_genus_id] end,
        array[graphium_private._clean_name(p_end ->> 'specimen', p_argument || ': specimen')]);
      v_specimens := array(select s.id from graphium.dh_specimens s where s.tenant_id = p_tenant_id and s.family_id = _find_end.family_id and s.id = any (v_named));
      if cardinality(v_specimens) > 1 then
        perform graphium_private._raise_error('MG008', format('%s: several genera of the family have a specimen of that name', p_argument), 'Add "genus".');
      end if;
      specimen_id := v_specimens[1];
    else
      genus_id := v_genus_id;
    end if;
  end if;
  if family_id is null or (p_end ? 'genus' and v_genus_id is null) or (p_end ? 'specimen' and specimen_id is null) then
    perform graphium_private._raise_error('MG007', format('%s: there is no such row', p_argument), 'graphium.context_tree() lists what there is.');
  end if;
end
$find_end$;
comment on function graphium_private._find_end(uuid, jsonb, text) is 'Ids of one end of an edge: its family, and at most one of genus, specimen, statement.';
revoke all on function graphium_private._find_end(uuid, jsonb, text) from public;
