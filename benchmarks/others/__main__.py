"""python -m benchmarks.others [--quick] [--sizes N …]: run the comparison, write a page and a JSON file."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from pathlib import Path

from benchmarks import report
from benchmarks.bench import FULL, QUICK, Bench, Server
from benchmarks.data import Generator
from benchmarks.others import page
from benchmarks.others.compare import Compared, compare

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = 20261130


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.others",
        description="Side by side with others. GRAPHIUM_BENCH_DSN: a superuser's; default: an embedded server of its own."
        " GRAPHIUM_OTHERS_PYTHON: of the environment that has LangGraph; `make bench-others` makes one.",
    )
    parser.add_argument("--quick", action="store_true", help="2,000 statements: to try the command")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="statements; default: 10000 100000")
    arguments = parser.parse_args()
    sizes = dataclasses.replace(QUICK, hnsw_from=2_000) if arguments.quick else FULL
    python = os.environ.get("GRAPHIUM_OTHERS_PYTHON")
    directory = ROOT / ("build" if arguments.quick else "docs") / "benchmarks"
    directory.mkdir(parents=True, exist_ok=True)

    machine: dict[str, str] = {}
    found: list[Compared] = []
    with Server.running() as server:
        for size in arguments.sizes or ([2_000] if arguments.quick else [10_000, 100_000]):
            bench = Bench(server.database(), sizes, Generator(SEED), server)
            bench.configure()
            if not found:
                with bench.superuser() as conn:
                    machine = report.machine(conn, server, sizes)
                print("\n".join(f"{name}: {value}" for name, value in machine.items()), flush=True)
            found.append(compare(bench, size, Path(python) if python else None))
            machine |= found[-1].versions
            print("\n" + page.tables(found[-1]), flush=True)
            figures = {"machine": machine, "sizes": [dataclasses.asdict(one) for one in found]}
            (directory / "others.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
            (directory / "others.md").write_text(page.markdown(machine, found), "utf-8")
    print(f"\n{directory / 'others.md'}")


if __name__ == "__main__":
    main()
