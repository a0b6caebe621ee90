-- Callers read columns, not tables: a right to the whole table would be one to its system columns too, and those tell of
-- others' doings. xmax of a family changes whenever anybody writes into it, hidden statements included; xmin and ctid of
-- one's own rows count what was written between them. (Nor can anybody lock what he may not read as a whole.)
-- `select *`, count(*) and whole rows work as ever. Applied again after each migration, so a new column is included.
set local role graphium_owner;

do $columns$
declare
  v_table regclass;
  v_columns text;
begin
  for v_table, v_columns in
    select c.oid::regclass, (select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
                               from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)
      from pg_class c
     where c.relnamespace = 'graphium'::regnamespace and c.relkind in ('r', 'p')
       and has_any_column_privilege('graphium_reader', c.oid, 'select')
  loop
    execute format('revoke select on %s from graphium_reader', v_table);
    execute format('grant select (%s) on %s to graphium_reader', v_columns, v_table);
  end loop;
end
$columns$;
