-- Statements, the variants folded into them, and their embeddings.
set local role graphium_owner;
set local lock_timeout = '10s';
select set_config('search_path', format('pg_catalog, %I', n.nspname), true)
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector';

create table graphium.kg_statements (
  tenant_id uuid not null,
  id uuid not null,
  family_id uuid not null,
  genus_id uuid not null,
  specimen_id uuid not null,
  content text not null,
  memory_type text not null,
  layer_kind text not null default 'on_demand',
  rule text,
  required_scopes text[] not null default '{}',
  exact_only boolean not null default false,
  access_count bigint not null default 0,
  last_accessed_at timestamptz,
  occurred_at timestamptz,
  created_at timestamptz not null default now(),
  source text,
  position bigint,
  metadata jsonb not null default '{}',
  content_hash bytea not null generated always as (graphium_private.fold_hash_v1(content)) stored,
  primary key (tenant_id, id),
  unique (tenant_id, family_id, id), -- referenced by symbioses
  foreign key (tenant_id, family_id, genus_id, specimen_id)
    references graphium.dh_specimens (tenant_id, family_id, genus_id, id) on update cascade on delete cascade,
  constraint kg_statements_memory_type_known
    check (memory_type in ('fact', 'event', 'discovery', 'preference', 'advice', 'decision')),
  constraint kg_statements_layer_kind_known check (layer_kind in ('preloaded', 'on_demand')),
  constraint kg_statements_content_not_blank check (content ~ '[^[:space:]]'),
  constraint kg_statements_metadata_is_an_object check (jsonb_typeof(metadata) = 'object')
) with (fillfactor = 85); -- access_count is in no index: leave room for HOT updates
create index kg_statements_specimen on graphium.kg_statements (tenant_id, family_id, genus_id, specimen_id);
create index kg_statements_same_text on graphium.kg_statements (tenant_id, family_id, content_hash);
create index kg_statements_in_specimen on graphium.kg_statements (tenant_id, specimen_id, id);
create index kg_statements_in_genus on graphium.kg_statements (tenant_id, genus_id, id);
create index kg_statements_of_source on graphium.kg_statements (tenant_id, source, position) where source is not null;
create index kg_statements_preloaded on graphium.kg_statements (tenant_id, id) where layer_kind = 'preloaded';
create index kg_statements_preloaded_in_family on graphium.kg_statements (tenant_id, family_id, id) where layer_kind = 'preloaded';
create index kg_statements_preloaded_in_specimen on graphium.kg_statements (tenant_id, specimen_id, id) where layer_kind = 'preloaded';
comment on table graphium.kg_statements is 'ContextStatement: one atomic sentence about a specimen (class acaso:MemoryStatement).';
comment on column graphium.kg_statements.content is 'The sentence, as it was given. Never changes (MG003): forget the statement and ingest the new wording.';
comment on column graphium.kg_statements.memory_type is 'fact, event, discovery, preference, advice or decision.';
comment on column graphium.kg_statements.layer_kind is 'preloaded: pulled by wake_up_context at session boot. on_demand: found by search_context and recall_context.';
comment on column graphium.kg_statements.rule is 'Id of the rule that classified it; NULL when the caller chose both labels.';
comment on column graphium.kg_statements.required_scopes is 'Audience: who may see it. Empty or with "public": everyone in the tenant.';
comment on column graphium.kg_statements.exact_only is 'Its vector does not identify its text: dedup only matches equal text.';
comment on column graphium.kg_statements.access_count is 'How many later ingests were folded into it.';
comment on column graphium.kg_statements.source is 'The conversation or document that it came from.';
comment on column graphium.kg_statements.position is 'Its place in its source.';

create table graphium.kg_statement_variants (
  tenant_id uuid not null,
  statement_id uuid not null,
  variant_key bytea not null,
  content text,
  specimen_id uuid,
  source text,
  position bigint,
  occurred_at timestamptz,
  metadata jsonb not null default '{}',
  seen_count bigint not null default 1,
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  primary key (tenant_id, statement_id, variant_key),
  foreign key (tenant_id, statement_id) references graphium.kg_statements (tenant_id, id) on delete cascade,
  foreign key (tenant_id, specimen_id) references graphium.dh_specimens (tenant_id, id) on delete set null (specimen_id),
  constraint kg_statement_variants_seen check (seen_count > 0)
);
create index kg_statement_variants_specimen on graphium.kg_statement_variants (tenant_id, specimen_id) where specimen_id is not null;
create index kg_statement_variants_of_source on graphium.kg_statement_variants (tenant_id, source, position) where source is not null;
comment on table graphium.kg_statement_variants is
  'What dedup folded into a statement: other wordings, sources, places and times of the same sentence. Nothing that was said is lost.';
comment on column graphium.kg_statement_variants.content is 'The other wording; NULL where the wording was the statement''s own.';
comment on column graphium.kg_statement_variants.specimen_id is 'The specimen it was said about, where that was another one of the family.';
comment on column graphium.kg_statement_variants.seen_count is 'How often exactly this variant arrived.';

-- The vectors, with the columns that filters need, and neither text nor counters: 1.6 kB a row that stays out of TOAST.
-- The dimension belongs to the tenant's model (checked on write), not to the column.
create table graphium.kg_embeddings (
  tenant_id uuid not null,
  statement_id uuid not null,
  family_id uuid not null,
  genus_id uuid not null,
  specimen_id uuid not null,
  memory_type text not null,
  layer_kind text not null,
  required_scopes text[] not null,
  happened_at timestamptz not null,
  embedding vector not null,
  primary key (tenant_id, statement_id),
  foreign key (tenant_id, statement_id) references graphium.kg_statements (tenant_id, id) on delete cascade,
  constraint kg_embeddings_has_direction check (vector_norm(embedding) > 0)
) partition by hash (tenant_id);
comment on table graphium.kg_embeddings is 'The embedding of a statement. Copies of the statement''s filter columns are kept equal by a trigger.';
comment on column graphium.kg_embeddings.happened_at is 'occurred_at of the statement, or else its created_at: what since and until filter on.';

do $partitions$
begin
  for v_remainder in 0..15 loop
    execute format('create table graphium.kg_embeddings_p%s partition of graphium.kg_embeddings for values with (modulus 16, remainder %s)',
                   to_char(v_remainder, 'FM00'), v_remainder);
    execute format('alter table graphium.kg_embeddings_p%s enable row level security', to_char(v_remainder, 'FM00'));
    execute format('alter table graphium.kg_embeddings_p%s force row level security', to_char(v_remainder, 'FM00'));
  end loop;
end
$partitions$;
create index kg_embeddings_in_family on graphium.kg_embeddings (tenant_id, family_id);
create index kg_embeddings_in_genus on graphium.kg_embeddings (tenant_id, genus_id);
create index kg_embeddings_in_specimen on graphium.kg_embeddings (tenant_id, specimen_id);

alter table graphium.kg_statements enable row level security;
alter table graphium.kg_statements force row level security;
alter table graphium.kg_statement_variants enable row level security;
alter table graphium.kg_statement_variants force row level security;
alter table graphium.kg_embeddings enable row level security;
alter table graphium.kg_embeddings force row level security;

grant select on graphium.kg_statements, graphium.kg_statement_variants, graphium.kg_embeddings to graphium_reader;
grant select, insert, update, delete on graphium.kg_statements, graphium.kg_statement_variants, graphium.kg_embeddings to graphium_keeper;
