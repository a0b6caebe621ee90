-- The audit trail of audiences: every change of required_scopes, whoever makes it and by whatever path, leaves a row in
-- graphium.scope_edits in the same transaction. Row triggers with a condition, so that updates of anything else (a
-- family's counts, a statement's access_count) cost nothing.
set local role graphium_keeper;

create or replace function graphium_private._on_audience_edited() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $on_audience_edited$
declare
  v_caller record := graphium_private.resolve_caller();
begin
  insert into graphium.scope_edits (tenant_id, id, kind, row_id, old_scopes, new_scopes, login, caller_tenant, caller_role, caller_scopes, edited_at)
  values (new.tenant_id, graphium_private.new_id(), tg_argv[0], new.id, old.required_scopes, new.required_scopes,
          session_user, v_caller.tenant, case when v_caller.tenant_id is not null then v_caller.role end,
          case when v_caller.tenant_id is not null then v_caller.scopes end, clock_timestamp());
  return null;
end
$on_audience_edited$;
comment on function graphium_private._on_audience_edited() is 'Trigger: records who changed an audience from what to what.';
revoke all on function graphium_private._on_audience_edited() from public;
grant execute on function graphium_private._on_audience_edited() to graphium_owner;

set local role graphium_owner;

do $audience_edited$
declare
  v_kind text;
  v_table regclass;
begin
  for v_kind, v_table in values ('family', 'graphium.dh_families'::regclass), ('specimen', 'graphium.dh_specimens'), ('statement', 'graphium.kg_statements') loop
    execute format('create or replace trigger audience_edited after update of required_scopes on %s
                      for each row when (old.required_scopes is distinct from new.required_scopes)
                      execute function graphium_private._on_audience_edited(%L)', v_table, v_kind);
  end loop;
end
$audience_edited$;
