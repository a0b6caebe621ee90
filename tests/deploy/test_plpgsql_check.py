"""plpgsql_check over every PL/pgSQL function, where the server has it (the Debian one does, the embedded one not)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.databases import Database

UNKNOWABLE = (
    # The columns of a record that a dynamic query fills, in the triggers that move counters.
    'record "v_delta" is not assigned yet',
    # Label tables, found by the search path of the moment; tests/graph runs these triggers with a graph in their path.
    *(f'relation "{label}" does not exist' for label in ("Family", "HAS_GENUS", "HAS_SPECIMEN")),
    # A Cypher text goes to AGE between dollar quotes with a random tag, after its grammar was checked.
    "graphium.cypher(text,jsonb): text type variable is not sanitized",
)

# A trigger function is checked against each table that it serves, with the transition tables of all its triggers there.
CHECK = """
with served as (
  select tgfoid, tgrelid, max(tgoldtable) as old_rows, max(tgnewtable) as new_rows
    from pg_trigger where tgparentid = 0 and not tgisinternal group by tgfoid, tgrelid
)
select p.oid::regprocedure::text || coalesce(' on ' || t.tgrelid::regclass, '') || ': ' || c.message
         || coalesce(' (line ' || nullif(c.lineno, 0) || ')', '')
  from pg_proc p join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
  left join served t on t.tgfoid = p.oid
 cross join lateral checks.plpgsql_check_function_tb(
         p.oid, coalesce(t.tgrelid, 0), oldtable => t.old_rows, newtable => t.new_rows,
         other_warnings => false, extra_warnings => false, performance_warnings => false,
         security_warnings => true) as c
 where p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)
   and (p.prorettype <> 'trigger'::regtype or t.tgrelid is not null)
 order by 1
"""


def test_plpgsql_check(db: Database, superuser: psycopg.Connection) -> None:
    if superuser.execute("select from pg_available_extensions where name = 'plpgsql_check'").fetchone() is None:
        pytest.skip("this server has no plpgsql_check: `make test-pg17` has")
    superuser.execute("create schema checks; create extension plpgsql_check schema checks")
    found = [row[0] for row in superuser.execute(CHECK)]
    assert [f for f in found if not any(known in f for known in UNKNOWABLE)] == []
