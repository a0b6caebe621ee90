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
from benchmarks.measure import Bar, Line
from benchmarks.rows import growth, rows
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

    measured = {what: (unit, taken) for what, unit, taken, _ in growth.measure(bench, 400)}
    assert measured["recall@10 by HNSW, on topic"] == ("recall", [1.0])  # nearer than any rival by far, among 400
    assert {f"ingest of 500 statements, families of 100, {index}" for index in ("HNSW", "no HNSW")} <= measured.keys()


def test_growth_is_shown_by_size_with_the_factor_between() -> None:
    def line(what: str, size: int, value: float, before: float | None) -> Line:
        return Line(f"{size:,} rows, {what}", "ms", value, before, series=growth.SERIES + what, at=size)

    shown = growth.table([line("a", 100, 2, None), line("a", 1000, 6, 2), line("b", 1000, 5, None)]).splitlines()
    assert shown[:5] == [
        "|  | 100 rows | × | 1,000 rows |",
        "| --- | ---: | ---: | ---: |",
        "| *rows* |  | *10* |  |",
        "| a | 2 ms | 3 | 6 ms |",
        "| b |  |  | 5 ms |",
    ]


def test_a_run_of_some_rows_keeps_the_others_as_they_were_measured(tmp_path: Path) -> None:
    by_key = {row.key: row for row in rows()}
    before = report.Report(TINY, {"run": "the first"})
    before.rows.append(
        (by_key["mirror"], [Line("in bulk", "rows/s", 4, 3, bar=Bar("≥ 2×", lambda a, b: a >= 2 * b))], 1)
    )
    before.rows.append((by_key["search"], [Line("100 rows", "ms", 1, 2, spread=(0.4, 0.6))], 1))
    (tmp_path / "results.json").write_text(json.dumps(before.as_dict()), "utf-8")

    now = report.Report(TINY, {"run": "the second"})
    now.rows.append((by_key["search"], [Line("100 rows", "ms", 5, 2)], 1))
    now.keep(tmp_path / "results.json")
    assert [(row.key, lines[0].ours, lines[0].met) for row, lines, _ in now.rows] == [
        ("search", 5, None),
        ("mirror", 4, False),
    ]
    assert now.markdown("figures", []).count("Of another run: the first.") == 1

    other = report.Report(QUICK, {"run": "of other sizes"})
    other.keep(tmp_path / "results.json")
    assert other.rows == []


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
