set local role graphium_owner;
drop table if exists graphium.kg_embeddings;
drop table if exists graphium.kg_statement_variants;
drop table if exists graphium.kg_statements;
