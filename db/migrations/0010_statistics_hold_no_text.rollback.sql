set local role graphium_owner;

do $statistics$
declare
  v_column record;
begin
  for v_column in
    select c.oid::regclass as tab, a.attname as name
      from pg_catalog.pg_attribute a
      join pg_catalog.pg_class c on c.oid = a.attrelid
     where c.relnamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace) and c.relkind in ('r', 'p')
       and not c.relispartition and a.attstattarget >= 0
  loop
    execute format('alter table %s alter column %I set statistics -1', v_column.tab, v_column.name);
  end loop;
end
$statistics$;
