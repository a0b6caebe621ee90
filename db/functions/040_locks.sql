-- The lock that everything which changes a family's statements takes first.
-- Order, everywhere: families by id → (inside a family) genus, specimen, statements. Callers hold no other lock yet.
set local role graphium_keeper;

-- Bumping the version after the row lock is what turns a stale snapshot into a serialization failure under REPEATABLE
-- READ; under READ COMMITTED the statements after this call see everything that the previous holder committed.
create or replace function graphium_private._lock_families(p_tenant_id uuid, p_family_ids uuid[]) returns int
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $lock_families$
declare
  v_locked int;
begin
  perform from graphium.dh_families f
    where f.tenant_id = p_tenant_id and (p_family_ids is null or f.id = any (p_family_ids))
    order by f.id for no key update;
  get diagnostics v_locked = row_count;
  update graphium_private.family_counters c set version = c.version + 1
    where c.tenant_id = p_tenant_id and (p_family_ids is null or c.family_id = any (p_family_ids));
  return v_locked;
end
$lock_families$;
comment on function graphium_private._lock_families(uuid, uuid[]) is
  'Locks families (NULL: all of the tenant) against other writers, in id order, and returns how many still exist.';
revoke all on function graphium_private._lock_families(uuid, uuid[]) from public;
grant execute on function graphium_private._lock_families(uuid, uuid[]) to graphium_owner;
