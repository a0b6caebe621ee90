"""docs/security.md and README.md: what they tell a DBA to run does what they say, pasted as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.memory.conftest import ingest
from tests.support.databases import Cluster, Database, as_caller
from tests.support.shell import as_logins, blocks, paste, paste_into_psql

LOGINS = ("deployer", "my_admin", "my_app", "analyst")


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[Database]:
    """A database in which nothing was run yet."""
    name = cluster.new_name()
    cluster.create(name, template="template0")
    database = Database(cluster, name)
    try:
        yield database
        database.close()
        assert database.ailments() == []
    finally:
        database.close()
        cluster.drop(name)


@pytest.mark.parametrize("page", ["docs/security.md", "README.md"])
def test_what_to_run(cluster: Cluster, empty: Database, tmp_path: Path, page: str) -> None:
    [script] = [block for block in blocks(page, "sh") if "--bootstrap" in block]
    prefix = f"{page[:1].lower()}_{empty.name.rsplit('_', 1)[-1]}"
    dsns = {name: cluster.dsn(empty.name, f"{prefix}_{name}") for name in LOGINS}
    used = [name for name in LOGINS if f"create role {name} " in script]
    assert {"deployer", "my_admin", "my_app"} <= set(used)
    cluster._roles[:0] = [cluster.role(f"{prefix}_{name}") for name in used]  # dropped at the end of the run
    script = as_logins(script, dsns).replace("-d memory", f"-d {empty.name}")
    script = script.replace("createdb memory", f": createdb {empty.name}")  # it is there
    for name in used:  # a password, as the page says to give one
        role = cluster.role(f"{prefix}_{name}")
        script = script.replace(f"create role {role} login", f"create role {role} login password '{cluster.password}'")
    script = script.replace(" password '…'", "").replace("graphium doctor", "graphium doctor --json | cat; : ")
    paste(script, empty.dsn(), tmp_path)

    with psycopg.connect(dsns["my_app"], autocommit=True) as app:
        with as_caller(app, "acme", ["hr"]):
            ingest(app, [{"content": "for hr", "embedding": None}], required_scopes=["hr"])
        assert app.execute("select count(*) from graphium.kg_statements").fetchone() == (0,)  # nobody
    if "analyst" in used:
        with psycopg.connect(dsns["analyst"], autocommit=True) as analyst:
            assert analyst.execute("select content from graphium.kg_statements").fetchall() == [("for hr",)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ingest(analyst, [{"content": "mine", "embedding": None}])


def test_the_record_of_audiences_is_there_when_pasted_into_psql(db: Database) -> None:
    [block] = blocks("docs/security.md", "sql")
    admin = db.connect("admin")
    admin.execute("select graphium.create_tenant('acme', dimensions => 3)")
    with as_caller(db.connect("app"), "acme", ["hr"]) as app:
        [(_, id, *_)] = ingest(app, [{"content": "a raise", "embedding": [1, 2, 3]}], required_scopes=["hr"])
        app.execute("select graphium.set_required_scopes('statement', %s, '{}')", [id])
    told = paste_into_psql(block, db.dsn("admin")).strip().split("|")
    assert told[-4:] == ["statement", str(id), "{hr}", "{}"]
