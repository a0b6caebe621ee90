"""A corpus that is planted row by row, and what a search over it must return, computed without the database.

Fixtures plant as the superuser, so that ids, times and audiences are exactly what a test says; triggers keep counters,
summaries and postings as they do for everybody.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import numpy as np

from tests.support.databases import Connection

EPOCH = datetime(2026, 1, 1, tzinfo=timezone.utc)
MEMORY_TYPES = ("fact", "event", "discovery", "preference", "advice", "decision")
_numbers = itertools.count(1)


def new_id() -> UUID:
    """Ids in the order in which they are asked for."""
    return UUID(int=(0x0190 << 112) | (next(_numbers) << 80) | (0x7 << 76) | (0x8 << 60))


@dataclass
class Row:
    """One statement; `family`, `genus` and `specimen` are (name, audience) or a name."""

    family: str
    genus: str = "general"
    specimen: str = "someone"
    content: str = ""
    embedding: Any = None
    memory_type: str = "fact"
    layer_kind: str = "on_demand"
    required_scopes: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    created_at: datetime = EPOCH
    access_count: int = 0
    source: str | None = None
    position: int | None = None
    id: UUID = field(default_factory=new_id)

    def __post_init__(self) -> None:
        self.content = self.content or f"statement {self.id.hex[4:12]}"

    @property
    def happened_at(self) -> datetime:
        return self.occurred_at or self.created_at

    def is_visible(self, scopes: Sequence[str] | None) -> bool:
        return (
            not self.required_scopes
            or "public" in self.required_scopes
            or scopes is None
            or bool(set(scopes) & set(self.required_scopes))
        )


def vector_text(vector: Any) -> str | None:
    return None if vector is None else "[" + ",".join(repr(float(x)) for x in vector) + "]"


class Corpus:
    """The rows of one tenant. `audiences` gives families ("family") and specimens ("family/genus/specimen") an audience."""

    def __init__(self, boss: Connection, slug: str, audiences: dict[str, Sequence[str]] | None = None) -> None:
        self.boss = boss
        self.slug = slug
        self.audiences = audiences or {}
        found = boss.execute("select id from graphium.tenants where slug = %s", [slug]).fetchone()
        assert found is not None
        self.tenant_id: UUID = found[0]
        self.rows: list[Row] = []
        self.ids: dict[str, UUID] = {}

    def taxon(self, path: str) -> UUID:
        """The id of "family", "family/genus" or "family/genus/specimen", made when new."""
        if path in self.ids:
            return self.ids[path]
        names = path.split("/")
        id = self.ids[path] = new_id()
        scopes = list(self.audiences.get(path, ()))
        if len(names) == 1:
            self.boss.execute(
                "insert into graphium.dh_families (tenant_id, id, name, required_scopes) values (%s, %s, %s, %s)",
                [self.tenant_id, id, names[0], scopes],
            )
        elif len(names) == 2:
            self.boss.execute(
                "insert into graphium.dh_genera (tenant_id, id, family_id, name) values (%s, %s, %s, %s)",
                [self.tenant_id, id, self.taxon(names[0]), names[1]],
            )
        else:
            self.boss.execute(
                "insert into graphium.dh_specimens (tenant_id, id, family_id, genus_id, name, required_scopes)"
                " values (%s, %s, %s, %s, %s, %s)",
                [self.tenant_id, id, self.taxon(names[0]), self.taxon("/".join(names[:2])), names[2], scopes],
            )
        return id

    def scopes_of(self, id: UUID | None) -> list[str] | None:
        """The audience of a family or specimen; None of what a caller was not shown."""
        if id is None:
            return None
        (path,) = (path for path, known in self.ids.items() if known == id)
        return sorted(self.audiences.get(path, ()))

    def plant(self, *rows: Row) -> list[UUID]:
        statements, embeddings = [], []
        for row in rows:
            taxa = [
                self.taxon(row.family),
                self.taxon(f"{row.family}/{row.genus}"),
                self.taxon(f"{row.family}/{row.genus}/{row.specimen}"),
            ]
            labels = [row.memory_type, row.layer_kind, list(row.required_scopes)]
            statements.append(
                [
                    self.tenant_id,
                    row.id,
                    *taxa,
                    row.content,
                    *labels,
                    row.occurred_at,
                    row.created_at,
                    row.access_count,
                    row.source,
                    row.position,
                ]
            )
            if row.embedding is not None:
                embeddings.append([self.tenant_id, row.id, *taxa, *labels, row.happened_at, vector_text(row.embedding)])
        with self.boss.transaction(), self.boss.cursor() as cursor:
            with cursor.copy(
                "copy graphium.kg_statements (tenant_id, id, family_id, genus_id, specimen_id, content, memory_type,"
                " layer_kind, required_scopes, occurred_at, created_at, access_count, source, position) from stdin"
            ) as copy:
                for record in statements:
                    copy.write_row(record)
            with cursor.copy(
                "copy graphium.kg_embeddings (tenant_id, statement_id, family_id, genus_id, specimen_id, memory_type,"
                " layer_kind, required_scopes, happened_at, embedding) from stdin"
            ) as copy:
                for embedding in embeddings:
                    copy.write_row(embedding)
        self.rows += rows
        return [row.id for row in rows]

    def edge(self, kind: str, source: str | UUID, target: str | UUID) -> UUID:
        """An edge between taxa (by path) or statements (by id)."""
        id = new_id()
        ends = []
        for end in (source, target):
            if isinstance(end, UUID):
                family = next(self.ids[row.family] for row in self.rows if row.id == end)
                ends += [family, None, None, end]
            else:
                names = end.split("/")
                ends += [
                    self.taxon(names[0]),
                    self.taxon(end) if len(names) == 2 else None,
                    self.taxon(end) if len(names) == 3 else None,
                    None,
                ]
        self.boss.execute(
            "insert into graphium.dh_symbioses (tenant_id, id, kind, source_family_id, source_genus_id, source_specimen_id,"
            " source_statement_id, target_family_id, target_genus_id, target_specimen_id, target_statement_id)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [self.tenant_id, id, kind, *ends],
        )
        return id

    def nearest(
        self, query: Any, scopes: Sequence[str] | None, admits: Any = lambda row: True
    ) -> list[tuple[UUID, float]]:
        """Ids and cosines of all rows that are visible and admitted, best first, ties by id: numpy, in double precision."""
        rows = [r for r in self.rows if r.embedding is not None and r.is_visible(scopes) and admits(r)]
        if not rows:
            return []
        matrix = np.array([r.embedding for r in rows], dtype=np.float32).astype(np.float64)
        q = np.array(query, dtype=np.float32).astype(np.float64)
        cosines = matrix @ q / np.linalg.norm(matrix, axis=1) / np.linalg.norm(q)
        order = sorted(range(len(rows)), key=lambda i: (-cosines[i], rows[i].id))
        return [(rows[i].id, float(cosines[i])) for i in order]


STOP = {"the", "of", "and", "a", "in", "is", "to"}


def plain_words(text: str) -> list[str]:
    """Words of texts that consist of lower-case stems, digits and a few stop words."""
    return [w for w in re.findall(r"[a-z0-9]+", text.lower()) if w not in STOP]


def bm25(rows: Sequence[Row], query: str, documents: int, k1: float = 1.2, b: float = 0.4) -> dict[UUID, float]:
    """BM25 by its definition, over `rows` as the corpus; `documents` is its size as the caller counts it."""
    bags = {row.id: Counter(plain_words(row.content)) for row in rows}
    words = set(plain_words(query))
    found = {id: bag for id, bag in bags.items() if words & set(bag)}
    if not found:
        return {}
    frequency = {w: sum(w in bag for bag in bags.values()) for w in words}
    size = max(documents, *frequency.values())
    # the mean is over postings that were read, as the database has them: one per word and statement
    lengths = [sum(bag.values()) for bag in found.values() for w in words if w in bag]
    mean = sum(lengths) / len(lengths)
    scores = {}
    for id, bag in found.items():
        length = sum(bag.values())
        scores[id] = sum(
            math.log(1 + (size - frequency[w] + 0.5) / (frequency[w] + 0.5))
            * bag[w] * (k1 + 1) / (bag[w] + k1 * (1 - b + b * length / mean))
            for w in words if w in bag
        )  # fmt: skip
    return scores


def days(n: float) -> datetime:
    return EPOCH + timedelta(days=n)
