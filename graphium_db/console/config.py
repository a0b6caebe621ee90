"""What a console is told when it starts."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphium_db.errors import BadArgumentError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from graphium_db.embedding import Embedder

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Allowed:
    """A tenant that people may look at by the server's own login, and the scopes from which they choose."""

    tenant: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """
    Attributes:
        dsn: the database. Principals log in there with a name and a password of their own in place of the DSN's.
        allowed: for a trusted server, whose login names the caller: what may be named. Empty: principals only.
        access_key: what a person shows who wants one of `allowed`; printed when the console starts.
        secret: signs the session cookie. A new one at each start: the sessions are in the process, and end with it.
        host, port: where it listens; other names in a request's Host are refused (DNS rebinding).
        names: further names by which it is reached, through a proxy.
        embedder: turns text into vectors; None: the default one, or by words alone where that is not installed.
    """

    dsn: str
    allowed: tuple[Allowed, ...] = ()
    access_key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    host: str = "127.0.0.1"
    port: int = 8321
    names: tuple[str, ...] = ()
    embedder: Embedder | None = None

    @property
    def host_names(self) -> frozenset[str]:
        own = () if self.host in ("0.0.0.0", "::") else (self.host,)  # noqa: S104  # compared, not listened on
        return frozenset(name.lower() for name in (*LOOPBACK, *own, *self.names))


def read_allowed(path: Path) -> tuple[Allowed, ...]:
    """The tenants of a TOML file: `[[allow]]` tables with `tenant` and, from which people choose, `scopes`."""
    hint = 'As in: [[allow]] tenant = "acme" scopes = ["hr", "legal"], a line each.'
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadArgumentError(f"allow: {path} cannot be read: {error}", hint) from None
    tables = data.get("allow")
    if set(data) - {"allow"} or not isinstance(tables, list) or not tables:
        raise BadArgumentError(f"allow: {path} must have [[allow]] tables, and nothing else", hint)
    return tuple(_allowed(path, table, hint) for table in tables)


def _allowed(path: Path, table: Any, hint: str) -> Allowed:
    scopes: Sequence[Any] = table.get("scopes", ()) if isinstance(table, dict) else ()
    if (
        not isinstance(table, dict)
        or set(table) - {"tenant", "scopes"}
        or not isinstance(table.get("tenant"), str)
        or not isinstance(scopes, (list, tuple))
        or not all(isinstance(scope, str) for scope in scopes)
    ):
        raise BadArgumentError(f"allow: a table of {path} is not a tenant and its scopes", hint)
    return Allowed(table["tenant"], tuple(scopes))
