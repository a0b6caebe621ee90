"""docs/tuning.md: its SQL runs, and no setting is left out."""

from __future__ import annotations

from tests.support.databases import Database
from tests.support.shell import ROOT, blocks


def test_the_sql_of_the_tuning_page_runs(db: Database) -> None:
    with db.connect() as conn, conn.transaction(force_rollback=True):
        for block in blocks("docs/tuning.md", "sql"):
            conn.execute(block.encode())
        row = conn.execute("select value from graphium_private.settings where name = 'hnsw_ef_hard'").fetchone()
        assert row == (1000,)


def test_the_tuning_page_knows_every_setting(db: Database) -> None:
    page = (ROOT / "docs" / "tuning.md").read_text("utf-8")
    with db.connect() as conn:
        names = [name for (name,) in conn.execute("select name from graphium_private.settings")]
    assert names
    assert [name for name in names if f"`{name}`" not in page] == []
