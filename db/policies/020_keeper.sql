-- The keeper sees past the caller: its trigger functions, counters, checks and erasure must. It owns nothing else, and
-- each of its functions filters by tenant itself.
set local role graphium_owner;

do $keeper$
declare
  v_table regclass;
begin
  foreach v_table in array array(
    select c.oid::regclass from pg_class c
     where c.relnamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)
       and c.relkind in ('r', 'p') and c.relrowsecurity)
  loop
    execute format('drop policy if exists keeper_sees_all on %s', v_table);
    execute format('create policy keeper_sees_all on %s to graphium_keeper using (true) with check (true)', v_table);
    execute format('comment on policy keeper_sees_all on %s is ''Trigger functions, counters, checks and erasure see past the caller.''', v_table);
  end loop;
end
$keeper$;
