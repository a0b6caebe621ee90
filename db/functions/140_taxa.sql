-- What administrators do to the taxonomy: rename, move, forget. graphium_admin only, in the tenant that he named.
--
-- example:
--   select graphium.set_caller('acme');
--   select graphium.rename_taxon('specimen', specimen_id, 'Ada Lovelace') from graphium.context_tree() where specimen = 'Ada';
--   select graphium.rename_taxon('specimen', specimen_id, 'Ada') from graphium.context_tree() where specimen = 'Ada Lovelace';
set local role graphium_owner;

create or replace function graphium.rename_taxon(kind text, id uuid, name text) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $rename_taxon$
#variable_conflict use_column
declare
  c_id constant uuid := rename_taxon.id;
  v_tenant_id uuid := graphium_private._require_admin();
  v_kind text collate "C" := graphium_private._require_taxon_kind(kind collate "C", 'A statement keeps its wording: forget it, and ingest the new one.');
  v_name text := graphium_private._clean_name(rename_taxon.name, 'name');
begin
  perform graphium_private._lock_families(v_tenant_id, array[graphium_private._family_of(v_tenant_id, v_kind, c_id)]);
  perform graphium_private._family_of(v_tenant_id, v_kind, c_id); -- still there, now that nobody else can touch it?
  case v_kind
    when 'family' then update graphium.dh_families f set name = v_name where f.tenant_id = v_tenant_id and f.id = c_id;
    when 'genus' then update graphium.dh_genera g set name = v_name where g.tenant_id = v_tenant_id and g.id = c_id;
    when 'specimen' then update graphium.dh_specimens s set name = v_name where s.tenant_id = v_tenant_id and s.id = c_id;
  end case;
exception when unique_violation then
  perform graphium_private._raise_error('MG008', format('name: there is a %s "%s" already in the same place', v_kind, v_name), 'Choose another name.');
end
$rename_taxon$;
comment on function graphium.rename_taxon(text, uuid, text) is 'Renames a family, genus or specimen.';
revoke all on function graphium.rename_taxon(text, uuid, text) from public;
grant execute on function graphium.rename_taxon(text, uuid, text) to graphium_admin;

create or replace function graphium.move_specimen(id uuid, genus_id uuid) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $move_specimen$
#variable_conflict use_column
declare
  c_id constant uuid := move_specimen.id;
  c_genus_id constant uuid := move_specimen.genus_id;
  v_tenant_id uuid := graphium_private._require_admin();
  v_family_id uuid := graphium_private._family_of(v_tenant_id, 'specimen', c_id);
begin
  if graphium_private._family_of(v_tenant_id, 'genus', c_genus_id) <> v_family_id then
    perform graphium_private._raise_error('MG008', 'genus_id: the genus is in another family', 'A specimen moves inside its family; to move memory between families ingest it there.');
  end if;
  perform graphium_private._lock_families(v_tenant_id, array[v_family_id]);
  -- still there, now that nobody else can touch them?
  perform graphium_private._family_of(v_tenant_id, 'specimen', c_id), graphium_private._family_of(v_tenant_id, 'genus', c_genus_id);
  update graphium.dh_specimens s set genus_id = c_genus_id where s.tenant_id = v_tenant_id and s.id = c_id;
exception when unique_violation then
  perform graphium_private._raise_error('MG008', 'genus_id: the genus has a specimen of the same name already', 'Rename one of them first.');
end
$move_specimen$;
comment on function graphium.move_specimen(uuid, uuid) is 'Moves a specimen, with its statements, to another genus of the same family.';
revoke all on function graphium.move_specimen(uuid, uuid) from public;
grant execute on function graphium.move_specimen(uuid, uuid) to graphium_admin;

create or replace function graphium.forget_taxon(kind text, id uuid) returns int
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $forget_taxon$
#variable_conflict use_column
declare
  c_id constant uuid := forget_taxon.id;
  v_tenant_id uuid := graphium_private._require_admin();
  v_kind text collate "C" := graphium_private._require_taxon_kind(kind collate "C", 'Statements are deleted by graphium.forget_context().');
  v_family_id uuid := graphium_private._family_of(v_tenant_id, v_kind, c_id);
  v_statements int;
begin
  perform graphium_private._lock_families(v_tenant_id, array[v_family_id]);
  select count(*) into v_statements
    from graphium.kg_statements s
   where s.tenant_id = v_tenant_id and s.family_id = v_family_id
     and case v_kind when 'family' then true when 'genus' then s.genus_id = c_id else s.specimen_id = c_id end;
  -- What was said about these specimens and folded into a statement about another one goes too.
  delete from graphium.kg_statement_variants v
   using graphium.dh_specimens s
   where s.tenant_id = v_tenant_id and s.family_id = v_family_id and case v_kind when 'family' then true when 'genus' then s.genus_id = c_id else s.id = c_id end
     and v.tenant_id = v_tenant_id and v.specimen_id = s.id;
  case v_kind
    when 'family' then delete from graphium.dh_families f where f.tenant_id = v_tenant_id and f.id = c_id;
    when 'genus' then delete from graphium.dh_genera g where g.tenant_id = v_tenant_id and g.id = c_id;
    when 'specimen' then delete from graphium.dh_specimens s where s.tenant_id = v_tenant_id and s.id = c_id;
  end case;
  return v_statements;
end
$forget_taxon$;
comment on function graphium.forget_taxon(text, uuid) is 'Deletes a family, genus or specimen with all that is inside it, and what was said about it and folded into a statement about another specimen. Returns how many statements were deleted.';
revoke all on function graphium.forget_taxon(text, uuid) from public;
grant execute on function graphium.forget_taxon(text, uuid) to graphium_admin;

drop function if exists graphium_private._require_taxon_kind(text); -- with one hint for all
create or replace function graphium_private._require_taxon_kind(kind text, hint text) returns text
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_taxon_kind$
begin
  if lower(kind) in ('family', 'genus', 'specimen') then
    return lower(kind);
  end if;
  perform graphium_private._raise_error('MG008', format('kind must be family, genus or specimen, got %s', coalesce(quote_literal(kind), 'NULL')), hint);
end
$require_taxon_kind$;
comment on function graphium_private._require_taxon_kind(text, text) is 'family, genus or specimen; else MG008.';
revoke all on function graphium_private._require_taxon_kind(text, text) from public;
