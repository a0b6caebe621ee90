-- Which Cypher texts reach Apache AGE: those of the grammar below, and no others. AGE's own parser is no place to say no:
-- it takes a text that calls any SQL function, it writes, and quite small texts that type check badly crash the
-- server for everybody (`RETURN 1 IN (2 = 2)`, `substring(a, null, 1)`, `a <= null >= b.c < b`; AGE 1.5 and 1.7).
-- So this is an allowlist in front of the allowlist of EXECUTE grants (db/bootstrap.sql), and each stands alone against
-- writes and foreign functions. Both are in docs/graph.md; tests/graph fuzzes what this grammar lets through.
--
--   query      := part { UNION [ALL] part }
--   part       := { [OPTIONAL] MATCH path {, path} [WHERE expr] | UNWIND expr AS name | WITH body [WHERE expr] } RETURN body
--   body       := [DISTINCT] ( * | expr [AS name] {, expr [AS name]} ) [ORDER BY expr [ASC | DESC] {, …}] [SKIP expr] [LIMIT expr]
--   path       := [name =] node { edge node }
--   node       := ( [name] [: label] [properties] )
--   edge       := [<] - [ [ [name] [: label] [properties] ] ] - [>]              one hop: no `*`
--   properties := { key : literal | parameter | name [. key], … }           in exists(): no names
--   expr       := test { (AND | OR | XOR) test }
--   test       := { NOT } ( sum [ compare sum ] | operand IS [NOT] NULL | operand (IN | STARTS WITH | ENDS WITH | CONTAINS | =~) operand )
--   sum        := [-] operand { (+ | - | * | / | % | ^ | ||) [-] operand }
--   operand    := ( literal | parameter | name | function(…) | (expr) | [expr, …] | {key: expr, …} | CASE … END | exists(…) ) { .key | [expr] | [number..number] }
--   exists(…)  := exists(name . key) | exists(path)                               the path's edges without names
--
-- Tests, exists(), isEmpty() and avg() yield SQL's boolean or double precision, which AGE hands to its own functions as if
-- they were pointers to its values (so a chosen avg() reads memory). They are "raw" here: they may stand where a condition
-- may, be returned, put into a list or map, and be made a value by toBoolean(), toString(), toFloat() or toInteger(); they
-- may not be an argument, an operand or an index, and WITH may not name them.
--
-- The parser walks an array of tokens: `kinds` has "id", "num", "str", "par", a keyword in capitals, or the symbol
-- itself; `words` what was written. Each function takes the place where its part begins and returns the place
-- after it, negative when the part is raw. They run inside _check_cypher() only, under its search_path: they recurse,
-- and one of their own would cost each call more than the rest of it.
set local role graphium_cypher;

create or replace function graphium_private._refuse_cypher(p_message text, p_hint text default null) returns void
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $refuse_cypher$
begin
  perform graphium_private._raise_error('MG010', p_message, coalesce(p_hint,
    'graphium.cypher() takes one read-only query of MATCH, OPTIONAL MATCH, WHERE, UNWIND, WITH and RETURN; docs/graph.md has its grammar.'));
end
$refuse_cypher$;
comment on function graphium_private._refuse_cypher(text, text) is 'Raises MG010.';
revoke all on function graphium_private._refuse_cypher(text, text) from public;

create or replace function graphium_private._refuse_raw_cypher(words text[], place int) returns void
  language plpgsql stable parallel safe security invoker
as $refuse_raw_cypher$
begin
  perform graphium_private._refuse_cypher(format('a condition, or avg(), is used as a value before %s', coalesce('"' || left(words[place], 40) || '"', 'the end')),
    'Make it a value first: toBoolean(a = b), toFloat(avg(x)), or CASE WHEN a = b THEN … ELSE … END.');
end
$refuse_raw_cypher$;
comment on function graphium_private._refuse_raw_cypher(text[], int) is 'Raises MG010 for a raw part that ends before that place.';
revoke all on function graphium_private._refuse_raw_cypher(text[], int) from public;

-- AGE's scanner, as one regular expression: longest match, and what matches no alternative stands alone.
create or replace function graphium_private._cypher_tokens(query text, out kinds text[], out words text[])
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $cypher_tokens$
begin
  select array_agg(m[1]) filter (where left(m[1], 1) not in (' ', E'\t', E'\n', E'\u000b', E'\f', E'\r') and left(m[1], 2) not in ('//', '/*') or m[1] = '/*')
    into words
    from regexp_matches(query, $re$[\u0009-\u000d ]+|//[^\n\r]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|/\*$re$
      || $re$|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`|0[xX][0-9A-Fa-f]+|(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$re$
      || $re$|\$?[^\u0001-\u0040\u005b-\u005e\u0060\u007b-\u007f][^\u0001-\u0023\u0025-\u002f\u003a-\u0040\u005b-\u005e\u0060\u007b-\u007f]*$re$
      || $re$|::|\.\.|<>|<=|>=|\+=|=~|\|\||\?\||\?&|.$re$ collate "C", 'g') as m;
  select array_agg(case
           when t.word ~ '^\.?[0-9]' then 'num'
           when length(t.word) > 1 and left(t.word, 1) in ('"', '''') then 'str'
           when length(t.word) > 1 and left(t.word, 1) = '$' then 'par'
           when length(t.word) > 1 and left(t.word, 1) = '`' then 'id'
           when upper(t.word collate "C") = any ('{ALL,AND,AS,ASC,ASCENDING,BY,CASE,COALESCE,CONTAINS,DESC,DESCENDING,DISTINCT,ELSE,END,ENDS,EXISTS,FALSE,IN,IS,LIMIT,MATCH,NOT,"NULL",OPTIONAL,OR,ORDER,RETURN,SKIP,STARTS,THEN,TRUE,UNION,UNWIND,WHEN,WHERE,WITH,XOR,ANALYZE,CALL,CREATE,DELETE,DETACH,EXPLAIN,FOREACH,LOAD,MERGE,PROFILE,REMOVE,SET,VERBOSE,YIELD}')
             then upper(t.word collate "C")
           when t.word ~ '^[^\u0001-\u0040\u005b-\u005e\u0060\u007b-\u007f]' then 'id'
           else t.word end)
    into kinds
    from unnest(words) as t(word);
end
$cypher_tokens$;
comment on function graphium_private._cypher_tokens(text) is 'Kinds and words of a Cypher text, without white space and comments. NULL when there are none.';
revoke all on function graphium_private._cypher_tokens(text) from public;

create or replace function graphium_private._expect_cypher(kinds text[], words text[], place int, wanted text) returns int
  language plpgsql stable parallel safe security invoker
as $expect_cypher$
begin
  if kinds[place] is distinct from wanted then
    perform graphium_private._refuse_cypher(format('expected %s %s', case wanted when 'id' then 'a name' else wanted end,
      case when words[place] is null then 'at the end of the query' else format('at or near "%s"', left(words[place], 40)) end));
  end if;
  return place + 1;
end
$expect_cypher$;
comment on function graphium_private._expect_cypher(text[], text[], int, text) is 'The place after the token that must come here.';
revoke all on function graphium_private._expect_cypher(text[], text[], int, text) from public;

-- After `.` or `:` and before the `:` of a map, keywords are names too.
create or replace function graphium_private._parse_cypher_name(kinds text[], words text[], place int) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_name$
begin
  if kinds[place] = 'id' or kinds[place] ~ '^[A-Z]' then
    return place + 1;
  end if;
  return graphium_private._expect_cypher(kinds, words, place, 'id');
end
$parse_cypher_name$;
comment on function graphium_private._parse_cypher_name(text[], text[], int) is 'The place after a label or key.';
revoke all on function graphium_private._parse_cypher_name(text[], text[], int) from public;

-- `aggregates`: whether they may stand here (in WITH and RETURN, not inside one another).
create or replace function graphium_private._parse_cypher_expression(kinds text[], words text[], place int, aggregates boolean, depth int) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_expression$
declare
  v_is_raw boolean := false;  -- of the whole
  v_side_is_raw boolean;
  v_side_is_plain boolean;      -- one operand, no sign
  v_compared text;              -- the comparison that this side is the right of
  v_list int;
begin
  if depth > 40 then
    perform graphium_private._refuse_cypher('the query is nested more than 40 deep');
  end if;
  loop
    while kinds[place] = 'NOT' loop
      place := place + 1;
      v_is_raw := true;
    end loop;
    v_compared := null;
    loop -- the sides of a comparison
      v_side_is_plain := true;
      v_side_is_raw := false;
      loop -- the operands of a sum
        if kinds[place] = '-' then
          place := place + 1;
          v_side_is_plain := false;
        end if;
        place := graphium_private._parse_cypher_operand(kinds, words, place, aggregates, depth);
        if place < 0 then
          place := - place;
          v_side_is_raw := true;
        end if;
        exit when kinds[place] is null or kinds[place] <> all ('{+,-,*,/,%,^,||}');
        place := place + 1;
        v_side_is_plain := false;
      end loop;
      if v_side_is_raw and (v_compared is not null or not v_side_is_plain or kinds[place] = any ('{=,<>,<,<=,>,>=,=~,IN,STARTS,ENDS,CONTAINS,IS}')) then
        perform graphium_private._refuse_raw_cypher(words, place);
      end if;
      if not v_side_is_plain and (v_compared = any ('{=~,IN,STARTS,ENDS,CONTAINS}') or kinds[place] = any ('{=~,IN,STARTS,ENDS,CONTAINS,IS}')) then
        perform graphium_private._refuse_cypher(format('arithmetic beside %s', coalesce(v_compared, kinds[place])),
          'Put the sum into parentheses: AGE binds IN, IS, STARTS WITH, ENDS WITH, CONTAINS and =~ tighter than + and -.');
      end if;
      exit when kinds[place] is null or kinds[place] <> all ('{=,<>,<,<=,>,>=,=~,IN,STARTS,ENDS,CONTAINS,IS}');
      if v_compared is not null then
        perform graphium_private._refuse_cypher(format('a chain of comparisons at "%s"', words[place]), 'Write a < b AND b < c instead of a < b < c.');
      end if;
      v_compared := kinds[place];
      v_is_raw := true;
      place := place + 1;
      if v_compared = 'IS' then
        if kinds[place] = 'NOT' then
          place := place + 1;
        end if;
        place := graphium_private._expect_cypher(kinds, words, place, 'NULL');
        exit;
      elsif v_compared in ('STARTS', 'ENDS') then
        place := graphium_private._expect_cypher(kinds, words, place, 'WITH');
      elsif v_compared = 'IN' then
        -- AGE 1.5 crashes on an empty list here.
        v_list := place;
        while kinds[v_list] = '(' loop
          v_list := v_list + 1;
        end loop;
        if kinds[v_list] = '[' and kinds[v_list + 1] = ']' then
          perform graphium_private._refuse_cypher('nothing is IN []', 'Write false, or pass the list as a parameter.');
        end if;
      end if;
    end loop;
    v_is_raw := v_is_raw or v_side_is_raw;
    exit when kinds[place] is null or kinds[place] <> all ('{AND,OR,XOR}');
    place := place + 1;
    v_is_raw := true;
  end loop;
  return case when v_is_raw then - place else place end;
end
$parse_cypher_expression$;
comment on function graphium_private._parse_cypher_expression(text[], text[], int, boolean, int) is 'The place after an expression; negative when it is raw.';
revoke all on function graphium_private._parse_cypher_expression(text[], text[], int, boolean, int) from public;

create or replace function graphium_private._parse_cypher_value(kinds text[], words text[], place int, aggregates boolean, depth int) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_value$
begin
  place := graphium_private._parse_cypher_expression(kinds, words, place, aggregates, depth + 1);
  if place < 0 then
    perform graphium_private._refuse_raw_cypher(words, - place);
  end if;
  return place;
end
$parse_cypher_value$;
comment on function graphium_private._parse_cypher_value(text[], text[], int, boolean, int) is 'The place after an expression that is not raw.';
revoke all on function graphium_private._parse_cypher_value(text[], text[], int, boolean, int) from public;

create or replace function graphium_private._parse_cypher_operand(kinds text[], words text[], place int, aggregates boolean, depth int) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_operand$
declare
  v_is_raw boolean := false;
  v_closing text;
  v_slice int;
begin
  if kinds[place] in ('num', 'str', 'par', 'NULL', 'TRUE', 'FALSE') then
    place := place + 1;
  elsif kinds[place] in ('id', 'COALESCE', 'EXISTS') and kinds[place + 1] = '(' then
    place := graphium_private._parse_cypher_call(kinds, words, place, aggregates, depth);
    v_is_raw := place < 0;
    place := abs(place);
  elsif kinds[place] = 'id' then
    place := place + 1;
  elsif kinds[place] = '(' then
    place := graphium_private._parse_cypher_expression(kinds, words, place + 1, aggregates, depth + 1);
    v_is_raw := place < 0;
    place := graphium_private._expect_cypher(kinds, words, abs(place), ')');
  elsif kinds[place] in ('[', '{') then
    v_closing := case kinds[place] when '[' then ']' else '}' end;
    place := place + 1;
    while kinds[place] is distinct from v_closing loop
      if v_closing = '}' then
        place := graphium_private._parse_cypher_name(kinds, words, place);
        place := graphium_private._expect_cypher(kinds, words, place, ':');
      end if;
      place := abs(graphium_private._parse_cypher_expression(kinds, words, place, aggregates, depth + 1));
      exit when kinds[place] is distinct from ',';
      place := place + 1;
    end loop;
    place := graphium_private._expect_cypher(kinds, words, place, v_closing);
  elsif kinds[place] = 'CASE' then
    place := graphium_private._parse_cypher_case(kinds, words, place, aggregates, depth);
  else
    perform graphium_private._refuse_cypher(case when words[place] is null then 'the query ends too early'
      else format('unexpected "%s"', left(words[place], 40)) end);
  end if;
  while kinds[place] in ('.', '[') loop
    if v_is_raw then
      perform graphium_private._refuse_raw_cypher(words, place);
    elsif kinds[place] = '.' then
      place := graphium_private._parse_cypher_name(kinds, words, place + 1);
      if kinds[place] = '(' then
        perform graphium_private._refuse_cypher(format('"%s.%s" is not among the functions that may be called', words[place - 3], words[place - 1]),
          'Functions have no schema here; docs/graph.md lists them.');
      end if;
    else
      place := place + 1;
      v_slice := place;
      for v_bound in 1..2 loop
        if kinds[place] = '-' and kinds[place + 1] = 'num' then
          place := place + 1;
        end if;
        if kinds[place] = 'num' then
          place := place + 1;
        end if;
        exit when v_bound = 2 or kinds[place] is distinct from '..';
        v_slice := null;
        place := place + 1;
      end loop;
      if v_slice is not null then -- no slice
        place := graphium_private._parse_cypher_value(kinds, words, v_slice, aggregates, depth);
      end if;
      place := graphium_private._expect_cypher(kinds, words, place, ']');
    end if;
  end loop;
  return case when v_is_raw then - place else place end;
end
$parse_cypher_operand$;
comment on function graphium_private._parse_cypher_operand(text[], text[], int, boolean, int) is 'The place after an operand; negative when it is raw.';
revoke all on function graphium_private._parse_cypher_operand(text[], text[], int, boolean, int) from public;

create or replace function graphium_private._parse_cypher_case(kinds text[], words text[], place int, aggregates boolean, depth int) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_case$
declare
  v_has_subject boolean := kinds[place + 1] is distinct from 'WHEN';
begin
  place := place + 1;
  if v_has_subject then
    place := graphium_private._parse_cypher_value(kinds, words, place, aggregates, depth);
  end if;
  loop
    place := graphium_private._expect_cypher(kinds, words, place, 'WHEN');
    if v_has_subject then
      place := graphium_private._parse_cypher_value(kinds, words, place, aggregates, depth);
    else
      place := abs(graphium_private._parse_cypher_expression(kinds, words, place, aggregates, depth + 1));
    end if;
    place := graphium_private._expect_cypher(kinds, words, place, 'THEN');
    place := graphium_private._parse_cypher_value(kinds, words, place, aggregates, depth);
    exit when kinds[place] is distinct from 'WHEN';
  end loop;
  if kinds[place] = 'ELSE' then
    place := graphium_private._parse_cypher_value(kinds, words, place + 1, aggregates, depth);
  end if;
  return graphium_private._expect_cypher(kinds, words, place, 'END');
end
$parse_cypher_case$;
comment on function graphium_private._parse_cypher_case(text[], text[], int, boolean, int) is 'The place after CASE … END.';
revoke all on function graphium_private._parse_cypher_case(text[], text[], int, boolean, int) from public;

-- name, fewest and most arguments. AGE knows more: id(), start_id() and end_id() would give away internal ids, startNode(),
-- endNode() and vle() read past the policies, toStringList() and its kin crash on a raw one.
create or replace function graphium_private._cypher_functions() returns table (name text, is_aggregate boolean, fewest int, most int)
  language sql immutable parallel safe security invoker
as $cypher_functions$
  values
    ('abs', false, 1, 1), ('acos', false, 1, 1), ('asin', false, 1, 1), ('atan', false, 1, 1), ('atan2', false, 2, 2), ('ceil', false, 1, 1),
    ('coalesce', false, 1, 20), ('cos', false, 1, 1), ('cot', false, 1, 1), ('degrees', false, 1, 1), ('e', false, 0, 0), ('exp', false, 1, 1),
    ('floor', false, 1, 1), ('head', false, 1, 1), ('isempty', false, 1, 1), ('keys', false, 1, 1), ('label', false, 1, 1),
    ('labels', false, 1, 1), ('last', false, 1, 1), ('left', false, 2, 2), ('length', false, 1, 1), ('log', false, 1, 1), ('log10', false, 1, 1),
    ('ltrim', false, 1, 1), ('nodes', false, 1, 1), ('pi', false, 0, 0), ('properties', false, 1, 1), ('radians', false, 1, 1), ('rand', false, 0, 0),
    ('relationships', false, 1, 1), ('reverse', false, 1, 1), ('right', false, 2, 2),
    ('round', false, 1, 2), ('rtrim', false, 1, 1), ('sign', false, 1, 1), ('sin', false, 1, 1), ('size', false, 1, 1), ('split', false, 2, 2),
    ('sqrt', false, 1, 1), ('substring', false, 2, 3), ('tail', false, 1, 1), ('tan', false, 1, 1), ('timestamp', false, 0, 0),
    ('toboolean', false, 1, 1), ('tofloat', false, 1, 1), ('tointeger', false, 1, 1), ('tolower', false, 1, 1), ('tostring', false, 1, 1),
    ('toupper', false, 1, 1), ('trim', false, 1, 1), ('type', false, 1, 1),
    ('avg', true, 1, 1), ('collect', true, 1, 1), ('count', true, 1, 1), ('max', true, 1, 1), ('min', true, 1, 1), ('percentilecont', true, 2, 2),
    ('percentiledisc', true, 2, 2), ('stdev', true, 1, 1), ('stdevp', true, 1, 1), ('sum', true, 1, 1)
$cypher_functions$;
comment on function graphium_private._cypher_functions() is 'The functions that a Cypher text may call. Inlined, hence no SET.';
revoke all on function graphium_private._cypher_functions() from public;

create or replace function graphium_private._parse_cypher_call(kinds text[], words text[], place int, aggregates boolean, depth int) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_call$
declare
  v_name text := lower(words[place] collate "C");
  v_function record;
  v_arguments int := 0;
begin
  if v_name = 'exists' then
    place := place + 2;
    if kinds[place] = '(' then
      place := graphium_private._parse_cypher_path(kinds, words, place, false);
    else
      place := graphium_private._expect_cypher(kinds, words, place, 'id');
      place := graphium_private._expect_cypher(kinds, words, place, '.');
      place := graphium_private._parse_cypher_name(kinds, words, place);
    end if;
    return - graphium_private._expect_cypher(kinds, words, place, ')');
  end if;

  select f.* into v_function from graphium_private._cypher_functions() as f where f.name = v_name;
  if not found then
    perform graphium_private._refuse_cypher(format('"%s" is not among the functions that may be called', left(words[place], 40)), case
      when v_name in ('id', 'start_id', 'end_id') then 'Use the property id: it is the row''s uuid. Of an edge, return both ends.'
      when v_name in ('range', 'replace') then 'They make much out of little, which no time limit stops in AGE: do it in the client.'
      when v_name in ('startnode', 'endnode') then 'Name both ends in the pattern: MATCH (a)-[e]->(b).'
      when v_name in ('shortestpath', 'allshortestpaths', 'vle') then 'Paths of variable length are not served; write out the hops: Family, Genus, Specimen are two apart.'
      else 'docs/graph.md lists them.' end);
  elsif v_function.is_aggregate and not aggregates then
    perform graphium_private._refuse_cypher(format('%s() is an aggregate, which can stand only in RETURN and WITH, and not inside another', v_name),
      'Compute it in a WITH … AS name, then use the name.');
  end if;

  place := place + 2;
  if v_name = 'count' and kinds[place] = '*' then
    return graphium_private._expect_cypher(kinds, words, place + 1, ')');
  elsif v_function.is_aggregate and kinds[place] = 'DISTINCT' then
    place := place + 1;
  end if;
  while kinds[place] is distinct from ')' loop
    v_arguments := v_arguments + 1;
    -- AGE crashes on substring(text, NULL, length).
    if v_name = 'substring' and v_arguments = 3 and (kinds[place - 2] <> 'num' or kinds[place - 3] <> ',') then
      perform graphium_private._refuse_cypher('substring() with three arguments needs a number as its second', 'Use left(substring(text, start), length).');
    end if;
    if v_name in ('toboolean', 'tostring', 'tofloat', 'tointeger') then
      place := abs(graphium_private._parse_cypher_expression(kinds, words, place, aggregates, depth + 1));
    else
      place := graphium_private._parse_cypher_value(kinds, words, place, aggregates and not v_function.is_aggregate, depth);
    end if;
    exit when kinds[place] is distinct from ',';
    place := place + 1;
  end loop;
  if v_arguments not between v_function.fewest and v_function.most then
    perform graphium_private._refuse_cypher(format('%s() takes %s arguments, got %s', v_name,
      case when v_function.fewest = v_function.most then v_function.fewest::text else format('%s to %s', v_function.fewest, v_function.most) end, v_arguments));
  end if;
  place := graphium_private._expect_cypher(kinds, words, place, ')');
  return case when v_name in ('avg', 'isempty') then - place else place end;
end
$parse_cypher_call$;
comment on function graphium_private._parse_cypher_call(text[], text[], int, boolean, int) is 'The place after a function call; negative when it is raw.';
revoke all on function graphium_private._parse_cypher_call(text[], text[], int, boolean, int) from public;

-- The inside of a node or an edge.
create or replace function graphium_private._parse_cypher_element(kinds text[], words text[], place int, closing text, in_match boolean) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_element$
begin
  if kinds[place] = 'id' then
    if closing = ']' and not in_match then
      perform graphium_private._refuse_cypher(format('the edge in exists() has a name, "%s"', left(words[place], 40)), 'Leave it out.');
    end if;
    place := place + 1;
  end if;
  if kinds[place] = ':' then
    place := graphium_private._parse_cypher_name(kinds, words, place + 1);
  end if;
  if kinds[place] = '*' then
    perform graphium_private._refuse_cypher('paths of variable length are not served',
      'Write out the hops, e.g. (f:Family)-[:HAS_GENUS]->(g)-[:HAS_SPECIMEN]->(s): Family, Genus and Specimen are at most two apart.');
  elsif kinds[place] = 'par' then
    perform graphium_private._refuse_cypher(format('%s stands for all properties of a pattern', left(words[place], 40)), 'Write them out: {name: $name}.');
  elsif kinds[place] = '{' then
    place := place + 1;
    while kinds[place] is distinct from '}' loop
      place := graphium_private._parse_cypher_name(kinds, words, place);
      place := graphium_private._expect_cypher(kinds, words, place, ':');
      if kinds[place] = '-' and kinds[place + 1] = 'num' then
        place := place + 2;
      elsif kinds[place] in ('num', 'str', 'par', 'TRUE', 'FALSE', 'NULL') then
        place := place + 1;
      elsif kinds[place] = 'id' and in_match then
        place := place + 1;
        if kinds[place] = '.' then
          place := graphium_private._parse_cypher_name(kinds, words, place + 1);
        end if;
      else
        perform graphium_private._refuse_cypher(format('a property in a pattern is compared with more than a literal, a parameter, a name or a property, at "%s"', left(words[place], 40)),
          'Compare it in WHERE.');
      end if;
      exit when kinds[place] is distinct from ',';
      place := place + 1;
    end loop;
    place := graphium_private._expect_cypher(kinds, words, place, '}');
  end if;
  return graphium_private._expect_cypher(kinds, words, place, closing);
end
$parse_cypher_element$;
comment on function graphium_private._parse_cypher_element(text[], text[], int, text, boolean) is 'The place after the inside of a node or edge and the bracket that closes it.';
revoke all on function graphium_private._parse_cypher_element(text[], text[], int, text, boolean) from public;

create or replace function graphium_private._parse_cypher_path(kinds text[], words text[], place int, in_match boolean) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_path$
declare
  v_points_left boolean;
begin
  if in_match and kinds[place] = 'id' then
    place := graphium_private._expect_cypher(kinds, words, place + 1, '=');
  end if;
  loop
    place := graphium_private._expect_cypher(kinds, words, place, '(');
    place := graphium_private._parse_cypher_element(kinds, words, place, ')', in_match);
    exit when kinds[place] is null or kinds[place] not in ('-', '<');
    v_points_left := kinds[place] = '<';
    if v_points_left then
      place := place + 1;
    end if;
    place := graphium_private._expect_cypher(kinds, words, place, '-');
    if kinds[place] = '[' then
      place := graphium_private._parse_cypher_element(kinds, words, place + 1, ']', in_match);
    end if;
    place := graphium_private._expect_cypher(kinds, words, place, '-');
    if kinds[place] = '>' and not v_points_left then
      place := place + 1;
    end if;
  end loop;
  return place;
end
$parse_cypher_path$;
comment on function graphium_private._parse_cypher_path(text[], text[], int, boolean) is 'The place after a path; in MATCH, it may be named and use properties of other elements.';
revoke all on function graphium_private._parse_cypher_path(text[], text[], int, boolean) from public;

-- What follows WITH and RETURN.
create or replace function graphium_private._parse_cypher_body(kinds text[], words text[], place int, raw_allowed boolean) returns int
  language plpgsql stable parallel safe security invoker
as $parse_cypher_body$
declare
  v_clause text;
begin
  if kinds[place] = 'DISTINCT' then
    place := place + 1;
  end if;
  if kinds[place] = '*' then
    place := place + 1;
  else
    loop
      place := graphium_private._parse_cypher_expression(kinds, words, place, true, 0);
      if place < 0 and not raw_allowed then
        perform graphium_private._refuse_raw_cypher(words, - place);
      end if;
      place := abs(place);
      if kinds[place] = 'AS' then
        place := graphium_private._expect_cypher(kinds, words, place + 1, 'id');
      end if;
      exit when kinds[place] is distinct from ',';
      place := place + 1;
    end loop;
  end if;
  if kinds[place] = 'ORDER' then
    place := graphium_private._expect_cypher(kinds, words, place + 1, 'BY');
    loop
      place := abs(graphium_private._parse_cypher_expression(kinds, words, place, true, 0));
      if kinds[place] in ('ASC', 'ASCENDING', 'DESC', 'DESCENDING') then
        place := place + 1;
      end if;
      exit when kinds[place] is distinct from ',';
      place := place + 1;
    end loop;
  end if;
  foreach v_clause in array '{SKIP,LIMIT}'::text[] loop
    if kinds[place] = v_clause then
      place := graphium_private._parse_cypher_value(kinds, words, place + 1, false, 0);
    end if;
  end loop;
  return place;
end
$parse_cypher_body$;
comment on function graphium_private._parse_cypher_body(text[], text[], int, boolean) is 'The place after what WITH or RETURN says.';
revoke all on function graphium_private._parse_cypher_body(text[], text[], int, boolean) from public;

create or replace function graphium_private._check_cypher(query text, params jsonb) returns void
  language plpgsql stable parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $check_cypher$
declare
  v_columns constant text[] := '{id,start_id,end_id,properties,anchor_id,required_scopes,oid,tableoid,ctid,xmin,xmax,cmin,cmax,`id`,`start_id`,`end_id`,`properties`,`anchor_id`,`required_scopes`,`oid`,`tableoid`,`ctid`,`xmin`,`xmax`,`cmin`,`cmax`}';
  v_is_bound boolean := false;
  v_tokens record;
  v_place int;
  v_clause text;
begin
  if length(query) > 20000 then
    perform graphium_private._refuse_cypher(format('the query is %s characters long, at most 20000 are allowed', length(query)), 'Pass long values and lists as parameters.');
  end if;
  select t.* into v_tokens from graphium_private._cypher_tokens(query) as t;
  -- AGE looks up a name that nothing binds among the columns of the label tables, which are nobody's to read. `AS id` binds.
  if v_tokens.words && v_columns then
    for v_place in 1..cardinality(v_tokens.words) loop
      v_clause := v_tokens.kinds[v_place - 1]; -- what comes before
      v_is_bound := v_is_bound or (v_clause = 'AS' and v_tokens.words[v_place] = 'id');
      if v_tokens.words[v_place] = any (v_columns) and v_tokens.kinds[v_place] = 'id'
        and coalesce(v_clause, '') not in ('.', ':') and coalesce(v_tokens.kinds[v_place + 1], '') <> '('
        and not (v_clause in ('{', ',') and v_tokens.kinds[v_place + 1] = ':')
        and not (v_is_bound and v_tokens.words[v_place] = 'id')
      then
        perform graphium_private._refuse_cypher(format('"%s" cannot be the name of a variable', v_tokens.words[v_place]), 'A property is written n.id.');
      end if;
    end loop;
  end if;
  v_place := 1;
  loop
    v_clause := v_tokens.kinds[v_place];
    if v_clause in ('ANALYZE', 'CALL', 'CREATE', 'DELETE', 'DETACH', 'EXPLAIN', 'FOREACH', 'LOAD', 'MERGE', 'PROFILE', 'REMOVE', 'SET', 'YIELD') then
      perform graphium_private._refuse_cypher(format('%s is not allowed: the graph is read-only here', v_clause),
        'The graph mirrors the families, genera and specimens: change those, by ingest_context(), rename_taxon(), move_specimen() or forget_taxon().');
    end if;
    v_place := v_place + 1;
    case v_clause
      when 'OPTIONAL', 'MATCH' then
        if v_clause = 'OPTIONAL' then
          v_place := graphium_private._expect_cypher(v_tokens.kinds, v_tokens.words, v_place, 'MATCH');
        end if;
        loop
          v_place := graphium_private._parse_cypher_path(v_tokens.kinds, v_tokens.words, v_place, true);
          exit when v_tokens.kinds[v_place] is distinct from ',';
          v_place := v_place + 1;
        end loop;
        if v_tokens.kinds[v_place] = 'WHERE' then
          v_place := abs(graphium_private._parse_cypher_expression(v_tokens.kinds, v_tokens.words, v_place + 1, false, 0));
        end if;
      when 'UNWIND' then
        v_place := graphium_private._parse_cypher_value(v_tokens.kinds, v_tokens.words, v_place, false, 0);
        v_place := graphium_private._expect_cypher(v_tokens.kinds, v_tokens.words, v_place, 'AS');
        v_place := graphium_private._expect_cypher(v_tokens.kinds, v_tokens.words, v_place, 'id');
      when 'WITH' then
        v_place := graphium_private._parse_cypher_body(v_tokens.kinds, v_tokens.words, v_place, false);
        if v_tokens.kinds[v_place] = 'WHERE' then
          v_place := abs(graphium_private._parse_cypher_expression(v_tokens.kinds, v_tokens.words, v_place + 1, false, 0));
        end if;
      when 'RETURN' then
        v_place := graphium_private._parse_cypher_body(v_tokens.kinds, v_tokens.words, v_place, true);
        exit when v_tokens.kinds[v_place] is null;
        v_place := graphium_private._expect_cypher(v_tokens.kinds, v_tokens.words, v_place, 'UNION');
        if v_tokens.kinds[v_place] = 'ALL' then
          v_place := v_place + 1;
        end if;
      else
        perform graphium_private._refuse_cypher(case when v_clause is null then 'the query ends without RETURN'
          else format('expected MATCH, UNWIND, WITH or RETURN at or near "%s"', left(v_tokens.words[v_place - 1], 40)) end);
    end case;
  end loop;
  -- Each WITH can add a list or text to itself, as often as there are pluses: what 4 and 20 can make of a list is 1,296 of it.
  if cardinality(array_positions(v_tokens.kinds, 'WITH')) > 4 + cardinality(array_positions(v_tokens.kinds, 'STARTS')) + cardinality(array_positions(v_tokens.kinds, 'ENDS')) then
    perform graphium_private._refuse_cypher('the query has more than 4 WITH', 'Ask in several queries.');
  elsif cardinality(array_positions(v_tokens.kinds, '+')) + cardinality(array_positions(v_tokens.kinds, '||')) > 20 then
    perform graphium_private._refuse_cypher('the query has more than 20 + and ||', 'Ask in several queries, or put things together in the client.');
  end if;
  for v_place in 1..cardinality(v_tokens.kinds) loop
    if v_tokens.kinds[v_place] = 'par' and not params ? substr(v_tokens.words[v_place], 2) then
      perform graphium_private._raise_error('MG008', format('params: no value for %s', left(v_tokens.words[v_place], 40)), 'Pass every parameter of the query, as NULL if need be.');
    end if;
  end loop;
end
$check_cypher$;
comment on function graphium_private._check_cypher(text, jsonb) is 'Refuses (MG010) every text that is not of the grammar in this file, and (MG008) one with a parameter that is not given.';
revoke all on function graphium_private._check_cypher(text, jsonb) from public;
