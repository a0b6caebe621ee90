-- Tenants, the login roles bound to them, and the settings that thresholds are read from.
set local role graphium_owner;
set local lock_timeout = '10s';

grant usage on schema graphium to graphium_reader, graphium_keeper, graphium_cypher;
grant usage on schema graphium_private to graphium_keeper, graphium_cypher;
grant create on schema graphium, graphium_private to graphium_keeper, graphium_cypher;

create table graphium.tenants (
  id uuid primary key,
  slug text not null unique,
  embedding_model text not null,
  dimensions integer not null,
  graph_name name not null unique,
  created_at timestamptz not null default now(),
  constraint tenants_slug_is_a_name
    check (char_length(slug) between 1 and 100 and slug = btrim(slug) and slug is nfc normalized),
  constraint tenants_embedding_model_not_blank check (btrim(embedding_model) <> ''),
  constraint tenants_dimensions_fit check (dimensions between 1 and 16000)
);
comment on table graphium.tenants is
  'Owner of everything else, and of one Apache AGE graph. One active embedding model, whose dimension all its vectors have.';
comment on column graphium.tenants.graph_name is 'Name of the AGE graph that mirrors the taxonomy.';

create table graphium.principals (
  role_name name primary key,
  tenant text not null references graphium.tenants (slug) on update cascade on delete cascade,
  scopes text[] not null default '{}',
  read_only boolean not null default false,
  created_at timestamptz not null default now()
);
create index principals_tenant on graphium.principals (tenant);
comment on table graphium.principals is
  'A login role with a row here is that tenant, with at most those scopes, whatever settings it makes. Written by add_principal() and remove_principal().';

create table graphium_private.settings (
  name text primary key,
  value numeric not null,
  note text not null
);
comment on table graphium_private.settings is 'Thresholds and weights that functions read; each row says what it does and where its value comes from.';

insert into graphium_private.settings (name, value, note) values
  ('dedup_similarity', 0.999, 'Cosine similarity from which a new statement is the same as an existing one (contract).'),
  ('hnsw_min_embeddings', 10000, 'A tenant with at least so many embeddings gets an HNSW index of its own; below, an exact scan is as fast and never wrong.'),
  ('hnsw_drop_below', 5000, 'A tenant that shrank below this loses its HNSW index: the gap to hnsw_min_embeddings keeps it from flapping.'),
  ('exact_scan_max', 50000, 'With a family, genus or specimen filter, up to so many embeddings are scanned exactly even where the tenant has an HNSW index: a filtered graph walk is slower and misses rows.'),
  ('hnsw_ef_search', 400, 'hnsw.ef_search for searches: at 400 recall@10 stayed above .99 at every size measured.'),
  ('lexical_weight', 0.5, 'Share of the lexical score in the fused score of a search that has both a vector and a text.')
on conflict (name) do nothing;

alter table graphium.tenants enable row level security;
alter table graphium.tenants force row level security;
alter table graphium.principals enable row level security;
alter table graphium.principals force row level security;

grant select on graphium.tenants to graphium_reader;
grant select on graphium.principals to graphium_admin;
grant select, insert, update, delete on graphium.tenants, graphium.principals to graphium_keeper;
grant select on graphium_private.settings to graphium_keeper;
