-- Is everything that is derived from statements equal to them, and is nothing without what it hangs on? Recomputes counts,
-- sums and summaries from the rows and lists every difference: empty when healthy. graphium_admin only. NULL: the tenant
-- that he named with set_caller. Reads one snapshot and locks nothing.
--
-- example:
--   select problem, family, detail from graphium.check_memory('acme');
set local role graphium_keeper;

create or replace function graphium.check_memory(tenant text = null) returns table (problem text, family text, id uuid, detail text)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $check_memory$
#variable_conflict use_column
declare
  v_tenant graphium.tenants := graphium_private._named_tenant(check_memory.tenant);
begin
  return query
  with families as materialized (
    select f.id, f.name, f.statement_count, f.summary_embedding, c.statements, c.embeddings, u.embeddings as summed, fresh.*,
           (graphium_private._mean(fresh.state, fresh.summed_now, fresh.mass)).mean,
           (graphium_private._mean(u.state, u.embeddings, u.mass)).mean as running_mean
      from graphium.dh_families f
      left join graphium_private.family_counters c on c.tenant_id = f.tenant_id and c.family_id = f.id
      left join graphium_private.family_sums u on u.tenant_id = f.tenant_id and u.family_id = f.id,
           lateral graphium_private._summarize_family(f.tenant_id, f.id) as fresh(statements_now, embeddings_now, visible_now, state, summed_now, mass)
     where f.tenant_id = v_tenant.id
  )
  select p.problem, f.name, f.id, p.detail
    from families f, lateral (values
      ('statement_count', f.statement_count is distinct from f.visible_now, format('is %s, rows say %s', f.statement_count, f.visible_now)),
      ('counter of statements', f.statements is distinct from f.statements_now, format('is %s, rows say %s', f.statements, f.statements_now)),
      ('counter of embeddings', f.embeddings is distinct from f.embeddings_now, format('is %s, rows say %s', f.embeddings, f.embeddings_now)),
      ('summed embeddings', f.summed is distinct from f.summed_now, format('is %s, rows say %s', f.summed, f.summed_now)),
      ('summary_embedding', (f.summary_embedding is null) <> (f.mean is null), 'is NULL where the rows have a mean, or the reverse'),
      ('summary_embedding', f.summary_embedding operator(@extschema:vector@.<=>) f.mean > 1e-5, 'has drifted from the mean of the rows'),
      ('running sum', (f.running_mean is null) <> (f.mean is null) or f.running_mean operator(@extschema:vector@.<=>) f.mean > 1e-5,
       'has drifted from the sum of the rows: the next change would make a wrong summary')) as p(problem, is_wrong, detail)
   where p.is_wrong
  union all
  select 'embedding', f.name, e.statement_id, p.detail
    from graphium.kg_embeddings e
    join graphium.kg_statements s on s.tenant_id = e.tenant_id and s.id = e.statement_id
    join graphium.dh_families f on f.tenant_id = s.tenant_id and f.id = s.family_id,
         lateral (values
      ((e.family_id, e.genus_id, e.specimen_id, e.memory_type, e.layer_kind, e.required_scopes, e.happened_at)
       is distinct from (s.family_id, s.genus_id, s.specimen_id, s.memory_type, s.layer_kind, s.required_scopes, coalesce(s.occurred_at, s.created_at)),
       'its filter columns are not those of its statement'),
      (@extschema:vector@.vector_dims(e.embedding) <> v_tenant.dimensions, 'its dimensions are not those of the tenant''s model')) as p(is_wrong, detail)
   where e.tenant_id = v_tenant.id and p.is_wrong
  union all
  select 'statement', f.name, s.id, 'its hash is not that of its content'
    from graphium.kg_statements s
    join graphium.dh_families f on f.tenant_id = s.tenant_id and f.id = s.family_id
   where s.tenant_id = v_tenant.id and s.content_hash <> graphium_private.fold_hash_v1(s.content)
  union all
  -- Foreign keys forbid these; a restore with triggers disabled does not ask them.
  select 'orphan', null, o.id, o.detail
    from (
      select e.statement_id, 'an embedding without its statement' from graphium.kg_embeddings e
       where e.tenant_id = v_tenant.id and not exists (select from graphium.kg_statements s where s.tenant_id = e.tenant_id and s.id = e.statement_id)
      union all
      select v.statement_id, 'a variant without its statement' from graphium.kg_statement_variants v
       where v.tenant_id = v_tenant.id and not exists (select from graphium.kg_statements s where s.tenant_id = v.tenant_id and s.id = v.statement_id)
      union all
      select s.id, 'a statement without its specimen' from graphium.kg_statements s
       where s.tenant_id = v_tenant.id and not exists (
         select from graphium.dh_specimens p where (p.tenant_id, p.family_id, p.genus_id, p.id) = (s.tenant_id, s.family_id, s.genus_id, s.specimen_id))
      union all
      select p.id, 'a specimen without its genus' from graphium.dh_specimens p
       where p.tenant_id = v_tenant.id and not exists (select from graphium.dh_genera g where (g.tenant_id, g.family_id, g.id) = (p.tenant_id, p.family_id, p.genus_id))
      union all
      select g.id, 'a genus without its family' from graphium.dh_genera g
       where g.tenant_id = v_tenant.id and not exists (select from graphium.dh_families f where f.tenant_id = g.tenant_id and f.id = g.family_id)
      union all
      select y.id, 'a symbiosis without one of its ends'
        from graphium.dh_symbioses y, lateral (values (y.source_family_id, y.source_genus_id, y.source_specimen_id, y.source_statement_id),
                                                      (y.target_family_id, y.target_genus_id, y.target_specimen_id, y.target_statement_id)) as e(family_id, genus_id, specimen_id, statement_id)
       where y.tenant_id = v_tenant.id
         and (not exists (select from graphium.dh_families f where f.tenant_id = y.tenant_id and f.id = e.family_id)
              or e.genus_id is not null and not exists (select from graphium.dh_genera g where (g.tenant_id, g.family_id, g.id) = (y.tenant_id, e.family_id, e.genus_id))
              or e.specimen_id is not null and not exists (select from graphium.dh_specimens p where (p.tenant_id, p.family_id, p.id) = (y.tenant_id, e.family_id, e.specimen_id))
              or e.statement_id is not null and not exists (select from graphium.kg_statements s where (s.tenant_id, s.family_id, s.id) = (y.tenant_id, e.family_id, e.statement_id)))
    ) as o(id, detail)
  union all
  select 'words', null, c.statement_id, c.detail from graphium_private._check_postings(v_tenant.id) as c
  union all
  select 'projection', null, c.statement_id, c.detail from graphium_private._check_projections(v_tenant.id) as c
   order by 1, 2, 3, 4;
end
$check_memory$;
comment on function graphium.check_memory(text) is
  'Lists where counts, summaries or copies differ from what the statements say: empty when healthy. NULL: the tenant named with set_caller.';
revoke all on function graphium.check_memory(text) from public;
grant execute on function graphium.check_memory(text) to graphium_admin;

create or replace function graphium_private._named_tenant(p_slug text) returns graphium.tenants
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $named_tenant$
declare
  v_tenant graphium.tenants;
begin
  perform graphium_private._require_admin_role();
  select t.* into v_tenant from graphium.tenants t
   where case when p_slug is null then t.id = graphium_private._require_caller() else t.slug = p_slug collate "C" end;
  if v_tenant.id is null then
    perform graphium_private._raise_error('MG002', format('tenant: no tenant "%s"', p_slug), 'graphium.list_tenants() lists them.');
  end if;
  return v_tenant;
end
$named_tenant$;
comment on function graphium_private._named_tenant(text) is 'For admin functions: the tenant of that slug (MG002), or for NULL the one that the admin named with set_caller.';
revoke all on function graphium_private._named_tenant(text) from public;
grant execute on function graphium_private._named_tenant(text) to graphium_owner, graphium_cypher;
