-- The taxonomy as the caller sees it, with how many statements he sees under each specimen.
--
-- One row per specimen; one for a genus without specimens and for a family without genera. What is hidden has no id and
-- no name: statements whose specimen (or family) is hidden are counted in one row of their kind, whose specimen (or
-- family and genus) is NULL; so a specimen that is visible in a hidden family stands beside it. Hidden taxa without a
-- visible statement are not there at all. family_scopes and specimen_scopes are who may see the family and the specimen
-- (an export needs them, and a screen that edits them); NULL where the name is. Ordered by name, by code point, what has no name last. Writes nothing.
-- No sequential scans, and one plan for all: else statistics decide both, and the time tells what other tenants have.
--
-- example:
--   select family, genus, specimen, statements from graphium.context_tree();
set local role graphium_owner;

create or replace function graphium.context_tree()
  returns table (family_id uuid, family text, genus_id uuid, genus text, specimen_id uuid, specimen text, statements bigint,
    family_scopes text[], specimen_scopes text[])
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $context_tree$
#variable_conflict use_column
declare
  v_tenant_id uuid := graphium_private._require_caller();
begin
  return query
  with families as materialized (
    select f.id, f.name, f.required_scopes from graphium.dh_families f where f.tenant_id = v_tenant_id
  ), genera as materialized (
    select g.id, g.name, g.family_id from graphium.dh_genera g where g.tenant_id = v_tenant_id
  ), specimens as materialized (
    select s.id, s.name, s.required_scopes, s.family_id, s.genus_id from graphium.dh_specimens s where s.tenant_id = v_tenant_id
  ), counts as (
    -- in two, so that an index alone tells how many open statements there are
    select s.family_id, s.genus_id, s.specimen_id, count(*) as statements
      from graphium.kg_statements s where s.tenant_id = v_tenant_id and cardinality(s.required_scopes) = 0
     group by s.family_id, s.genus_id, s.specimen_id
    union all
    select s.family_id, s.genus_id, s.specimen_id, count(*)
      from graphium.kg_statements s where s.tenant_id = v_tenant_id and cardinality(s.required_scopes) > 0
     group by s.family_id, s.genus_id, s.specimen_id
  ), counted as materialized (
    select c.specimen_id as id, c.family_id, c.genus_id, sum(c.statements)::bigint as statements
      from counts c group by c.specimen_id, c.family_id, c.genus_id
  ), leaves as (
    -- visible specimens, each with its count; and what is under hidden ones, merged
    select s.family_id, s.genus_id, s.id as specimen_id, s.name, s.required_scopes, coalesce(c.statements, 0) as statements
      from specimens s
      left join counted c on c.id = s.id
    union all
    select f.id, g.id, null, null, null, sum(c.statements)::bigint
      from counted c
      left join families f on f.id = c.family_id
      left join genera g on g.id = c.genus_id
     where not exists (select from specimens s where s.id = c.id)
     group by f.id, g.id
    union all
    -- a genus or a family stands for itself only where there is nothing below it to show
    select g.family_id, g.id, null, null, null, 0
      from genera g
     where not exists (select from specimens s where s.genus_id = g.id) and not exists (select from counted c where c.genus_id = g.id)
    union all
    select f.id, null, null, null, null, 0
      from families f
     where not exists (select from genera g where g.family_id = f.id)
  )
  select f.id, f.name, g.id, g.name, l.specimen_id, l.name, l.statements, f.required_scopes, l.required_scopes
    from leaves l
    left join families f on f.id = l.family_id
    left join genera g on g.id = l.genus_id
   order by f.name collate "C", g.name collate "C", l.name collate "C", f.id, g.id, l.specimen_id;
end
$context_tree$;
comment on function graphium.context_tree() is
  'Families, genera and specimens that the caller may see, with the number of statements that he may see under each, and who else may see them; what is hidden shows as NULL, merged. Writes nothing.';
revoke all on function graphium.context_tree() from public;
grant execute on function graphium.context_tree() to graphium_reader;
