-- cypher(): a read-only Cypher query over the caller's tenant, of which he sees what he sees of the rows: a Family by its own
-- audience, a Genus with its Family, a Specimen with its Family and by its own audience, an edge with both its ends.
--
-- One column, any JSON value: return a map for more (RETURN {family: f.name, genus: g.name}). Vertices and edges come as
-- {"id", "label", "properties"}, paths as arrays of them. A vertex's id is its row's uuid; an edge's is made of both its
-- ends' ids. Values go by params and are written $name in the text. What the text may say: docs/graph.md.
--
-- Fences, each of which holds alone: the grammar (330_cypher_grammar.sql); graphium_cypher, who owns this function, may call
-- few of AGE's functions (db/bootstrap.sql) and of all tables reads the label tables and AGE's catalog alone; their policies.
-- Writes nothing and takes no lock that a reader of tables would not take.
--
-- example:
--   select graphium.set_caller(tenant => 'acme');
--   select graphium.cypher('MATCH (f:Family)-[:HAS_GENUS]->(g:Genus) RETURN {family: f.name, genus: g.name}');
--   select graphium.cypher('MATCH (s:Specimen) WHERE s.name STARTS WITH $start RETURN count(*)', '{"start": "A"}');
set local role graphium_cypher;

create or replace function graphium_private._edge_uuid(p_label bigint, p_start bigint, p_end bigint) returns text
  language sql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp
  return (lpad(to_hex(p_start & 281474976710655), 12, '0') || '8' || lpad(to_hex(p_label), 3, '0') || '8000' || lpad(to_hex(p_end & 281474976710655), 12, '0'))::uuid::text;
comment on function graphium_private._edge_uuid(bigint, bigint, bigint) is 'The id of an edge: a uuid (version 8) made of its ends'' hashes and its label''s number.';
revoke all on function graphium_private._edge_uuid(bigint, bigint, bigint) from public;

create or replace function graphium_private._name_elements(p_value jsonb, p_mark text) returns jsonb
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $name_elements$
begin
  case jsonb_typeof(p_value)
    when 'array' then
      return (select coalesce(jsonb_agg(graphium_private._name_elements(e.value, p_mark) order by e.place), '[]')
                from jsonb_array_elements(p_value) with ordinality as e(value, place));
    when 'object' then
      if not p_value ? p_mark then
        return (select coalesce(jsonb_object_agg(e.key, graphium_private._name_elements(e.value, p_mark)), '{}') from jsonb_each(p_value) as e);
      end if;
      return jsonb_build_object(
        'id', case p_value ->> p_mark when 'vertex' then p_value -> 'properties' -> 'id'
                else to_jsonb(graphium_private._edge_uuid((p_value ->> 'id')::bigint >> 48, (p_value ->> 'start_id')::bigint, (p_value ->> 'end_id')::bigint)) end,
        'label', p_value -> 'label', 'properties', p_value -> 'properties');
    else
      return p_value;
  end case;
end
$name_elements$;
comment on function graphium_private._name_elements(jsonb, text) is 'Puts public ids into the vertices and edges of a value: the objects that have p_mark as a key.';
revoke all on function graphium_private._name_elements(jsonb, text) from public;

-- AGE writes JSON with notes after some values: {…}::vertex, {…}::edge, […]::path, 1.5::numeric, and bare NaN and Infinity.
create or replace function graphium_private._read_agtype(p_text text, p_mark text) returns jsonb
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $read_agtype$
declare
  v_json text;
begin
  if p_text is null then
    return 'null';
  elsif p_text !~ '::|NaN|Infinity' then
    return p_text::jsonb;
  end if;
  -- Split into strings, which stay as they are, and what is between them.
  select string_agg(case
           when left(m[1], 1) = '"' then m[1]
           else regexp_replace(regexp_replace(regexp_replace(m[1],
                  '\}::(vertex|edge)', format(', "%s": "\1"}', p_mark), 'g'),
                  '::(?:path|numeric)', '', 'g'),
                  '-?Infinity|NaN', '"\&"', 'g') end, '' order by place)
    into v_json
    from regexp_matches(p_text, '"(?:[^"\\]|\\.)*"|[^"]+', 'g') with ordinality as r(m, place);
  if position(p_mark in v_json) = 0 then
    return v_json::jsonb;
  end if;
  return graphium_private._name_elements(v_json::jsonb, p_mark);
end
$read_agtype$;
comment on function graphium_private._read_agtype(text, text) is 'A value as AGE writes it, as jsonb. p_mark: a text that occurs in no key.';
revoke all on function graphium_private._read_agtype(text, text) from public;

create or replace function graphium.cypher(query text, params jsonb = '{}') returns setof jsonb
  language plpgsql stable parallel unsafe security definer
  set search_path = ag_catalog, pg_temp set client_min_messages = warning set standard_conforming_strings = on set row_security = on set jit = off
as $cypher$
declare
  v_tenant_id uuid := graphium_private._require_caller();
  v_graph name := graphium_private._graph_name(v_tenant_id);
  v_query text := regexp_replace(query, '[;[:space:]]+$', '');
  v_mark text := replace(gen_random_uuid()::text, '-', '');
  v_state text;
  v_message text;
begin
  if query is null then
    perform graphium_private._raise_error('MG008', 'query must not be NULL', 'Give a Cypher query.');
  elsif params is null or jsonb_typeof(params) <> 'object' then
    perform graphium_private._raise_error('MG008', 'params must be a JSON object', 'Pass values by name: {"name": "Ada"} for $name.');
  end if;
  perform graphium_private._check_cypher(v_query, params);
  if not exists (select from ag_catalog.ag_graph g where g.name = v_graph and g.graphid = g.namespace::oid) then
    perform graphium_private._raise_error('MG009', 'the tenant''s graph is missing or damaged', 'An administrator runs graphium.rebuild_graph(): it is due after pg_restore.');
  end if;

  begin
    -- AGE wants its query as a dollar-quoted constant. v_mark is random, so the text does not contain it.
    return query execute
      'select graphium_private._read_agtype(nullif(format(''%s'', c.value), ''''), $2) from ag_catalog.cypher(' || quote_literal(v_graph) || ', $q' || v_mark || E'$\n'
      || v_query || E'\n$q' || v_mark || '$, $1) as c(value ag_catalog.agtype)'
      using params::text::ag_catalog.agtype, v_mark;
  exception when others then
    get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
    if (v_state in ('42P01', '3F000') or v_state like 'XX%') and exists (select from graphium_private._check_graph_catalog(v_tenant_id)) then
      perform graphium_private._raise_error('MG009', 'the tenant''s graph is missing or damaged', 'An administrator runs graphium.rebuild_graph(): it is due after pg_restore.');
    elsif v_state = '42804' and v_message like 'return row and column%' then
      perform graphium_private._refuse_cypher('the query returns more than one column', 'Return one map: RETURN {family: f.name, genus: g.name}.');
    elsif v_message like 'could not find rte for %' then -- AGE's words for it
      perform graphium_private._refuse_cypher(format('%s is not defined here', quote_ident(substr(v_message, 24))),
        'A name comes from MATCH, UNWIND or WITH, and after a WITH only what it names is left.');
    elsif v_state ~ '^(?:22|42|0A|54|XX)' then -- 22: a negative LIMIT, a division by zero
      perform graphium_private._refuse_cypher(v_message, 'So says Apache AGE of a name or a value in the query; docs/graph.md says what it does otherwise than others.');
    end if;
    raise;
  end;
end
$cypher$;
comment on function graphium.cypher(text, jsonb) is
  'Runs a read-only Cypher query over the caller''s tenant: he gets the families, genera and specimens that he may see, and the edges between them. One returned column, or one map; params are $name in the text.';
revoke all on function graphium.cypher(text, jsonb) from public;
grant execute on function graphium.cypher(text, jsonb) to graphium_reader;
