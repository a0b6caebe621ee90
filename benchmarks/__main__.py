"""python -m benchmarks [--quick] [--only ROW …]: run the suite, print every line, write the page, figures and plots."""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

from benchmarks import report
from benchmarks.bench import FULL, QUICK, Bench, Server
from benchmarks.data import Generator
from benchmarks.rows import MODULES, rows

ROOT = Path(__file__).resolve().parent.parent
SEED = 20261130


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="The benchmark suite. GRAPHIUM_BENCH_DSN: a superuser's; default: an embedded server of its own.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, a few minutes: to try the suite, not to judge the bars"
    )
    parser.add_argument(
        "--only", nargs="+", choices=MODULES, metavar="ROW", help=f"only these rows: {', '.join(MODULES)}"
    )
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="of the tenant of the row growth")
    parser.add_argument(
        "--page", type=Path, help="where to write; default: docs/benchmarks.md, with --quick build/benchmarks.md"
    )
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    if arguments.sizes:
        sizes = dataclasses.replace(sizes, growth=tuple(arguments.sizes))
    page = arguments.page or ROOT / ("build" if arguments.quick else "docs") / "benchmarks.md"

    with Server.running() as server:
        bench = Bench(server.database(), sizes, Generator(SEED), server)
        bench.configure()
        with bench.superuser() as conn:
            found = report.Report(sizes, report.machine(conn, server, sizes))
        for name, value in found.machine.items():
            print(f"{name}: {value}")
        for row in rows():
            if arguments.only and row.key not in arguments.only:
                continue
            if row.key == "growth" and arguments.sizes:  # a table beside that of the usual sizes
                row = dataclasses.replace(row, title=f"{row.title}: {' and '.join(f'{n:,}' for n in arguments.sizes)}")
            print(f"\n{row.title}", flush=True)
            start, lines = time.perf_counter(), []
            for line in row.run(bench):
                print(report.as_text(line), flush=True)
                lines.append(line)
            found.rows.append((row, lines, time.perf_counter() - start))
            print(f"  ({found.rows[-1][2]:.0f} s)", flush=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    found.write(page)
    print(f"\n{page}")


if __name__ == "__main__":
    main()
