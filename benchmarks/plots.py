"""Plots of a run, as SVG. Needs matplotlib (extra `bench`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "graphium"  # the same file from the same figures
from matplotlib import pyplot  # noqa: E402

from benchmarks.measure import Line  # noqa: E402
from benchmarks.rows.growth import SERIES  # noqa: E402

TOPICS = ("on topic", "off topic")


def draw(lines: Sequence[Line], directory: Path) -> list[tuple[str, str]]:
    """Draw what the lines allow; returns files and titles."""
    drawn = []
    for name, title, plot in (
        ("latency", "Latency of a search against the size of the tenant", _latency),
        ("recall", "Recall against the size of the tenant", _recall),
        ("ingest", "Ingest against the size of the HNSW index", _ingest),
        ("sessions", "Sessions at once", _sessions),
        ("growth", "Time of a call as one tenant grows", _growth),
    ):
        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        if plot(axes, lines):
            axes.grid(alpha=0.3)
            beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if len(axes.lines) > 9 else {}
            axes.legend(frameon=False, fontsize=8, **beside)
            figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
            drawn.append((f"{name}.svg", title))
        pyplot.close(figure)
    return drawn


def _points(lines: Sequence[Line], unit: str, series: str) -> list[Line]:
    return sorted(
        (line for line in lines if line.series == series and line.unit == unit), key=lambda line: line.at or 0
    )


def _latency(axes: pyplot.Axes, lines: Sequence[Line]) -> bool:
    for topic, style in zip(TOPICS, "-:", strict=True):
        points = _points(lines, "ms", topic)
        at = [p.at for p in points]
        axes.plot(at, [p.ours for p in points], f"o{style}", color="C0", label=f"search_context, {topic}, p50")
        axes.plot(
            at, [p.ours_p95 for p in points], f"^{style}", color="C0", alpha=0.35, label=f"search_context, {topic}, p95"
        )
        axes.plot(at, [p.reference for p in points], f"s{style}", color="C1", label=f"by hand, {topic}, p50")
    axes.set(xscale="log", yscale="log", xlabel="statements of the tenant", ylabel="ms")
    return bool(axes.lines and len(axes.lines[0].get_xdata()))


def _recall(axes: pyplot.Axes, lines: Sequence[Line]) -> bool:
    for topic, style in zip(TOPICS, "-:", strict=True):
        points = _points(lines, "recall", topic)
        axes.plot(
            [p.at for p in points],
            [p.extra["no filter"] for p in points],
            f"o{style}",
            color="C0",
            label=f"no filter, {topic}",
        )
        axes.plot(
            [p.at for p in points], [p.ours for p in points], f"s{style}", color="C1", label=f"worst filter, {topic}"
        )
    axes.axhline(0.99, color="grey", linewidth=0.8, label="bar")
    axes.set(xscale="log", xlabel="statements of the tenant", ylabel="recall@10")
    return bool(len(axes.lines[0].get_xdata()))


def _ingest(axes: pyplot.Axes, lines: Sequence[Line]) -> bool:
    points = _points(lines, "rows/s", "ingest_context")
    at = [max(p.at or 0, 100) for p in points]  # no index stands at the left edge of the logarithmic axis
    axes.plot(at, [p.ours for p in points], "o-", label="ingest_context, batches of 500")
    axes.plot(at, [p.reference for p in points], "s-", label="raw insert … select")
    axes.set(xscale="log", yscale="log", xlabel="vectors in the HNSW index (leftmost: no index)", ylabel="statements/s")
    return bool(points)


def _sessions(axes: pyplot.Axes, lines: Sequence[Line]) -> bool:
    points = _points(lines, "ingests/s", "sessions")
    found: defaultdict[str, list[float]] = defaultdict(list)
    for point in points:
        for kind, value in point.extra.items():
            found[kind].append(value)
    for kind, label in {
        "search": "searches", "own": "ingests, a family each", "one": "ingests, one family", "bare": "bare inserts",
    }.items():  # fmt: skip
        axes.plot([p.at for p in points], found[kind], "o-", label=label)
    axes.set(xlabel="sessions", ylabel="calls/s", yscale="log")
    return bool(points)


def _growth(axes: pyplot.Axes, lines: Sequence[Line]) -> bool:
    found: defaultdict[str, dict[float, float]] = defaultdict(dict)
    for line in lines:
        if line.series.startswith(SERIES) and line.unit == "ms":
            found[line.series.removeprefix(SERIES)][line.at or 0] = line.ours
    for n, (what, points) in enumerate(found.items()):
        at = sorted(points)
        axes.plot(
            at, [points[size] for size in at], f"{'os^'[n // 6 % 3]}-", markersize=3, color=f"C{n % 6}", label=what
        )
    axes.set(xscale="log", yscale="log", xlabel="statements of the tenant", ylabel="ms")
    axes.figure.set_size_inches(10, 6)
    return bool(found)
