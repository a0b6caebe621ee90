"""How a literal with a backslash is read is a setting of the session, and a plan that was made under the wrong one stays:
whoever turns standard_conforming_strings off would change what our functions do, for the next client of a pooler too."""

from __future__ import annotations

from tests.support.databases import Connection, as_caller


def test_functions_with_a_backslash_say_how_it_is_read(superuser: Connection) -> None:
    # Bodies that are parsed when they are made (prosqlbody) hold no text. The functions of the Cypher grammar have no
    # settings of their own, because they recurse: nobody but cypher(), which has it, may execute them.
    rows = superuser.execute("""
        select p.oid::regprocedure::text
          from pg_proc p
         where p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)
           and p.prosqlbody is null and p.prosrc like '%\\\\%'
           and not coalesce(p.proconfig @> '{standard_conforming_strings=on}', false)
           and not (p.proowner = 'graphium_cypher'::regrole
                    and not exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee <> p.proowner))
         order by 1""").fetchall()
    assert rows == []
    (config,) = superuser.execute(
        "select proconfig from pg_proc where oid = 'graphium.cypher(text, jsonb)'::regprocedure"
    ).fetchone() or ((),)
    assert "standard_conforming_strings=on" in config


def test_a_session_that_reads_backslashes_otherwise(app_conn: Connection, tenant: str) -> None:
    app_conn.execute("set standard_conforming_strings = off")
    app_conn.execute("set escape_string_warning = off")
    for _ in range(2):
        with as_caller(app_conn, tenant):
            app_conn.execute(
                "select graphium.ingest_context('f', 'g', 's', '[{\"content\": \"It’s  fine — all of it.\", \"embedding\": null}]')"
            )
            row = app_conn.execute(
                "select since::date::text from graphium.prepare_query('what on 2024-05-08')"
            ).fetchone()
            assert row == ("2024-05-08",)
            row = app_conn.execute("select graphium.cypher('MATCH (x1) RETURN count(*)')").fetchone()
            assert row == (3,)
        app_conn.execute("reset all")
