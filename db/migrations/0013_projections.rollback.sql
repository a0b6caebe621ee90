set local role graphium_owner;
drop table if exists graphium_private.projections;
drop table if exists graphium_private.directions;
delete from graphium_private.settings where name in ('projected_family_min', 'projected_batch_min');
