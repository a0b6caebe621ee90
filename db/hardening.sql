-- What a superuser runs wherever people or tools get SQL of their own (principals): after the first `graphium migrate`, again after
-- pg_restore and pg_upgrade, which do not keep it, and whenever `graphium doctor` says so. `graphium migrate --bootstrap` prints
-- it after bootstrap.sql. It is a file by itself because it changes what the planner is told of PostgreSQL's own functions, and who may call some, in
-- this database: read docs/decisions/0060, and leave it out where only applications connect, or where the database is not
-- Graphium's alone and others index texts under policies, look into pg_locks or PostgreSQL's counters or take
-- advisory locks without being members of pg_monitor, export snapshots, or change tables that are in use.
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
  -- And advisory locks, messages in nested savepoints and addresses of objects fill the lock table that all databases of the server share: a few
  -- thousand, which a session keeps for as long as it likes, and nobody can connect any more. What summarizes a BRIN index locks any
  -- table that it is told of before it asks whether it may, and each time ends the autovacuum that works there.
  for v_function in
    select p.oid
      from pg_catalog.pg_proc p
     where p.pronamespace = 'pg_catalog'::regnamespace
       and p.proname ~ '^(pg_blocking_pids|pg_safe_snapshot_blocking_pids|pg_isolation_test_session_is_blocked|pg_stat_get_(backend_)?(io|wal)|pg_stat_get_slru|pg_logical_emit_message|pg_get_multixact_members|pg_xact_status|pg_get_object_address|brin_(summarize_new_values|summarize_range|desummarize_range)|pg_stat_get_(numscans|lastscan|tuples_.+|live_tuples|dead_tuples|mod_since_analyze|ins_since_vacuum|blocks_.+|db_.+)|pg_(try_)?advisory_(xact_)?lock(_shared)?)$'
  loop
    execute format('revoke execute on function %s from public', v_function);
    execute format('grant execute on function %s to pg_monitor, graphium_owner', v_function); -- as that `graphium migrate` takes its lock
  end loop;
  -- 5. Whoever exports a snapshot lets sessions that begin later see, and be, what was then: texts that were erased or hidden
  -- since, under bindings that were removed. (Superusers still may, and `pg_dump -j` of anybody else needs it.)
  revoke execute on function pg_catalog.pg_export_snapshot() from public;
  -- 6. Many commands lock a table, and ask afterwards whose it is (CREATE RULE: so that nobody may read it). While one waits for somebody who
  -- reads, all who come later wait behind it: on graphium.principals every call, on pg_authid every new connection. So commands of those who are
  -- neither superusers nor of our deployers, admins and applications wait 10 ms for each lock; their other statements as long as they say themselves.
  -- In a schema of its own, made anew: code that superusers' sessions run may be nobody else's to change.
  perform set_config('client_min_messages', 'warning', true);
  drop schema if exists graphium_hardening cascade;
  create schema graphium_hardening;
  create function graphium_hardening.limit_lock_waits() returns event_trigger
    language plpgsql volatile parallel unsafe security invoker set search_path = pg_catalog, pg_temp
  as $limit_lock_waits$
  declare
    v_before constant text := nullif(current_setting('graphium_hardening.lock_timeout', true), '');
  begin
    if tg_event = 'ddl_command_end' then
      if v_before is not null then
        perform set_config('lock_timeout', v_before, true), set_config('graphium_hardening.lock_timeout', '', true);
      end if;
    elsif tg_tag not in ('CREATE TABLE AS', 'SELECT INTO', 'REFRESH MATERIALIZED VIEW') -- their queries may well wait
          and not exists (select from pg_catalog.pg_roles r
                           where r.rolname in ('graphium_owner', 'graphium_admin', 'graphium_app', 'pg_monitor') and pg_has_role(session_user, r.oid, 'member')) then
      perform set_config('graphium_hardening.lock_timeout', coalesce(v_before, current_setting('lock_timeout')), true), set_config('lock_timeout', '10ms', true);
    end if;
  end
  $limit_lock_waits$;
  comment on function graphium_hardening.limit_lock_waits() is 'Commands that lock before they ask for rights wait 10 ms for each lock, in sessions of strangers and principals.';
  revoke all on function graphium_hardening.limit_lock_waits() from public;
  create event trigger graphium_lock_waits_begin on ddl_command_start execute function graphium_hardening.limit_lock_waits();
  create event trigger graphium_lock_waits_end on ddl_command_end execute function graphium_hardening.limit_lock_waits();
exception when insufficient_privilege then
  raise warning 'not hardened, and EXPLAIN tells readers of hidden texts: only a superuser may change what the planner knows of PostgreSQL''s functions (docs/security.md, residual risks)';
end
$texts$;

reset search_path;
