"""Deploying Graphium into a PostgreSQL database.

bootstrap(superuser_connection)    # db/bootstrap.sql, once per database
deploy(dsn)                        # migrations, functions, policies; again and again
plan(dsn)                          # what deploy would do
sql()                              # one file that `psql -f` applies with the same result
"""

from __future__ import annotations

from graphium_db.deploy.apply import Deployed, bootstrap, bootstrap_command, deploy
from graphium_db.deploy.plan import Plan, plan
from graphium_db.deploy.script import sql
from graphium_db.deploy.tree import DeployError, DeployNotAllowedError, NotTheDeployerError, Tree

__all__ = [
    "DeployError",
    "DeployNotAllowedError",
    "Deployed",
    "NotTheDeployerError",
    "Plan",
    "Tree",
    "bootstrap",
    "bootstrap_command",
    "deploy",
    "plan",
    "sql",
]
