-- A search by vector and words also goes by who and when the text names, and by what was said around a statement:
-- functions/205_rank_pool.sql. Weights are of docs/retrieval.md: chosen on three conversations with 544 questions, between round numbers.
set local role graphium_owner;
set local lock_timeout = '10s';

do $types$
begin
  if to_regtype('graphium_private.ranked') is null then
    create type graphium_private.asked as (
      dense_text text, words text[], specimens text[], specimen_ids uuid[], family_ids uuid[], since timestamptz, until timestamptz);
    comment on type graphium_private.asked is 'What a query says: the text without names, its words, who is named (by name, all ids, and their families), and when.';
    create type graphium_private.candidate as (
      statement_id uuid, similarity real, boosts double precision[], source integer, "position" bigint);
    comment on type graphium_private.candidate is 'A statement in the pool of a search, with what it gets for what the query names. source: a number for it, inside the pool.';
    create type graphium_private.posted as (
      statement_id uuid, word_key bigint, occurrences integer, length integer);
    comment on type graphium_private.posted is 'That a statement in the pool of a search has a word of the query.';
    create type graphium_private.ranked as (
      statement_id uuid, similarity real, score real, dense_rank integer, lexical_rank integer, words double precision, word_keys bigint[], nearby_keys bigint[],
      boosts double precision[], around double precision);
    comment on type graphium_private.ranked is 'A primary hit, and why it is where it is. words: its score by words as a share of the best; nearby_keys: words that only its neighbours have; around: what it gets for its source.';
  end if;
end
$types$;

insert into graphium_private.settings (name, value, note) values
  ('candidate_postings', 1000, 'What a search by vector and words looks for by words are statements with the rarest of them, until these have so many postings in all. A word that more statements have is only looked up in the pool: it tells few apart, and counting it all takes longer than the search. On conversations of 1,500 statements 500 lost nothing, 50 at most .7 points.'),
  ('word_of_previous', 1, 'A word counts for a statement also where the one before it in its source has it, at so much of its score there; half as much two before. On conversations worth 5.5 points of recall@10 by turn, together with word_of_next (docs/retrieval.md).'),
  ('word_of_next', 0.5, 'The same for the one after, and half as much two after.'),
  ('named_specimen_boost', 0.1, 'For a statement of a specimen that the query names. Small: who is spoken of is often not who speaks.'),
  ('named_family_boost', 0.3, 'For a statement in the family of a specimen that the query names. Matters only where no family is given: there it is worth as much as giving one.'),
  ('named_time_boost', 0.3, 'For a statement of the time that the query names; half as much up to seven days after it, when things are told.'),
  ('question_penalty', 0.15, 'Off a statement that is a question: the answer is in another.'),
  ('source_boost', 0.5, 'What the five best of a source have on average is added to each of the source at so much.')
on conflict (name) do nothing;

update graphium_private.settings
   set note = 'A search by vector and words ranks so many of the nearest (at least 2 × match_count, at most 1,000), and half as many that words find, together: a statement that is middling in both may beat one that is good in one, and neighbours count where they are among these. 100 find a turn .7 points less often in ten (1.6 without a family) and take two thirds of the time.'
 where name = 'fusion_pool';
