set local role graphium_owner;
drop index if exists graphium.kg_embeddings_of_type;
drop function if exists graphium_private._is_ours_to_read(uuid);
delete from graphium_private.settings where name in ('hnsw_ef_first', 'hnsw_easy_ratio', 'hnsw_ef_hard', 'exact_label_max');
update graphium_private.settings set value = 50000 where name = 'exact_scan_max' and value = 100000;
