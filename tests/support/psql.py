"""psql, and the environment in which it and other libpq programs connect."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict


def libpq_environment(dsn: str) -> dict[str, str]:
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    return os.environ | {names[k]: str(v) for k, v in conninfo_to_dict(dsn).items() if k in names and v}


def psql() -> str:
    """The embedded server's psql, which is as new as any server here, else the system's."""
    package = importlib.util.find_spec("pgserver")
    if package and package.origin:
        return str(Path(package.origin).with_name("pginstall") / "bin" / "psql")
    found = shutil.which("psql")
    assert found, "psql is needed: install postgresql-client"
    return found
