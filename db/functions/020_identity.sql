-- Who the caller is. Decided by session_user, because inside definer functions current_user is not the caller, and
-- SET ROLE must not change who one is:
--   1. a login role with a row in graphium.principals is that tenant with at most those scopes; the setting
--      graphium.scopes can narrow them ('{}': none; unset or '': not narrowed), and nothing can widen them. A row made
--      for another role of that name (another oid) makes its login nobody
--   2. a member of graphium_admin names a tenant in the setting graphium.tenant and holds all of its scopes
--   3. a member of graphium_app names tenant and scopes (graphium.tenant, graphium.scopes)
--   4. anyone else is nobody. So is a blank or unknown tenant: everything fails closed.
-- In code that maintenance runs, whoever maintains, the question itself is an error (_refuse_maintenance).
-- Behind a pooler a setting can be the last client's. A login with graphium.pooled = on (docs/poolers.md) is therefore
-- nobody in 2 and 3 unless set_caller() named exactly these settings in this very transaction. A principal's narrowing
-- counts wherever it comes from: it can only show less.
-- A principal is refused under SERIALIZABLE. There PostgreSQL remembers which rows and index pages a transaction has read, hidden
-- ones too, and lets one fail (40001) for what another wrote next to them: who has SQL of his own and two sessions finds out by
-- such failures which sources and names hidden rows have, letter by letter.
-- Keeper-owned: a policy helper that read the tables it protects would recurse.
set local role graphium_keeper;

-- These two are inlined: bodies parsed when they are made, and no SET.
-- The moment stands for the transaction: in a parallel worker it is the leader's, as a process id would not be.
create or replace function graphium_private._caller_mark(p_tenant text, p_scopes text) returns text
  language sql stable parallel safe security invoker
  return row(extract(epoch from transaction_timestamp()), p_tenant, p_scopes)::text;
comment on function graphium_private._caller_mark(text, text) is
  'What set_caller() leaves in the setting graphium.named: which transaction it named which settings for.';
revoke all on function graphium_private._caller_mark(text, text) from public;

create or replace function graphium_private._is_pooled() returns boolean
  language sql stable parallel safe security invoker
  return lower(coalesce(current_setting('graphium.pooled', true), '')) not in ('', 'off', 'false', 'no', '0');
comment on function graphium_private._is_pooled() is 'Whether graphium.pooled is on; a word that is no boolean counts as on.';
revoke all on function graphium_private._is_pooled() from public;

create or replace function graphium_private._parse_scopes(p_setting text) returns text[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $parse_scopes$
begin
  if not pg_input_is_valid(p_setting, 'text[]') then
    perform graphium_private._raise_error('MG008', 'graphium.scopes is not a list of scopes',
      'Let graphium.set_caller() write it, or write it as in: set graphium.scopes = ''{hr,legal}''.');
  end if;
  return p_setting::text[];
end
$parse_scopes$;
comment on function graphium_private._parse_scopes(text) is 'The scopes in the text of a setting, or MG008.';
revoke all on function graphium_private._parse_scopes(text) from public;

-- VACUUM, ANALYZE, REINDEX, REFRESH and the like run functions that a table's owner put into its indexes and views, as him, but in
-- the session of whoever maintains: autovacuum's is a superuser's, and where an owner has granted MAINTAIN to everybody, a bare
-- ANALYZE or VACUUM of any login comes to his table. There session_user is not who wrote the code that asks, so nobody is a caller. PostgreSQL
-- forbids such code a few commands ("security-restricted operation"). UNLISTEN of what nobody listens to is the one that does
-- nothing else: an error there (42501, said in words that help), nothing everywhere else, in READ ONLY transactions and on replicas too. It cannot be said
-- in parallel mode, so whatever looks up the caller is parallel unsafe. (Without a SET: it is run for every look-up.)
create or replace function graphium_private._refuse_maintenance() returns void
  language plpgsql volatile parallel unsafe security invoker
as $refuse_maintenance$
begin
  unlisten graphium_nothing;
exception when insufficient_privilege then
  raise exception using errcode = 'insufficient_privilege',
    message = 'nobody is a caller in what a materialized view, an index or maintenance runs (a security-restricted operation)',
    hint = 'Keep a plain table instead, and fill it by insert … select.';
end
$refuse_maintenance$;
comment on function graphium_private._refuse_maintenance() is 'insufficient_privilege in code that maintenance of somebody''s table runs, where session_user does not tell who asks.';
revoke all on function graphium_private._refuse_maintenance() from public;

create or replace function graphium_private.resolve_caller(out tenant_id uuid, out tenant text, out scopes text[], out role text, out source text, out read_only boolean)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $resolve_caller$
declare
  v_role_oid oid;
  v_slug text;
  v_narrowed text := nullif(current_setting('graphium.scopes', true), '');
  v_named text[];
begin
  perform graphium_private._refuse_maintenance();
  -- Two look-ups by key take less time than a join of the two.
  select p.role_oid, p.tenant, p.scopes, p.read_only into v_role_oid, v_slug, scopes, read_only
    from graphium.principals p
   where p.role_name = session_user;
  if v_role_oid is null then
    if pg_has_role(session_user, 'graphium_admin', 'member') then
      role := 'admin';
    elsif pg_has_role(session_user, 'graphium_app', 'member') then
      role := 'app';
    end if;
    v_slug := case when role is not null then current_setting('graphium.tenant', true) end;
    if graphium_private._is_pooled() then
      if current_setting('graphium.named', true) is distinct from graphium_private._caller_mark(v_slug, current_setting('graphium.scopes', true)) then
        v_slug := null;
      end if;
    end if;
  elsif v_role_oid = to_regrole(quote_ident(session_user))::oid then
    role := 'principal';
    if current_setting('transaction_isolation') = 'serializable' then
      raise exception using errcode = 'feature_not_supported',
        message = 'a principal''s transaction may not be SERIALIZABLE: its failures would tell of hidden rows',
        hint = 'Use READ COMMITTED, the default, or REPEATABLE READ: two writers to one family never pass each other by under those either.';
    end if;
  else -- the name of a role that was bound, not that role
    v_slug := null; read_only := null;
  end if;

  select t.id, t.slug into tenant_id, tenant from graphium.tenants t where t.slug = v_slug;
  if tenant_id is null then
    scopes := '{}';
  elsif role = 'principal' then
    source := 'principals';
    if v_narrowed is not null then
      v_named := graphium_private._parse_scopes(v_narrowed);
      scopes := array(select s from unnest(scopes) as s where s = any (v_named) order by s collate "C");
    end if;
  else
    source := 'setting';
    scopes := case when role = 'admin' then null -- all of them
                   when v_narrowed is null then '{}'
                   else graphium_private._parse_scopes(v_narrowed) end;
  end if;
end
$resolve_caller$;
comment on function graphium_private.resolve_caller() is
  'Tenant and scopes of the session''s user. No tenant: tenant_id is NULL and scopes are empty. An admin: scopes are NULL, which means all.';
revoke all on function graphium_private.resolve_caller() from public;
grant execute on function graphium_private.resolve_caller() to graphium_reader, graphium_owner, graphium_cypher;

-- The two policy helpers. Policies call them as (select f()), so once per table and statement and not per row. Inlined: bodies
-- parsed when they are made, and no SET. For our own functions the answer is what _remember_caller() left, if it was called:
-- the end of this file tells. (The two that look for it are in plpgsql, which keeps its plan; inlined, they would be planned again
-- and again. Callers may execute them, for PostgreSQL checks both branches of a case.)
create or replace function graphium_private.remembered_tenant_id() returns uuid
  language plpgsql stable parallel unsafe security invoker
as $remembered_tenant_id$
begin
  if current_setting('search_path') = 'pg_catalog, pg_temp, pg_caller' then
    return current_setting('graphium.remembered_tenant');
  end if;
  return (graphium_private.resolve_caller()).tenant_id;
end
$remembered_tenant_id$;
comment on function graphium_private.remembered_tenant_id() is 'For a function of ours: the tenant of the caller that it remembered, or else of the one there is.';
revoke all on function graphium_private.remembered_tenant_id() from public;
grant execute on function graphium_private.remembered_tenant_id() to graphium_reader, graphium_owner, graphium_cypher;

create or replace function graphium_private.remembered_scopes() returns text[]
  language plpgsql stable parallel unsafe security invoker
as $remembered_scopes$
begin
  if current_setting('search_path') = 'pg_catalog, pg_temp, pg_caller' then
    return nullif(current_setting('graphium.remembered_scopes'), 'all');
  end if;
  return (graphium_private.resolve_caller()).scopes;
end
$remembered_scopes$;
comment on function graphium_private.remembered_scopes() is 'For a function of ours: the scopes of the caller that it remembered, or else of the one there is; NULL for an admin.';
revoke all on function graphium_private.remembered_scopes() from public;
grant execute on function graphium_private.remembered_scopes() to graphium_reader, graphium_owner, graphium_cypher;

create or replace function graphium_private.caller_tenant_id() returns uuid
  language sql stable parallel unsafe security invoker
  return case when current_user = 'graphium_owner' then graphium_private.remembered_tenant_id() else (graphium_private.resolve_caller()).tenant_id end;
comment on function graphium_private.caller_tenant_id() is 'Policy helper: the caller''s tenant, or NULL.';
revoke all on function graphium_private.caller_tenant_id() from public;
grant execute on function graphium_private.caller_tenant_id() to graphium_reader, graphium_owner, graphium_cypher;

create or replace function graphium_private.caller_scopes() returns text[]
  language sql stable parallel unsafe security invoker
  return case when current_user = 'graphium_owner' then graphium_private.remembered_scopes() else (graphium_private.resolve_caller()).scopes end;
comment on function graphium_private.caller_scopes() is 'Policy helper: the caller''s scopes; NULL for an admin, who holds all.';
revoke all on function graphium_private.caller_scopes() from public;
grant execute on function graphium_private.caller_scopes() to graphium_reader, graphium_owner, graphium_cypher;

create or replace function graphium_private._require_caller() returns uuid
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $require_caller$
declare
  v_tenant_id uuid := (graphium_private.resolve_caller()).tenant_id;
begin
  if v_tenant_id is null then
    perform graphium_private._raise_error('MG001', case when graphium_private._is_pooled()
        then 'no tenant is set for this transaction, or it is not known; graphium.pooled is on, so only set_caller() in this transaction counts'
        else 'no tenant is set for this session, or it is not known' end,
      'A trusted application calls graphium.set_caller(tenant => …, scopes => …) in each transaction; a person or a tool uses a login role bound by graphium.add_principal().');
  end if;
  return v_tenant_id;
end
$require_caller$;
comment on function graphium_private._require_caller() is 'The caller''s tenant id, or MG001.';
revoke all on function graphium_private._require_caller() from public;
grant execute on function graphium_private._require_caller() to graphium_owner, graphium_cypher;

-- Roles are cluster-wide, so a login that may only read here can be a graphium_user for the sake of another database:
-- the binding decides, not the grant.
create or replace function graphium_private._require_writer() returns uuid
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $require_writer$
declare
  v_tenant_id uuid := graphium_private._require_caller();
begin
  if (graphium_private.resolve_caller()).read_only then
    raise exception using errcode = 'insufficient_privilege', message = format('role "%s" may only read this tenant', session_user),
      hint = 'An administrator binds it for writing with graphium.add_principal(…, read_only => false).';
  end if;
  return v_tenant_id;
end
$require_writer$;
comment on function graphium_private._require_writer() is 'The caller''s tenant id, or MG001; insufficient_privilege for a principal that may only read.';
revoke all on function graphium_private._require_writer() from public;
grant execute on function graphium_private._require_writer() to graphium_owner;

-- Admin functions without a tenant of their own (create_tenant) ask only for the role.
create or replace function graphium_private._require_admin_role() returns void
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $require_admin_role$
begin
  if (graphium_private.resolve_caller()).role is distinct from 'admin' then
    raise exception using errcode = 'insufficient_privilege', message = 'only a member of graphium_admin may call this function',
      hint = 'Connect as a login role that is a member of graphium_admin and is not bound to a tenant by graphium.principals.';
  end if;
end
$require_admin_role$;
comment on function graphium_private._require_admin_role() is 'Refuses everybody but a member of graphium_admin.';
revoke all on function graphium_private._require_admin_role() from public;
grant execute on function graphium_private._require_admin_role() to graphium_owner;

create or replace function graphium_private._require_admin() returns uuid
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $require_admin$
begin
  perform graphium_private._require_admin_role();
  return graphium_private._require_caller();
end
$require_admin$;
comment on function graphium_private._require_admin() is 'The tenant that the calling admin named, or an error.';
revoke all on function graphium_private._require_admin() from public;
grant execute on function graphium_private._require_admin() to graphium_owner;

-- ---------------------------------------------------------------- looked up once
-- A search reads six tables, each under its policy, and to look the caller up for each takes a third of a small one. So functions
-- that read much call _remember_caller() first, and from there to their end policies take the caller from two settings. Any client
-- can write those; that they are ours is told by two things which no client can have at once (docs/decisions/0120):
--   current_user is graphium_owner: a function of ours runs. Each starts with the search_path in its own head, whatever the
--     client's is (the deployer and check_security() refuse one whose path does not end in pg_temp)
--   the search_path ends in pg_caller: only _remember_caller() puts that there, and it has just written the settings. The path
--     ends with the function that called it, or with an error, and with it the belief
-- There is no schema pg_caller, and names in pg_ are reserved: nobody can make it. What this function's own path is, is its caller's:
-- with one in its head, what it sets would end with it. The settings themselves last until the transaction ends, and tell the
-- client who he is.
set local role graphium_owner;

create or replace function graphium_private._remember_caller() returns uuid
  language plpgsql stable parallel unsafe security invoker
as $remember_caller$
declare
  v_caller constant record := graphium_private.resolve_caller();
  v_set text;
begin
  if v_caller.tenant_id is null then
    perform graphium_private._require_caller(); -- says why
  end if;
  v_set := set_config('graphium.remembered_tenant', v_caller.tenant_id::text, true);
  v_set := set_config('graphium.remembered_scopes', coalesce(v_caller.scopes::text, 'all'), true);
  v_set := set_config('search_path', 'pg_catalog, pg_temp, pg_caller', true);
  return v_caller.tenant_id;
end
$remember_caller$;
comment on function graphium_private._remember_caller() is
  'The caller''s tenant id, or MG001. From here to the end of the function that calls this, policies take the caller for who he is now.';
revoke all on function graphium_private._remember_caller() from public;

set local role graphium_keeper;
drop function if exists graphium_private._require_tenant();
drop function if exists graphium_private._resolve_caller(); -- its name was one for our own functions only; now policies call it
