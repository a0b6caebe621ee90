-- The planner's statistics keep sample values of a column until it is analyzed again: long after the row was erased, and
-- an estimate tells whoever may ask for a plan whether a value that he guesses is among them. What people wrote, named or
-- embedded, and scopes, are therefore in no statistics: nothing is planned by them but look-ups by a whole unique key.
-- Two columns need to be known as selective: at a target of 1 statistics hold their number of different values, and of the
-- values the commonest, the first and the last. (Graphs: functions/300_graph.sql.)
set local role graphium_owner;
set local lock_timeout = '10s';

do $statistics$
declare
  v_column record;
begin
  for v_column in
    select * from (values
      ('graphium.tenants', '{slug,graph_name}', 0),
      ('graphium.principals', '{tenant,scopes}', 0),
      ('graphium.scope_edits', '{old_scopes,new_scopes,caller_tenant,caller_scopes}', 0),
      ('graphium.dh_families', '{name,required_scopes,summary_embedding}', 0),
      ('graphium.dh_genera', '{name}', 0),
      ('graphium.dh_specimens', '{name,required_scopes}', 0),
      ('graphium.kg_statements', '{content,required_scopes,source,metadata}', 0),
      ('graphium.kg_statements', '{content_hash}', 1),
      ('graphium.kg_statement_variants', '{variant_key,content,source,metadata}', 0),
      ('graphium.kg_embeddings', '{required_scopes,embedding}', 0),
      ('graphium.dh_symbioses', '{note}', 0),
      ('graphium_private.family_sums', '{state}', 0),
      ('graphium_private.postings', '{required_scopes}', 0),
      ('graphium_private.postings', '{word}', 1)) as v(tab, columns, target),
      unnest(v.columns::text[]) as c(name)
  loop
    execute format('alter table %s alter column %I set statistics %s', v_column.tab, v_column.name, v_column.target);
  end loop;
end
$statistics$;
