-- Statements by their words, ranked by BM25: every word of the query that a statement has counts, by how rare it is among
-- the statements that the caller may see, how often the statement has it, and how short the statement is. Words are
-- ORed; the query's stop words and punctuation are no words, so nothing in a text is an operator.
-- Everything counted is counted over visible rows: two callers with different scopes may see different scores, and
-- neither learns anything about rows that are hidden from him. Postings are looked up by the scopes that he holds, so that
-- hidden ones are not even touched.
set local role graphium_owner;

create or replace function graphium_private._query_words(p_text text) returns text[]
  language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
  return array(select w.word from unnest(graphium_private.words_v1(left(p_text, 20000))) with ordinality as w(word, n)
                group by w.word order by min(w.n) limit 100);
comment on function graphium_private._query_words(text) is 'The first 100 distinct words of (the first 20,000 characters of) a query.';
revoke all on function graphium_private._query_words(text) from public;

drop function if exists graphium_private._held_scopes(uuid); -- it returned names
create or replace function graphium_private._held_scope_keys(p_tenant_id uuid) returns bigint[]
  language plpgsql stable parallel unsafe security invoker
as $held_scope_keys$
declare
  v_held constant text[] := graphium_private.caller_scopes();
begin
  return case when v_held is null then graphium_private._posted_scope_keys(p_tenant_id) else graphium_private._keys_of(''::text || v_held) end;
end
$held_scope_keys$;
comment on function graphium_private._held_scope_keys(uuid) is 'The keys of the scopes under which words are posted that the caller may see: his own, and that of '''' for what is open.';
revoke all on function graphium_private._held_scope_keys(uuid) from public;

-- The best p_count, and besides whichever of p_also have one of the words. Scores end as single precision: what is left
-- of the order of a sum does not decide between equals.
create or replace function graphium_private._match_words(p_tenant_id uuid, p_words text[], p_filter text, p_count int, p_also uuid[] = '{}')
  returns table (statement_id uuid, score real)
  language plpgsql stable parallel unsafe security invoker set work_mem = '32MB'
as $match_words$
declare
  v_scopes constant bigint[] := graphium_private._held_scope_keys(p_tenant_id);
begin
  -- A statement whose audience has several of the caller's scopes counts by the first of them.
  -- A list per word keeps what follows small in the planner's eyes, however common the words are.
  return query execute format($query$
    with lists as materialized (
      select count(*)::double precision as frequency, sum(p.length)::double precision as total,
             array_agg(p.statement_id) as ids, array_agg(p.occurrences) as occurrences, array_agg(p.length) as lengths
        from graphium_private.postings p
       where p.tenant_id = %1$L::uuid and p.scope_key = any (%4$L::bigint[]) and p.word_key = any (%2$L::bigint[])
         and (cardinality(p.required_scopes) <= 1 or graphium_private.is_visible(p.required_scopes, '{}')
              or p.scope_key = (select min(s.key) from (select hashtextextended(u.scope, (select graphium_private._index_seed())) as key from unnest(p.required_scopes) as u(scope)) as s where s.key = any (%4$L::bigint[])))
       group by p.word_key
    ), corpus as materialized (
      select greatest((select sum(f.statement_count) from graphium.dh_families f where f.tenant_id = %1$L::uuid), max(l.frequency))::double precision as documents,
             sum(l.total) / sum(l.frequency) as length
        from lists l
    ), found as (
      select unnest(l.ids) as statement_id, unnest(l.occurrences) as occurrences, unnest(l.lengths) as length,
             ln(1 + (c.documents - l.frequency + 0.5) / (l.frequency + 0.5)) * ($1 + 1) as weight, $1 * (1 - $2) as damping, $1 * $2 / c.length as per_word
        from lists l
       cross join corpus c
    ), scored as materialized (
      select f.statement_id, sum(f.weight * f.occurrences / (f.occurrences + f.damping + f.per_word * f.length))::real as score
        from found f
       %3$s
       group by f.statement_id
    )
    select * from (select s.statement_id, s.score from scored s order by s.score desc, s.statement_id limit $3) as best
    union
    select s.statement_id, s.score from scored s where s.statement_id = any ($4) $query$,
    p_tenant_id, graphium_private._keys_of(p_words),
    case when p_filter <> '' then format('join graphium.kg_statements r on r.tenant_id = %L::uuid and r.id = f.statement_id %s', p_tenant_id, p_filter) end,
    v_scopes)
    using graphium_private._setting('bm25_k1')::double precision, graphium_private._setting('bm25_b')::double precision, p_count, p_also;
end
$match_words$;
comment on function graphium_private._match_words(uuid, text[], text, int, uuid[]) is
  'Visible statements that have any of the words, with their BM25 score, in no order: the best p_count, and any of p_also.';
revoke all on function graphium_private._match_words(uuid, text[], text, int, uuid[]) from public;
