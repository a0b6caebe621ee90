"""Jinja, and the few things that templates may call. Everything is escaped; templates decide nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from graphium_db.classification import LAYER_KINDS, MEMORY_TYPES

_HERE = Path(__file__).resolve().parent
STATIC = _HERE / "static"


# A page has a link to each family, and so has the next one. What is longer than a name, anybody put into an address.
_LONGEST_NAME = 200
_quoted_name = lru_cache(10_000)(quote_plus)


def _quoted(text: str) -> str:
    return _quoted_name(text) if len(text) <= _LONGEST_NAME else quote_plus(text)


def link(path: str, **state: Any) -> str:
    """A URL of this console: `state` as its query, without what is None or empty."""
    pairs: list[str] = []
    for name, value in state.items():
        values: Iterable[Any] = value if isinstance(value, (list, tuple)) else (value,)
        pairs += [f"{name}={_quoted(str(item))}" for item in values if item not in (None, "", False)]
    return quote(path, safe="/-._~") + (f"?{'&'.join(pairs)}" if pairs else "")


def when(moment: datetime) -> str:
    """Date and time in UTC, the seconds left out; the date alone at midnight."""
    moment = moment.astimezone(timezone.utc)
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%d %H:%M}"


def iso(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat()


def number(value: int) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if value >= 10_000 else str(value)


def counted(value: int, noun: str, plural: str | None = None) -> str:
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def percent(value: float | None) -> str:
    """A cosine or a share, two digits: .83, and 1 for all that rounds to it."""
    if value is None:
        return ""
    text = f"{round(value, 2) or 0:.2f}"  # there is no -0
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def signed(value: float) -> str:
    return ("−" if value < 0 else "+") + percent(abs(value))


def cut(text: str, most: int = 600) -> str:
    return text if len(text) <= most else text[:most] + "…"


def initial(text: str) -> str:
    return text.replace("_", " ")


def environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals["link"] = link
    env.filters.update(when=when, iso=iso, number=number, percent=percent, signed=signed, cut=cut, spaced=initial)
    env.globals.update(counted=counted, MEMORY_TYPES=MEMORY_TYPES, LAYER_KINDS=LAYER_KINDS)
    return env
