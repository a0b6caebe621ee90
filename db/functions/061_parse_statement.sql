-- One element of ingest_context's `statements`, checked field by field. MG004 names the ordinal and the field; MG005 is
-- for the vector. Nothing is written or locked yet when this fails.
set local role graphium_owner;

create or replace function graphium_private._refuse_statement(p_ordinal int, p_field text, p_problem text, p_hint text, p_code text = 'MG004') returns void
  language plpgsql volatile parallel safe security invoker set search_path = pg_catalog, pg_temp
as $refuse_statement$
begin
  perform graphium_private._raise_error(p_code, rtrim(format('statement %s: %s %s', p_ordinal, p_field, p_problem)), p_hint);
end
$refuse_statement$;
comment on function graphium_private._refuse_statement(int, text, text, text, text) is 'Raises MG004 (or MG005) for one field of one statement.';
revoke all on function graphium_private._refuse_statement(int, text, text, text, text) from public;

create or replace function graphium_private._parse_embedding(p_embedding jsonb, p_dimensions int, p_model text, p_subject text) returns @extschema:vector@.vector
  language plpgsql immutable parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $parse_embedding$
declare
  v_embedding @extschema:vector@.vector;
  v_problem text;
begin
  if p_embedding is null or jsonb_typeof(p_embedding) = 'null' then
    return null;
  end if;
  begin
    -- both forms arrive here as text: a JSON array, and pgvector's own text form in a JSON string (three times faster)
    v_embedding := (p_embedding #>> '{}')::@extschema:vector@.vector;
  exception
    when invalid_text_representation then v_problem := 'is not a list of numbers';
    when others then v_problem := 'is refused: ' || left(sqlerrm, 200);
  end;
  perform graphium_private._require_comparable(v_embedding, p_dimensions, p_model, p_subject, v_problem);
  return v_embedding;
end
$parse_embedding$;
comment on function graphium_private._parse_embedding(jsonb, int, text, text) is 'A JSON value as a vector of the tenant''s model; MG005 otherwise. NULL and JSON null: no vector.';
revoke all on function graphium_private._parse_embedding(jsonb, int, text, text) from public;

-- A zero vector has no direction. pgvector computes cosines in single precision: elements whose squares overflow make
-- them NaN, and squares that vanish make different vectors look alike.
create or replace function graphium_private._require_comparable(p_embedding @extschema:vector@.vector, p_dimensions int, p_model text, p_subject text, p_problem text = null) returns void
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_comparable$
begin
  if p_problem is null and @extschema:vector@.vector_dims(p_embedding) <> p_dimensions then
    p_problem := format('has %s dimensions, the tenant''s model %s has %s', @extschema:vector@.vector_dims(p_embedding), p_model, p_dimensions);
  elsif p_problem is null and @extschema:vector@.vector_norm(p_embedding) = 0 then
    p_problem := 'is all zero: it has no direction, so no similarity to anything';
  elsif p_problem is null and @extschema:vector@.vector_norm(p_embedding) not between 1e-15 and 1e15 then
    p_problem := 'has elements too large or too small to compare';
  end if;
  if p_problem is not null then
    perform graphium_private._raise_error('MG005', format('%s %s', p_subject, p_problem),
      format('Give %s finite numbers made by %s, or null to store or search by words only.', p_dimensions, p_model));
  end if;
end
$require_comparable$;
comment on function graphium_private._require_comparable(@extschema:vector@.vector, int, text, text, text) is 'MG005 unless the vector can be compared with the tenant''s others.';
revoke all on function graphium_private._require_comparable(@extschema:vector@.vector, int, text, text, text) from public;

create or replace function graphium_private._parse_statement(p_ordinal int, p_statement jsonb, p_dimensions int, p_model text, p_known text[]) returns graphium_private.incoming
  language plpgsql stable parallel unsafe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $parse_statement$
declare
  c_blank_hash constant bytea := graphium_private.fold_hash_v1('');
  v_in graphium_private.incoming;
  v_unknown text;
  v_class record;
begin
  v_in.ordinal := p_ordinal;
  if jsonb_typeof(p_statement) is distinct from 'object' then
    perform graphium_private._refuse_statement(p_ordinal, 'it', format('must be an object, not %s', coalesce(jsonb_typeof(p_statement), 'NULL')),
      'Give {"content": "…", "embedding": […]}.');
  end if;
  if p_statement - p_known <> '{}' then
    select string_agg(quote_ident(k), ', ' order by k collate "C") into v_unknown from jsonb_object_keys(p_statement) as k where k <> all (p_known);
    perform graphium_private._refuse_statement(p_ordinal, 'key', left(v_unknown, 200) || ' is not known', 'Known keys: ' || array_to_string(p_known, ', ') || '. Put anything else into metadata.');
  end if;

  if 'specimen' = any (p_known) then
    v_in.taxa := array[p_statement ->> 'family', p_statement ->> 'genus', p_statement ->> 'specimen'];
  end if;

  -- null means "not given" (->> makes it NULL), except inside metadata, which comes back as it went in
  v_in.content := p_statement ->> 'content';
  if jsonb_typeof(p_statement -> 'content') is distinct from 'string' then
    perform graphium_private._refuse_statement(p_ordinal, 'content', 'must be a text', 'Give one sentence.');
  elsif char_length(v_in.content) > 2000000 then
    perform graphium_private._refuse_statement(p_ordinal, 'content', format('is %s characters long, at most 2000000 are allowed', char_length(v_in.content)), 'Split it into sentences.');
  end if;
  v_in.content_hash := graphium_private.fold_hash_v1(v_in.content);
  if v_in.content_hash = c_blank_hash then
    perform graphium_private._refuse_statement(p_ordinal, 'content', 'is blank', 'Give one sentence.');
  end if;

  v_in.embedding := graphium_private._parse_embedding(p_statement -> 'embedding', p_dimensions, p_model, format('statement %s: embedding', p_ordinal));

  v_in.memory_type := p_statement ->> 'memory_type';
  if v_in.memory_type <> all (graphium_private._memory_types()) then
    perform graphium_private._refuse_statement(p_ordinal, 'memory_type', format('"%s" is not known', left(v_in.memory_type, 100)), format('One of %s; or leave it out to have it classified.', array_to_string(graphium_private._memory_types(), ', ')));
  end if;
  v_in.layer_kind := p_statement ->> 'layer_kind';
  if v_in.layer_kind <> all (graphium_private._layer_kinds()) then
    perform graphium_private._refuse_statement(p_ordinal, 'layer_kind', format('"%s" is not known', left(v_in.layer_kind, 100)), format('One of %s; or leave it out to have it classified.', array_to_string(graphium_private._layer_kinds(), ', ')));
  end if;
  v_in.own_memory_type := v_in.memory_type;
  v_in.own_layer_kind := v_in.layer_kind;
  if v_in.memory_type is null or v_in.layer_kind is null then
    v_class := graphium_private._classify_by_rules(v_in.content);
    v_in.memory_type := coalesce(v_in.memory_type, v_class.memory_type);
    v_in.layer_kind := coalesce(v_in.layer_kind, v_class.layer_kind);
    v_in.rule := v_class.rule;
  end if;

  if (p_statement -> 'required_scopes')::text ~ '^\[("[0-9A-Za-z_:.-]{1,200}")?\]$' then -- none, or one that is as it is stored
    v_in.required_scopes := array_remove(array[p_statement #>> '{required_scopes,0}'], null);
  elsif p_statement ->> 'required_scopes' is not null then
    if jsonb_typeof(p_statement -> 'required_scopes') <> 'array'
       or exists (select from jsonb_array_elements(p_statement -> 'required_scopes') as s(scope) where jsonb_typeof(s.scope) <> 'string') then
      perform graphium_private._refuse_statement(p_ordinal, 'required_scopes', 'must be a list of texts', '[]: everyone in the tenant; leave it out for the default.');
    end if;
    begin
      v_in.required_scopes := graphium_private._clean_scopes(array(select jsonb_array_elements_text(p_statement -> 'required_scopes')), 'required_scopes');
    exception when sqlstate 'MG008' then
      perform graphium_private._refuse_statement(p_ordinal, sqlerrm, '', 'Scopes are names of 1 to 200 characters.');
    end;
  end if;

  if p_statement ->> 'occurred_at' is not null then
    begin
      if p_statement ->> 'occurred_at' ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}($|[T ][0-9])' then -- not "yesterday", nor 3/4/2026
        v_in.occurred_at := (p_statement ->> 'occurred_at')::timestamptz;
      end if;
    exception when data_exception then
      null; -- isfinite(null) below
    end;
    if jsonb_typeof(p_statement -> 'occurred_at') <> 'string' or isfinite(v_in.occurred_at) is not true then
      perform graphium_private._refuse_statement(p_ordinal, 'occurred_at', 'must be a time', 'Give ISO 8601 with a zone: 2026-03-01T09:30:00Z.');
    elsif v_in.occurred_at not between '0001-01-02 00:00Z' and '9999-12-30 00:00Z' then
      perform graphium_private._refuse_statement(p_ordinal, 'occurred_at', 'is outside of the years 1 to 9999', 'Most languages have no such time: put it into the text or into metadata.');
    end if;
  end if;

  if p_statement ->> 'source' is not null then
    if jsonb_typeof(p_statement -> 'source') <> 'string' then
      perform graphium_private._refuse_statement(p_ordinal, 'source', 'must be a text', 'Name the conversation or document it came from.');
    end if;
    begin
      v_in.source := graphium_private._clean_name(p_statement ->> 'source', 'source', 500);
    exception when sqlstate 'MG008' then
      perform graphium_private._refuse_statement(p_ordinal, sqlerrm, '', 'Name the conversation or document it came from.');
    end;
  end if;
  if p_statement ->> 'position' is not null then
    if jsonb_typeof(p_statement -> 'position') <> 'number' or (p_statement ->> 'position') !~ '^-?[0-9]{1,18}$' then
      perform graphium_private._refuse_statement(p_ordinal, 'position', 'must be a whole number of at most 18 digits', 'Its place in its source.');
    elsif v_in.source is null then
      perform graphium_private._refuse_statement(p_ordinal, 'position', 'needs a source', 'A place is a place in something: give source too.');
    end if;
    v_in.position := (p_statement ->> 'position')::bigint;
  end if;

  v_in.metadata := coalesce(nullif(p_statement -> 'metadata', 'null'), '{}');
  if jsonb_typeof(v_in.metadata) <> 'object' then
    perform graphium_private._refuse_statement(p_ordinal, 'metadata', 'must be an object', 'Give {"key": value}.');
  elsif v_in.metadata <> '{}' then
    -- Every reader of the row gets it, and his JSON parser. A number such as 1e131071 takes few bytes here, and 131 kB as text.
    if v_in.metadata @? 'strict $.**{65}' then
      perform graphium_private._refuse_statement(p_ordinal, 'metadata', 'is nested more than 64 deep', 'Store it as a text, or elsewhere.');
    elsif v_in.metadata @? 'strict $.** ? (@.type() == "number" && (@ > 1e300 || @ < -1e300))' then
      perform graphium_private._refuse_statement(p_ordinal, 'metadata', 'has a number beyond 1e300', 'Store it as a text.');
    elsif octet_length(v_in.metadata::text) > 1000000 then
      perform graphium_private._refuse_statement(p_ordinal, 'metadata', 'is more than 1000000 bytes long', 'Store it elsewhere, and its address here.');
    end if;
  end if;
  if jsonb_typeof(p_statement -> 'exact_only') not in ('boolean', 'null') then
    perform graphium_private._refuse_statement(p_ordinal, 'exact_only', 'must be true or false', 'true: the vector does not identify the text, so dedup goes by equal text only.');
  end if;
  v_in.exact_only := coalesce((p_statement ->> 'exact_only')::boolean, false);
  return v_in;
end
$parse_statement$;
comment on function graphium_private._parse_statement(int, jsonb, int, text, text[]) is 'One input of ingest_context: checked, classified and hashed; no scopes where it gave none.';
revoke all on function graphium_private._parse_statement(int, jsonb, int, text, text[]) from public;

create or replace function graphium_private._parse_statements(p_tenant_id uuid, p_statements jsonb, p_embedding_model text, p_with_taxa boolean = false) returns graphium_private.incoming[]
  language plpgsql stable parallel unsafe security invoker set search_path = pg_catalog, pg_temp
as $parse_statements$
declare
  v_known constant text[] := '{content,embedding,memory_type,layer_kind,required_scopes,occurred_at,source,position,metadata,exact_only}'::text[]
    || case when p_with_taxa then '{family,genus,specimen}'::text[] end;
  v_tenant graphium.tenants := (select t from graphium.tenants t where t.id = p_tenant_id);
begin
  perform graphium_private._require_model(v_tenant, p_embedding_model);
  if jsonb_typeof(p_statements) is distinct from 'array' then
    perform graphium_private._raise_error('MG004', format('statements must be a JSON array, not %s', coalesce(jsonb_typeof(p_statements), 'NULL')),
      'Give [{"content": "…", "embedding": […]}, …].');
  end if;
  return array(select graphium_private._parse_statement(e.ordinal::int, e.statement, v_tenant.dimensions, v_tenant.embedding_model, v_known)
                 from jsonb_array_elements(p_statements) with ordinality as e(statement, ordinal)
                order by e.ordinal);
end
$parse_statements$;
comment on function graphium_private._parse_statements(uuid, jsonb, text, boolean) is 'The inputs of one ingest_context call, parsed.';
revoke all on function graphium_private._parse_statements(uuid, jsonb, text, boolean) from public;

create or replace function graphium_private._require_model(p_tenant graphium.tenants, p_embedding_model text) returns void
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_model$
begin
  if p_embedding_model collate "C" <> p_tenant.embedding_model then
    perform graphium_private._raise_error('MG005', format('embedding_model: the vectors are of "%s", the tenant''s model is "%s"', p_embedding_model, p_tenant.embedding_model),
      'Vectors of two models never meet: embed with the tenant''s model, or make another tenant for this one.');
  end if;
end
$require_model$;
comment on function graphium_private._require_model(graphium.tenants, text) is 'MG005 when a client says that its vectors are of another model than the tenant''s. NULL: it did not say.';
revoke all on function graphium_private._require_model(graphium.tenants, text) from public;

-- Where each input goes: p_specimens[p_which[ordinal]]; and its audience: its own scopes, else the call's, else its specimen's.
-- Nobody writes what he could not read.
create or replace function graphium_private._place_inputs(p_inputs graphium_private.incoming[], p_specimens graphium.dh_specimens[], p_which int[], p_scopes text[])
  returns graphium_private.incoming[]
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $place_inputs$
declare
  v_specimen graphium.dh_specimens;
  v_which int := 0;
  v_held text[];
begin
  for v_index in 1..cardinality(p_inputs) loop
    if v_which <> p_which[v_index] then
      v_which := p_which[v_index];
      v_specimen := p_specimens[v_which];
    end if;
    p_inputs[v_index].family_id := v_specimen.family_id;
    p_inputs[v_index].genus_id := v_specimen.genus_id;
    p_inputs[v_index].specimen_id := v_specimen.id;
    if p_inputs[v_index].required_scopes is null then
      p_inputs[v_index].required_scopes := coalesce(p_scopes, v_specimen.required_scopes);
    end if;
    if p_inputs[v_index].required_scopes is distinct from v_held then
      perform graphium_private._require_held(p_inputs[v_index].required_scopes, format('statement %s: required_scopes', v_index));
      v_held := p_inputs[v_index].required_scopes;
    end if;
    p_inputs[v_index].audience := graphium_private._audience(p_inputs[v_index].required_scopes);
  end loop;
  return p_inputs;
end
$place_inputs$;
comment on function graphium_private._place_inputs(graphium_private.incoming[], graphium.dh_specimens[], int[], text[]) is
  'The inputs with their specimen, scopes and canonical audience filled in; MG006 for scopes that the caller does not hold.';
revoke all on function graphium_private._place_inputs(graphium_private.incoming[], graphium.dh_specimens[], int[], text[]) from public;
