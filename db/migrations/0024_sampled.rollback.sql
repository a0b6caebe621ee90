set local role graphium_owner;
set local lock_timeout = '10s';
alter table graphium_private.directions drop column if exists sampled;
