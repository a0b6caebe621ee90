-- The mirror: triggers that keep a tenant's graph equal to its families, genera and specimens, in the same transaction.
--
--   dh_families   →  (:Family)
--   dh_genera     →  (:Genus)     and  (:Family)-[:HAS_GENUS]->(:Genus)
--   dh_specimens  →  (:Specimen)  and  (:Genus)-[:HAS_SPECIMEN]->(:Specimen), (:Family)-[:CONTAINS_SPECIMEN]->(:Specimen)
--
-- What a row is in the graph depends on nothing but that row, so no trigger reads another table or waits for anybody, and
-- two sessions cannot make each other's mirror stale. A changed row is taken out and put in again. Each statement's
-- rows are handled at once, by plain inserts into the label tables. The exception is the UPDATE of families: every ingest
-- updates a family's summary, so there the row's condition keeps the trigger from being called at all.
--
-- The label tables stand without their schema, which is the tenant's own: the search path says which. So their plans
-- are cached as long as a session stays with one tenant, which makes a single row's mirror three times as fast as
-- dynamic SQL. _graph_path() makes sure that the names can mean nothing else.
--
-- A vertex that is there already (somebody wrote into the graph, or two uuids met in one hash) is a unique violation.
set local role graphium_keeper;

-- Temporary tables come last in the path, and may not bear a label's name: they belong to the caller, whose triggers
-- on them would run as the keeper. So would those of somebody who may create schemas and took the name of a graph that
-- was missing: nothing in a schema that is not graphium_owner's is touched. (It has the search path of the trigger function that calls it.)
create or replace function graphium_private._graph_path(p_tenant_id uuid, p_must_exist boolean) returns text
  language plpgsql stable parallel safe security invoker
as $graph_path$
declare
  v_graph text := graphium_private._graph_name(p_tenant_id);
begin
  if pg_my_temp_schema() <> 0 then
    perform from pg_class c
      where c.relnamespace = pg_my_temp_schema() and c.relname in ('Family', 'Genus', 'Specimen', 'HAS_GENUS', 'HAS_SPECIMEN', 'CONTAINS_SPECIMEN');
    if found then
      perform graphium_private._raise_error('MG009', 'a temporary table of this session has the name of a label of the graph', 'Drop it, or give it another name.');
    end if;
  end if;
  if to_regclass(v_graph || '."CONTAINS_SPECIMEN"') is not null then
    perform from pg_namespace n where n.oid = v_graph::regnamespace and n.nspowner = 'graphium_owner'::regrole;
    if not found then
      perform graphium_private._raise_error('MG009', 'the schema of the tenant''s graph belongs to somebody else', 'A superuser drops it; then an administrator runs graphium.rebuild_graph().');
    end if;
    return v_graph || ', pg_temp';
  elsif p_must_exist then
    perform graphium_private._raise_error('MG009', 'the tenant has no graph to write to', 'An administrator runs graphium.rebuild_graph().');
  end if;
  return null;
end
$graph_path$;
comment on function graphium_private._graph_path(uuid, boolean) is
  'A search path in which the labels'' names mean the tenant''s graph. Without a graph: MG009, or NULL when it need not exist.';
revoke all on function graphium_private._graph_path(uuid, boolean) from public;

create or replace function graphium_private._on_families_mirrored() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_families_mirrored$
declare
  v_tenant_ids uuid[];
  v_tenant_id uuid;
  v_path text;
begin
  if tg_op = 'DELETE' then
    select case when exists (select from removed s where s.tenant_id <> r.tenant_id) then array(select distinct s.tenant_id from removed s) else array[r.tenant_id] end
      into v_tenant_ids from removed r limit 1;
    foreach v_tenant_id in array coalesce(v_tenant_ids, '{}') loop
      v_path := graphium_private._graph_path(v_tenant_id, false);
      continue when v_path is null;
      perform set_config('search_path', v_path, true);
      delete from "Family" v where v.id operator(ag_catalog.=) any (array(select graphium_private._graph_id(3, r.id) from removed r where r.tenant_id = v_tenant_id));
    end loop;
  else
    select case when exists (select from added b where b.tenant_id <> a.tenant_id) then array(select distinct b.tenant_id from added b) else array[a.tenant_id] end
      into v_tenant_ids from added a limit 1;
    foreach v_tenant_id in array coalesce(v_tenant_ids, '{}') loop
      perform set_config('search_path', graphium_private._graph_path(v_tenant_id, true), true);
      insert into "Family" (id, properties, anchor_id)
      select graphium_private._graph_id(3, a.id), ag_catalog.agtype_build_map('id', a.id::text, 'name', a.name), a.id
        from added a where a.tenant_id = v_tenant_id;
    end loop;
  end if;
  return null;
end
$on_families_mirrored$;
comment on function graphium_private._on_families_mirrored() is 'Trigger: the Family vertices of inserted or deleted families.';
revoke all on function graphium_private._on_families_mirrored() from public;
grant execute on function graphium_private._on_families_mirrored() to graphium_owner;

create or replace function graphium_private._on_family_renamed() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_family_renamed$
declare
  v_path text := graphium_private._graph_path(old.tenant_id, false);
begin
  if v_path is not null then
    perform set_config('search_path', v_path, true);
    delete from "Family" v where v.id operator(ag_catalog.=) graphium_private._graph_id(3, old.id);
  end if;
  perform set_config('search_path', graphium_private._graph_path(new.tenant_id, true), true);
  insert into "Family" (id, properties, anchor_id)
  values (graphium_private._graph_id(3, new.id), ag_catalog.agtype_build_map('id', new.id::text, 'name', new.name), new.id);
  return null;
end
$on_family_renamed$;
comment on function graphium_private._on_family_renamed() is 'Trigger: the Family vertex of one changed family.';
revoke all on function graphium_private._on_family_renamed() from public;
grant execute on function graphium_private._on_family_renamed() to graphium_owner;

create or replace function graphium_private._on_genera_mirrored() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_genera_mirrored$
declare
  v_tenant_ids uuid[];
  v_tenant_id uuid;
  v_path text;
begin
  if tg_op = 'UPDATE' then
    perform from (
      select a.tenant_id, a.id, a.family_id, a.name from added a
      except all
      select r.tenant_id, r.id, r.family_id, r.name from removed r) as changed;
    if not found then
      return null;
    end if;
  end if;
  if tg_op <> 'INSERT' then
    select case when exists (select from removed s where s.tenant_id <> r.tenant_id) then array(select distinct s.tenant_id from removed s) else array[r.tenant_id] end
      into v_tenant_ids from removed r limit 1;
    foreach v_tenant_id in array coalesce(v_tenant_ids, '{}') loop
      v_path := graphium_private._graph_path(v_tenant_id, false);
      continue when v_path is null;
      perform set_config('search_path', v_path, true);
      delete from "HAS_GENUS" e where e.end_id operator(ag_catalog.=) any (array(select graphium_private._graph_id(4, r.id) from removed r where r.tenant_id = v_tenant_id));
      delete from "Genus" v where v.id operator(ag_catalog.=) any (array(select graphium_private._graph_id(4, r.id) from removed r where r.tenant_id = v_tenant_id));
    end loop;
  end if;
  if tg_op <> 'DELETE' then
    select case when exists (select from added b where b.tenant_id <> a.tenant_id) then array(select distinct b.tenant_id from added b) else array[a.tenant_id] end
      into v_tenant_ids from added a limit 1;
    foreach v_tenant_id in array coalesce(v_tenant_ids, '{}') loop
      perform set_config('search_path', graphium_private._graph_path(v_tenant_id, true), true);
      insert into "Genus" (id, properties, anchor_id)
      select graphium_private._graph_id(4, a.id), ag_catalog.agtype_build_map('id', a.id::text, 'name', a.name), a.family_id
        from added a where a.tenant_id = v_tenant_id;
      insert into "HAS_GENUS" (id, start_id, end_id, anchor_id)
      select graphium_private._graph_id(6, a.id), graphium_private._graph_id(3, a.family_id), graphium_private._graph_id(4, a.id), a.family_id
        from added a where a.tenant_id = v_tenant_id;
    end loop;
  end if;
  return null;
end
$on_genera_mirrored$;
comment on function graphium_private._on_genera_mirrored() is 'Trigger: the Genus vertices and HAS_GENUS edges of changed genera.';
revoke all on function graphium_private._on_genera_mirrored() from public;
grant execute on function graphium_private._on_genera_mirrored() to graphium_owner;

create or replace function graphium_private._on_specimens_mirrored() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_specimens_mirrored$
declare
  v_tenant_ids uuid[];
  v_tenant_id uuid;
  v_path text;
begin
  if tg_op = 'UPDATE' then
    perform from (
      select a.tenant_id, a.id, a.family_id, a.genus_id, a.name, a.required_scopes from added a
      except all
      select r.tenant_id, r.id, r.family_id, r.genus_id, r.name, r.required_scopes from removed r) as changed;
    if not found then
      return null;
    end if;
  end if;
  if tg_op <> 'INSERT' then
    select case when exists (select from removed s where s.tenant_id <> r.tenant_id) then array(select distinct s.tenant_id from removed s) else array[r.tenant_id] end
      into v_tenant_ids from removed r limit 1;
    foreach v_tenant_id in array coalesce(v_tenant_ids, '{}') loop
      v_path := graphium_private._graph_path(v_tenant_id, false);
      continue when v_path is null;
      perform set_config('search_path', v_path, true);
      delete from "HAS_SPECIMEN" e where e.end_id operator(ag_catalog.=) any (array(select graphium_private._graph_id(5, r.id) from removed r where r.tenant_id = v_tenant_id));
      delete from "CONTAINS_SPECIMEN" e where e.end_id operator(ag_catalog.=) any (array(select graphium_private._graph_id(5, r.id) from removed r where r.tenant_id = v_tenant_id));
      delete from "Specimen" v where v.id operator(ag_catalog.=) any (array(select graphium_private._graph_id(5, r.id) from removed r where r.tenant_id = v_tenant_id));
    end loop;
  end if;
  if tg_op <> 'DELETE' then
    select case when exists (select from added b where b.tenant_id <> a.tenant_id) then array(select distinct b.tenant_id from added b) else array[a.tenant_id] end
      into v_tenant_ids from added a limit 1;
    foreach v_tenant_id in array coalesce(v_tenant_ids, '{}') loop
      perform set_config('search_path', graphium_private._graph_path(v_tenant_id, true), true);
      insert into "Specimen" (id, properties, anchor_id, required_scopes)
      select graphium_private._graph_id(5, a.id), ag_catalog.agtype_build_map('id', a.id::text, 'name', a.name), v_tenant_id, a.required_scopes
        from added a where a.tenant_id = v_tenant_id;
      insert into "HAS_SPECIMEN" (id, start_id, end_id, anchor_id, required_scopes)
      select graphium_private._graph_id(7, a.id), graphium_private._graph_id(4, a.genus_id), graphium_private._graph_id(5, a.id), a.family_id, a.required_scopes
        from added a where a.tenant_id = v_tenant_id;
      insert into "CONTAINS_SPECIMEN" (id, start_id, end_id, anchor_id, required_scopes)
      select graphium_private._graph_id(8, a.id), graphium_private._graph_id(3, a.family_id), graphium_private._graph_id(5, a.id), a.family_id, a.required_scopes
        from added a where a.tenant_id = v_tenant_id;
    end loop;
  end if;
  return null;
end
$on_specimens_mirrored$;
comment on function graphium_private._on_specimens_mirrored() is 'Trigger: the Specimen vertices, HAS_SPECIMEN and CONTAINS_SPECIMEN edges of changed specimens.';
revoke all on function graphium_private._on_specimens_mirrored() from public;
grant execute on function graphium_private._on_specimens_mirrored() to graphium_owner;

-- TRUNCATE says nothing about rows, and by then even tenants may be empty: every graph of this database.
create or replace function graphium_private._on_taxonomy_truncated() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_taxonomy_truncated$
declare
  v_labels constant text[] := case tg_table_name when 'dh_families' then '{Family}' when 'dh_genera' then '{Genus,HAS_GENUS}'
    else '{Specimen,HAS_SPECIMEN,CONTAINS_SPECIMEN}' end;
  v_table regclass;
begin
  for v_table in
    select c.oid::regclass from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname ~ '^graphium_[0-9a-f]{32}$' and n.nspowner = 'graphium_owner'::regrole and c.relowner = n.nspowner -- whose triggers are ours
       and c.relkind = 'r' and c.relname = any (v_labels)
     order by n.nspname, array_position(v_labels, c.relname::text)
  loop
    execute format('truncate %s', v_table);
  end loop;
  return null;
end
$on_taxonomy_truncated$;
comment on function graphium_private._on_taxonomy_truncated() is 'Trigger: empties the labels that mirror the truncated table, in every graph.';
revoke all on function graphium_private._on_taxonomy_truncated() from public;
grant execute on function graphium_private._on_taxonomy_truncated() to graphium_owner;

set local role graphium_owner;

create or replace trigger graph_mirror_insert after insert on graphium.dh_families
  referencing new table as added for each statement execute function graphium_private._on_families_mirrored();
create or replace trigger graph_mirror_delete after delete on graphium.dh_families
  referencing old table as removed for each statement execute function graphium_private._on_families_mirrored();
create or replace trigger graph_mirror_update after update on graphium.dh_families
  for each row when (old.tenant_id is distinct from new.tenant_id or old.id is distinct from new.id or old.name is distinct from new.name)
  execute function graphium_private._on_family_renamed();
create or replace trigger graph_mirror_truncate after truncate on graphium.dh_families
  for each statement execute function graphium_private._on_taxonomy_truncated();

create or replace trigger graph_mirror_insert after insert on graphium.dh_genera
  referencing new table as added for each statement execute function graphium_private._on_genera_mirrored();
create or replace trigger graph_mirror_delete after delete on graphium.dh_genera
  referencing old table as removed for each statement execute function graphium_private._on_genera_mirrored();
create or replace trigger graph_mirror_update after update on graphium.dh_genera
  referencing old table as removed new table as added for each statement execute function graphium_private._on_genera_mirrored();
create or replace trigger graph_mirror_truncate after truncate on graphium.dh_genera
  for each statement execute function graphium_private._on_taxonomy_truncated();

create or replace trigger graph_mirror_insert after insert on graphium.dh_specimens
  referencing new table as added for each statement execute function graphium_private._on_specimens_mirrored();
create or replace trigger graph_mirror_delete after delete on graphium.dh_specimens
  referencing old table as removed for each statement execute function graphium_private._on_specimens_mirrored();
create or replace trigger graph_mirror_update after update on graphium.dh_specimens
  referencing old table as removed new table as added for each statement execute function graphium_private._on_specimens_mirrored();
create or replace trigger graph_mirror_truncate after truncate on graphium.dh_specimens
  for each statement execute function graphium_private._on_taxonomy_truncated();
