set local role graphium_owner;
drop table if exists graphium.scope_edits;
