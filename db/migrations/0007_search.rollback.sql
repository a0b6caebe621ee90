set local role graphium_owner;
drop type if exists graphium.recalled;
drop type if exists graphium_private.hit;
delete from graphium_private.settings where name in ('fusion_pool', 'bm25_k1', 'bm25_b', 'wake_up_window');
drop table if exists graphium_private.postings;
drop function if exists graphium_private.words_v1(text);
