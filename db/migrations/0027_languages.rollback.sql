-- Refused while a tenant has another language: its postings would be of no version.
set local role graphium_owner;
do $rollback$
begin
  if exists (select from graphium.tenants t where t.language <> 'english') then
    raise exception 'a tenant has another language than english: export it, drop it, and import it after the rollback';
  end if;
end
$rollback$;
drop function if exists graphium_private.words_v2(text, text);
alter table graphium.tenants drop column if exists language;
