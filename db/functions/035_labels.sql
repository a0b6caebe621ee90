-- What a statement can be labelled. The columns' checks say the same (0004), and so does Python: a test holds them equal.
-- (Inlined: bodies that are parsed when they are made, and no SET.)
set local role graphium_owner;

create or replace function graphium_private._memory_types() returns text[]
  language sql immutable parallel safe security invoker
  return array['fact', 'event', 'discovery', 'preference', 'advice', 'decision'];
comment on function graphium_private._memory_types() is 'All memory types.';
revoke all on function graphium_private._memory_types() from public;
grant execute on function graphium_private._memory_types() to graphium_keeper;

create or replace function graphium_private._layer_kinds() returns text[]
  language sql immutable parallel safe security invoker
  return array['preloaded', 'on_demand'];
comment on function graphium_private._layer_kinds() is 'All layers.';
revoke all on function graphium_private._layer_kinds() from public;
