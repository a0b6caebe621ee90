-- What directions were made of, so that they go when some of it does, or is hidden: functions/064_projections.sql.
set local role graphium_owner;
set local lock_timeout = '10s';

alter table graphium_private.directions add column if not exists sampled uuid[] not null default '{}';
alter table graphium_private.directions alter column sampled set statistics 0;
comment on column graphium_private.directions.sampled is 'The statements whose vectors they were made of; none when they are arbitrary.';
truncate graphium_private.projections, graphium_private.directions; -- of before nobody knows; the next ingest makes them anew
