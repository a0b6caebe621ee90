set local role graphium_owner;
drop type if exists graphium_private.ranked, graphium_private.asked, graphium_private.candidate, graphium_private.posted;
delete from graphium_private.settings where name in ('candidate_postings', 'word_of_previous', 'word_of_next', 'named_specimen_boost', 'named_family_boost', 'named_time_boost', 'question_penalty', 'source_boost');
