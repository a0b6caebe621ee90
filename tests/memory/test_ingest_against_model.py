"""Random sequences of batches by callers with different scopes: database and brute-force model agree on every returned
row and on everything stored."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.memory.conftest import ingest, ingest_many
from tests.memory.model import Input, Memory, NotHeld, cosine, vector
from tests.support.databases import Connection, as_caller

DIMENSIONS = (3, 8)
TEXTS = [
    "Ada likes tea",
    "ada likes tea.",
    "Ada  likes “tea”",
    'Ada likes "tea"',
    "Ada likes tea?",
    "The US team",
    "The us team",
    "Straße 12",
    "🍎",
    "🍌",
    "Cafe\u0301",
    "Café",
]
SCOPES: list[list[str]] = [[], ["public"], ["hr"], ["legal"], ["hr", "legal"], ["legal", "hr", "hr"], ["hr", "public"]]
TIMES = ["2026-03-01T09:30:00+00:00", "2026-03-02T00:00:00+00:00"]
numbers = itertools.count(1)


def pool(dimensions: int, seed: int) -> list[tuple[float, ...]]:
    """Clusters of vectors with cosines on both sides of the threshold, scaled copies among them.

    Where two vectors are within reach of a third, their cosines with it are equal or differ by more than the rounding
    of single precision, so that "the most similar" is beyond doubt.
    """
    random = np.random.default_rng(seed)
    chosen: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    while len(chosen) < 10:
        if not chosen or random.random() < 0.2:
            candidate = random.normal(size=dimensions)
        else:
            near = chosen[random.integers(len(chosen))]
            if random.random() < 0.2:
                candidate = near * random.choice([0.5, 2.0, 4.0])
            else:
                aside = random.normal(size=dimensions)
                aside -= near * (aside @ near) / (near @ near)
                angle = np.arccos(random.choice([0.998, 0.9989, 0.99899, 0.99901, 0.9991, 0.9995, 0.9999]))
                candidate = near / np.linalg.norm(near) * np.cos(angle) + aside / np.linalg.norm(aside) * np.sin(angle)
        candidate = vector(tuple(candidate))
        if is_beyond_doubt([*chosen, candidate]):
            chosen.append(candidate)
    return [tuple(float(x) for x in v) for v in chosen]


def is_beyond_doubt(vectors: list[np.ndarray[Any, Any]]) -> bool:
    for x in vectors:
        reached = sorted(c for c in (cosine(x, y) for y in vectors) if c > 0.9989)
        if any(abs(c - 0.999) < 1e-9 for c in reached) or any(
            1e-12 < b - a < 3e-6 for a, b in itertools.pairwise(reached)
        ):
            return False
    return True


@st.composite
def calls(draw: st.DrawFn) -> tuple[int, list[dict[str, Any]]]:
    dimensions = draw(st.sampled_from(DIMENSIONS))
    vectors = pool(dimensions, draw(st.integers(0, 500)))
    inputs = st.builds(
        Input,
        content=st.sampled_from(TEXTS),
        embedding=st.one_of(st.none(), st.sampled_from(vectors), st.sampled_from(vectors)),
        exact_only=st.sampled_from([False, False, False, True]),
        required_scopes=st.one_of(st.none(), st.none(), st.sampled_from(SCOPES)),
        occurred_at=st.one_of(st.none(), st.none(), st.sampled_from(TIMES)),
        metadata=st.sampled_from([{}, {}, {"from": "mail"}]),
    )
    placed = st.builds(
        lambda one, source, position: Input(**{**vars(one), "source": source, "position": position}),
        inputs,
        st.sampled_from(["talk", "mail"]),
        st.one_of(st.none(), st.integers(-3, 9)),
    )
    call = st.fixed_dictionaries(
        {
            "held": st.sampled_from([None, [], ["hr"], ["hr"], ["hr", "legal"], ["legal", "hr"], ["other"]]),
            "family": st.sampled_from(["family", "family", "family", "other"]),
            "genus": st.sampled_from(["genus", "genus", "another"]),
            "specimen": st.sampled_from(["Ada", "Ada", "Bob"]),
            "required_scopes": st.one_of(st.none(), st.none(), st.none(), st.sampled_from(SCOPES)),
            "inputs": st.lists(st.one_of(inputs, inputs, placed), max_size=8),
        }
    )
    return dimensions, draw(st.lists(call, min_size=1, max_size=6))


@pytest.fixture(scope="module")
def tenants(new_tenant: Callable[[int], str]) -> dict[int, str]:
    return {dimensions: new_tenant(dimensions) for dimensions in DIMENSIONS}


@given(given_=calls())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_agrees_with_the_model(
    tenants: dict[int, str],
    app: Connection,
    admin: Connection,
    boss: Connection,
    given_: tuple[int, list[dict[str, Any]]],
) -> None:
    dimensions, sequence = given_
    prefix = f"{next(numbers)} "
    memory = Memory()
    ids: dict[int, Any] = {}
    for call in sequence:
        names = {"family": prefix + call["family"], "genus": call["genus"], "specimen": call["specimen"]}
        inputs = [Input(**{**vars(i), "source": i.source and prefix + i.source}) for i in call["inputs"]]
        conn = admin if call["held"] is None else app
        try:
            expected = memory.ingest(call["held"], **names, inputs=inputs, required_scopes=call["required_scopes"])
        except NotHeld:
            with pytest.raises(psycopg.Error) as caught, as_caller(conn, tenants[dimensions], call["held"] or ()):
                ingest(conn, [i.as_json() for i in inputs], **names, required_scopes=call["required_scopes"])
            assert caught.value.sqlstate == "MG006"
            continue
        with as_caller(conn, tenants[dimensions], call["held"] or ()):
            rows = ingest(conn, [i.as_json() for i in inputs], **names, required_scopes=call["required_scopes"])
        assert [r[0] for r in rows] == list(range(1, len(inputs) + 1))
        for row, want in zip(rows, expected, strict=True):
            assert ids.setdefault(want.number, row[1]) == row[1]
            assert row[2] == want.deduplicated
            assert row[3] == (None if want.similarity is None else pytest.approx(want.similarity, abs=2e-6))
            assert row[6] == want.required_scopes
    assert len(set(ids.values())) == len(ids)
    assert [ids[n] for n in sorted(ids)] == sorted(ids.values())  # ids are in order of birth
    assert stored(boss, prefix) == modelled(memory, ids)
    compare_summaries(boss, memory, prefix)


@given(given_=calls())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_one_call_about_many_specimens_is_as_many_calls(
    tenants: dict[int, str],
    app: Connection,
    admin: Connection,
    boss: Connection,
    given_: tuple[int, list[dict[str, Any]]],
) -> None:
    """Statements of all calls, by the first call's caller: the model takes them one by one, the database some at once."""
    dimensions, sequence = given_
    prefix = f"{next(numbers)} "
    held, required_scopes = sequence[0]["held"], sequence[0]["required_scopes"]
    conn = admin if held is None else app
    memory = Memory()
    ids: dict[int, Any] = {}
    for part in (sequence[:1], sequence[1:]):
        inputs = [
            (
                {"family": prefix + call["family"], "genus": call["genus"], "specimen": call["specimen"]},
                Input(**{**vars(i), "source": i.source and prefix + i.source}),
            )
            for call in part
            for i in call["inputs"]
        ]
        statements = [names | i.as_json() for names, i in inputs]
        before = copy.deepcopy(memory)
        try:
            expected = [
                row
                for names, i in inputs
                for row in memory.ingest(held, **names, inputs=[i], required_scopes=required_scopes)
            ]
        except NotHeld:
            memory = before
            with pytest.raises(psycopg.Error) as caught, as_caller(conn, tenants[dimensions], held or ()):
                ingest_many(conn, statements, required_scopes)
            assert caught.value.sqlstate == "MG006"
            continue
        with as_caller(conn, tenants[dimensions], held or ()):
            rows = ingest_many(conn, statements, required_scopes)
        assert [r[0] for r in rows] == list(range(1, len(inputs) + 1))
        for row, want in zip(rows, expected, strict=True):
            assert ids.setdefault(want.number, row[1]) == row[1]
            assert row[2] == want.deduplicated
            assert row[6] == want.required_scopes
    assert len(set(ids.values())) == len(ids)
    assert [ids[n] for n in sorted(ids)] == sorted(ids.values())
    assert stored(boss, prefix) == modelled(memory, ids)
    compare_summaries(boss, memory, prefix)


def stored(boss: Connection, prefix: str) -> tuple[Any, ...]:
    families = boss.execute(
        "select name, required_scopes, statement_count from graphium.dh_families where starts_with(name, %s)", [prefix]
    ).fetchall()
    specimens = boss.execute(
        "select f.name, g.name, s.name, s.required_scopes from graphium.dh_specimens s"
        "  join graphium.dh_genera g on g.id = s.genus_id join graphium.dh_families f on f.id = s.family_id"
        " where starts_with(f.name, %s)",
        [prefix],
    ).fetchall()
    statements = boss.execute(
        "select s.id, f.name, g.name, p.name, s.content, e.embedding::text, s.exact_only, s.required_scopes,"
        " s.access_count, s.source,"
        "       s.position, s.occurred_at, s.metadata, (s.last_accessed_at is null) = (s.access_count = 0)"
        "  from graphium.kg_statements s join graphium.dh_families f on f.id = s.family_id"
        " join graphium.dh_genera g on g.id = s.genus_id"
        "  join graphium.dh_specimens p on p.id = s.specimen_id left join graphium.kg_embeddings e"
        " on e.statement_id = s.id"
        " where starts_with(f.name, %s)",
        [prefix],
    ).fetchall()
    variants = boss.execute(
        "select v.statement_id, v.content, g.name, p.name, v.source, v.position, v.occurred_at, v.metadata,"
        " v.seen_count"
        "  from graphium.kg_statement_variants v join graphium.kg_statements s on s.id = v.statement_id"
        "  join graphium.dh_families f on f.id = s.family_id left join graphium.dh_specimens p on p.id = v.specimen_id"
        "  left join graphium.dh_genera g on g.id = p.genus_id where starts_with(f.name, %s)",
        [prefix],
    ).fetchall()
    seen: dict[Any, Counter[Any]] = {}
    for id_, content, genus, specimen, source, position, occurred_at, metadata, count in variants:
        who = None if specimen is None else (genus, specimen)
        key = (content, who, source, position, written(occurred_at), repr(sorted(metadata.items())))
        seen.setdefault(id_, Counter())[key] += count
    return (
        sorted(families),
        sorted(specimens),
        {
            s[0]: (
                *s[1:5],
                s[5] and tuple(np.float32(x) for x in s[5].strip("[]").split(",")),
                *s[6:11],
                written(s[11]),
                s[12],
                s[13],
            )
            for s in statements
        },
        seen,
    )


def written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(timezone.utc).isoformat()


def modelled(memory: Memory, ids: dict[int, Any]) -> tuple[Any, ...]:
    statements = {
        ids[s.number]: (
            name,
            s.genus,
            s.specimen,
            s.content,
            None if s.embedding is None else tuple(np.float32(x) for x in s.embedding),
            s.exact_only,
            s.required_scopes,
            s.access_count,
            s.source,
            s.position,
            s.occurred_at,
            s.metadata,
            True,
        )
        for name, f in memory.families.items()
        for s in f.statements
    }
    return (
        sorted((name, f.required_scopes, f.summary()[0]) for name, f in memory.families.items()),
        sorted((name, *who, scopes) for name, f in memory.families.items() for who, scopes in f.specimens.items()),
        statements,
        {ids[s.number]: s.variants for f in memory.families.values() for s in f.statements if s.variants},
    )


def compare_summaries(boss: Connection, memory: Memory, prefix: str) -> None:
    for name, text in boss.execute(
        "select name, summary_embedding::text from graphium.dh_families where starts_with(name, %s)", [prefix]
    ).fetchall():
        mean = memory.families[name].summary()[1]
        if mean is None:
            assert text is None
        else:
            assert np.array([float(x) for x in text.strip("[]").split(",")]) == pytest.approx(mean, rel=1e-6, abs=1e-6)
