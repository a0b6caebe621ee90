set local role graphium_owner;
drop table if exists graphium_private.family_sums;
drop table if exists graphium_private.family_counters;
drop table if exists graphium.dh_specimens;
drop table if exists graphium.dh_genera;
drop table if exists graphium.dh_families;
