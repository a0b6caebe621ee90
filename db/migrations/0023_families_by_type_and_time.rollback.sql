set local role graphium_owner;
delete from graphium_private.settings where name = 'bm25_step';
drop index if exists graphium.kg_embeddings_of_family;
