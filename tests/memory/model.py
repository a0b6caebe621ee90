"""What ingest_context must do, by brute force: the reference that the database is compared with.

Written from the contract, not from the SQL: one input at a time, in order, against everything that is there, in double
precision. Only the standard library and numpy.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

THRESHOLD = 0.999  # contract: "cosine similarity >= 0.999"

# ---------------------------------------------------------------------------------------------------- the fold
# Unicode White_Space
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
UNSEEN = "\xad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u2060\u2066\u2067\u2068\u2069\ufeff"
SINGLE_QUOTES, DOUBLE_QUOTES = "‘’‚‛", "“”„‟«»"
DASHES, EM_DASHES = "\u2010\u2011\u2012\u2013\u2212", "\u2014\u2015"
OTHER_FORMS = {chr(c + 0xFEE0): chr(c) for c in range(0x21, 0x7F)} | {"℃": "°C", "℉": "°F"}
CONTRACTED = ("s", "m", "t", "d", "ll", "re", "ve")
FINAL_MARKS = ".!。．！।"
PATH_CHARACTERS = "/\\_@:=#~%&$*+<>|^{}"
DIGITS = "0123456789²³¹⁰" + "".join(
    chr(c)
    for a, b in ((0x2071, 0x2089), (0x660, 0x669), (0x6F0, 0x6F9), (0x966, 0x96F), (0xFF10, 0xFF19))
    for c in range(a, b + 1)
)


def lower(char: str) -> str:
    """Simple case mapping, one character to one: what pg_c_utf8 does. Python's own maps İ to two characters."""
    return "i" if char == "İ" else char.lower()


def is_letter(char: str) -> bool:
    return unicodedata.category(char) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl")


def case_means_something(token: str) -> bool:
    """Digits, path characters, an inner dot, or a capital after the first letter, not counting a contraction's end."""
    if any(c in DIGITS or c in PATH_CHARACTERS for c in token):
        return True
    if any(token[i] == "." and token[i - 1] != "." and token[i + 1] != "." for i in range(1, len(token) - 1)):
        return True
    end = max((i + 1 for i, c in enumerate(token) if is_letter(c)), default=0)
    for ending in CONTRACTED:
        if token[:end].lower().endswith(f"'{ending}"):
            token = token[: end - len(ending) - 1]
            break
    first = next((i for i, c in enumerate(token) if is_letter(c)), len(token))
    return any(lower(c) != c for c in token[first + 1 :])


def fold(text: str) -> str:
    """Texts with equal folds are the same statement."""
    text = unicodedata.normalize("NFC", "".join(OTHER_FORMS.get(c, c) for c in text if c not in UNSEEN))
    text = "".join(
        "'" if c in SINGLE_QUOTES else '"' if c in DOUBLE_QUOTES else "-" if c in DASHES else c for c in text
    )
    text = re.sub(f"[{EM_DASHES}]+", " - ", text)
    text = " ".join(t for t in "".join(" " if c in WHITE_SPACE else c for c in text).split(" ") if t)
    bare = text.rstrip(FINAL_MARKS)
    if bare and bare[-1] != " ":
        text = bare
    folded = " ".join(t if case_means_something(t) else "".join(map(lower, t)) for t in text.split(" "))
    return unicodedata.normalize("NFC", folded)


# ---------------------------------------------------------------------------------------------------- audiences
def clean(scopes: list[str]) -> list[str]:
    """Scopes as they are stored."""
    return sorted({unicodedata.normalize("NFC", s.strip(WHITE_SPACE)) for s in scopes})


def is_open(scopes: list[str]) -> bool:
    return not scopes or "public" in scopes


def audience(scopes: list[str]) -> frozenset[str]:
    """The audience as a set; open and public are equal."""
    return frozenset() if is_open(scopes) else frozenset(scopes)


def sees(held: list[str] | None, scopes: list[str]) -> bool:
    """Whether a caller who holds `held` (None: all) sees a row with `scopes`."""
    return is_open(scopes) or held is None or bool(set(held) & set(scopes))


def includes(wider: list[str], narrower: list[str]) -> bool:
    """Whether everybody who may see a row with `narrower` may see one with `wider`."""
    return is_open(wider) or (not is_open(narrower) and set(narrower) <= set(wider))


# ---------------------------------------------------------------------------------------------------- the memory
class NotHeld(Exception):
    """What the database says with MG006."""


@dataclass
class Input:
    content: str
    embedding: tuple[float, ...] | None = None
    exact_only: bool = False
    required_scopes: list[str] | None = None
    source: str | None = None
    position: int | None = None
    occurred_at: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "content": self.content,
            "embedding": None if self.embedding is None else list(self.embedding),
        }
        for key in ("required_scopes", "source", "position", "occurred_at"):
            if getattr(self, key) is not None:
                given[key] = getattr(self, key)
        if self.exact_only:
            given["exact_only"] = True
        if self.metadata:
            given["metadata"] = self.metadata
        return given


Variant = tuple[Any, ...]  # content, (genus, specimen), source, position, occurred_at, metadata


@dataclass
class Statement:
    number: int  # order of birth
    genus: str
    specimen: str
    content: str
    embedding: np.ndarray[Any, np.dtype[np.float64]] | None
    exact_only: bool
    required_scopes: list[str]
    source: str | None
    position: int | None
    occurred_at: str | None
    metadata: dict[str, Any]
    access_count: int = 0
    variants: Counter[Variant] = field(default_factory=Counter)


@dataclass
class Family:
    required_scopes: list[str]
    specimens: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)

    def summary(self) -> tuple[int, np.ndarray[Any, np.dtype[np.float64]] | None]:
        """statement_count and the mean of the embeddings, over what every reader of the family may see."""
        seen = [s for s in self.statements if includes(s.required_scopes, self.required_scopes)]
        vectors = [s.embedding for s in seen if s.embedding is not None]
        return len(seen), np.mean(vectors, axis=0) if vectors else None


@dataclass
class Row:
    """One row that ingest_context returns; `number` stands for the statement's id."""

    number: int
    deduplicated: bool
    similarity: float | None
    required_scopes: list[str]


def vector(values: tuple[float, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The numbers that the database stores: single precision, here in double."""
    return np.asarray(values, np.float32).astype(np.float64)


def cosine(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


class Memory:
    """One tenant's memory."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self._born = 0

    def ingest(
        self,
        held: list[str] | None,
        family: str,
        genus: str,
        specimen: str,
        inputs: list[Input],
        required_scopes: list[str] | None = None,
    ) -> list[Row]:
        """All or nothing: after NotHeld everything is as before."""
        before = copy.deepcopy(self.families), self._born
        try:
            return self._ingest(held, family, genus, specimen, inputs, required_scopes)
        except NotHeld:
            self.families, self._born = before
            raise

    def _ingest(
        self,
        held: list[str] | None,
        family: str,
        genus: str,
        specimen: str,
        inputs: list[Input],
        required_scopes: list[str] | None,
    ) -> list[Row]:
        born_with = clean(required_scopes or [])
        home = self.families.setdefault(family, Family(born_with))
        scopes = home.specimens.setdefault((genus, specimen), born_with)
        # An existing one may be hidden; a new one that the maker could not read is refused as well.
        if not sees(held, home.required_scopes) or not sees(held, scopes):
            raise NotHeld
        default = scopes if required_scopes is None else born_with
        matched = []
        for one in inputs:
            wanted = default if one.required_scopes is None else clean(one.required_scopes)
            if not sees(held, wanted):
                raise NotHeld
            matched.append((one, *self._take(held, home, genus, specimen, one, wanted)))
        return [
            Row(
                statement.number,
                not is_new,
                None
                if is_new
                else 1.0
                if one.embedding is None or statement.embedding is None
                else cosine(statement.embedding, vector(one.embedding)),
                statement.required_scopes,
            )
            for one, statement, is_new in matched
        ]

    def _take(
        self, held: list[str] | None, home: Family, genus: str, specimen: str, one: Input, wanted: list[str]
    ) -> tuple[Statement, bool]:
        """The statement that this input is, and whether it is new."""
        found = self._find(held, home, one, wanted)
        if found is None:
            self._born += 1
            found = Statement(
                self._born,
                genus,
                specimen,
                one.content,
                None if one.embedding is None else vector(one.embedding),
                one.exact_only,
                wanted,
                one.source,
                self._place(held, one),
                one.occurred_at,
                one.metadata,
            )
            home.statements.append(found)
            return found, True
        found.access_count += 1
        there = one.source is None or (one.source == found.source and one.position in (None, found.position))
        variant: Variant = (
            None if one.content == found.content else one.content,
            None if (genus, specimen) == (found.genus, found.specimen) else (genus, specimen),
            None if there else one.source,
            None if there else one.position,
            None if one.occurred_at == found.occurred_at else one.occurred_at,
            {} if one.metadata == found.metadata else one.metadata,
        )
        if variant != (None, None, None, None, None, {}):
            found.variants[(*variant[:5], repr(sorted(variant[5].items())))] += 1
        if found.embedding is None and one.embedding is not None:
            found.embedding = vector(one.embedding)
            found.exact_only = found.exact_only or one.exact_only
        return found, False

    def _find(self, held: list[str] | None, home: Family, one: Input, wanted: list[str]) -> Statement | None:
        candidates = [
            s
            for s in home.statements
            if sees(held, s.required_scopes) and audience(s.required_scopes) == audience(wanted)
        ]
        for s in candidates:  # the oldest
            if fold(s.content) == fold(one.content):
                return s
        if one.embedding is None or one.exact_only:
            return None
        mine = vector(one.embedding)
        near = [(cosine(s.embedding, mine), s) for s in candidates if s.embedding is not None and not s.exact_only]
        near = [(c, s) for c, s in near if c >= THRESHOLD]
        if not near:
            return None
        best = max(c for c, _ in near)
        return next(s for c, s in near if c > best - 1e-12)  # of equals the oldest

    def _place(self, held: list[str] | None, one: Input) -> int | None:
        """Default position: after the last of that source that this caller can see."""
        if one.source is None or one.position is not None:
            return one.position
        places = [0]
        for family in self.families.values():
            for s in family.statements:
                if sees(held, s.required_scopes):
                    own = [(s.source, s.position), *((v[2], v[3]) for v in s.variants)]
                    places += [p for source, p in own if source == one.source and p is not None]
        return max(places) + 1
