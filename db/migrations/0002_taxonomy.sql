-- Family → Genus → Specimen, and the private counters that hang on a family.
set local role graphium_owner;
set local lock_timeout = '10s';
select set_config('search_path', format('pg_catalog, %I', n.nspname), true)
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector';

create table graphium.dh_families (
  tenant_id uuid not null references graphium.tenants (id) on delete cascade,
  id uuid not null,
  name text not null,
  required_scopes text[] not null default '{}',
  summary_embedding vector,
  statement_count bigint not null default 0,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, name),
  constraint dh_families_name_is_a_name
    check (char_length(name) between 1 and 200 and name = btrim(name) and name is nfc normalized),
  constraint dh_families_statement_count_not_negative check (statement_count >= 0)
) with (fillfactor = 50); -- the summary is rewritten by every ingest: leave room for HOT updates
comment on table graphium.dh_families is 'Top-level grouping of a tenant''s memory.';
comment on column graphium.dh_families.required_scopes is 'Audience: who may see this family. Empty or with "public": everyone in the tenant.';
comment on column graphium.dh_families.summary_embedding is
  'Mean of the embeddings of those of its statements that every reader of the family may see. NULL when there are none, or when they cancel out.';
comment on column graphium.dh_families.statement_count is 'Number of its statements that every reader of the family may see.';

create table graphium.dh_genera (
  tenant_id uuid not null,
  id uuid not null,
  family_id uuid not null,
  name text not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, family_id, name),
  unique (tenant_id, family_id, id),
  foreign key (tenant_id, family_id) references graphium.dh_families (tenant_id, id) on delete cascade,
  constraint dh_genera_name_is_a_name
    check (char_length(name) between 1 and 200 and name = btrim(name) and name is nfc normalized)
);
comment on table graphium.dh_genera is 'Sub-grouping inside a family; seen by whoever sees the family.';

create table graphium.dh_specimens (
  tenant_id uuid not null,
  id uuid not null,
  family_id uuid not null,
  genus_id uuid not null,
  name text not null,
  required_scopes text[] not null default '{}',
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, genus_id, name),
  unique (tenant_id, family_id, id),            -- referenced by symbioses, which survive a move
  unique (tenant_id, family_id, genus_id, id),  -- referenced by statements, which follow a move
  foreign key (tenant_id, family_id, genus_id) references graphium.dh_genera (tenant_id, family_id, id) on delete cascade,
  constraint dh_specimens_name_is_a_name
    check (char_length(name) between 1 and 200 and name = btrim(name) and name is nfc normalized)
);
comment on table graphium.dh_specimens is 'A concrete subject: a person, a project, a system.';
comment on column graphium.dh_specimens.required_scopes is 'Audience of the specimen, and of statements that are ingested without one of their own.';

-- Counts over all rows, whoever may see them: for the planner and for locking, never for a caller.
-- One row per family; its update under the family's row lock is what makes REPEATABLE READ sessions fail
-- with a serialization error instead of storing a duplicate.
create table graphium_private.family_counters (
  tenant_id uuid not null,
  family_id uuid not null,
  version bigint not null default 0,
  statements bigint not null default 0,
  embeddings bigint not null default 0,
  primary key (tenant_id, family_id),
  foreign key (tenant_id, family_id) references graphium.dh_families (tenant_id, id) on delete cascade
) with (fillfactor = 50);
comment on table graphium_private.family_counters is 'Per family: a version that every writer bumps, and how many statements and embeddings it has in all.';

-- The running sum behind summary_embedding, in double precision. `mass` is the sum of the norms of all that was ever
-- added or taken away since the sum was last computed afresh: it bounds the rounding error that has crept in.
create table graphium_private.family_sums (
  tenant_id uuid not null,
  family_id uuid not null,
  state double precision[],
  embeddings bigint not null default 0,
  mass double precision not null default 0,
  primary key (tenant_id, family_id),
  foreign key (tenant_id, family_id) references graphium.dh_families (tenant_id, id) on delete cascade
) with (fillfactor = 50, toast_tuple_target = 8160); -- 385 doubles are 3 kB: keep them in the row
alter table graphium_private.family_sums alter column state set storage external;
comment on table graphium_private.family_sums is 'Per family: the exact-enough sum of the embeddings that its summary is the mean of.';

alter table graphium.dh_families enable row level security;
alter table graphium.dh_families force row level security;
alter table graphium.dh_genera enable row level security;
alter table graphium.dh_genera force row level security;
alter table graphium.dh_specimens enable row level security;
alter table graphium.dh_specimens force row level security;
alter table graphium_private.family_counters enable row level security;
alter table graphium_private.family_counters force row level security;
alter table graphium_private.family_sums enable row level security;
alter table graphium_private.family_sums force row level security;

grant select on graphium.dh_families, graphium.dh_genera, graphium.dh_specimens to graphium_reader;
grant select, insert, update, delete on
  graphium.dh_families, graphium.dh_genera, graphium.dh_specimens,
  graphium_private.family_counters, graphium_private.family_sums to graphium_keeper;
