-- What an agent is told when a session starts: preloaded statements, most useful first, inside a budget of tokens.
--
-- Useful means new or often said: the order takes alternately the newest statement and the one that was repeated most
--   (access_count; the newer of equals), each once. So neither the newest rule is lost behind old ones, nor a standing
--   one behind news.
-- Looked at are the newest wake_up_window preloaded statements that the caller sees, that nothing visible supersedes, and
--   that fit into the budget by themselves; with a larger budget, as many as it has tokens.
-- tokens = ceil(characters / 4). A statement that does not fit into what is left of the budget is passed over, never
--   cut, and shorter ones after it still come. The sum is never over budget.
-- Filters: NULL is none, '{}' and unknown or hidden names match nothing.
-- Deterministic: the same bytes while nothing changed. Writes nothing: runs in a READ ONLY transaction and on a replica.
--
-- example:
--   select graphium.ingest_context('rules', 'style', 'Ada', '[{"content": "Always answer Ada in French.", "embedding": null, "layer_kind": "preloaded"}]');
--   select position, content, tokens, running_tokens from graphium.wake_up_context(token_budget => 200);
set local role graphium_owner;

create or replace function graphium.wake_up_context(token_budget int = 800, families text[] = null, specimens text[] = null)
  returns table ("position" int, statement_id uuid, content text, family text, genus text, specimen text, memory_type text, tokens int, running_tokens int)
  language plpgsql stable parallel unsafe security definer set search_path = pg_catalog, pg_temp set client_min_messages = warning set jit = off set plan_cache_mode = force_generic_plan
as $wake_up_context$
#variable_conflict use_column
declare
  v_tenant_id constant uuid := graphium_private._remember_caller();
  v_taxa record := graphium_private._find_taxa(v_tenant_id, families collate "C", null, specimens);
  v_window int;
  v_page uuid[];
  v_has_symbioses boolean;
  v_superseded uuid[] := '{}';
  v_candidates uuid[] := '{}';
  v_candidate record;
  v_chosen uuid[] := '{}';
  v_left int := token_budget;
begin
  perform graphium_private._require_between('token_budget', token_budget, 0, 2147483647);
  v_has_symbioses := graphium_private._has_symbioses(v_tenant_id);
  v_window := greatest(graphium_private._setting('wake_up_window'), token_budget);

  loop -- once, unless so much is superseded that the window is not full
    v_page := graphium_private._newest(v_tenant_id, v_taxa.level, v_taxa.ids,
      format(' and r.layer_kind = ''preloaded'' and ceil(char_length(r.content) / 4.0) <= %s', token_budget), v_page[v_window], v_window);
    if v_has_symbioses then
      v_superseded := graphium_private._superseded(v_tenant_id, v_page);
    end if;
    v_candidates := v_candidates || case when v_superseded = '{}' then v_page
                                         else array(select p.id from unnest(v_page) with ordinality as p(id, n) where p.id <> all (v_superseded) order by p.n) end;
    exit when cardinality(v_page) < v_window or cardinality(v_candidates) >= v_window;
  end loop;

  for v_candidate in
    select r.id, r.tokens
      from (select s.id, ceil(char_length(s.content) / 4.0)::int as tokens, c.newest,
                   case when s.access_count > 0 then row_number() over (order by s.access_count desc, c.newest) end as most_said
              from unnest(v_candidates[:v_window]) with ordinality as c(id, newest)
              join graphium.kg_statements s on s.tenant_id = v_tenant_id and s.id = c.id) as r
     order by least(r.newest, r.most_said), r.newest
  loop
    exit when v_left = 0;
    if v_candidate.tokens <= v_left then
      v_chosen := v_chosen || v_candidate.id;
      v_left := v_left - v_candidate.tokens;
    end if;
  end loop;

  return query
    select c.n::int, s.id, s.content, f.name, g.name, p.name, s.memory_type, t.tokens, sum(t.tokens) over (order by c.n)::int
      from unnest(v_chosen) with ordinality as c(id, n)
      join graphium.kg_statements s on s.tenant_id = v_tenant_id and s.id = c.id
      left join graphium.dh_families f on f.tenant_id = v_tenant_id and f.id = s.family_id
      left join graphium.dh_genera g on g.tenant_id = v_tenant_id and g.id = s.genus_id
      left join graphium.dh_specimens p on p.tenant_id = v_tenant_id and p.id = s.specimen_id,
           lateral (select ceil(char_length(s.content) / 4.0)::int) as t(tokens)
     order by c.n;
end
$wake_up_context$;
comment on function graphium.wake_up_context(int, text[], text[]) is
  'Preloaded statements for the start of a session, most useful first (alternately the newest and the most repeated), never over token_budget (tokens = characters / 4, rounded up) and never cut; nothing superseded. The same bytes while nothing changed. Writes nothing.';
revoke all on function graphium.wake_up_context(int, text[], text[]) from public;
grant execute on function graphium.wake_up_context(int, text[], text[]) to graphium_reader;
