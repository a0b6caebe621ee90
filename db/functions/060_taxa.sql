-- Finding or making the family, genus and specimen that an ingest names, as the caller (these run inside definers owned
-- by graphium_owner, so under the policies). A name that exists but is hidden is MG006: it could not be made again, and
-- writing under it would write where the caller may not look. That such a name exists is the one thing this reveals.
set local role graphium_owner;

-- Returns the families locked: new ones are made in the order of their names and all are locked in the order of their ids, so two
-- sessions wait for each other, but never both. Another session may be making, deleting, renaming or hiding the same family: `on
-- conflict` waits for the first, and whoever gets the locks looks once more whether those are still the families of these names.
create or replace function graphium_private._lock_or_make_families(p_tenant_id uuid, p_names text[], p_scopes text[]) returns uuid[]
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $lock_or_make_families$
declare
  v_new text[];
  v_hidden text;
  v_ids uuid[];
begin
  loop -- each further turn means that somebody else committed a change of one of them
    v_ids := graphium_private._ids_named(p_tenant_id, 'family', null, p_names);
    v_new := array(select n.name from (select unnest(p_names) as name
                                       except select f.name from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = any (v_ids)) as n
                    order by n.name collate "C");
    if v_new <> '{}' then
      -- the foreign key's own lock, taken first: if the tenant is being dropped, this waits and then says so
      perform from graphium.tenants t where t.id = p_tenant_id for key share;
      perform graphium_private._require_caller();
      perform graphium_private._require_held(p_scopes, 'required_scopes');
      insert into graphium.dh_families (tenant_id, id, name, required_scopes)
      select p_tenant_id, graphium_private.new_id(), n.name, p_scopes from unnest(v_new) with ordinality as n(name, ordinal) order by n.ordinal
      on conflict do nothing;
      -- in one look: what is taken and not seen is hidden, and not deleted between two
      select n.name into v_hidden
        from (select graphium_private._ids_named(p_tenant_id, 'family', null, p_names) as ids offset 0) as a,
             lateral (select count(*) as visible from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = any (a.ids)) as v,
             unnest(v_new) as n(name),
             lateral (select graphium_private._ids_named(p_tenant_id, 'family', null, array[n.name]) as ids offset 0) as named
       where v.visible < cardinality(a.ids) and named.ids <> '{}'
         and not exists (select from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = any (named.ids))
       limit 1;
      if found then
        perform graphium_private._raise_error('MG006', format('family: the name "%s" belongs to a family that the caller may not see', v_hidden),
          'Choose another name, or ask an administrator for one of its scopes.');
      end if;
      v_ids := graphium_private._ids_named(p_tenant_id, 'family', null, p_names);
      v_ids := array(select f.id from graphium.dh_families f where f.tenant_id = p_tenant_id and f.id = any (v_ids));
    end if;
    perform graphium_private._lock_families(p_tenant_id, v_ids);
    exit when (select count(*) from graphium.dh_families f
                where f.tenant_id = p_tenant_id and f.id = any (v_ids) and f.name = any (p_names)) = coalesce(cardinality(p_names), 0);
  end loop;
  return v_ids;
end
$lock_or_make_families$;
comment on function graphium_private._lock_or_make_families(uuid, text[], text[]) is 'Ids of the families of these (distinct) names, in no order, made when new (born with these scopes), and locked.';
revoke all on function graphium_private._lock_or_make_families(uuid, text[], text[]) from public;

-- The family's lock, held by every caller of the next two, makes look-then-insert safe against other ingests; an admin's
-- rename or move may still come between, hence `on conflict`.
create or replace function graphium_private._find_or_make_genus(p_tenant_id uuid, p_family_id uuid, p_name text) returns uuid
  language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $find_or_make_genus$
declare
  v_named constant uuid[] := graphium_private._ids_named(p_tenant_id, 'genus', array[p_family_id], array[p_name]);
  v_id uuid := (select g.id from graphium.dh_genera g where g.tenant_id = p_tenant_id and g.id = any (v_named));
begin
  if v_id is null then
    insert into graphium.dh_genera (tenant_id, id, family_id, name)
    values (p_tenant_id, graphium_private.new_id(), p_family_id, p_name)
    on conflict (tenant_id, family_id, graphium_private._masked(name)) do update set name = excluded.name
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
  v_named uuid[];
  v_specimen graphium.dh_specimens;
begin
  for v_try in 1..2 loop
    v_named := graphium_private._ids_named(p_tenant_id, 'specimen', array[p_genus_id], array[p_name]); -- once, and not for each row that is looked at
    select s.* into v_specimen from graphium.dh_specimens s where s.tenant_id = p_tenant_id and s.id = any (v_named);
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
