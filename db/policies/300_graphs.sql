-- Grants and policies of every tenant's graph, by the function that guards a new one. A graph that is guarded as this version
-- does it is left alone, so this costs nothing unless _protect_graph() changed.
-- (Each graph that is not takes eight locks until the deploy commits: with thousands of tenants, raise max_locks_per_transaction.)
set local role graphium_keeper;

select graphium_private._protect_graphs();
