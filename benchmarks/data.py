"""Clustered memory for skewed tenants, the same in every run.

Real embeddings are neither uniform nor isotropic, and it is their clusters that break an approximate index: so vectors
belong to families, families to topics that all tenants share, and the noise around a family has a spectrum that falls
off. The shares below give what MiniLM gives for short sentences: cosine .63 between two statements of a family, .72
between a query and its nearest statement of 50,000.
"""

from __future__ import annotations

import functools
import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector

from benchmarks.bench import Tenant

DIMENSIONS = 384
TOPICS = 400
TOPIC_SHARE, FAMILY_SHARE, NOISE_SHARE = 0.40, 0.23, 0.37  # of a vector's squared length
SPECTRUM = 0.4  # the standard deviation along direction i falls like i ** -0.4
ROWS_PER_FAMILY = 127
GENERA, SPECIMENS = 2, 2  # a family has so many genera, each so many specimens

MEMORY_TYPES = ("fact", "event", "preference", "advice", "discovery", "decision")
MEMORY_TYPE_SHARES = (0.60, 0.15, 0.10, 0.06, 0.05, 0.04)
CALLER_SCOPES = ("hr",)
AUDIENCES: tuple[list[str], ...] = ([], ["hr"], ["board"])  # of these the caller sees all but the last: 89 %
AUDIENCE_SHARES = (0.80, 0.09, 0.11)

Floats = NDArray[np.float32]
_EPOCH_MS = 1_767_225_600_000  # 2026-01-01


@dataclass
class Rows:
    """Statements of one tenant as columns, row i of each belonging together."""

    ids: list[uuid.UUID]
    vectors: Floats
    family: NDArray[np.int64]  # ordinals
    specimen: NDArray[np.int64]
    memory_type: NDArray[np.int64]
    audience: NDArray[np.int64]
    contents: list[str]
    days_ago: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Memory:
    """A tenant with all that is in it."""

    tenant: Tenant
    rows: Rows
    centres: Floats  # of families
    family_ids: list[uuid.UUID]
    genus_ids: list[uuid.UUID]
    specimen_ids: list[uuid.UUID]
    seen: NDArray[np.bool_]  # rows that the caller may see

    @property
    def size(self) -> int:
        return len(self.rows)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Which row an id is."""
        return {str(id): i for i, id in enumerate(self.rows.ids)}

    def genus_of(self, specimen: int) -> int:
        return specimen // SPECIMENS

    def family_of(self, specimen: int) -> int:
        return specimen // (SPECIMENS * GENERA)


class Generator:
    """All random numbers of a run come from here."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.topics = _unit(self._normal(TOPICS))
        axes, _ = np.linalg.qr(self._normal(DIMENSIONS))
        spectrum = np.arange(1, DIMENSIONS + 1, dtype=np.float32) ** -SPECTRUM
        self._noise_axes = (axes * (spectrum / np.linalg.norm(spectrum))).T.astype(np.float32)
        self._words = _words(self.random)
        self._clock = itertools.count(_EPOCH_MS)

    def _normal(self, count: int) -> Floats:
        return self.random.standard_normal((count, DIMENSIONS), dtype=np.float32)

    def families(self, count: int) -> Floats:
        """Centres of families."""
        topic = self.topics[self.random.integers(0, TOPICS, count)]
        centres: Floats = np.sqrt(TOPIC_SHARE) * topic + np.sqrt(FAMILY_SHARE) * _unit(self._normal(count))
        return centres

    def around(self, centres: Floats) -> Floats:
        """One unit vector near each centre: a statement, or a query, of that family."""
        return _unit(centres + np.sqrt(NOISE_SHARE) * (self._normal(len(centres)) @ self._noise_axes))

    def near(self, vectors: Floats, cosines: NDArray[np.float64]) -> Floats:
        """For each unit vector another one with that cosine to it (to single precision)."""
        away = self._normal(len(vectors)).astype(np.float64)
        base = vectors.astype(np.float64)
        away -= (away * base).sum(axis=1, keepdims=True) * base
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        near = cosines[:, None] * base + np.sqrt(1 - cosines[:, None] ** 2) * away
        return near.astype(np.float32)

    def ids(self, count: int) -> list[uuid.UUID]:
        """Time-ordered uuids, as new_id() makes them."""
        tails = self.random.bytes(8 * count)
        return [
            uuid.UUID(
                int=next(self._clock) << 80 | 7 << 76 | 2 << 62 | int.from_bytes(tails[8 * i : 8 * i + 8], "big") >> 2
            )
            for i in range(count)
        ]

    def sentences(self, count: int) -> list[str]:
        """Sentences of 6 to 14 words, frequent and rare ones."""
        lengths = self.random.integers(6, 15, count)
        picks = iter((self.random.zipf(1.3, int(lengths.sum())) % len(self._words)).tolist())
        return [" ".join(self._words[next(picks)] for _ in range(n)).capitalize() + "." for n in lengths.tolist()]

    def rows(self, centres: Floats, family: NDArray[np.int64]) -> Rows:
        """Statements of the given families, in that order."""
        count = len(family)
        return Rows(
            ids=self.ids(count),
            vectors=self.around(centres[family]),
            family=family,
            specimen=family * GENERA * SPECIMENS + self.random.integers(0, GENERA * SPECIMENS, count),
            memory_type=self.random.choice(len(MEMORY_TYPES), count, p=MEMORY_TYPE_SHARES),
            audience=self.random.choice(len(AUDIENCES), count, p=AUDIENCE_SHARES),
            contents=self.sentences(count),
            days_ago=self.random.integers(0, 365, count),
        )

    def memory(self, tenant: Tenant, size: int, *, family_sizes: Sequence[int] | None = None) -> Memory:
        """A tenant's memory: Zipf-distributed families unless their sizes are given, written in no order."""
        count = max(3, size // ROWS_PER_FAMILY) if family_sizes is None else len(family_sizes)
        if family_sizes is None:
            shares = 1 / np.arange(1, count + 1)
            family = self.random.choice(count, size, p=shares / shares.sum())
        else:
            family = self.random.permutation(np.repeat(np.arange(count), family_sizes))
        centres = self.families(count)
        rows = self.rows(centres, family)
        specimens = count * GENERA * SPECIMENS
        return Memory(
            tenant,
            rows,
            centres,
            family_ids=self.ids(count),
            genus_ids=self.ids(count * GENERA),
            specimen_ids=self.ids(specimens),
            seen=rows.audience < 2,
        )

    def on_topic(self, memory: Memory, count: int) -> Floats:
        """Queries about the tenant's own families."""
        return self.around(memory.centres[self.random.integers(0, len(memory.centres), count)])

    def off_topic(self, others: Sequence[Memory], count: int) -> Floats:
        """Queries about other tenants' families: what is nearest to them is none of the tenant's."""
        centres = np.concatenate([other.centres for other in others])
        return self.around(centres[self.random.integers(0, len(centres), count)])


def _unit(vectors: Floats) -> Floats:
    unit: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _words(random: np.random.Generator) -> list[str]:
    syllables = [c + v for c in "bcdfghjklmnprstvw" for v in "aeiou"]
    return ["".join(random.choice(syllables, random.integers(2, 5))) for _ in range(5000)]


def binary(vector: Floats) -> bytes:
    """A vector as it is sent."""
    data: bytes = Vector(vector).to_binary()
    return data


# ---------------------------------------------------------------- into the tables
_STATEMENTS = "tenant_id, id, family_id, genus_id, specimen_id, content, memory_type, layer_kind, required_scopes, exact_only, occurred_at, created_at"
_EMBEDDINGS = "tenant_id, statement_id, family_id, genus_id, specimen_id, memory_type, layer_kind, required_scopes, happened_at, embedding"


def load(conn: psycopg.Connection[Any], memory: Memory, *, layer_kind: str = "on_demand") -> None:
    """Put a memory into our tables by COPY, as the superuser. The triggers do the rest: counts, summaries, words, graph."""
    tenant = memory.tenant
    with conn.transaction():
        _copy(
            conn,
            "graphium.dh_families (tenant_id, id, name)",
            "uuid uuid text",
            ((tenant.id, id, f"family {n}") for n, id in enumerate(memory.family_ids)),
        )
        _copy(
            conn,
            "graphium.dh_genera (tenant_id, id, family_id, name)",
            "uuid uuid uuid text",
            ((tenant.id, id, memory.family_ids[n // GENERA], f"genus {n}") for n, id in enumerate(memory.genus_ids)),
        )
        _copy(
            conn,
            "graphium.dh_specimens (tenant_id, id, family_id, genus_id, name)",
            "uuid uuid uuid uuid text",
            (
                (
                    tenant.id,
                    id,
                    memory.family_ids[memory.family_of(n)],
                    memory.genus_ids[memory.genus_of(n)],
                    f"specimen {n}",
                )
                for n, id in enumerate(memory.specimen_ids)
            ),
        )
        write_rows(conn, memory, "graphium", layer_kind)
    conn.execute(
        "vacuum (analyze) graphium.dh_families, graphium.dh_genera, graphium.dh_specimens, graphium.kg_statements, "
        "graphium.kg_embeddings, graphium_private.postings"
    )


def write_rows(conn: psycopg.Connection[Any], memory: Memory, schema: str, layer_kind: str = "on_demand") -> None:
    """COPY a memory's statements and embeddings into the tables of a schema."""
    register_vector(conn)
    tenant, rows = memory.tenant, memory.rows
    now = conn.execute("select date_trunc('day', now())").fetchone()
    assert now is not None

    def taxa(i: int) -> tuple[uuid.UUID, uuid.UUID, uuid.UUID]:
        specimen = int(rows.specimen[i])
        return (
            memory.family_ids[memory.family_of(specimen)],
            memory.genus_ids[memory.genus_of(specimen)],
            memory.specimen_ids[specimen],
        )

    when = [now[0] - np.timedelta64(int(d), "D").astype(object) for d in range(366)]
    times = [when[d] for d in rows.days_ago.tolist()]
    labels = [MEMORY_TYPES[t] for t in rows.memory_type.tolist()]
    scopes = [AUDIENCES[a] for a in rows.audience.tolist()]
    _copy(
        conn,
        f"{schema}.kg_statements ({_STATEMENTS})",
        "uuid uuid uuid uuid uuid text text text text[] bool timestamptz timestamptz",
        (
            (
                tenant.id,
                rows.ids[i],
                *taxa(i),
                rows.contents[i],
                labels[i],
                layer_kind,
                scopes[i],
                False,
                times[i],
                now[0],
            )
            for i in range(len(rows))
        ),
    )
    _copy(
        conn,
        f"{schema}.kg_embeddings ({_EMBEDDINGS})",
        "uuid uuid uuid uuid uuid text text text[] timestamptz vector",
        (
            (tenant.id, rows.ids[i], *taxa(i), labels[i], layer_kind, scopes[i], times[i], Vector(rows.vectors[i]))
            for i in range(len(rows))
        ),
    )


def _copy(conn: psycopg.Connection[Any], table: str, types: str, rows: Iterator[tuple[Any, ...]]) -> None:
    with conn.cursor().copy(f"copy {table} from stdin (format binary)".encode()) as copy:
        copy.set_types(types.split())
        for row in rows:
            copy.write_row(row)
