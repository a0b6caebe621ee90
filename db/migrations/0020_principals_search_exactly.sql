-- A setting for searches of principals: functions/202_search_vectors.sql says why.
set local role graphium_owner;

insert into graphium_private.settings (name, value, note) values
  ('principals_use_hnsw', 0, 'Not 0: principals too search along the tenant''s HNSW index. How far one gets along it depends on hidden rows, and who writes SQL of his own can count what a search read: asking from many points, he finds out where a hidden vector points to. Behind an application nobody can count.')
on conflict (name) do nothing;
