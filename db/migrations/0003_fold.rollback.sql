set local role graphium_owner;
drop function if exists graphium_private.fold_hash_v1(text);
drop function if exists graphium_private.fold_v1(text);
drop function if exists graphium_private.new_id();
