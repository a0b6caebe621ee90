"""A trigger's plans are kept by the session, and transition tables have no indexes: one that joined its two of them would, after
a first update of one row, look through all pairs of rows of a large one (8,000 took 9 s; 0.2 s without the join)."""

from __future__ import annotations

import re

from tests.support.databases import Connection


def test_no_trigger_joins_its_transition_tables(superuser: Connection) -> None:
    rows = superuser.execute("""
        select p.oid::regprocedure::text, p.prosrc
          from pg_proc p
         where p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace) and p.prorettype = 'trigger'::regtype
           and p.prosrc ~ 'old_rows' and p.prosrc ~ 'new_rows'
         order by 1""").fetchall()
    assert len(rows) >= 3
    for name, source in rows:
        of_both = re.findall(r"(?:join|using|,)\s+(?:old|new)_rows\s\w+\s+on\s[^;]*", source)
        assert of_both == [], name
