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
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
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
  ), leaves as (
    select s.family_id, s.genus_id, s.specimen_id, count(*) as statements
      from graphium.kg_statements s where s.tenant_id = v_tenant_id
     group by s.family_id, s.genus_id, s.specimen_id
    union all
    select s.family_id, s.genus_id, s.id, 0 from specimens s
    union all
    select g.family_id, g.id, null, 0 from genera g
    union all
    select f.id, null, null, 0 from families f
  ), seen as (
    select f.id as family_id, f.name as family, g.id as genus_id, g.name as genus, s.id as specimen_id, s.name as specimen, sum(l.statements)::bigint as statements,
           f.required_scopes as family_scopes, s.required_scopes as specimen_scopes
      from leaves l
      left join families f on f.id = l.family_id
      left join genera g on g.id = l.genus_id
      left join specimens s on s.id = l.specimen_id
     group by f.id, f.name, f.required_scopes, g.id, g.name, s.id, s.name, s.required_scopes
  ), counted as (
    -- a genus or a family stands for itself only where there is nothing below it to show
    select s.*, s.statements > 0 or s.specimen_id is not null
                or (s.genus_id is not null and count(*) over (partition by s.genus_id) = 1)
                or (s.genus_id is null and s.family_id is not null and count(*) over (partition by s.family_id) = 1) as is_shown
      from seen s
  )
  select c.family_id, c.family, c.genus_id, c.genus, c.specimen_id, c.specimen, c.statements, c.family_scopes, c.specimen_scopes
    from counted c
   where c.is_shown
   order by c.family collate "C", c.genus collate "C", c.specimen collate "C", c.family_id, c.genus_id, c.specimen_id;
end
$context_tree$;
comment on function graphium.context_tree() is
  'Families, genera and specimens that the caller may see, with the number of statements that he may see under each, and who else may see them; what is hidden shows as NULL, merged. Writes nothing.';
revoke all on function graphium.context_tree() from public;
grant execute on function graphium.context_tree() to graphium_reader;
