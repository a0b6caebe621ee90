set local role graphium_owner;
update graphium_private.settings set value = 40 where name = 'hnsw_ef_first' and value = 80;
update graphium_private.settings set value = 15000 where name = 'exact_label_max' and value = 20000;
