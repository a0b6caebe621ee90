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
