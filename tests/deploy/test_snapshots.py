"""The committed snapshots: whoever changes a function, a policy, a table or a grant shows it in the diff.

`make snapshots` rewrites them.
"""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest

from graphium_db.deploy.snapshot import snapshot
from tests.support.databases import Cluster

FOLDER = Path(__file__).resolve().parents[1] / "snapshots"


@pytest.fixture(scope="module")
def sections(cluster: Cluster) -> dict[str, str]:
    with psycopg.connect(cluster.dsn(cluster.template)) as conn:
        found = snapshot(conn)
        row = conn.execute("select extversion from pg_extension where extname = 'age'").fetchone()
        assert row is not None
        # What AGE offers depends on its release.
        found[f"ag_catalog-{row[0]}"] = found.pop("ag_catalog")
        if conn.info.server_version < 180000:
            # Its body differs: PostgreSQL 18 has uuidv7().
            found["functions"] = without(found["functions"], "graphium_private.new_id()")
    return found


def without(text: str, entry: str) -> str:
    lines = text.splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if line.startswith(entry)]
    for i in at:
        end = next((j for j in range(i + 1, len(lines)) if not lines[j].startswith(" ")), len(lines))
        del lines[i:end]
    return "".join(lines)


@pytest.mark.parametrize("section", ["functions", "policies", "tables", "privileges", "ag_catalog"])
def test_snapshot(sections: dict[str, str], section: str) -> None:
    name = next(key for key in sections if key.startswith(section))
    text, path = sections[name], FOLDER / f"{name}.txt"
    if os.environ.get("GRAPHIUM_WRITE_SNAPSHOTS") and (
        name != section or "graphium_private.new_id()" in sections["functions"]
    ):
        path.write_text(text)
    expected = path.read_text()
    if section == "functions" and "graphium_private.new_id()" not in text:
        expected = without(expected, "graphium_private.new_id()")
    assert text == expected, f"{path.name} differs: `make snapshots`, then read the diff"
