-- The one place that raises this project's own errors (class MG; docs/errors.md lists them).
set local role graphium_owner;

create or replace function graphium_private._raise_error(p_code text, p_message text, p_hint text default null) returns void
  language plpgsql volatile parallel safe security invoker set search_path = pg_catalog, pg_temp
as $raise_error$
begin
  if p_hint is null then
    raise exception using errcode = p_code, message = p_message;
  end if;
  raise exception using errcode = p_code, message = p_message, hint = p_hint;
end
$raise_error$;
comment on function graphium_private._raise_error(text, text, text) is
  'Raises an error of class MG with a message that names the argument and a hint that says what to do. No message carries another row''s text.';
revoke all on function graphium_private._raise_error(text, text, text) from public;
grant execute on function graphium_private._raise_error(text, text, text) to graphium_keeper, graphium_cypher;

-- NULL is no answer to a question of yes or no: taken for one of them, it would be the wrong one for somebody.
create or replace function graphium_private._require_boolean(p_argument text, p_value boolean) returns void
  language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $require_boolean$
begin
  if p_value is null then
    perform graphium_private._raise_error('MG008', format('%s must be true or false, got NULL', p_argument), 'Leave it out for its default.');
  end if;
end
$require_boolean$;
comment on function graphium_private._require_boolean(text, boolean) is 'MG008 when the argument is NULL.';
revoke all on function graphium_private._require_boolean(text, boolean) from public;
grant execute on function graphium_private._require_boolean(text, boolean) to graphium_keeper;
