-- Deletes statements, with their vectors, variants and symbioses. Ids that are unknown, hidden or gone already are passed
-- over in silence, all three alike, so a retry is harmless and tells nothing; the answer is how many were deleted.
-- Lock order: the statements' families by id, then the statements.
--
-- example:
--   select graphium.set_caller('acme');
--   select graphium.forget_context(array(select statement_id from graphium.recall_context(specimen => 'Nobody')));
set local role graphium_owner;

create or replace function graphium.forget_context(statement_ids uuid[]) returns int
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $forget_context$
declare
  v_tenant_id uuid := graphium_private._require_writer();
  v_deleted int;
begin
  if statement_ids is null then
    perform graphium_private._raise_error('MG008', 'statement_ids must not be NULL', 'Give an array of statement ids; ''{}'' deletes nothing.');
  end if;
  perform graphium_private._lock_families(v_tenant_id, array(
    select distinct s.family_id from graphium.kg_statements s where s.tenant_id = v_tenant_id and s.id = any (statement_ids)));
  delete from graphium.kg_statements s where s.tenant_id = v_tenant_id and s.id = any (statement_ids);
  get diagnostics v_deleted = row_count;
  return v_deleted;
end
$forget_context$;
comment on function graphium.forget_context(uuid[]) is
  'Deletes the statements among these that the caller sees, with their vectors, variants and symbioses, and returns how many. Unknown and hidden ids are passed over.';
revoke all on function graphium.forget_context(uuid[]) from public;
grant execute on function graphium.forget_context(uuid[]) to graphium_user;
