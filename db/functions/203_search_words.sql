-- Statements by their words, ranked by BM25: every word of the query that a statement has counts, by how rare it is among
-- the statements that the caller may see, how often the statement has it, and how short the statement is. Words are
-- ORed; the query's stop words and punctuation are no words, so nothing in a text is an operator. Words that are too common beside
-- its others are none either (word_postings) while enough statements have the others, and else count in the newest statements: no query takes long.
-- Everything counted is counted over visible rows: two callers with different scopes may see different scores, and
-- neither learns anything about rows that are hidden from him. Postings are looked up by the audiences that he is of, so that
-- hidden ones are not even touched.
set local role graphium_owner;

create or replace function graphium_private._query_words(p_text text, p_language text) returns text[]
  language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
  return array(select w.word from unnest(graphium_private.words_v2(left(p_text, 20000), p_language)) with ordinality as w(word, n)
                group by w.word order by min(w.n) limit 100);
comment on function graphium_private._query_words(text, text) is 'The first 100 distinct words of (the first 20,000 characters of) a query.';
revoke all on function graphium_private._query_words(text, text) from public;

drop function if exists graphium_private._query_words(text); -- all words were English
drop function if exists graphium_private._match_words(uuid, text[], text, int, uuid[]); -- it also scored what a vector had found
drop function if exists graphium_private._held_scopes(uuid); -- words were posted by scope
create or replace function graphium_private._held_audiences(p_tenant_id uuid) returns bigint[]
  language plpgsql stable parallel unsafe security invoker
as $held_audiences$
declare
  v_scopes constant text[] := graphium_private.caller_scopes();
  v_held constant bigint[] := case when v_scopes is not null then graphium_private._keys_of(v_scopes) end; -- NULL: an admin, who is of all
begin
  return array(select distinct a.key from graphium_private.audiences a
                where a.tenant_id = p_tenant_id and (cardinality(a.scope_keys) = 0 or a.scope_keys && coalesce(v_held, a.scope_keys)));
end
$held_audiences$;
comment on function graphium_private._held_audiences(uuid) is 'The keys of the audiences that the caller is of, open ones included: what words are posted under that he may see.';
revoke all on function graphium_private._held_audiences(uuid) from public;

-- The rarest words, until what they are in comes to p_most: common ones tell few statements apart, and counting them is what takes long.
-- So each is counted only so far: at first until all words come to p_first, then further while too few are known to be rare, and counting
-- the others is some 20 ms at most. All of them when they come to no more; none when each alone is in more.
create or replace function graphium_private._rarest_words(p_tenant_id uuid, p_keys bigint[], p_audiences bigint[], p_most int, p_first int,
    out words bigint[], out frequencies double precision[], out totals double precision[], out occurrences int[], out lengths int[], out is_part boolean)
  language plpgsql stable parallel unsafe security invoker
as $rarest_words$
declare
  c_counted constant int := 40000;
  v_upto int := greatest(least(p_first::double precision / greatest(cardinality(p_keys), 1), p_most), 1);
  v_known double precision;
  v_common int;
begin
  loop
    with counted as materialized (
      select w.word, l.*
        from unnest(p_keys) as w(word),
             lateral (select count(*)::double precision as frequency, sum(x.length)::double precision as total, max(x.occurrences) as occurrences, min(x.length) as length
                        from (select p.occurrences, p.length
                                from graphium_private.postings p
                               where p.tenant_id = p_tenant_id and p.audience_key = any (p_audiences) and p.word_key = w.word limit v_upto + 1) as x) as l
       where l.frequency > 0
    ), summed as (
      select c.*, sum(c.frequency) over (order by c.frequency, c.word) as postings from counted c
    )
    select array_agg(c.word order by c.frequency, c.word) filter (where c.is_rare), array_agg(c.frequency order by c.frequency, c.word) filter (where c.is_rare),
           array_agg(c.total order by c.frequency, c.word) filter (where c.is_rare), array_agg(c.occurrences order by c.frequency, c.word) filter (where c.is_rare),
           array_agg(c.length order by c.frequency, c.word) filter (where c.is_rare),
           count(*) filter (where not c.is_rare) > 0,
           coalesce(sum(c.frequency) filter (where c.frequency <= v_upto), 0), count(*) filter (where c.frequency > v_upto)
      into words, frequencies, totals, occurrences, lengths, is_part, v_known, v_common
      from (select s.*, s.frequency <= v_upto and s.postings <= p_most as is_rare from summed s) as c;
    exit when v_common = 0 or v_known + v_upto >= p_most or v_upto >= p_most or v_common * least(4.0 * v_upto, p_most) > c_counted;
    v_upto := least(4.0 * v_upto, p_most);
  end loop;
end
$rarest_words$;
comment on function graphium_private._rarest_words(uuid, bigint[], bigint[], int, int) is
  'Of words those that visible statements have, the rarest first, until their postings come to p_most: keys, postings, the summed length of the statements, most occurrences in one, and the shortest; and whether there are more.';
revoke all on function graphium_private._rarest_words(uuid, bigint[], bigint[], int, int) from public;

-- What each word weighs, by how many visible statements have it. The rarest comes first; rest is the most
-- that the words after it can add to a score, each by its most occurrences in its shortest statement; per_word, what each word of a
-- statement adds to the number by which occurrences are divided. The rarest until they come to p_most; is_part says that there are more.
drop function if exists graphium_private._weigh_words(uuid, text[], bigint[], double precision, double precision); -- all words counted
drop function if exists graphium_private._weigh_words(uuid, text[], bigint[], double precision, double precision, int); -- it was told words
create or replace function graphium_private._weigh_words(p_tenant_id uuid, p_keys bigint[], p_audiences bigint[], p_most int,
    out words bigint[], out frequencies double precision[], out weights double precision[], out rest double precision[], out per_word double precision, out is_part boolean)
  language plpgsql stable parallel unsafe security invoker
as $weigh_words$
declare
  v_k1 constant double precision := graphium_private._setting('bm25_k1');
  v_b constant double precision := graphium_private._setting('bm25_b');
  v_r constant record := graphium_private._rarest_words(p_tenant_id, p_keys, p_audiences, p_most, p_most);
begin
  with counted as materialized (
    select * from unnest(v_r.words, v_r.frequencies, v_r.totals, v_r.occurrences, v_r.lengths) as c(word, frequency, total, occurrences, length)
  ), corpus as materialized (
    select greatest((select sum(f.statement_count) from graphium.dh_families f where f.tenant_id = p_tenant_id), max(c.frequency))::double precision as documents,
           v_k1 * v_b / (sum(c.total) / sum(c.frequency)) as per_word
      from counted c
  ), weighed as (
    select c.*, t.per_word, ln(1 + (t.documents - c.frequency + 0.5) / (c.frequency + 0.5)) * (v_k1 + 1) as weight
      from counted c
     cross join corpus t
  ), bounded as (
    select w.*, sum(w.weight * w.occurrences / (w.occurrences + v_k1 * (1 - v_b) + w.per_word * w.length)) over (order by w.frequency desc, w.word desc) as most
      from weighed w
  )
  select array_agg(b.word order by b.frequency, b.word), array_agg(b.frequency order by b.frequency, b.word),
         array_agg(b.weight order by b.frequency, b.word), (array_agg(b.most order by b.frequency, b.word))[2:] || 0::double precision, max(b.per_word)
    into words, frequencies, weights, rest, per_word
    from bounded b;
  is_part := v_r.is_part;
end
$weigh_words$;
comment on function graphium_private._weigh_words(uuid, bigint[], bigint[], int) is
  'The words that a search by words goes by, the rarest first: their keys, in how many visible statements they are, what one weighs, and the most that those after it can add.';
revoke all on function graphium_private._weigh_words(uuid, bigint[], bigint[], int) from public;

-- For words that are too common to be read whole: of each the newest p_most postings that an audience has, from p_upto back to where the first of
-- these lists ends; and p_known, which are scored wherever they are (and alone, where they are all that the filter admits). What a word weighs
-- is known of rare ones (p_frequencies, of the first of p_words, and p_per_word), and of the others put as how often it is among the newest.
drop function if exists graphium_private._match_newest(uuid, bigint[], double precision[], double precision, uuid[], boolean, bigint[], text, int, int); -- from the newest of all
create or replace function graphium_private._match_newest(p_tenant_id uuid, p_words bigint[], p_frequencies double precision[], p_per_word double precision,
    p_known uuid[], p_are_all boolean, p_upto uuid, p_audiences bigint[], p_filter text, p_most int, p_count int)
  returns table (statement_id uuid, score real)
  language plpgsql stable parallel unsafe security invoker
  set work_mem = '32MB' set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $match_newest$
-- @plpgsql_check_options: security_warnings = off
-- (the filter that stands in the query was written by _write_filter: nothing but columns and constants)
-- Filters are looked up after statements are scored, the best first, until there are enough.
declare
  v_k1 constant double precision := graphium_private._setting('bm25_k1');
  v_b constant double precision := graphium_private._setting('bm25_b');
begin
  return query execute format($query$
    with newest as materialized (
      select w.word, p.*
        from unnest($1) as w(word), unnest($4) as a(key),
             lateral (select p.statement_id, p.occurrences, p.length, row_number() over (order by p.statement_id desc) as n
                        from graphium_private.postings p
                       where p.tenant_id = %1$L::uuid and p.audience_key = a.key and p.word_key = w.word and p.statement_id <= $11
                       order by p.statement_id desc limit $5) as p
    ), ended as materialized (
      select n.statement_id as at from newest n where n.n = $5 order by n.statement_id desc limit 1
    ), new as materialized (
      select n.word, n.statement_id, n.occurrences, n.length from newest n where n.statement_id >= coalesce((select e.at from ended e), n.statement_id)
    ), corpus as materialized (
      select d.documents, d.documents / nullif(n.statements, 0) as per_new, coalesce($10, $7 * $8 / n.length) as per_word
        from (select sum(f.statement_count)::double precision as documents from graphium.dh_families f where f.tenant_id = %1$L::uuid) as d
       cross join (select count(distinct n.statement_id) as statements, avg(n.length)::double precision as length from new n) as n
    ), counted as (
      select w.word, coalesce(w.frequency, c.per_new * n.postings, 0) as frequency
        from unnest($1, $2) as w(word, frequency)
        left join (select n.word, count(*) as postings from new n group by n.word) as n using (word)
       cross join corpus c
    ), weighed as materialized (
      select n.word, ln(1 + (greatest(c.documents - n.frequency, 0) + 0.5) / (n.frequency + 0.5)) * ($7 + 1) as weight from counted n cross join corpus c
    ), known as materialized (
      select s.id, graphium_private._key_of(graphium_private._audience(s.required_scopes)::text, (select graphium_private._index_key())) as audience_key
        from graphium.kg_statements s where s.tenant_id = %1$L::uuid and s.id = any ($3)
    ), found as (
      select n.word, n.statement_id, n.occurrences, n.length from new n where not $9
      union
      select p.word_key, p.statement_id, p.occurrences, p.length
        from known k cross join unnest($1) as w(word)
        join graphium_private.postings p on p.tenant_id = %1$L::uuid and p.audience_key = k.audience_key and p.word_key = w.word and p.statement_id = k.id
    )
    select s.statement_id, s.score
      from (select f.statement_id, f.score
              from (select f.statement_id, sum(w.weight * f.occurrences / (f.occurrences + $7 * (1 - $8) + c.per_word * f.length))::real as score
                      from found f join weighed w using (word) cross join corpus c
                     group by f.statement_id) as f
             order by f.score desc, f.statement_id) as s
      %2$s
     order by s.score desc, s.statement_id
     limit $6 $query$,
    p_tenant_id,
    case when p_filter <> '' and not p_are_all then format('join graphium.kg_statements r on r.tenant_id = %L::uuid and r.id = s.statement_id %s', p_tenant_id, p_filter) end)
    using p_words, p_frequencies, p_known, p_audiences, p_most, p_count, v_k1, v_b, p_are_all, p_per_word, p_upto;
end
$match_newest$;
comment on function graphium_private._match_newest(uuid, bigint[], double precision[], double precision, uuid[], boolean, uuid, bigint[], text, int, int) is
  'The newest visible statements that have common words, and those that are known, by their BM25 score, the best first.';
revoke all on function graphium_private._match_newest(uuid, bigint[], double precision[], double precision, uuid[], boolean, uuid, bigint[], text, int, int) from public;

-- The best p_count by words that are weighed. Scores end as single precision: what is left of the order of a sum does not decide between equals.
-- Most postings are of common words, which add little to a score. So words are scored the rarest first, some at a time (bm25_step), and
-- each time the score that p_count statements have reached is compared with the most that the words to come can add. Who cannot
-- reach it any more goes; once no other statement can, words are scored for those who are left alone, at last by looking these up.
-- (The most is taken a millionth larger, more than sums and their rounding lose: the answer is that of scoring everything.)
drop function if exists graphium_private._score_words(uuid, bigint[], double precision[], double precision[], double precision[], double precision, bigint[], text, int); -- it looked filters up for all
create or replace function graphium_private._score_words(p_tenant_id uuid, p_words bigint[], p_frequencies double precision[], p_weights double precision[], p_rest double precision[],
    p_per_word double precision, p_audiences bigint[], p_count int)
  returns table (statement_id uuid, score real)
  language plpgsql stable parallel unsafe security invoker
  set work_mem = '32MB' set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $score_words$
-- Keys are parameters: an error's QUERY shows the client what stands in the text.
declare
  c_margin constant double precision := 1.000001;
  v_k1 constant double precision := graphium_private._setting('bm25_k1');
  v_b constant double precision := graphium_private._setting('bm25_b');
  v_step constant double precision := graphium_private._setting('bm25_step');
  v_ids uuid[] := '{}';
  v_scores double precision[] := '{}';
  v_least double precision; -- what p_count statements have reached
  v_is_closed boolean := false; -- and no other can
  v_scored int := 0; -- words
  v_upto int;
  v_postings double precision;
  v_join text;
begin
  while v_scored < cardinality(p_words) loop
    v_upto := v_scored + 1;
    if not v_is_closed then
      v_join := '';
      v_postings := p_frequencies[v_upto];
      while v_upto < cardinality(p_words) and v_postings + p_frequencies[v_upto + 1] <= greatest(v_step, 2 * cardinality(v_ids)) loop
        v_upto := v_upto + 1;
        v_postings := v_postings + p_frequencies[v_upto];
      end loop;
    elsif 10.0 * cardinality(v_ids) * cardinality(p_audiences) < p_frequencies[v_upto] then -- so much longer a look-up takes than reading on
      v_join := 'and p.word_key = any ($3) and p.statement_id = any ($1)';
      v_upto := cardinality(p_words);
    else
      v_join := 'and (p.statement_id = any ($1)) is true'; -- not for the index
    end if;
    execute format($query$
      with found as (
        select unnest($1) as statement_id, unnest($2) as score
        union all
        select p.statement_id, w.weight * p.occurrences / (p.occurrences + $5 + $6 * p.length)
          from unnest($3, $4) as w(word, weight)
          join graphium_private.postings p on p.tenant_id = %1$L::uuid and p.audience_key = any ($10) and p.word_key = w.word %2$s
      ), scored as materialized (
        select f.statement_id, sum(f.score) as score from found f group by f.statement_id
      ), least as materialized (
        select min(b.score) as score from (select s.score from scored s order by s.score desc limit $7) as b having count(*) = $7
      )
      select array_agg(s.statement_id), array_agg(s.score), (select l.score from least l)
        from scored s
       where (s.score + $8) * $9 >= coalesce((select l.score from least l), 0) $query$,
      p_tenant_id, v_join)
      into v_ids, v_scores, v_least
      using v_ids, v_scores, p_words[v_scored + 1:v_upto], p_weights[v_scored + 1:v_upto], v_k1 * (1 - v_b), p_per_word, p_count, p_rest[v_upto], c_margin, p_audiences;
    v_scored := v_upto;
    v_is_closed := coalesce(v_least > p_rest[v_upto] * c_margin, false);
  end loop;
  return query
    select s.id, s.score::real from unnest(v_ids, v_scores) as s(id, score) order by s.score::real desc, s.id limit p_count;
end
$score_words$;
comment on function graphium_private._score_words(uuid, bigint[], double precision[], double precision[], double precision[], double precision, bigint[], int) is
  'The visible statements that weighed words say most of, with their BM25 score, the best first.';
revoke all on function graphium_private._score_words(uuid, bigint[], double precision[], double precision[], double precision[], double precision, bigint[], int) from public;

-- The same with a filter, which is looked up after statements are scored, the best first, until there are enough.
create or replace function graphium_private._score_admitted(p_tenant_id uuid, p_words bigint[], p_weights double precision[], p_per_word double precision, p_audiences bigint[],
    p_filter text, p_count int)
  returns table (statement_id uuid, score real)
  language plpgsql stable parallel unsafe security invoker
  set work_mem = '32MB' set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $score_admitted$
-- @plpgsql_check_options: security_warnings = off
-- (the filter that stands in the query was written by _write_filter: nothing but columns and constants)
declare
  v_k1 constant double precision := graphium_private._setting('bm25_k1');
  v_b constant double precision := graphium_private._setting('bm25_b');
begin
  return query execute format($query$
    select s.statement_id, s.score
      from (select f.statement_id, f.score
              from (select p.statement_id, sum(w.weight * p.occurrences / (p.occurrences + $3 + $4 * p.length))::real as score
                      from unnest($1, $2) as w(word, weight)
                      join graphium_private.postings p on p.tenant_id = %1$L::uuid and p.audience_key = any ($5) and p.word_key = w.word
                     group by p.statement_id) as f
             order by f.score desc, f.statement_id) as s
      %2$s
     order by s.score desc, s.statement_id
     limit $6 $query$,
    p_tenant_id,
    case when p_filter <> '' then format('join graphium.kg_statements r on r.tenant_id = %L::uuid and r.id = s.statement_id %s', p_tenant_id, p_filter) end)
    using p_words, p_weights, v_k1 * (1 - v_b), p_per_word, p_audiences, p_count;
end
$score_admitted$;
comment on function graphium_private._score_admitted(uuid, bigint[], double precision[], double precision, bigint[], text, int) is
  'The visible statements, of those that the filter admits, that weighed words say most of, with their BM25 score, the best first.';
revoke all on function graphium_private._score_admitted(uuid, bigint[], double precision[], double precision, bigint[], text, int) from public;

-- By the rarest words, until these come to word_postings. Where fewer than p_count statements have those, by all words, of which what is
-- common is read in the newest statements, from the newest that the filter admits; and only where these are too few as
-- well, by everything. A filter that admits few statements goes first: their words are looked up.
create or replace function graphium_private._match_words(p_tenant_id uuid, p_words text[], p_filter text, p_count int)
  returns table (statement_id uuid, score real)
  language plpgsql stable parallel unsafe security invoker
as $match_words$
declare
  c_all constant int := 2147483646;
  c_looked_up constant int := 7500; -- postings, one by one; a statement itself takes as long as two
  v_audiences constant bigint[] := graphium_private._held_audiences(p_tenant_id);
  v_keys constant bigint[] := graphium_private._keys_of(p_words);
  v_few constant int := c_looked_up / (2 + cardinality(v_keys));
  v_most int := least(graphium_private._setting('word_postings'), c_all)::int;
  v_w record;
  v_admitted uuid[];
  v_are_few boolean := false;
  v_ids uuid[];
  v_scores real[];
begin
  loop
    v_w := graphium_private._weigh_words(p_tenant_id, v_keys, v_audiences, v_most);
    if p_filter <> '' and (v_w.is_part or (select sum(f.n) from unnest(v_w.frequencies) as f(n)) > c_looked_up) then
      v_admitted := graphium_private._newest(p_tenant_id, null, null, p_filter, null, v_few + 1);
      v_are_few := cardinality(v_admitted) <= v_few;
    end if;
    if v_are_few then
      v_ids := v_admitted;
    else
      if p_filter = '' then
        select coalesce(array_agg(m.statement_id), '{}'), array_agg(m.score) into v_ids, v_scores
          from graphium_private._score_words(p_tenant_id, v_w.words, v_w.frequencies, v_w.weights, v_w.rest, v_w.per_word, v_audiences, p_count) as m;
      else
        select coalesce(array_agg(m.statement_id), '{}'), array_agg(m.score) into v_ids, v_scores
          from graphium_private._score_admitted(p_tenant_id, v_w.words, v_w.weights, v_w.per_word, v_audiences, p_filter, p_count) as m;
      end if;
      exit when cardinality(v_ids) >= p_count or not v_w.is_part;
    end if;
    select coalesce(array_agg(m.statement_id), '{}'), array_agg(m.score) into v_ids, v_scores
      from graphium_private._match_newest(p_tenant_id, coalesce(v_w.words, '{}') || array(select unnest(v_keys) except select unnest(v_w.words)), v_w.frequencies, v_w.per_word,
             v_ids, v_are_few, coalesce(v_admitted[1], 'ffffffff-ffff-ffff-ffff-ffffffffffff'), v_audiences, p_filter,
             case when v_w.is_part then greatest(v_most / case when v_are_few then 10 else 3 end / cardinality(v_keys), p_count) else 0 end, p_count) as m;
    exit when cardinality(v_ids) >= p_count or v_are_few;
    v_most := c_all;
  end loop;
  return query select * from unnest(v_ids, v_scores);
end
$match_words$;
comment on function graphium_private._match_words(uuid, text[], text, int) is 'The visible statements that the words say most of, with their BM25 score, the best first.';
revoke all on function graphium_private._match_words(uuid, text[], text, int) from public;

-- Candidates for a search by vector and words, best first: statements with the rarest words, until those have candidate_postings. Each word
-- is counted only so far, so the cost is bounded however common the words are. Where nothing is left out, the order is that of _match_words.
create or replace function graphium_private._match_rarest(p_tenant_id uuid, p_words text[], p_audiences bigint[], p_filter text, p_count int) returns uuid[]
  language plpgsql stable parallel unsafe security invoker
as $match_rarest$
declare
  c_first constant int := 12000; -- many words fill the measure while the commoner ones need not be counted any further
  v_w record;
begin
  with few as (
    select f.*
      from graphium_private._rarest_words(p_tenant_id, graphium_private._keys_of(p_words), p_audiences, graphium_private._setting('candidate_postings')::int, c_first) as r,
           unnest(r.words, r.frequencies, r.totals) as f(word, frequency, total)
  )
  select array_agg(f.word) as words,
         array_agg(ln(1 + (greatest(t.documents, f.frequency) - f.frequency + 0.5) / (f.frequency + 0.5))) as weights,
         graphium_private._setting('bm25_k1') * graphium_private._setting('bm25_b') / (sum(f.total) / sum(f.frequency)) as per_word
    into v_w
    from few f
   cross join (select sum(f.statement_count)::double precision as documents from graphium.dh_families f where f.tenant_id = p_tenant_id) as t;
  return array(select s.statement_id
                 from graphium_private._score_admitted(p_tenant_id, v_w.words, v_w.weights, v_w.per_word, p_audiences, p_filter, p_count) as s);
end
$match_rarest$;
comment on function graphium_private._match_rarest(uuid, text[], bigint[], text, int) is
  'Visible statements that have the rarest of the words, the best by BM25 first.';
revoke all on function graphium_private._match_rarest(uuid, text[], bigint[], text, int) from public;
