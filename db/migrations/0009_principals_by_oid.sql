-- A binding holds for the one role that it was made for: a role that was dropped and made again under the same name has
-- another oid.
set local role graphium_owner;
set local lock_timeout = '10s';

alter table graphium.principals add column if not exists role_oid oid not null default 0;
comment on column graphium.principals.role_name is 'The login role, by the name that it had when it was bound.';
comment on column graphium.principals.role_oid is
  'pg_roles.oid of the login role. The binding holds while the role of that name has that oid; 0 is nobody''s.';

-- The table is locked anyhow, and until the commit its owner sees every binding.
alter table graphium.principals no force row level security;
update graphium.principals p set role_oid = r.oid
  from pg_catalog.pg_roles r
 where r.rolname = p.role_name and p.role_oid = 0;
alter table graphium.principals force row level security;
