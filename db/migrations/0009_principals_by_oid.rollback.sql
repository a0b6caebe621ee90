set local role graphium_owner;
alter table graphium.principals drop column if exists role_oid;
