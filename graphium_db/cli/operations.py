"""The commands that look after a database: the embedded server, migrations, and doctor."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click
from click.core import ParameterSource

from graphium_db import server
from graphium_db.cli.options import Session, admin_options, caller_options, examples, json_option
from graphium_db.cli.output import counted, done, finding_list, print_json, say


@click.command(
    short_help="Start or stop the embedded PostgreSQL.",
    epilog=examples("graphium up\ngraphium up --data ./memory\ngraphium up --stop"),
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Directory of the data; default: that of the last `up`, at first {server.default_data()}.",
)
@click.option("--stop", is_flag=True, help="Stop the server instead.")
@json_option
def up(data: Path | None, stop: bool, as_json: bool) -> None:
    """Start the embedded PostgreSQL: make it, tune it, migrate it, as far as that is still to do.

    It stays up when the command has ended, and listens on 127.0.0.1 only. Later commands without a DSN use it. What is
    printed is the login for applications; it is also in connection.json beside the data, which only you can read,
    with that of the operator, whom the administrative commands use. On stderr it says how the superuser is reached, for
    what neither may: create role, vacuum, settings of logins.
    """
    if stop:
        stopped = server.stop(data)
        if as_json:
            print_json({"stopped": stopped})
        else:
            done("Stopped." if stopped else "It was not running.")
        return
    result = server.up(data)
    directory = Path(result.connection.data)
    server.remember(directory)
    if as_json:
        print_json(
            {
                "dsn": result.connection.dsn,
                "superuser_dsn": server.superuser_dsn(result.connection),
                "psql": server.psql(),
                "port": result.connection.port,
                "data": directory,
                "connection_file": directory / "connection.json",
                "started": result.started,
                "migrations": result.deployed.migrations,
                "files": result.deployed.files,
            }
        )
        return
    say(
        f"PostgreSQL {'started' if result.started else 'is running'} on port {result.connection.port}, "
        f"data in {directory}"
    )
    if result.deployed:
        say(
            f"Deployed {len(result.deployed.migrations)} migrations and "
            f"{len(result.deployed.files)} files of functions and policies."
        )
    say("A DBA's own work, as its superuser, whom the socket lets in as this system user alone:")
    say(f"{server.psql()} '{server.superuser_dsn(result.connection)}'")
    say("Applications connect with:")
    done(result.connection.dsn)


@click.command(
    short_help="Bring a database to this version.",
    epilog=examples(
        """
graphium migrate --bootstrap | psql -v ON_ERROR_STOP=1 -d app  # superuser
graphium migrate --plan
graphium migrate --dsn "host=db.example.com dbname=app user=deployer"
graphium migrate --sql > graphium.sql
"""
    ),
)
@click.option("--plan", "plan_only", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--verbose", is_flag=True, help="With --plan: what each file does, too.")
@click.option("--bootstrap", "bootstrap_only", is_flag=True, help="Print what a superuser runs once per database.")
@click.option(
    "--no-hardening",
    is_flag=True,
    help="With --bootstrap: without db/hardening.sql, which only people with SQL of their own make necessary.",
)
@click.option(
    "--sql",
    "sql_only",
    is_flag=True,
    help="Print one file that psql -f applies to an empty bootstrapped database; for that of --dsn, when given.",
)
@admin_options
def migrate(
    session: Session,
    plan_only: bool,
    verbose: bool,
    bootstrap_only: bool,
    no_hardening: bool,
    sql_only: bool,
    as_json: bool,
) -> None:
    """Bring a database to this version: migrations once, functions and policies whenever they changed.

    The login is one that may act as graphium_owner, graphium_keeper and graphium_cypher. Before the first time a
    superuser runs what --bootstrap prints. What was changed by hand is put back; where that is not for this login to
    do, nothing is changed, and the error says what a superuser runs.
    """
    if verbose and not plan_only:
        raise click.UsageError("--verbose goes with --plan.")
    if no_hardening and not bootstrap_only:
        raise click.UsageError("--no-hardening goes with --bootstrap.")
    if plan_only + bootstrap_only + sql_only > 1:
        raise click.UsageError("Give one of --plan, --bootstrap and --sql.")
    from graphium_db import deploy  # with yoyo and sqlglot, which no other command needs

    if bootstrap_only or sql_only:
        tree = deploy.Tree.default()
        if bootstrap_only:
            text = (tree.root / "bootstrap.sql").read_text("utf-8") if no_hardening else tree.bootstrap
        else:
            text = deploy.sql(_vector_schema(session.dsn), tree)
        if as_json:
            print_json({"sql": text})
        else:
            sys.stdout.write(text)
        return
    if plan_only:
        plan = deploy.plan(session.operator_dsn())
        if as_json:
            print_json({"changes": plan.changes, "hardening_due": plan.hardening_due})
        else:
            for line in plan.told(verbose=verbose).split("\n"):
                done(line)
            _say_due(plan.hardening_due)
        if plan.refusal:
            raise plan.refusal
        return
    deployed = deploy.deploy(session.operator_dsn())
    if as_json:
        print_json(deployed)
        return
    for verb, paths in (
        ("changed by hand since the last migrate, put back:", deployed.by_hand),
        ("migrated", deployed.migrations),
        ("applied", deployed.files),
        ("removed", deployed.removed),
    ):
        for path in paths:
            done(f"{verb} {path}")
    if not deployed:
        done("Nothing to do.")
    _say_due(deployed.hardening_due)


def _say_due(command: str | None) -> None:
    if command:
        say(f"db/hardening.sql is due after this migrate. As a superuser: {command}")


def _vector_schema(dsn: str | None) -> str:
    """Where the database of `dsn` has the extension vector; without a database, where PostgreSQL puts it."""
    if dsn is None:
        return "public"
    from graphium_db.deploy.apply import connect, vector_schema

    with connect(dsn) as connection:
        return vector_schema(connection)


@click.command(
    short_help="Look for faults in a database.",
    epilog=examples("graphium doctor\ngraphium doctor --tenant acme --json"),
)
@caller_options
def doctor(session: Session, as_json: bool) -> None:
    """Check server, deployment and what keeps callers apart; with --tenant, as an admin, that tenant's data too.

    Each finding comes with its remedy: one that ends in a semicolon is SQL. docs/lints.md explains them. Exits with 6
    when something is at fault, or could not be looked at; a warning is no fault.
    """
    from graphium_db.cli import checks

    asked_for = click.get_current_context().get_parameter_source("tenant") is ParameterSource.COMMANDLINE
    findings = checks.run(session.operator_dsn(), session.tenant, asked_for)
    if as_json:
        print_json(findings)
    else:
        finding_list((f.level, f.check, f.object, f.found, None if f.level == "ok" else f.remedy) for f in findings)
        counts = Counter(finding.level for finding in findings)
        say(f"{counted(counts['fault'], 'fault')}, {counted(counts['warning'], 'warning')}")
    if any(finding.level == "fault" for finding in findings):
        raise click.exceptions.Exit(6)
