set local role graphium_owner;
drop table if exists graphium.dh_symbioses;
