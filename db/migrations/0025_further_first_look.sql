-- Measured again with indexes of ef_construction 200 (functions/250_maintenance_plan.sql), at 10,000, 50,000 and 150,000 rows.
set local role graphium_owner;
set local lock_timeout = '10s';

update graphium_private.settings
   set value = 80,
       note = 'A search first looks at so many rows along the index (or at four for each that is wanted). With more of them more queries about what the tenant knows are seen to be such: at 10,000 and 50,000 rows they took half the time at 80 that they took at 40, on average.'
 where name = 'hnsw_ef_first' and value = 40;
update graphium_private.settings
   set value = 20000,
       note = 'With memory_types, since or until that admit at most so many vectors the search is exact also where the tenant has an index. It is complete, and takes some 1.4 times as long as a second look, which at 15,000 of 150,000 missed one in thirty.'
 where name = 'exact_label_max' and value = 15000;
