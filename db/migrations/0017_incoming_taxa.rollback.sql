set local role graphium_owner;
select set_config('search_path', format('pg_catalog, %I', n.nspname), true)
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector';
drop function if exists graphium_private._near_in_batch(vector[], int, double precision);
drop function if exists graphium_private._match_statements(uuid, graphium_private.incoming[]);
drop function if exists graphium_private._insert_statements(uuid, graphium_private.incoming[]);
drop function if exists graphium_private._fold_statements(uuid, graphium_private.incoming[]);
drop function if exists graphium_private._place_inputs(graphium_private.incoming[], graphium.dh_specimens[], int[], text[]);
drop function if exists graphium_private._parse_statement(int, jsonb, int, text, text[]);
drop function if exists graphium_private._parse_statements(uuid, jsonb, text, boolean);
drop function if exists graphium_private._lock_or_make_families(uuid, text[], text[]);
drop function if exists graphium_private._remember(uuid, graphium_private.incoming[]);
drop function if exists graphium.ingest_many(jsonb, text[], text);
alter type graphium_private.incoming drop attribute taxa, drop attribute family_id, drop attribute genus_id, drop attribute specimen_id;
