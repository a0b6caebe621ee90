-- Tenants: create, drop, list. graphium_admin only. Keeper-owned: a tenant that is being made or listed is not the
-- caller's own. Each tenant gets its AGE graph in the same transaction.
--
-- example:
--   select graphium.create_tenant('umbrella');
--   select slug, embedding_model, dimensions from graphium.list_tenants() where slug = 'umbrella';
--   select graphium.drop_tenant('umbrella');
set local role graphium_keeper;

drop function if exists graphium.create_tenant(text, text, int); -- all words were English
create or replace function graphium.create_tenant(slug text, embedding_model text = 'all-MiniLM-L6-v2', dimensions int = 384, language text = 'english') returns uuid
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $create_tenant$
declare
  v_id uuid := graphium_private.new_id();
  v_slug text := graphium_private._clean_name(slug, 'slug', 100);
  v_model text := graphium_private._clean_name(embedding_model, 'embedding_model', 200);
begin
  perform graphium_private._require_admin_role();
  if dimensions is null or dimensions not between 1 and 16000 then
    perform graphium_private._raise_error('MG008', format('dimensions must be between 1 and 16000, got %s', coalesce(dimensions::text, 'NULL')),
      'Give the number of elements of the model''s vectors.');
  end if;
  if (language = 'simple' or exists (select from pg_ts_dict d where d.dictnamespace = 'pg_catalog'::regnamespace and d.dictname = language || '_stem')) is not true then
    perform graphium_private._raise_error('MG008', format('language: no stemmer for "%s"', coalesce(language, 'NULL')),
      'Give one that PostgreSQL has a stemmer for (english, german, french, russian ...), or simple: words as they are.');
  end if;
  insert into graphium.tenants (id, slug, embedding_model, dimensions, graph_name, language)
  values (v_id, v_slug, v_model, dimensions, graphium_private._graph_name(v_id), language)
  on conflict do nothing;
  if not found then
    perform graphium_private._raise_error('MG008', format('slug: there is a tenant "%s" already', v_slug), 'Choose another slug.');
  end if;
  perform graphium_private._create_graph(v_id);
  return v_id;
end
$create_tenant$;
comment on function graphium.create_tenant(text, text, int, text) is
  'Makes a tenant and its graph, and returns its id. The embedding model and its dimensions are fixed for the tenant: vectors of two models never meet. So is the language by which search stems words: english, one of the others that PostgreSQL has a stemmer for, or simple.';
revoke all on function graphium.create_tenant(text, text, int, text) from public;
grant execute on function graphium.create_tenant(text, text, int, text) to graphium_admin;

create or replace function graphium.drop_tenant(slug text) returns void
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $drop_tenant$
declare
  v_slug text := graphium_private._clean_name(slug, 'slug', 100);
  v_id uuid;
begin
  perform graphium_private._require_admin_role();
  -- Ingests hold a key-share lock on this row only while they make a family; whoever comes later finds no tenant.
  select t.id into v_id from graphium.tenants t where t.slug = v_slug for update;
  if v_id is null then
    perform graphium_private._raise_error('MG002', format('slug: no tenant "%s"', v_slug), 'graphium.list_tenants() lists them.');
  end if;
  perform graphium_private._lock_families(v_id, null);
  perform graphium_private._drop_graph(v_id);
  delete from graphium.tenants t where t.id = v_id;
end
$drop_tenant$;
comment on function graphium.drop_tenant(text) is
  'Deletes a tenant with everything that is its own: memory, symbioses, bindings of login roles, and graph. The login roles themselves stay.';
revoke all on function graphium.drop_tenant(text) from public;
grant execute on function graphium.drop_tenant(text) to graphium_admin;

drop function if exists graphium.list_tenants(); -- it did not tell the language
create or replace function graphium.list_tenants() returns table (slug text, embedding_model text, dimensions int, language text, created_at timestamptz)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $list_tenants$
begin
  perform graphium_private._require_admin_role();
  return query select t.slug, t.embedding_model, t.dimensions, t.language, t.created_at from graphium.tenants t order by t.slug collate "C";
end
$list_tenants$;
comment on function graphium.list_tenants() is 'All tenants of this database, by slug.';
revoke all on function graphium.list_tenants() from public;
grant execute on function graphium.list_tenants() to graphium_admin;
