set local role graphium_owner;
drop table if exists graphium_private.settings;
drop table if exists graphium.principals;
drop table if exists graphium.tenants;
revoke create on schema graphium, graphium_private from graphium_keeper, graphium_cypher;
revoke usage on schema graphium_private from graphium_keeper, graphium_cypher;
revoke usage on schema graphium from graphium_reader, graphium_keeper, graphium_cypher;
