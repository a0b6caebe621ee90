-- What kind of memory a sentence is, by the rules of db/classification/rules.toml. Deterministic, no model, no tenant
-- needed; the Python function graphium_db.classify gives the same answer for every text. A sentence that no rule
-- knows, such as one in another language, is a fact on demand. Only the first 1,000 characters count.
--
-- example:
--   select memory_type, layer_kind, rule from graphium.classify('I prefer tea to coffee.');
set local role graphium_owner;

create or replace function graphium.classify(content text, out memory_type text, out layer_kind text, out rule text)
  language sql immutable strict parallel safe security definer set search_path = pg_catalog, pg_temp
as $classify$
  select c.memory_type, c.layer_kind, c.rule from graphium_private._classify_by_rules(content) as c
$classify$;
comment on function graphium.classify(text) is
  'Type (fact, event, discovery, preference, advice, decision), layer (preloaded, on_demand) and deciding rule of one sentence. Deterministic; NULL for NULL.';
revoke all on function graphium.classify(text) from public;
grant execute on function graphium.classify(text) to graphium_reader;
