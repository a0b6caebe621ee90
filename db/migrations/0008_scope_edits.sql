-- Who changed which audience, from what to what. Rows are written by a trigger (functions/132_scope_edits.sql), so a
-- DBA's own UPDATE is on record too. They carry ids and scopes, never text, and go with their tenant.
set local role graphium_owner;
set local lock_timeout = '10s';

create table if not exists graphium.scope_edits (
  tenant_id uuid not null references graphium.tenants (id) on delete cascade,
  id uuid not null,
  kind text not null,
  row_id uuid not null,
  old_scopes text[] not null,
  new_scopes text[] not null,
  login name not null,
  caller_tenant text,
  caller_role text,
  caller_scopes text[],
  edited_at timestamptz not null,
  primary key (tenant_id, id),
  constraint scope_edits_kind_known check (kind in ('family', 'specimen', 'statement'))
);
create index if not exists scope_edits_of_row on graphium.scope_edits (tenant_id, row_id);
comment on table graphium.scope_edits is
  'Audit: each change of an audience. For graphium_admin, of the tenant that he names. Outlives the row that was edited, not its tenant.';
comment on column graphium.scope_edits.id is 'Ordered by time: newest last.';
comment on column graphium.scope_edits.kind is 'family, specimen or statement.';
comment on column graphium.scope_edits.row_id is 'Id of the row whose audience changed; the row may be gone by now.';
comment on column graphium.scope_edits.login is 'session_user: the login role of the session that did it.';
comment on column graphium.scope_edits.caller_tenant is 'The tenant whose caller did it. NULL: nobody''s, as in plain SQL by the tables'' owner.';
comment on column graphium.scope_edits.caller_role is 'principal, app or admin, as graphium.caller() tells.';
comment on column graphium.scope_edits.caller_scopes is 'What the caller held. NULL with a caller_role: all (an admin).';

alter table graphium.scope_edits enable row level security;
alter table graphium.scope_edits force row level security;
grant select on graphium.scope_edits to graphium_admin;
grant select, insert, update, delete on graphium.scope_edits to graphium_keeper;
