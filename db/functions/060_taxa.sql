-- Finding or making the family, genus and specimen that an ingest names, as the caller (these run inside definers owned
-- by graphium_owner, so under the policies). A name that exists but is hidden is MG006: it could not be made again, and
-- writing under it would write where the caller may not look. That such a name exists is the one thing this reveals.
set local role graphium_owner;

-- Returns the family locked. Another session may be making, deleting, renaming or hiding the same family: `on conflict`
-- waits for the first, and whoever gets the lock looks once more whether that is still the family of that name.
create or replace function graphium_private._lock_or_make_family(p_tenant_id uuid, p_name text, p_scopes text[]) returns uuid
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $lock_or_make_family$
declare
  v_id uuid;
begin
  loop -- each further turn means that somebody else committed a change of this family
    select f.id into v_id from graphium.dh_families f where f.tenant_id = p_tenant_id and f.name = p_name;
    if v_id is null then
      -- the foreign key's own lock, taken first: if the tenant is being dropped, this waits and then says so
      perform from graphium.tenants t where t.id = p_tenant_id for key share;
      perform graphium_private._require_caller();
      perform graphium_private._require_held(p_scopes, 'required_scopes');
      insert into graphium.dh_families (tenant_id, id, name, required_scopes)
      values (p_tenant_id, graphium_private.new_id(), p_name, p_scopes)
      on conflict do nothing
      returning id into v_id;
    end if;
    if v_id is not null then
      perform graphium_private._lock_families(p_tenant_id, array[v_id]);
      exit when exists (select from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = v_id and f.name = p_name);
    elsif graphium_private._family_name_is_taken(p_tenant_id, p_name)
          and not exists (select from graphium.dh_families f where f.tenant_id = p_tenant_id and f.name = p_name) then
      perform graphium_private._raise_error('MG006', format('family: the name "%s" belongs to a family that the caller may not see', p_name),
        'Choose another name, or ask an administrator for one of its scopes.');
    end if;
  end loop;
  return v_id;
end
$lock_or_make_family$;
comment on function graphium_private._lock_or_make_family(uuid, text, text[]) is 'Id of the family of that name, made when new (born with these scopes), and locked.';
revoke all on function graphium_private._lock_or_make_family(uuid, text, text[]) from public;

-- The same for several: new ones are made in the order of their names and all are locked in the order of their ids, so two
-- sessions wait for each other, but never both.
create or replace function graphium_private._lock_or_make_families(p_tenant_id uuid, p_names text[], p_scopes text[]) returns void
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $lock_or_make_families$
declare
  v_new text[];
  v_hidden text;
  v_ids uuid[];
begin
  loop
    v_new := array(select n.name from unnest(p_names) as n(name)
                    where not exists (select from graphium.dh_families f where f.tenant_id = p_tenant_id and f.name = n.name)
                    order by n.name collate "C");
    if v_new <> '{}' then
      perform from graphium.tenants t where t.id = p_tenant_id for key share;
      perform graphium_private._require_caller();
      perform graphium_private._require_held(p_scopes, 'required_scopes');
      insert into graphium.dh_families (tenant_id, id, name, required_scopes)
      select p_tenant_id, graphium_private.new_id(), n.name, p_scopes from unnest(v_new) with ordinality as n(name, ordinal) order by n.ordinal
      on conflict do nothing;
      select n.name into v_hidden from unnest(v_new) as n(name)
       where graphium_private._family_name_is_taken(p_tenant_id, n.name)
         and not exists (select from graphium.dh_families f where f.tenant_id = p_tenant_id and f.name = n.name)
       limit 1;
      if found then
        perform graphium_private._raise_error('MG006', format('family: the name "%s" belongs to a family that the caller may not see', v_hidden),
          'Choose another name, or ask an administrator for one of its scopes.');
      end if;
    end if;
    v_ids := array(select f.id from graphium.dh_families f where f.tenant_id = p_tenant_id and f.name = any (p_names));
    perform graphium_private._lock_families(p_tenant_id, v_ids);
    exit when (select count(*) from graphium.dh_families f
                where f.tenant_id = p_tenant_id and f.id = any (v_ids) and f.name = any (p_names)) = cardinality(p_names);
  end loop;
end
$lock_or_make_families$;
comment on function graphium_private._lock_or_make_families(uuid, text[], text[]) is 'Makes those of these (distinct) families that are new, born with these scopes, and locks all.';
revoke all on function graphium_private._lock_or_make_families(uuid, text[], text[]) from public;

-- The family's lock, held by every caller of the next two, makes look-then-insert safe against other ingests; an admin's
-- rename or move may still come between, hence `on conflict`.
create or replace function graphium_private._find_or_make_genus(p_tenant_id uuid, p_family_id uuid, p_name text) returns uuid
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $find_or_make_genus$
declare
  v_id uuid := (select g.id from graphium.dh_genera g where g.tenant_id = p_tenant_id and g.family_id = p_family_id and g.name = p_name);
begin
  if v_id is null then
    insert into graphium.dh_genera (tenant_id, id, family_id, name)
    values (p_tenant_id, graphium_private.new_id(), p_family_id, p_name)
    on conflict on constraint dh_genera_tenant_id_family_id_name_key do update set name = excluded.name
    returning id into v_id;
  end if;
  return v_id;
end
$find_or_make_genus$;
comment on function graphium_private._find_or_make_genus(uuid, uuid, text) is 'Id of the genus of that name in the (locked) family, made when new.';
revoke all on function graphium_private._find_or_make_genus(uuid, uuid, text) from public;

create or replace function graphium_private._find_or_make_specimen(p_tenant_id uuid, p_family_id uuid, p_genus_id uuid, p_name text, p_scopes text[])
  returns graphium.dh_specimens
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $find_or_make_specimen$
declare
  v_specimen graphium.dh_specimens;
begin
  for v_try in 1..2 loop
    select s.* into v_specimen from graphium.dh_specimens s
     where s.tenant_id = p_tenant_id and s.genus_id = p_genus_id and s.name = p_name;
    exit when found;
    perform graphium_private._require_held(p_scopes, 'required_scopes');
    insert into graphium.dh_specimens (tenant_id, id, family_id, genus_id, name, required_scopes)
    values (p_tenant_id, graphium_private.new_id(), p_family_id, p_genus_id, p_name, p_scopes)
    on conflict do nothing
    returning * into v_specimen;
    exit when found;
  end loop;
  if v_specimen.id is null then
    perform graphium_private._raise_error('MG006', format('specimen: the name "%s" belongs to a specimen that the caller may not see', p_name),
      'Choose another name, or ask an administrator for one of its scopes.');
  end if;
  return v_specimen;
end
$find_or_make_specimen$;
comment on function graphium_private._find_or_make_specimen(uuid, uuid, uuid, text, text[]) is
  'The specimen of that name in the genus, made when new (born with these scopes).';
revoke all on function graphium_private._find_or_make_specimen(uuid, uuid, uuid, text, text[]) from public;

set local role graphium_keeper;
create or replace function graphium_private._family_name_is_taken(p_tenant_id uuid, p_name text) returns boolean
  language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp
  return exists (select from graphium.dh_families f where f.tenant_id = p_tenant_id and f.name = p_name);
comment on function graphium_private._family_name_is_taken(uuid, text) is 'Whether a family has that name, visible or not: tells "hidden" from "deleted a moment ago".';
revoke all on function graphium_private._family_name_is_taken(uuid, text) from public;
grant execute on function graphium_private._family_name_is_taken(uuid, text) to graphium_owner;
