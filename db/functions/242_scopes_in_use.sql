-- The scopes in the audiences of what the caller sees, and of how many families, specimens and statements each is one: for
-- completion where audiences are written. In a row of one who holds hr, with the audience {hr,legal}, legal stands too. By name.
-- Statements are counted from indexes alone (0016), as in context_tree(). Writes nothing.
--
-- example:
--   select graphium.set_caller('acme', '{hr}');
--   select scope, families, specimens, statements from graphium.scopes_in_use();
set local role graphium_owner;

create or replace function graphium.scopes_in_use()
  returns table (scope text, families bigint, specimens bigint, statements bigint)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $scopes_in_use$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
begin
  return query
  select u.scope collate "C", sum(u.families)::bigint, sum(u.specimens)::bigint, sum(u.statements)::bigint
    from (
      select unnest(f.required_scopes) as scope, 1 as families, 0 as specimens, 0 as statements from graphium.dh_families f where f.tenant_id = v_tenant_id
      union all
      select unnest(s.required_scopes), 0, 1, 0 from graphium.dh_specimens s where s.tenant_id = v_tenant_id
      union all
      select unnest(a.required_scopes), 0, 0, a.n
        from (select s.required_scopes, count(*)::int as n
                from (select s.required_scopes from graphium.kg_statements s where s.tenant_id = v_tenant_id and cardinality(s.required_scopes) between 1 and 3
                       union all
                      select s.required_scopes from graphium.kg_statements s where s.tenant_id = v_tenant_id and cardinality(s.required_scopes) > 3) as s
               group by s.required_scopes) as a
    ) as u
   group by 1
   order by 1;
end
$scopes_in_use$;
comment on function graphium.scopes_in_use() is
  'The scopes in the audiences of what the caller sees, with how many families, specimens and statements have each. Writes nothing.';
revoke all on function graphium.scopes_in_use() from public;
grant execute on function graphium.scopes_in_use() to graphium_reader;
