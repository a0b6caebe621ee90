-- A large family is not scanned for near-duplicates: functions/064_projections.sql says how they are found instead. Both
-- tables are derived from the family's vectors, and go with them.
set local role graphium_owner;
set local lock_timeout = '10s';
select set_config('search_path', format('pg_catalog, %I', n.nspname), true)
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector';

create table if not exists graphium_private.directions (
  tenant_id uuid not null,
  family_id uuid not null,
  embeddings bigint not null,
  reach double precision not null,
  directions vector[] not null,
  primary key (tenant_id, family_id),
  foreign key (tenant_id, family_id) references graphium.dh_families (tenant_id, id) on delete cascade
);
comment on table graphium_private.directions is
  'Per large family: unit vectors at right angles along which its embeddings vary most. Derived from a sample of them; with none, nothing is projected.';
comment on column graphium_private.directions.embeddings is 'How many embeddings the family had when they were chosen.';
comment on column graphium_private.directions.reach is 'How far apart two near-duplicates can be; cells are twice as wide.';

create table if not exists graphium_private.projections (
  tenant_id uuid not null,
  family_id uuid not null,
  statement_id uuid not null,
  cell bigint not null,
  required_scopes text[] not null,
  projection vector not null,
  primary key (tenant_id, family_id, cell, statement_id),
  foreign key (tenant_id, family_id) references graphium_private.directions (tenant_id, family_id) on delete cascade
);
-- Not with the tenant, or a plan might look for a cell with it: statistics know nothing about cells.
create index if not exists projections_of_statement on graphium_private.projections (statement_id);
comment on table graphium_private.projections is
  'Per embedding of a large family: where it is along the family''s directions. Derived by triggers; exact look-ups start from it.';
comment on column graphium_private.projections.cell is 'The cell of a grid that the first coordinates are in, and the audience, as one number.';
comment on column graphium_private.projections.required_scopes is 'Copy of the statement''s audience.';

-- What is derived from vectors, and scopes, are in no statistics either (0010).
alter table graphium_private.directions alter column directions set statistics 0;
alter table graphium_private.projections alter column cell set statistics 0, alter column projection set statistics 0, alter column required_scopes set statistics 0;

alter table graphium_private.directions enable row level security;
alter table graphium_private.directions force row level security;
alter table graphium_private.projections enable row level security;
alter table graphium_private.projections force row level security;
grant select, insert, update, delete on graphium_private.directions, graphium_private.projections to graphium_keeper;

insert into graphium_private.settings (name, value, note) values
  ('projected_family_min', 3000, 'A family with at least so many embeddings is not scanned for near-duplicates but looked up by projections of its vectors. Below, a scan is as fast. Dropped again below a quarter of it.'),
  ('projected_batch_min', 300, 'In a batch of at least so many inputs, near-duplicates are looked for by projections instead of comparing each with each.')
on conflict (name) do nothing;
