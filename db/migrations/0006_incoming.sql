-- A statement on its way in: parsed, classified, hashed; own_* are labels that the caller chose; `audience` is the canonical form of the scopes that it will get.
set local role graphium_owner;
set local lock_timeout = '10s';
select set_config('search_path', format('pg_catalog, %I', n.nspname), true)
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector';

create type graphium_private.incoming as (
  ordinal integer,
  id uuid,
  content text,
  content_hash bytea,
  embedding vector,
  exact_only boolean,
  memory_type text,
  layer_kind text,
  rule text,
  own_memory_type text,
  own_layer_kind text,
  required_scopes text[],
  audience text[],
  occurred_at timestamptz,
  source text,
  "position" bigint,
  metadata jsonb,
  is_new boolean
);
comment on type graphium_private.incoming is 'One input of ingest_context on its way in.';

-- What ingest_context returns; a type, because a result column and an argument of the function are both required_scopes.
create type graphium.ingested as (
  ordinal integer,
  statement_id uuid,
  deduplicated boolean,
  similarity real,
  memory_type text,
  layer_kind text,
  required_scopes text[]
);
comment on type graphium.ingested is 'One input of ingest_context after it: the statement that it is now, and whether it existed already.';
