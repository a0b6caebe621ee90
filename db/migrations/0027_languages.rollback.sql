-- Refused while a tenant has another language: nobody would find its words any more.
set local role graphium_owner;
alter table graphium.tenants no force row level security;
do $rollback$
begin
  if exists (select from graphium.tenants t where t.language <> 'english') then
    raise exception 'a tenant has another language than english: export it, drop it, and import it after the rollback';
  end if;
end
$rollback$;
alter table graphium.tenants force row level security;

drop function if exists graphium_private._check_postings(uuid);
drop function if exists graphium_private._postings_of(uuid, text, bytea, text[], text), graphium_private._distinct_words(text, text), graphium_private._query_words(text, text);
drop function if exists graphium_private.words_v2(text, text);
alter table graphium.tenants drop column if exists language;
