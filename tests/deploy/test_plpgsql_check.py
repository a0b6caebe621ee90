"""plpgsql_check over every PL/pgSQL function, where the server has it (the Debian one does, the embedded one not)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.databases import Database


def test_plpgsql_check(db: Database, superuser: psycopg.Connection) -> None:
    if superuser.execute("select from pg_available_extensions where name = 'plpgsql_check'").fetchone() is None:
        pytest.skip("this server has no plpgsql_check: `make test-pg17` has")
    superuser.execute("create schema checks; create extension plpgsql_check schema checks")
    # Its findings per function; trigger functions are checked against each table that they serve.
    found = superuser.execute(
        """
        select p.oid::regprocedure::text || coalesce(' on ' || t.tgrelid::regclass, ''), c.level, c.lineno, c.message
          from pg_proc p join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
          left join lateral (select distinct on (tgrelid) tgrelid, tgoldtable, tgnewtable
                               from pg_trigger where tgfoid = p.oid and tgparentid = 0) as t on true
          cross join lateral checks.plpgsql_check_function_tb(
            p.oid, coalesce(t.tgrelid, 0), oldtable => t.tgoldtable, newtable => t.tgnewtable,
            extra_warnings => false, performance_warnings => false, security_warnings => true) as c
         where p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)
           and (p.prorettype <> 'trigger'::regtype or t.tgrelid is not null)
         order by 1, 3
        """
    ).fetchall()
    assert found == []
