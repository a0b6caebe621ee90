"""The command group, and what an error becomes: a message, a hint, an exit code."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
import psycopg

from graphium_db import errors
from graphium_db.cli import admin, bench, console, memory, operations, records
from graphium_db.cli.options import width
from graphium_db.cli.output import as_json, say, shown, write_what_the_terminal_lacks_as_escapes
from graphium_db.errors import GraphiumError

FAILED, USAGE, NO_DATABASE, NOT_ALLOWED, NOT_FOUND, UNHEALTHY = 1, 2, 3, 4, 5, 6
INTERRUPTED, BROKEN_PIPE = 130, 141

EXIT_CODES = """\b
Exit codes:
  0  done
  1  failed for a reason not listed here
  2  a wrong option, argument, statement, embedding or Cypher text
  3  no database: none given, not reachable, not deployed, or an extra missing
  4  not allowed: no or unknown tenant, scope not held, permission denied
  5  not found, or hidden from the caller; for an admin, no such tenant or role
  6  found unhealthy: doctor's faults, a damaged graph"""

_OF_ERROR: dict[type[Exception], int] = {
    errors.NoTenantError: NOT_ALLOWED,
    errors.UnknownTenantError: NOT_ALLOWED,
    errors.ImmutableContentError: USAGE,
    errors.BadStatementError: USAGE,
    errors.BadEmbeddingError: USAGE,
    errors.ScopeNotHeldError: NOT_ALLOWED,
    errors.NotFoundError: NOT_FOUND,
    errors.BadArgumentError: USAGE,
    errors.GraphDamagedError: UNHEALTHY,
    errors.CypherRefusedError: USAGE,
    errors.NotAllowedError: NOT_ALLOWED,
    GraphiumError: NO_DATABASE,  # what has no SQLSTATE: a missing extra, a server that is down, a refused deploy
}
_COMMANDS = {  # for the functions that the database's hints name
    "graphium.add_principal": "`graphium principal add`",
    "graphium.context_tree": "`graphium tree --ids`",
    "graphium.create_tenant": "`graphium tenant create`",
    "graphium.forget_context": "`graphium forget`",
    "graphium.list_principals": "`graphium principal list`",
    "graphium.list_tenants": "`graphium tenant list`",
    "graphium.rebuild_graph": "`graphium maintain --rebuild-graphs`",
    "graphium.rebuild_memory": "`graphium maintain --rebuild-memory`",
    "graphium.recall_context": "`graphium recall --ids`",
}
_NOT_DEPLOYED = ("42883", "3F000", "42P01")  # no such function, schema, table
_FUNCTION = re.compile(r"(graphium\.\w+)\([^)]*\)")
_WRITES = re.compile(
    r"permission denied for function (ingest_context|ingest_many|forget_context|set_(many_)?required_scopes)$"
)
_DENIED = ("42501", "28000", "28P01")
_NOT_CONNECTED = (  # what a refused connection says, and what to do about it
    ("password authentication failed", "Check user and password in the DSN (or PGPASSWORD, ~/.pgpass)."),
    ("no password supplied", "Give the password in the DSN, in PGPASSWORD or in ~/.pgpass."),
    ("permission denied for database", "Whoever owns the database runs: grant connect on database … to this login."),
    (
        r'database ".*" does not exist',
        "Check dbname in the DSN. A new one: createdb, then `graphium migrate --bootstrap`.",
    ),
    (r'role ".*" does not exist', "Check user in the DSN."),
    ("FATAL", None),
    ("", "Check host and port in the DSN, and whether a server runs there. `graphium up` starts the embedded one."),
)


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)  # in the order in which one meets them, not by letter


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": width()},
    epilog=EXIT_CODES,
)
@click.version_option(package_name="graphium-db", prog_name="graphium")
def cli() -> None:
    """The memory of your agents, in PostgreSQL.

    Without a DSN the commands use the embedded server that `graphium up` starts. The tenant and the scopes of the
    caller come from --tenant and --scope, or from GRAPHIUM_TENANT and GRAPHIUM_SCOPES (separated by commas).
    """


for _command in (
    operations.up,
    operations.migrate,
    operations.doctor,
    admin.tenant,
    admin.principal,
    memory.ingest,
    memory.search,
    memory.recall,
    memory.wake_up,
    memory.forget,
    memory.scopes,
    memory.tree,
    memory.cypher,
    memory.classify,
    memory.reclassify,
    admin.maintain,
    records.export,
    records.import_,
    console.console,
    bench.bench_retrieval,
):
    cli.add_command(_command)


def exit_code(error: Exception, administrative: bool = False) -> int:
    if administrative and isinstance(error, errors.UnknownTenantError):  # what an admin looked for, not who he is
        return NOT_FOUND
    if isinstance(error, psycopg.Error):
        if error.sqlstate in _DENIED:
            return NOT_ALLOWED
        if error.sqlstate in _NOT_DEPLOYED or _is_unreadable_dsn(error):
            return NO_DATABASE
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            return NO_DATABASE
        return FAILED
    return next((code for cls, code in _OF_ERROR.items() if isinstance(error, cls)), FAILED)


def _is_unreadable_dsn(error: psycopg.Error) -> bool:
    return isinstance(error, psycopg.ProgrammingError) and "connection info string" in str(error)


def explained(error: Exception, administrative: bool = False) -> tuple[str, str | None]:
    """Message and hint."""
    if isinstance(error, psycopg.Error) and _is_unreadable_dsn(error):
        return (
            f"the DSN cannot be read: {str(error).strip()}",
            "As in postgresql://user:password@host/database or 'host=… dbname=… user=…'.",
        )
    if isinstance(error, errors.NoTenantError):
        return (
            error.message,
            "Pass --tenant, or set GRAPHIUM_TENANT; or log in as a principal (graphium principal add).",
        )
    if isinstance(error, GraphiumError):
        return error.message, error.hint and _FUNCTION.sub(_as_command, error.hint)
    if isinstance(error, psycopg.Error):
        message = error.diag.message_primary or str(error).strip() or type(error).__name__
        hint = error.diag.message_hint and _FUNCTION.sub(_as_command, error.diag.message_hint)
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            hint = next(hint for words, hint in _NOT_CONNECTED if re.search(words, message))
        elif error.sqlstate in _NOT_DEPLOYED:
            hint = "Is Graphium deployed there, in this version? `graphium migrate --plan` says what is missing."
        elif error.sqlstate == "42501" and hint is None and administrative:
            hint = "Tenants, principals and maintenance need a login that is a member of graphium_admin."
        elif error.sqlstate == "42501" and hint is None and _WRITES.search(message):
            hint = "This login only reads: an administrator binds it for writing"
            hint += " (`graphium principal add` without --read-only)."
        return message, hint
    return str(error) or type(error).__name__, None


def _as_command(call: re.Match[str]) -> str:
    return _COMMANDS.get(call[1], call[0])


def _by_option(message: str, command: click.Command | None) -> str:
    """What the database or the client calls an argument, by the name that the command has for it."""
    name = re.split(r"\W", message, maxsplit=1)[0]
    for parameter in command.params if command else ():
        if parameter.name == name:
            is_option = isinstance(parameter, click.Option)
            ours = max(parameter.opts, key=len) if is_option else re.sub(r"\W", "", parameter.metavar or name.upper())
            return ours + message.removeprefix(name)
    return message


def _report(error: Exception, context: Mapping[str, Any]) -> int:
    message, hint = explained(error, context.get("admin", False))
    message = _by_option(message, context.get("command"))
    if context.get("json"):
        _report_json(error.sqlstate if isinstance(error, (GraphiumError, psycopg.Error)) else None, message, hint)
    else:
        # What the database says is one line. What is put together here may be a list; no line of it looks like these.
        ours = isinstance(error, GraphiumError) and error.sqlstate is None
        for text, style in [(f"Error: {message}", "bold red")] + ([(f"Hint: {hint}", "")] if hint else []):
            first, *more = text.split("\n") if ours else [text]
            for line in (first, *(f"  {line.removeprefix('  ')}" for line in more)):
                say(line, style)
    return exit_code(error, context.get("admin", False))


def _report_json(sqlstate: str | None, message: str, hint: str | None) -> None:
    sys.stderr.write(as_json({"error": {"sqlstate": sqlstate, "message": message, "hint": hint}}) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    context: dict[str, Any] = {}
    write_what_the_terminal_lacks_as_escapes()
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # it logs errors that it raises as well
    try:
        with cli.make_context("graphium", list(sys.argv[1:] if arguments is None else arguments), obj=context) as ctx:
            cli.invoke(ctx)
            sys.stdout.flush()
            return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        if context.get("json"):
            _report_json(None, error.format_message(), None)
        else:
            error.message = shown(error.message)  # type: ignore[misc]  # it names files and arguments
            error.show()
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        say("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit must not complain
        return BROKEN_PIPE
    except (GraphiumError, psycopg.Error) as error:
        return _report(error, context)


if __name__ == "__main__":
    sys.exit(main())
