-- Two things that dedup found alike, or that may be (functions/062_match_statements.sql). No similarity: nobody has looked yet.
set local role graphium_owner;
set local lock_timeout = '10s';

create type graphium_private.likeness as (
  later integer,       -- an input of the batch, by its ordinal
  earlier integer,     -- one before it …
  statement_id uuid,   -- … or a statement that exists
  similarity double precision
);
comment on type graphium_private.likeness is 'An input of ingest_context that is, or may be, like a statement or an earlier input.';
