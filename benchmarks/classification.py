"""How right the classification rules are, how fast, and where they are wrong.

python -m benchmarks.classification LABELLED.jsonl [--dsn "…"] [--mistakes]

Each line of LABELLED.jsonl has `text`, `memory_type`, `layer_kind`, and where another label is as right `alt` (a list) and
`layer_alt`. Half of the sentences, by the hash of the text, are for looking at while rules are written; the mistakes that
--mistakes prints are of that half alone, so that the other half goes on measuring what nobody wrote a rule for. Written is
the part of docs/classification.md between its two marks. --dsn: a deployed database, to time SQL in, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.measure import server_cpu
from graphium_db.classification import MEMORY_TYPES, classify, rule_set

PAGE = Path(__file__).resolve().parent.parent / "docs" / "classification.md"
BEGIN, END = "<!-- results -->\n", "<!-- /results -->\n"
Row = dict[str, Any]


def is_looked_at(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 0


class Score:
    """Of rows: the share right on type and layer, F1 by type, and what was taken for what.

    An alternative label counts as right; the sentence then counts for the type that it was given.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.count = len(rows)
        self.taken: Counter[tuple[str, str]] = Counter()
        layers = 0
        for row in rows:
            found = classify(row["text"])
            wanted = {row["memory_type"], *row.get("alt", ())}
            meant = found.memory_type if found.memory_type in wanted else row["memory_type"]
            self.taken[meant, found.memory_type] += 1
            layers += found.layer_kind in (row["layer_kind"], row.get("layer_alt"))
        self.accuracy = sum(self.taken[t, t] for t in MEMORY_TYPES) / self.count
        self.layer = layers / self.count
        self.f1 = {t: self._f1(t) for t in MEMORY_TYPES}
        self.macro_f1 = sum(self.f1.values()) / len(MEMORY_TYPES)

    def _f1(self, memory_type: str) -> float:
        right = self.taken[memory_type, memory_type]
        said = sum(n for (_, found), n in self.taken.items() if found == memory_type)
        meant = sum(n for (wanted, _), n in self.taken.items() if wanted == memory_type)
        return 2 * right / (said + meant) if said + meant else 1.0


def is_wrong(row: Row) -> bool:
    found = classify(row["text"])
    return found.memory_type not in (row["memory_type"], *row.get("alt", ())) or found.layer_kind not in (
        row["layer_kind"],
        row.get("layer_alt"),
    )


def per_second(dsn: str | None, texts: Sequence[str], rounds: int = 15) -> dict[str, float]:
    """Sentences a second of processor time, the best of some rounds: other work on the machine counts for little."""

    def best(run: Callable[[], object], clock: Callable[[], float]) -> float:
        times = []
        for _ in range(rounds):
            start = clock()
            run()
            times.append(clock() - start)
        return len(texts) / min(times)

    found = {"Python": best(lambda: [classify(text) for text in texts], time.process_time)}
    if dsn:
        query = "select count(c.rule) from unnest(%s::text[]) as t(text), graphium.classify(t.text) as c"
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("set max_parallel_workers_per_gather = 0")
            backend = [conn.info.backend_pid]

            def clock() -> float:
                cpu = server_cpu(backend)  # of a server on this machine
                return cpu[0] / 1000 if cpu else time.perf_counter()

            found["SQL"] = best(lambda: conn.execute(query, [texts]).fetchone(), clock)
    return found


def written(rows: Sequence[Row], speeds: dict[str, float]) -> str:
    parts = {
        "all": rows,
        "looked at": [row for row in rows if is_looked_at(row["text"])],
        "not looked at": [row for row in rows if not is_looked_at(row["text"])],
    }
    scores = {name: Score(part) for name, part in parts.items()}
    lines = [f"Rule set {rule_set().version}, {len(rows)} labelled sentences.", ""]
    lines += ["| | sentences | type | macro-F1 | layer |", "|---|---|---|---|---|"]
    lines += [
        f"| {name} | {s.count} | {s.accuracy:.3f} | {s.macro_f1:.3f} | {s.layer:.3f} |" for name, s in scores.items()
    ]
    lines += ["", f"| F1 | {' | '.join(MEMORY_TYPES)} |", "|---" * (len(MEMORY_TYPES) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(f'{s.f1[t]:.2f}' for t in MEMORY_TYPES)} |" for name, s in scores.items()]
    lines += ["", "What was meant (rows) and what the rules said (columns), all sentences:", ""]
    lines += [f"| | {' | '.join(MEMORY_TYPES)} |", "|---" * (len(MEMORY_TYPES) + 1) + "|"]
    lines += [
        f"| {meant} | {' | '.join(str(scores['all'].taken[meant, said]) for said in MEMORY_TYPES)} |"
        for meant in MEMORY_TYPES
    ]
    length = sum(len(row["text"]) for row in rows) / len(rows)
    rates = ", ".join(f"{name} {rate:,.0f}" for name, rate in speeds.items())
    lines += ["", f"Sentences a second of processor time, of {length:.0f} characters on average: {rates}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classification", description=__doc__)
    parser.add_argument("labelled", type=Path)
    parser.add_argument("--dsn", help="a deployed database to time SQL in")
    parser.add_argument("--mistakes", action="store_true", help="print the mistakes of the half that is looked at")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.labelled.read_text("utf-8").splitlines()]
    results = written(rows, per_second(arguments.dsn, [row["text"] for row in rows] * 10))
    print(results)
    if arguments.mistakes:
        for row in rows:
            if is_looked_at(row["text"]) and is_wrong(row):
                found = classify(row["text"])
                print(f"{row['memory_type']}, {row['layer_kind']} → {found.rule}, {found.layer_kind}: {row['text']}")
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{results}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
