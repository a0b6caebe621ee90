-- An input of ingest_many() brings its own family, genus and specimen, so each says where it goes.
set local role graphium_owner;
set local lock_timeout = '10s';
select set_config('search_path', format('pg_catalog, %I', n.nspname), true)
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector';

-- They take other arguments now (db/functions/061 to 064).
-- squawk-ignore ban-drop-function
drop function if exists
  graphium_private._match_statements(uuid, uuid, graphium_private.incoming[]),
  graphium_private._near_in_batch(vector[], double precision),
  graphium_private._insert_statements(uuid, graphium.dh_specimens, graphium_private.incoming[]),
  graphium_private._fold_statements(uuid, uuid, graphium_private.incoming[]),
  graphium_private._parse_statement(int, jsonb, int, text),
  graphium_private._parse_statements(uuid, jsonb, text),
  graphium_private._resolve_audiences(graphium_private.incoming[], text[]);

alter type graphium_private.incoming add attribute taxa text[], add attribute family_id uuid, add attribute genus_id uuid, add attribute specimen_id uuid;
