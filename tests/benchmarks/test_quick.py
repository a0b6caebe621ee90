"""The benchmark suite runs: a few rows of it, at tiny sizes. What it measures is nobody's business here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.bench import QUICK, Bench, Server
from benchmarks.bench import Database as BenchDatabase
from benchmarks.data import Generator
from benchmarks.rows import rows
from tests.support.databases import Database

TINY = dataclasses.replace(
    QUICK, name="tiny", queries=6, tenants=(60, 400), largest=400, hnsw_from=300, exact_up_to=150,
    recall_queries=4, worst_queries=2, batches=1, hnsw_batches=1, taxa=20,
)  # fmt: skip


def test_rows_of_the_suite_give_lines_that_a_report_can_show(db: Database, tmp_path: Path) -> None:
    bench = Bench(BenchDatabase(db.dsn(), db.dsn("app")), TINY, Generator(1), say=lambda text: None)
    bench.configure()
    with bench.superuser() as conn:
        found = report.Report(TINY, report.machine(conn, Server(db.dsn(), "test"), TINY))
    for row in rows():
        if row.key in ("search", "recall", "mirror"):
            lines = list(row.run(bench))
            assert lines
            found.rows.append((row, lines, 0.0))

    figures = json.loads(json.dumps(found.as_dict()))
    assert {row["key"] for row in figures["rows"]} == {"search", "recall", "mirror"}
    by_case = {line["case"]: line for row in figures["rows"] for line in row["lines"]}
    # the tenant of 60 has no index, so it is scanned exactly: right by construction
    assert by_case["60 rows, on topic"]["extra"]["no filter"] == 1
    assert "| 60 rows, on topic" in found.markdown("figures", [])


def test_the_generated_vectors_have_the_clusters_that_they_claim(tmp_path: Path) -> None:
    generator = Generator(2)
    centres = generator.families(20)
    a, b = (generator.around(np.repeat(centres, 50, axis=0)) for _ in range(2))
    assert abs(float((a * b).sum(axis=1).mean()) - 0.63) < 0.03
    assert abs(float((a[:500] * b[500:]).sum(axis=1).mean())) < 0.15
    assert np.array_equal(Generator(2).families(20), centres)
    cosines = np.linspace(0.998, 1, 50)
    near = generator.near(a[:50], cosines).astype(np.float64)
    assert np.allclose((near * a[:50]).sum(axis=1), cosines, atol=1e-6)
