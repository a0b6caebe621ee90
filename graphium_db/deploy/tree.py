"""The SQL tree `db/`: where it is, what it holds, what each file says, and which files may no longer change.

Two lives of SQL. Migrations run once (yoyo). Everything in `functions/` and `policies/` is repeatable: the whole file
is applied again whenever its rendered text changed. The rules of `classification/rules.toml` are one more repeatable
file, rendered by :func:`graphium_db.classification.render_sql` and applied before the others.
"""

from __future__ import annotations

import functools
import hashlib
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import sqlglot
from sqlglot import Token, TokenType

from graphium_db.errors import GraphiumError, NotAllowedError
from graphium_db.resources import db_path

RELEASED = "released.sha256"
RULES = "classification/rules.toml"
VECTOR_SCHEMA = "@extschema:vector@"


class DeployError(GraphiumError):
    """The database or the SQL tree is not in a state that can be deployed; the message says what to do."""


class DeployNotAllowedError(DeployError, NotAllowedError):
    """It could be deployed, by somebody else than this login, or when a superuser has mended something."""


class NotTheDeployerError(DeployNotAllowedError):
    """This login deploys nothing, and sees nothing of what was deployed."""


@dataclass(frozen=True)
class SqlFile:
    """One repeatable file, rendered for a database. `path` is relative to `db/`."""

    path: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def functions(self) -> tuple[str, ...]:
        """Qualified names of the functions that the file creates, one per `create function`."""
        return tuple(
            s.name for s in statements(self.text) if s.verb == "create" and s.kind in ("function", "aggregate")
        )


@dataclass(frozen=True)
class Tree:
    """A directory laid out like `db/`."""

    root: Path

    @classmethod
    def default(cls) -> Tree:
        """The tree packed into the wheel, else the one of the checkout."""
        return cls(db_path())

    @property
    def bootstrap(self) -> str:
        """What a superuser runs: `bootstrap.sql`, and `hardening.sql` where there is one."""
        files = (self.root / name for name in ("bootstrap.sql", "hardening.sql"))
        return "\n".join(file.read_text("utf-8") for file in files if file.is_file())

    @property
    def hardened(self) -> frozenset[str]:
        """Functions of ours that `hardening.sql` marks in the catalog; `create or replace` takes the marks away."""
        file = self.root / "hardening.sql"
        return frozenset(re.findall(r"'(graphium_private\.\w+)\(", file.read_text("utf-8") if file.is_file() else ""))

    def migrations(self) -> list[Path]:
        """The `NNNN_name.sql` files in order, without their rollbacks."""
        found = (self.root / "migrations").glob("*.sql")
        return sorted(p for p in found if not p.name.endswith(".rollback.sql"))

    def repeatables(self, vector_schema: str) -> list[SqlFile]:
        """The repeatable files in the order in which they are applied. `vector_schema` is a quoted identifier."""
        files = []
        if (self.root / RULES).is_file():
            from graphium_db.classification import render_sql

            files.append(SqlFile(RULES, render_sql()))
        for folder in ("functions", "policies"):
            for path in sorted((self.root / folder).glob("*.sql")):
                text = path.read_text("utf-8").replace(VECTOR_SCHEMA, vector_schema)
                files.append(SqlFile(f"{folder}/{path.name}", text))
        return files

    def check_released(self) -> None:
        """Refuse when a released migration, or its rollback, was edited or removed.

        `migrations/released.sha256` has the format of `sha256sum`, so that `sha256sum -c` checks it too.
        """
        listing = self.root / "migrations" / RELEASED
        if not listing.is_file():
            return
        for line in listing.read_text("utf-8").splitlines():
            if not line.strip():
                continue
            digest, name = line.split(maxsplit=1)
            path = self.root / "migrations" / name.lstrip("*")
            if not path.is_file():
                raise DeployError(f"migrations/{path.name} was released and is gone: restore it")
            if sha256(path) != digest:
                raise DeployError(
                    f"migrations/{path.name} was released and is frozen, but its content changed: "
                    "restore it and put the change into a new migration"
                )

    def freeze(self) -> list[str]:
        """Record every migration file as released. Returns the names that were not recorded before."""
        self.check_released()
        listing = self.root / "migrations" / RELEASED
        known = listing.read_text("utf-8") if listing.is_file() else ""
        names = {line.split(maxsplit=1)[1] for line in known.splitlines() if line.strip()}
        new = [p for p in sorted((self.root / "migrations").glob("*.sql")) if p.name not in names]
        listing.write_text(known + "".join(f"{sha256(p)}  {p.name}\n" for p in new), "utf-8")
        return [p.name for p in new]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Statement:
    """One SQL statement as read (never written back): `create function graphium.f`, at `line` of its file."""

    line: int
    text: str = field(repr=False)
    verb: str
    kind: str
    name: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.verb, self.kind, self.name) if part)


_FILLERS = {"or", "replace", "if", "not", "exists", "unique", "unlogged", "temporary"} | {"constraint", "concurrently"}
_NAMED_ON = ("policy", "trigger", "index")


def statements(text: str) -> Iterator[Statement]:
    """Split SQL into statements and say what each is about, by sqlglot's tokens.

    Tokens only: sqlglot's parser does not know `security definer`, and it would rewrite `<=>`. Its tokens keep a
    dollar-quoted body in one piece, which is all that is needed here.
    """
    return iter(_split(text))


@functools.lru_cache(maxsize=256)  # a deployment, and doctor more so, reads each file many times
def _split(text: str) -> tuple[Statement, ...]:
    found: list[Statement] = []
    batch: list[Token] = []
    open_blocks = 0  # `begin atomic …; …; end`, with `case … end` inside
    for token in sqlglot.tokenize(text, read="postgres"):
        word = token.text.lower()
        if word == "atomic" or (open_blocks and word == "case"):
            open_blocks += 1
        elif open_blocks and word == "end":
            open_blocks -= 1
        if open_blocks or token.token_type is not TokenType.SEMICOLON:
            batch.append(token)
        elif batch:
            found.append(_statement(text, batch))
            batch = []
    if batch:
        found.append(_statement(text, batch))
    return tuple(found)


def _statement(text: str, batch: list[Token]) -> Statement:
    source = text[batch[0].start : batch[-1].end + 1]
    words = [t.text for t in batch]
    verb = words[0].lower()
    kind = name = ""
    if verb in ("create", "drop", "alter"):
        rest = words[1:12]
        while rest and rest[0].lower() in _FILLERS:
            rest.pop(0)
        kind = rest.pop(0).lower() if rest else ""
        while rest and rest[0].lower() in _FILLERS:
            rest.pop(0)
        name = _qualified(rest)
        if kind in _NAMED_ON and "on" in (w.lower() for w in words[:24]):
            at = [w.lower() for w in words].index("on")
            name += " on " + _qualified([w for w in words[at + 1 :] if w.lower() != "only"])
    elif verb in ("grant", "revoke", "comment"):
        name = textwrap.shorten(source.split(maxsplit=1)[1], 70, placeholder=" …")
    elif verb in ("insert", "update", "delete", "set"):
        name = " ".join(words[1:6]).replace(" . ", ".")
    # A token's line is that of its end: count for the start.
    return Statement(text.count("\n", 0, batch[0].start) + 1, source, verb, kind, name)


def _qualified(words: list[str]) -> str:
    name = words[0] if words else ""
    while len(words) > 2 and words[1] == ".":
        words = words[2:]
        name += "." + words[0]
    return name
