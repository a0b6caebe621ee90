set local role graphium_owner;
drop type if exists graphium_private.likeness;
