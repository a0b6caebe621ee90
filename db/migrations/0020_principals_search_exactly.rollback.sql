set local role graphium_owner;
delete from graphium_private.settings where name = 'principals_use_hnsw';
