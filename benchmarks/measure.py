"""Timing two things side by side, and what is said about it."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Run = Callable[[int], object]
SLICES = 5


@dataclass(frozen=True)
class Bar:
    """What must hold: `holds(ours, reference)`, in the unit of the line."""

    text: str
    holds: Callable[[float, float], bool]


@dataclass(frozen=True)
class Line:
    """One line of the table. `spread` is the range of the ratio over five consecutive slices of the run."""

    case: str
    unit: str
    ours: float
    reference: float | None = None
    ours_p95: float | None = None
    reference_p95: float | None = None
    spread: tuple[float, float] | None = None
    bar: Bar | None = None
    note: str = ""
    # for the plots: what the line is a point of, its place there, and further values
    series: str = ""
    at: float | None = None
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return self.ours / self.reference if self.reference else None

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None when the line has none."""
        return None if self.bar is None else self.bar.holds(self.ours, self.reference or 0.0)


def value_text(value: float | None, p95: float | None, unit: str) -> str:
    if value is None:
        return ""
    text = f"{value:,.0f}" if value >= 1000 or unit in ("missed", "merged", "wrong") else f"{value:.3g}"
    return f"{text} {unit}" + (f" (p95 {p95:.3g})" if p95 is not None else "")


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1)]


def seconds(run: Run, argument: int = 0) -> float:
    start = time.perf_counter()
    run(argument)
    return time.perf_counter() - start


def times(run: Run, count: int, warm_up: int = 8) -> list[float]:
    """Milliseconds of `run(i)` for i in 0..count."""
    for i in range(min(warm_up, count)):
        run(i)
    return [1000 * seconds(run, i) for i in range(count)]


class Taken(NamedTuple):
    """What two things took that took turns: milliseconds of each call, and of the server's CPU per call, where known."""

    ours: list[float]
    reference: list[float]
    cpu: tuple[float, float] | None = None

    def told(self, note: str = "") -> str:
        """The note of a line, with the CPU."""
        if self.cpu is not None:
            ours, reference = self.cpu
            note += (
                f"{'; ' if note else ''}server CPU {ours:.3g} and {reference:.3g} ms a call: {ours / reference:.2f}×"
            )
        return note


def interleave(
    ours: Run, reference: Run, count: int, warm_up: int = 8, backends: tuple[int, int] | None = None
) -> Taken:
    """Time `ours(i)` and `reference(i)` for i in 0..count, one after the other with the first alternating.

    Both are warmed up first: after five runs PostgreSQL has made up its mind about a prepared statement's plan.
    `backends` are the two process ids that do the work: what CPU they used does not depend on what else the machine does.
    """
    for i in range(min(warm_up, count)):
        ours(i)
        reference(i)
    taken: tuple[list[float], list[float]] = ([], [])
    before = server_cpu(backends)
    for i in range(count):
        for which in ((0, 1), (1, 0))[i % 2]:
            taken[which].append(1000 * seconds((ours, reference)[which], i))
    after = server_cpu(backends)
    cpu = ((after[0] - before[0]) / count, (after[1] - before[1]) / count) if before and after else None
    return Taken(*taken, cpu)


def server_cpu(backends: Sequence[int] | None) -> list[float] | None:
    """Milliseconds on a CPU so far, where the server is on this machine and this is Linux."""
    if backends is None:
        return None
    time.sleep(0.01)  # until they wait for us: what a running process used is written down later
    try:
        return [int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6 for pid in backends]
    except OSError:
        return None


def compared(case: str, taken: Taken, bar: Bar | None, note: str = "", **rest: Any) -> Line:
    """A line of two series of milliseconds."""
    ours, reference, _ = taken
    return Line(
        case,
        "ms",
        statistics.median(ours),
        statistics.median(reference),
        percentile(ours, 0.95),
        percentile(reference, 0.95),
        _spread(ours, reference),
        bar,
        taken.told(note),
        **rest,
    )


def rates(
    case: str,
    size: int,
    ours: Sequence[float],
    reference: Sequence[float],
    bar: Bar | None,
    note: str = "",
    unit: str = "rows/s",
    **rest: Any,
) -> Line:
    """A line of two series of milliseconds that `size` rows took, as rows per second of the median."""
    low, high = _spread(ours, reference)
    return Line(
        case,
        unit,
        1000 * size / statistics.median(ours),
        1000 * size / statistics.median(reference),
        spread=(1 / high, 1 / low),
        bar=bar,
        note=note,
        **rest,
    )


def alone(case: str, taken: Sequence[float], bar: Bar | None, note: str = "", **rest: Any) -> Line:
    """A line of one series of milliseconds, without a reference."""
    return Line(
        case,
        "ms",
        statistics.median(taken),
        None,
        percentile(taken, 0.95),
        bar=bar,
        note=note,
        **rest,
    )


def _spread(ours: Sequence[float], reference: Sequence[float]) -> tuple[float, float]:
    slices = min(SLICES, len(ours), len(reference))
    edges = [(len(ours) * k // slices, len(reference) * k // slices) for k in range(slices + 1)]
    ratios = [
        statistics.median(ours[a:c]) / statistics.median(reference[b:d]) for (a, b), (c, d) in itertools.pairwise(edges)
    ]
    return min(ratios), max(ratios)
