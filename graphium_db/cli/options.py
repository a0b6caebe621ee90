"""Options that commands share, and the session that they open."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click
import psycopg

from graphium_db import server
from graphium_db.classification import LAYER_KINDS, MEMORY_TYPES
from graphium_db.client import Graphium

F = TypeVar("F", bound=Callable[..., Any])


class Scope(click.ParamType[str]):
    """One scope. A comma separates several in GRAPHIUM_SCOPES alone, and would else make one that nobody holds."""

    name = "scope"
    envvar_list_splitter = ","  # GRAPHIUM_SCOPES=hr,finance

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if "," in value:
            option = max(param.opts, key=len) if param else ""
            each = " ".join(f"{option} {scope.strip()}" for scope in value.split(","))
            self.fail(f"give {option} once for each scope: {each}", param, ctx)
        return value


_dsn = click.option(
    "--dsn", envvar="GRAPHIUM_DSN", show_envvar=True, help="Database to use; default: the embedded server's."
)
_tenant = click.option("--tenant", envvar="GRAPHIUM_TENANT", show_envvar=True, help="Act for this tenant.")
_scope = click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=Scope(),
    envvar="GRAPHIUM_SCOPES",
    show_envvar=True,
    help="Scope that the caller holds; repeatable. Without it: none, or all that a principal has; '' is none at all.",
)


required_scope_option = functools.partial(
    click.option, "--required-scope", "required_scopes", multiple=True, type=Scope()
)


def _remember_json(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    context.find_root().obj.update(json=value, command=context.command)
    return value


json_option = click.option(
    "--json", "as_json", is_flag=True, callback=_remember_json, is_eager=True, help="Print JSON; errors too, on stderr."
)


@dataclass(frozen=True, slots=True)
class Session:
    """Who calls, and where. `dsn` is None for the embedded server, `scopes` None when none are named."""

    dsn: str | None
    tenant: str | None
    scopes: tuple[str, ...] | None

    def memory(self) -> Graphium:
        """The client of an application or a principal."""
        return Graphium(self.dsn, tenant=self.tenant, scopes=self.scopes)

    def connection(self) -> psycopg.Connection[Any]:
        """One connection of an application or a principal, for calls that are one transaction."""
        dsn = self.dsn or server.default_dsn()
        return psycopg.connect(dsn, autocommit=True, prepare_threshold=None, application_name="graphium")

    def memory_on(self, connection: psycopg.Connection[Any]) -> Graphium:
        return Graphium(connection=connection, tenant=self.tenant, scopes=self.scopes)

    def operator_dsn(self) -> str:
        return self.dsn or server.saved_connection().operator_dsn

    def admin(self) -> Graphium:
        """The client of a member of graphium_admin."""
        return Graphium(self.operator_dsn(), tenant=self.tenant)


def caller_options(command: F) -> F:
    """--dsn, --tenant, --scope and --json; the command gets a `Session` first."""

    @_dsn
    @_tenant
    @_scope
    @json_option
    @functools.wraps(command)
    def wrapper(*, dsn: str | None, tenant: str | None, scopes: tuple[str, ...], **rest: Any) -> Any:
        named = tuple(scope.strip() for scope in scopes if scope.strip()) if scopes else None
        return command(Session(dsn or None, tenant or None, named), **rest)

    return wrapper  # type: ignore[return-value]


def admin_options(command: F) -> F:
    """--dsn and --json; the command gets a `Session` without a caller first."""

    @_dsn
    @json_option
    @functools.wraps(command)
    def wrapper(*, dsn: str | None, **rest: Any) -> Any:
        click.get_current_context().find_root().obj["admin"] = True
        return command(Session(dsn or None, None, None), **rest)

    return wrapper  # type: ignore[return-value]


def filter_options(command: F) -> F:
    """--type, --layer, --since and --until, of search and recall."""
    for option in (
        click.option("--until", metavar="TIME", help="Only what happened before then."),
        click.option(
            "--since", metavar="TIME", help="Only what happened since then, as in 2026-03-01 or '2026-03-01 12:00+01'."
        ),
        click.option("--layer", "layer_kinds", multiple=True, type=click.Choice(LAYER_KINDS), help="Only this layer."),
        click.option(
            "--type",
            "memory_types",
            multiple=True,
            type=click.Choice(MEMORY_TYPES),
            help="Only this memory type; repeatable.",
        ),
    ):
        command = option(command)
    return command


def or_none(values: tuple[str, ...]) -> list[str] | None:
    """An option that was not given is no filter."""
    return list(values) or None


def examples(text: str) -> str:
    """An epilog of examples, one per line, kept as they are."""
    lines = "\n".join(f"  {line}" for line in text.strip().splitlines())
    return f"\b\nExamples:\n{lines}"


def width() -> int:
    """Help is as wide as the terminal, 80 to 100 columns."""
    return max(80, min(100, int(os.environ.get("COLUMNS", "0") or 0)))
