"""Pairs of texts that are, or only look like, the same statement: end to end, with the real model.

The labelled pairs are not part of the repository (their licences do not fit); the test says so where they are absent.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphium_db import Graphium
from tests.support.databases import Database

PAIRS = Path(__file__).resolve().parents[3] / "shared" / "data" / "dedup_dev.jsonl"


@pytest.mark.skipif(not PAIRS.exists(), reason="measuring data is not here: ../shared/data/dedup_dev.jsonl")
def test_labelled_pairs(db: Database, tenant: str) -> None:
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    merged: dict[bool, list[bool]] = {True: [], False: []}
    wrong: list[str] = []
    with Graphium(db.dsn("app"), tenant=tenant) as memory:
        for number, pair in enumerate(pairs):
            first, second = memory.ingest_context("pairs", "dev", f"pair {number}", [pair["a"], pair["b"]])
            same = first.statement_id == second.statement_id
            merged[pair["should_dedup"]].append(same)
            if same and not pair["should_dedup"]:
                wrong.append(f"{pair['kind']}: {pair['a']!r} / {pair['b']!r}")
    assert wrong == []
    assert sum(merged[True]) >= 0.85 * len(merged[True])
