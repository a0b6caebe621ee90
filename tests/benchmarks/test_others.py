"""The comparison with others runs, at a tiny size; with LangGraph where `make bench-others` has installed it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np

from benchmarks.bench import QUICK, Bench
from benchmarks.bench import Database as BenchDatabase
from benchmarks.data import Generator
from benchmarks.others import page
from benchmarks.others.compare import compare
from benchmarks.others.systems import Corpus, Ours, Plain, System
from tests.support.databases import Database

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_comparison_gives_tables(db: Database) -> None:
    python = Path(os.environ.get("GRAPHIUM_OTHERS_PYTHON", ROOT / "build/others-venv/bin/python"))
    sizes = dataclasses.replace(QUICK, queries=4, hnsw_from=500)
    bench = Bench(BenchDatabase(db.dsn(), db.dsn("app")), sizes, Generator(1))
    bench.configure()
    found = compare(bench, 700, python if python.exists() else None, more_batches=1)

    names = ["Graphium", *(["LangGraph"] if python.exists() else []), "a table by hand"]
    assert [line.system for line in found.loaded] == names
    assert all(line.load > 0 and line.more > 0 and line.megabytes > 0 for line in found.loaded)
    by_kind = {(line.case, line.system): line for line in found.searched}
    for kind in ("on topic", "off topic"):
        # 100 statements are scanned exactly by Graphium: right by construction
        small = by_kind[f"100 statements, {kind}", "Graphium"]
        assert (small.recall, small.fewer) == (1, 0)
        assert by_kind[f"700 statements, {kind}", "a table by hand"].recall > 0.5
    tables = page.tables(found)
    assert tables.startswith("## 700 statements, and a tenant of 100 beside them")
    assert "| Graphium | " in tables


def test_what_is_written_by_hand_finds_its_own_statements(db: Database) -> None:
    """The numbers that the systems answer with are those of the corpus: every statement is nearest to itself."""
    bench = Bench(BenchDatabase(db.dsn(), db.dsn("app")), QUICK, Generator(1))
    vectors = np.eye(384, dtype=np.float32)[:30]
    corpus = Corpus([f"statement {n}" for n in range(30)], vectors)
    systems: list[System] = [Ours(bench, corpus, {"t": bench.tenant("t")}), Plain(bench, corpus)]
    for system in systems:
        system.put("t", "a", 0, 20)
        system.put("t", "b", 20, 30)
        for n in (0, 19, 20, 29):
            assert system.search("t", n)[1][0] == n
