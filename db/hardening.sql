-- What a superuser runs wherever people or tools get SQL of their own (principals): after the first `graphium migrate`, again after
-- pg_restore and pg_upgrade, which do not keep it, and whenever `graphium doctor` says so. `graphium migrate --bootstrap` prints
-- it after bootstrap.sql. It is a file by itself because it changes what the planner is told of PostgreSQL's own functions, and who may call some, in
-- this database: read docs/decisions/0060, and leave it out where only applications connect, or where the database is not
-- Graphium's alone and others index texts under policies, look into pg_locks or PostgreSQL's counters or take
-- advisory locks without being members of pg_monitor, or export snapshots.
--
-- What it takes away it takes away in this database: principals may not connect to any other (docs/principals.md).
--
-- 1. Under row-level security, PostgreSQL lets a condition of the caller's look at hidden rows too when its function is marked
-- leakproof, and EXPLAIN then tells how many rows met it: with `<` on texts, one finds out a hidden name letter by letter.
-- So no function that orders texts, or compares a part of one, stays leakproof. Equality does: our own lookups need it, and it
-- confirms only what was guessed whole. All that is lost is index conditions such as name > 'x' on tables with policies.
set search_path = pg_catalog, pg_temp;

do $texts$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid
      from pg_catalog.pg_proc p
     where p.pronamespace = 'pg_catalog'::regnamespace and p.proleakproof
       and p.proargtypes::oid[] && array['text'::regtype, 'character'::regtype, 'character varying'::regtype, 'bytea'::regtype]::oid[]
       and not exists (select from pg_catalog.pg_operator o where o.oprcode = p.oid and o.oprname in ('=', '<>'))
  loop
    execute format('alter function %s not leakproof', v_function);
  end loop;
  -- 2. For db/policies/040_order.sql: "is it my tenant's row" and "may I see it" must not cost more than any condition of a
  -- caller's, and `jsonb[content] is null` costs nothing. `alter function` knows no such cost, so it is written into the catalog.
  update pg_catalog.pg_proc set procost = 0
   where oid in ('pg_catalog.uuid_eq(uuid, uuid)'::regprocedure, to_regprocedure('graphium_private.is_seen(uuid, text[], uuid, text[])'),
                 to_regprocedure('graphium_private.is_seen_under(uuid, uuid, uuid, uuid, uuid, text[])'))
     and procost <> 0;
  -- 3. Under SERIALIZABLE a transaction marks each row and index page that it has read, hidden ones too, and pg_locks shows the
  -- marks to everybody: whose vector is nearer than the nearest that he sees, or on which page a source that he guesses would be.
  revoke execute on function pg_catalog.pg_lock_status() from public;
  grant execute on function pg_catalog.pg_lock_status() to pg_monitor, graphium_owner, graphium_keeper;
  -- 4. Who waits for whom tells, with the names of logins in pg_stat_activity, who writes to the same hidden family. What another
  -- session has read and written (PostgreSQL 18) tells what its caller found, and so do, on a quiet server, the counters of tables and
  -- indexes: how many words he searched for, in how many statements they are, how many words a hidden sentence has.
  -- And advisory locks, and messages in nested savepoints, fill the lock table that all databases of the server share: a few thousand, which a session keeps for as
  -- long as it likes, without a transaction, and nobody can connect any more.
  for v_function in
    select p.oid
      from pg_catalog.pg_proc p
     where p.pronamespace = 'pg_catalog'::regnamespace
       and p.proname ~ '^(pg_blocking_pids|pg_safe_snapshot_blocking_pids|pg_isolation_test_session_is_blocked|pg_stat_get_(backend_)?(io|wal)|pg_logical_emit_message|pg_get_multixact_members|pg_stat_get_(numscans|lastscan|tuples_.+|live_tuples|dead_tuples|mod_since_analyze|ins_since_vacuum|blocks_.+|db_.+)|pg_(try_)?advisory_(xact_)?lock(_shared)?)$'
  loop
    execute format('revoke execute on function %s from public', v_function);
    execute format('grant execute on function %s to pg_monitor, graphium_owner', v_function); -- as that `graphium migrate` takes its lock
  end loop;
  -- 5. Whoever exports a snapshot lets sessions that begin later see, and be, what was then: texts that were erased or hidden
  -- since, under bindings that were removed. (Superusers still may, and `pg_dump -j` of anybody else needs it.)
  revoke execute on function pg_catalog.pg_export_snapshot() from public;
exception when insufficient_privilege then
  raise warning 'not hardened, and EXPLAIN tells readers of hidden texts: only a superuser may change what the planner knows of PostgreSQL''s functions (docs/security.md, residual risks)';
end
$texts$;

reset search_path;
