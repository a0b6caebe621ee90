-- Row-level security. One rule, one policy name, on every table with tenant data: the row's tenant is the caller's, and
-- its audience includes him. The same expression is the WITH CHECK: nobody writes a row that he could not read.
-- Helpers stand in (select …) so that they run once per statement. RLS itself is enabled and forced in the migration
-- that creates each table, so a table without a policy shows nothing to anybody.
set local role graphium_owner;

drop policy if exists tenant_and_scope_isolation on graphium.tenants;
create policy tenant_and_scope_isolation on graphium.tenants
  using (id = (select graphium_private.caller_tenant_id()));

-- Bindings of login roles are for the tenant's admins, and so is the record of who changed which audience.
drop policy if exists tenant_and_scope_isolation on graphium.principals;
create policy tenant_and_scope_isolation on graphium.principals
  using (tenant = (select t.slug from graphium.tenants t where t.id = (select graphium_private.caller_tenant_id()))
         and (select graphium_private.caller_scopes()) is null);

drop policy if exists tenant_and_scope_isolation on graphium.scope_edits;
create policy tenant_and_scope_isolation on graphium.scope_edits
  using (tenant_id = (select graphium_private.caller_tenant_id()) and (select graphium_private.caller_scopes()) is null);

drop policy if exists tenant_and_scope_isolation on graphium.dh_families;
create policy tenant_and_scope_isolation on graphium.dh_families
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes())));

-- A genus follows its family.
drop policy if exists tenant_and_scope_isolation on graphium.dh_genera;
create policy tenant_and_scope_isolation on graphium.dh_genera
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and exists (select from graphium.dh_families f where f.tenant_id = dh_genera.tenant_id and f.id = dh_genera.family_id));

drop policy if exists tenant_and_scope_isolation on graphium.dh_specimens;
create policy tenant_and_scope_isolation on graphium.dh_specimens
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes())));

drop policy if exists tenant_and_scope_isolation on graphium.kg_statements;
create policy tenant_and_scope_isolation on graphium.kg_statements
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes())));

-- A variant follows its statement.
drop policy if exists tenant_and_scope_isolation on graphium.kg_statement_variants;
create policy tenant_and_scope_isolation on graphium.kg_statement_variants
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and exists (select from graphium.kg_statements s
                      where s.tenant_id = kg_statement_variants.tenant_id and s.id = kg_statement_variants.statement_id));

-- An embedding carries its statement's audience (a trigger keeps the copy equal): no join on the hot path.
-- Partitions have the policy too, for whoever reads one directly.
do $embeddings$
declare
  v_table regclass;
begin
  foreach v_table in array array(select relid::regclass from pg_partition_tree('graphium.kg_embeddings')) loop
    execute format('drop policy if exists tenant_and_scope_isolation on %s', v_table);
    execute format('create policy tenant_and_scope_isolation on %s
                      using (tenant_id = (select graphium_private.caller_tenant_id())
                             and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes())))', v_table);
  end loop;
end
$embeddings$;

-- So does a posting of the inverted index: what a search by words counts and finds is what the caller may see.
drop policy if exists tenant_and_scope_isolation on graphium_private.postings;
create policy tenant_and_scope_isolation on graphium_private.postings
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes())));

drop policy if exists tenant_and_scope_isolation on graphium_private.audiences;
create policy tenant_and_scope_isolation on graphium_private.audiences
  using (tenant_id = (select graphium_private.caller_tenant_id()));

-- And a projection: candidates of dedup are statements that the caller sees. (Directions only the keeper reads.)
drop policy if exists tenant_and_scope_isolation on graphium_private.projections;
create policy tenant_and_scope_isolation on graphium_private.projections
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and graphium_private.is_visible(required_scopes, (select graphium_private.caller_scopes())));

-- An edge needs both its ends. An end is seen by whoever sees the narrowest row that it names.
drop policy if exists tenant_and_scope_isolation on graphium.dh_symbioses;
create policy tenant_and_scope_isolation on graphium.dh_symbioses
  using (tenant_id = (select graphium_private.caller_tenant_id())
         and case
               when source_statement_id is not null then exists (select from graphium.kg_statements s where s.tenant_id = dh_symbioses.tenant_id and s.id = source_statement_id)
               when source_specimen_id is not null then exists (select from graphium.dh_specimens s where s.tenant_id = dh_symbioses.tenant_id and s.id = source_specimen_id)
               else exists (select from graphium.dh_families f where f.tenant_id = dh_symbioses.tenant_id and f.id = source_family_id)
             end
         and case
               when target_statement_id is not null then exists (select from graphium.kg_statements s where s.tenant_id = dh_symbioses.tenant_id and s.id = target_statement_id)
               when target_specimen_id is not null then exists (select from graphium.dh_specimens s where s.tenant_id = dh_symbioses.tenant_id and s.id = target_specimen_id)
               else exists (select from graphium.dh_families f where f.tenant_id = dh_symbioses.tenant_id and f.id = target_family_id)
             end);

do $comments$
declare
  v_table regclass;
begin
  for v_table in select p.polrelid::regclass from pg_policy p join pg_class c on c.oid = p.polrelid
                  where p.polname = 'tenant_and_scope_isolation' and c.relnamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace) loop
    execute format('comment on policy tenant_and_scope_isolation on %s is ''A row is of the caller''''s tenant, and its audience includes him; nobody writes what he could not read.''', v_table);
  end loop;
  for v_table in select p.relid::regclass from pg_partition_tree('graphium.kg_embeddings') as p where p.level > 0 loop
    execute format('comment on table %s is ''Part of graphium.kg_embeddings, by hash of the tenant.''', v_table);
  end loop;
end
$comments$;
