-- Edges between families. Each end is a family, optionally narrowed to one genus, specimen or statement inside it.
set local role graphium_owner;
set local lock_timeout = '10s';

create table graphium.dh_symbioses (
  tenant_id uuid not null,
  id uuid not null,
  kind text not null,
  note text,
  source_family_id uuid not null,
  source_genus_id uuid,
  source_specimen_id uuid,
  source_statement_id uuid,
  target_family_id uuid not null,
  target_genus_id uuid,
  target_specimen_id uuid,
  target_statement_id uuid,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  constraint dh_symbioses_once unique nulls not distinct
    (tenant_id, kind, source_family_id, source_genus_id, source_specimen_id, source_statement_id,
     target_family_id, target_genus_id, target_specimen_id, target_statement_id),
  foreign key (tenant_id, source_family_id) references graphium.dh_families (tenant_id, id) on delete cascade,
  foreign key (tenant_id, source_family_id, source_genus_id) references graphium.dh_genera (tenant_id, family_id, id) on delete cascade,
  foreign key (tenant_id, source_family_id, source_specimen_id) references graphium.dh_specimens (tenant_id, family_id, id) on delete cascade,
  foreign key (tenant_id, source_family_id, source_statement_id) references graphium.kg_statements (tenant_id, family_id, id) on delete cascade,
  foreign key (tenant_id, target_family_id) references graphium.dh_families (tenant_id, id) on delete cascade,
  foreign key (tenant_id, target_family_id, target_genus_id) references graphium.dh_genera (tenant_id, family_id, id) on delete cascade,
  foreign key (tenant_id, target_family_id, target_specimen_id) references graphium.dh_specimens (tenant_id, family_id, id) on delete cascade,
  foreign key (tenant_id, target_family_id, target_statement_id) references graphium.kg_statements (tenant_id, family_id, id) on delete cascade,
  constraint dh_symbioses_kind_known check (kind in ('related_to', 'contradicts', 'supersedes')),
  constraint dh_symbioses_between_families check (source_family_id <> target_family_id),
  constraint dh_symbioses_source_narrowed_once check (num_nonnulls(source_genus_id, source_specimen_id, source_statement_id) <= 1),
  constraint dh_symbioses_target_narrowed_once check (num_nonnulls(target_genus_id, target_specimen_id, target_statement_id) <= 1)
);
create index dh_symbioses_source_genus on graphium.dh_symbioses (tenant_id, source_family_id, source_genus_id);
create index dh_symbioses_source_specimen on graphium.dh_symbioses (tenant_id, source_family_id, source_specimen_id);
create index dh_symbioses_source_statement on graphium.dh_symbioses (tenant_id, source_family_id, source_statement_id);
create index dh_symbioses_target_genus on graphium.dh_symbioses (tenant_id, target_family_id, target_genus_id);
create index dh_symbioses_target_specimen on graphium.dh_symbioses (tenant_id, target_family_id, target_specimen_id);
create index dh_symbioses_target_statement on graphium.dh_symbioses (tenant_id, target_family_id, target_statement_id);
comment on table graphium.dh_symbioses is 'Cross-family edge, read from source to target: "source supersedes target". Written by graphium_admin only.';
comment on column graphium.dh_symbioses.kind is 'related_to, contradicts or supersedes.';

alter table graphium.dh_symbioses enable row level security;
alter table graphium.dh_symbioses force row level security;
grant select on graphium.dh_symbioses to graphium_reader;
grant select, insert, update, delete on graphium.dh_symbioses to graphium_keeper;
