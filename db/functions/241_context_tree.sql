-- The taxonomy as the caller sees it, with how many statements he sees under each specimen.
--
-- One row per specimen; one for a genus without specimens and for a family without genera. What is hidden has no id and
-- no name: statements whose specimen (or family) is hidden are counted in one row of their kind, whose specimen (or
-- family and genus) is NULL; so a specimen that is visible in a hidden family stands beside it. Hidden taxa without a
-- visible statement are not there at all. family_scopes and specimen_scopes are who may see the family and the specimen
-- (an export needs them, and a screen that edits them); NULL where the name is. Ordered by name, by code point, what has no name last. Writes nothing.
-- Open statements, and those of a few scopes, are counted from indexes alone (0016); three sources, so that each has its index.
-- In the full joins hidden taxa meet nothing; so the counts below them have no names, and fall together in the last grouping.
-- No sequential scans, and one plan for all: else statistics decide both, and the time tells what other tenants have.
-- No nested loops: no statistics tell what a policy lets through, and with too low a guess each family would meet each genus.
--
-- example:
--   select family, genus, specimen, statements from graphium.context_tree();
set local role graphium_owner;

create or replace function graphium.context_tree()
  returns table (family_id uuid, family text, genus_id uuid, genus text, specimen_id uuid, specimen text, statements bigint,
    family_scopes text[], specimen_scopes text[])
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set enable_seqscan = off set enable_nestloop = off set plan_cache_mode = force_generic_plan
as $context_tree$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
begin
  return query
  select t.family_id, t.family, t.genus_id, t.genus, s.id, s.name, coalesce(sum(o.statements), 0)::bigint + coalesce(sum(n.statements), 0)::bigint,
         any_value(t.required_scopes), any_value(s.required_scopes)
    from (
      select s.id, s.genus_id, s.name collate "C" as name, s.required_scopes from graphium.dh_specimens s where s.tenant_id = v_tenant_id
    ) as s
    full join (
      select s.genus_id, s.specimen_id, count(*)::int as statements
        from graphium.kg_statements s where s.tenant_id = v_tenant_id and cardinality(s.required_scopes) = 0
       group by s.genus_id, s.specimen_id
    ) as o on o.specimen_id = s.id
    full join (
      select c.genus_id, c.specimen_id, count(*)::int as statements
        from (select s.genus_id, s.specimen_id
                from graphium.kg_statements s where s.tenant_id = v_tenant_id and cardinality(s.required_scopes) between 1 and 3
               union all
              select s.genus_id, s.specimen_id
                from graphium.kg_statements s where s.tenant_id = v_tenant_id and cardinality(s.required_scopes) > 3) as c
       group by c.genus_id, c.specimen_id
    ) as n on n.specimen_id = coalesce(s.id, o.specimen_id)
    -- a genus is visible exactly when its family is
    full join (
      select f.id as family_id, f.name collate "C" as family, f.required_scopes, g.id as genus_id, g.name collate "C" as genus
        from graphium.dh_families f
        left join graphium.dh_genera g on g.tenant_id = v_tenant_id and g.family_id = f.id
       where f.tenant_id = v_tenant_id
    ) as t on t.genus_id = coalesce(s.genus_id, o.genus_id, n.genus_id)
   group by t.family, t.genus, s.name, t.family_id, t.genus_id, s.id
   order by t.family, t.genus, s.name, t.family_id, t.genus_id, s.id;
end
$context_tree$;
comment on function graphium.context_tree() is
  'Families, genera and specimens that the caller may see, with the number of statements that he may see under each, and who else may see them; what is hidden shows as NULL, merged. Writes nothing.';
revoke all on function graphium.context_tree() from public;
grant execute on function graphium.context_tree() to graphium_reader;
