set local role graphium_owner;
delete from graphium_private.settings where name = 'word_postings';
