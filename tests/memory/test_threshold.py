"""Exactly at 0.999: vectors planted on both sides of it, at 384 dimensions, inside one batch and across batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.memory.conftest import ingest
from tests.memory.model import THRESHOLD, cosine
from tests.support.databases import Connection, as_caller

PAIRS = 1200
Vectors = np.ndarray[Any, np.dtype[np.float32]]


def planted(random: np.random.Generator, cosines: np.ndarray[Any, Any]) -> tuple[Vectors, Vectors]:
    """As many vectors as there are cosines, and one at that cosine from each, of another length."""
    ones = random.normal(size=(len(cosines), 384))
    ones /= np.linalg.norm(ones, axis=1, keepdims=True)
    aside = random.normal(size=ones.shape)
    aside -= ones * np.sum(aside * ones, axis=1, keepdims=True)
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    others = ones * cosines[:, None] + aside * np.sqrt(1 - cosines[:, None] ** 2)
    return ones.astype(np.float32), (others * random.uniform(0.1, 9, size=(len(cosines), 1))).astype(np.float32)


def statements(label: str, vectors: Vectors) -> list[dict[str, Any]]:
    return [
        {"content": f"{label} {n}", "embedding": "[" + ",".join(map(repr, v.tolist())) + "]"}
        for n, v in enumerate(vectors)
    ]


def cosines_around_the_threshold(count: int) -> np.ndarray[Any, Any]:
    """A third clearly below, a third above up to 1, a third so close that single precision cannot tell."""
    third = count // 3
    return np.concatenate(
        [
            np.linspace(0.9980, 0.9989, third),
            np.linspace(0.9990 + 1e-7, 1.0, third),
            np.linspace(THRESHOLD - 2e-6, THRESHOLD + 2e-6, count - 2 * third),
        ]
    )


@pytest.mark.parametrize("how", ["in one batch", "across batches"])
def test_on_the_right_side(new_tenant: Callable[[int], str], app: Connection, how: str) -> None:
    random = np.random.default_rng(7)
    cosines = random.permutation(cosines_around_the_threshold(PAIRS))
    ones, others = planted(random, cosines)
    real = [cosine(a.astype(float), b.astype(float)) for a, b in zip(ones, others, strict=True)]
    assert sum(c >= THRESHOLD for c in real) == pytest.approx(PAIRS / 2, abs=5)
    tenant = new_tenant(384)
    if how == "in one batch":
        batches = [statements("first", ones) + statements("second", others)]
    else:
        batches = [
            statements("first", ones),
            *(statements(f"second {n}", part) for n, part in enumerate(np.array_split(others, 4))),
        ]
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        with as_caller(app, tenant):
            rows += ingest(app, batch)
    firsts, seconds = rows[:PAIRS], rows[PAIRS:]
    assert not any(r[2] for r in firsts)
    wrong = [
        (c, row[2])
        for c, row, first in zip(real, seconds, firsts, strict=True)
        if row[2] != (c >= THRESHOLD) or (row[2] and row[1] != first[1])
    ]
    assert wrong == []
    assert [r[3] for r in seconds if r[2]] == pytest.approx([c for c in real if c >= THRESHOLD], abs=2e-6)


def test_at_many_dimensions(new_tenant: Callable[[int], str], app: Connection) -> None:
    """All elements positive: the sums whose rounding single precision gets most wrong."""
    random = np.random.default_rng(8)
    tenant = new_tenant(4096)
    ones = random.uniform(0.5, 1, size=(40, 4096))
    aside = random.normal(size=ones.shape)
    aside -= ones * np.sum(aside * ones, axis=1, keepdims=True) / np.sum(ones * ones, axis=1, keepdims=True)
    cosines = np.linspace(THRESHOLD - 2e-6, THRESHOLD + 2e-6, 40)[:, None]
    unit = ones / np.linalg.norm(ones, axis=1, keepdims=True)
    others = (unit * cosines + aside / np.linalg.norm(aside, axis=1, keepdims=True) * np.sqrt(1 - cosines**2)).astype(
        np.float32
    )
    for n, (a, b) in enumerate(zip(unit.astype(np.float32), others, strict=True)):
        with as_caller(app, tenant):
            rows = ingest(app, statements(f"pair {n}", np.stack([a, b])), family=f"family {n}")
        assert rows[1][2] == (cosine(a.astype(float), b.astype(float)) >= THRESHOLD)


def test_other_similarities_change_nothing(new_tenant: Callable[[int], str], app: Connection) -> None:
    """Unrelated, opposite and equal vectors of any length that can be compared."""
    tenant = new_tenant(3)
    with as_caller(app, tenant):
        rows = ingest(
            app,
            [
                {"content": "a", "embedding": [1e-10, 0, 0]},
                {"content": "b", "embedding": [-1, 0, 0]},
                {"content": "c", "embedding": [0, 1e14, 0]},
                {"content": "d", "embedding": [1e14, 0, 0]},
                {"content": "e", "embedding": [3e-11, 1e-11, 0]},
            ],
        )
    assert [r[2] for r in rows] == [False, False, False, True, False]
    assert rows[3][1] == rows[0][1]
    assert rows[3][3] == pytest.approx(1, abs=1e-6)
