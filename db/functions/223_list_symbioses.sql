-- The edges between families that the caller sees: both ends by id and by name, and, of a statement, its content. With statement_ids
-- only those that touch one of them, as search_context() follows them. An edge with a hidden end is not there; the name of a taxon that the
-- caller may not see is NULL. By id, the newest first, at most max_count. Writes nothing.
--
-- example:
--   select graphium.set_caller('acme');
--   select kind, source_family, source_specimen, target_family, target_specimen, note from graphium.list_symbioses();
set local role graphium_owner;

create or replace function graphium.list_symbioses(statement_ids uuid[] = null, max_count int = 1000)
  returns table (symbiosis_id uuid, kind text, note text, created_at timestamptz,
    source_family_id uuid, source_family text, source_genus_id uuid, source_genus text, source_specimen_id uuid, source_specimen text, source_statement_id uuid, source_content text,
    target_family_id uuid, target_family text, target_genus_id uuid, target_genus text, target_specimen_id uuid, target_specimen text, target_statement_id uuid, target_content text,
    touches uuid[])
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set plan_cache_mode = force_generic_plan
as $list_symbioses$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
begin
  perform graphium_private._require_between('max_count', max_count, 1, 10000);
  if not graphium_private._has_symbioses(v_tenant_id) then
    return;
  end if;
  return query
    select y.id, y.kind, y.note, y.created_at,
           sf.id, sf.name, sg.id, sg.name, sp.id, sp.name, y.source_statement_id, ss.content,
           tf.id, tf.name, tg.id, tg.name, tp.id, tp.name, y.target_statement_id, ts.content, t.ids
      from graphium.dh_symbioses y
      left join graphium.kg_statements ss on ss.tenant_id = v_tenant_id and ss.id = y.source_statement_id
      left join graphium.dh_specimens sp on sp.tenant_id = v_tenant_id and sp.id = coalesce(y.source_specimen_id, ss.specimen_id)
      left join graphium.dh_genera sg on sg.tenant_id = v_tenant_id and sg.id = coalesce(y.source_genus_id, sp.genus_id)
      left join graphium.dh_families sf on sf.tenant_id = v_tenant_id and sf.id = y.source_family_id
      left join graphium.kg_statements ts on ts.tenant_id = v_tenant_id and ts.id = y.target_statement_id
      left join graphium.dh_specimens tp on tp.tenant_id = v_tenant_id and tp.id = coalesce(y.target_specimen_id, ts.specimen_id)
      left join graphium.dh_genera tg on tg.tenant_id = v_tenant_id and tg.id = coalesce(y.target_genus_id, tp.genus_id)
      left join graphium.dh_families tf on tf.tenant_id = v_tenant_id and tf.id = y.target_family_id
     cross join lateral (
       select array(
         select s.id from graphium.kg_statements s
          where s.tenant_id = v_tenant_id and s.id = any (statement_ids)
            and (s.family_id = y.source_family_id and coalesce(s.genus_id = y.source_genus_id, true) and coalesce(s.specimen_id = y.source_specimen_id, true) and coalesce(s.id = y.source_statement_id, true)
              or s.family_id = y.target_family_id and coalesce(s.genus_id = y.target_genus_id, true) and coalesce(s.specimen_id = y.target_specimen_id, true) and coalesce(s.id = y.target_statement_id, true))
          order by s.id) as ids
     ) as t
     where y.tenant_id = v_tenant_id and (statement_ids is null or t.ids <> '{}')
     order by y.id desc
     limit max_count;
end
$list_symbioses$;
comment on function graphium.list_symbioses(uuid[], int) is
  'The symbioses that the caller sees, or those that touch some statements (touches says which), with both ends by id and name, newest first. Writes nothing.';
revoke all on function graphium.list_symbioses(uuid[], int) from public;
grant execute on function graphium.list_symbioses(uuid[], int) to graphium_reader;
