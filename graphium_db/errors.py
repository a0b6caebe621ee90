"""Every error that Graphium raises, and the one table from SQLSTATE to exception.

The database raises class `MG`; `translated` turns such an error into the exception of the same code. Checks that
the client makes before it sends anything (a NUL character, a lone surrogate) raise the very same classes, so a caller
handles a mistake once, wherever it was found. Other database errors (a lost connection, a serialization failure in the
caller's own transaction, a missing grant) stay `psycopg` exceptions: nothing here could say more about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import psycopg


class GraphiumError(Exception):
    """Base of all of them.

    Attributes:
        message: what was wrong, naming the argument.
        hint: what to do about it, or None.
        sqlstate: five characters of class `MG`, or None for an error that has no counterpart in the database.
    """

    sqlstate: ClassVar[str | None] = None
    meaning: ClassVar[str] = ""
    remedy: ClassVar[str] = ""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message


class NoTenantError(GraphiumError):
    sqlstate = "MG001"
    meaning = "No tenant: the caller is not a principal and has not named a tenant."
    remedy = "Pass `tenant=` (Python), `--tenant` (command line), or call `graphium.set_caller()` in the transaction."


class UnknownTenantError(GraphiumError):
    sqlstate = "MG002"
    meaning = "The tenant or the principal that was named does not exist."
    remedy = "Check the spelling; an admin creates them with `create_tenant()` and `add_principal()`."


class ImmutableContentError(GraphiumError):
    sqlstate = "MG003"
    meaning = "The content of a statement never changes."
    remedy = "Delete the statement with `forget_context()` and ingest the new wording."


class BadStatementError(GraphiumError):
    sqlstate = "MG004"
    meaning = "A statement cannot be stored as it is; the message says which ordinal and which field."
    remedy = "Correct that field. Nothing of the call was stored: an ingest is all or nothing."


class BadEmbeddingError(GraphiumError):
    sqlstate = "MG005"
    meaning = "The embedding does not fit: its dimension, NaN, infinity, zero norm, or the model is not the tenant's."
    remedy = "Embed with the tenant's model (`caller()` names it), or create a tenant for the other model."


class ScopeNotHeldError(GraphiumError):
    sqlstate = "MG006"
    meaning = "The caller would write a row that they could not read, or a name is taken by a row hidden from them."
    remedy = "Write with an audience that includes one of the caller's scopes, or as a caller who holds the scope."


class NotFoundError(GraphiumError):
    sqlstate = "MG007"
    meaning = "There is no such row, or it is hidden from the caller: the two are told in the same words."
    remedy = "Check the id; ask someone whose scopes include the row."


class BadArgumentError(GraphiumError):
    sqlstate = "MG008"
    meaning = "An argument is outside of what the function takes; the message names it."
    remedy = "Pass a value in the range that the message states."


class GraphDamagedError(GraphiumError):
    sqlstate = "MG009"
    meaning = "The tenant's graph is missing or damaged, as after a plain restore of a dump."
    remedy = "An admin runs `rebuild_graph()`; `check_graph()` lists the differences."


class CypherRefusedError(GraphiumError):
    sqlstate = "MG010"
    meaning = "The Cypher text is not one that `cypher()` runs: it writes, follows a path of variable length, or calls "
    meaning += "a function outside of the allowlist."
    remedy = "Read only, with a fixed number of hops."


class NotAllowedError(GraphiumError):
    """The login lacks what a deploy needs: it cannot act as our owners, or somebody else owns our records."""

    meaning = "The login may not deploy, or a superuser has to mend something first; the message says what."
    remedy = "The deployer's login: `graphium migrate --help`."


class MissingExtraError(GraphiumError):
    """A part was asked for whose packages are not installed.

    Attributes:
        extra: the name to install, as in `pip install 'graphium-db[extra]'`.
    """

    meaning = "An optional part of the package is not installed."
    remedy = "`pip install 'graphium-db[extra]'` with the extra that the message names."

    def __init__(self, extra: str, need: str) -> None:
        super().__init__(
            f"{need} needs the extra [{extra}], which is not installed", f"pip install 'graphium-db[{extra}]'"
        )
        self.extra = extra


class ServerError(GraphiumError):
    """The embedded server could not be found, started or reached."""

    meaning = "The embedded server could not be found, started or reached."
    remedy = "`graphium up` starts it; its log is beside its data."


BY_SQLSTATE: dict[str, type[GraphiumError]] = {
    cls.sqlstate: cls for cls in GraphiumError.__subclasses__() if cls.sqlstate is not None
}


_NO_TIME = ("22007", "22008", "22009", "22023")  # no date or time; out of range; its zone, too; an unknown time zone
_MOMENTS = ("since", "until", "now")
_NAMED_HERE = "Pass tenant= (and scopes=), or connect as a login role that graphium.add_principal() bound to a tenant."


@contextmanager
def translated(arguments: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Raise our exception for a database error whose SQLSTATE is ours; let every other error through as it is.

    Args:
        arguments: of the call. PostgreSQL reads the points in time among them, and its error for what is none does not
            say which it was: here it becomes a `BadArgumentError` that does.
    """
    try:
        yield
    except psycopg.Error as error:
        message = error.diag.message_primary or str(error)
        given = {name: value for name in _MOMENTS if (value := (arguments or {}).get(name)) is not None}
        if error.sqlstate in _NO_TIME and given:
            wrong = [name for name, value in given.items() if f'"{value}"' in message] or list(given)
            raise BadArgumentError(
                f"{wrong[0]} must be a point in time: {message}",
                "As in 2026-03-01, 2026-03-01 12:00+01 or yesterday.",
            ) from error
        cls = BY_SQLSTATE.get(error.sqlstate or "")
        if cls is None:
            raise
        hint = _NAMED_HERE if cls is NoTenantError else error.diag.message_hint
        raise cls(message, hint) from error
