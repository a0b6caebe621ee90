"""Where everything stands in the picture of the taxonomy. A template makes the SVG of it.

Each family is a box with its genera and their specimens in lines; boxes stand in columns, each where the column is
shortest. Symbioses are curves between lines, from side to side: they bend in the gutters between columns, and cross a
column between two of its boxes.
"""

from __future__ import annotations

import bisect
import itertools
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from graphium_db.console.cards import place
from graphium_db.console.taxonomy import Taxon
from graphium_db.console.templating import number
from graphium_db.models import Symbiosis

WIDTH, GAP, GUTTER = 300, 28, 110
HEAD, LINE, PAD, MARGIN = 44, 26, 12, 16
COLUMNS = 3
MOST = 600
"""Vertices that are drawn; above, specimens are counted instead."""


@dataclass(frozen=True, slots=True)
class Label:
    """A name, shortened to about the room that it has beside its count; what is wider all the same is clipped there."""

    name: str
    shown: str
    room: int


@dataclass(frozen=True, slots=True)
class Line:
    level: str
    label: Label
    statements: int
    url: str
    y: int


@dataclass(slots=True)
class Box:
    label: Label
    statements: int
    genera: int
    is_open: bool
    url: str
    x: int = 0
    y: int = 0
    height: int = 0
    lines: list[Line] = field(default_factory=list)
    trunks: list[tuple[int, int, list[int]]] = field(default_factory=list)
    """Of each genus: from where, to where, and at which heights the twigs to its specimens go off."""


@dataclass(frozen=True, slots=True)
class Curve:
    kind: str
    path: str
    label_x: int
    label_y: int
    title: str


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    columns: int
    boxes: list[Box]
    curves: list[Curve]
    vertices: int
    left_out: int


def draw(root: Taxon, edges: Sequence[Symbiosis], only: Sequence[str] | None = None) -> Picture:
    families = [family for family in root.shown if only is None or family.name in only]
    vertices = sum(1 + len(f.shown) + sum(len(g.shown) for g in f.shown) for f in families)
    with_specimens = vertices <= MOST
    heights = [GAP] * COLUMNS  # each box has a gap above and below, through which a curve may go
    passages = [[GAP // 2] for _ in range(COLUMNS)]
    spots: dict[UUID, tuple[int, int, int]] = {}  # column, x, y of what an edge can end at
    boxes: list[Box] = []
    drawn = 0
    for family in families:
        if drawn > MOST:
            break
        box = _box(family, with_specimens)
        column = heights.index(min(heights))
        box.x, box.y = MARGIN + column * (WIDTH + GUTTER), heights[column]
        heights[column] += box.height + GAP
        passages[column].append(heights[column] - GAP // 2)
        boxes.append(box)
        drawn += 1 + len(box.lines)
        _remember(spots, column, box, family, with_specimens)
    curves = _curves(edges, spots, passages)
    columns = min(COLUMNS, max(1, len(boxes)))
    return Picture(
        width=2 * MARGIN + columns * WIDTH + (columns - 1) * GUTTER,
        height=max(heights + [curve.label_y + GAP // 2 for curve in curves]),
        columns=columns,
        boxes=boxes,
        curves=curves,
        vertices=vertices,
        left_out=vertices - drawn,
    )


def _box(family: Taxon, with_specimens: bool) -> Box:
    name = str(family.name)
    label = _label(name, 14, 15, family.statements)
    box = Box(label, family.statements, len(family.shown), not family.scopes, place(name))
    y = HEAD + LINE // 2
    for genus in family.shown:
        start = y
        label = _label(str(genus.name), 34, 13, genus.statements)
        box.lines.append(Line("genus", label, genus.statements, place(name, genus.name), y))
        y += LINE
        twigs = []
        for specimen in genus.shown if with_specimens else ():
            twigs.append(y)
            label = _label(str(specimen.name), 42, 13, specimen.statements)
            url = place(name, genus.name, specimen.name)
            box.lines.append(Line("specimen", label, specimen.statements, url, y))
            y += LINE
        if twigs:
            box.trunks.append((start + 8, twigs[-1], twigs))
    box.height = y - LINE // 2 + PAD
    return box


def _remember(
    spots: dict[UUID, tuple[int, int, int]], column: int, box: Box, family: Taxon, with_specimens: bool
) -> None:
    if family.id is not None:
        spots[family.id] = (column, box.x, box.y + HEAD // 2)
    heights = iter(box.lines)
    for genus in family.shown:
        line = next(heights)
        if genus.id is not None:
            spots[genus.id] = (column, box.x, box.y + line.y)
        for specimen in genus.shown:
            if with_specimens:
                line = next(heights)
            if specimen.id is not None:
                spots[specimen.id] = (column, box.x, box.y + line.y)


def _curves(
    edges: Sequence[Symbiosis], spots: dict[UUID, tuple[int, int, int]], passages: list[list[int]]
) -> list[Curve]:
    """Of all edges whose ends are drawn; where several meet they stand a little apart, and so do their names."""
    curves: list[Curve] = []
    met: dict[Hashable, int] = {}
    taken: list[tuple[int, int]] = []
    for edge in edges:
        curve = _curve(edge, spots, met, passages)
        if curve is None:
            continue
        y = curve.label_y
        while any(abs(curve.label_x - x) < 70 and abs(y - other) < 14 for x, other in taken):
            y += 14
        taken.append((curve.label_x, y))
        curves.append(replace(curve, label_y=y))
    return curves


def _apart(met: dict[Hashable, int], id: Hashable) -> int:
    """0, 5, -5, 10, -10 for the first, second, third … edge that ends or passes here."""
    n = met[id] = met.get(id, -1) + 1
    return (5 if n % 2 else -5) * ((n + 1) // 2) if n < 5 else 0


def _curve(
    edge: Symbiosis, spots: dict[UUID, tuple[int, int, int]], met: dict[Hashable, int], passages: list[list[int]]
) -> Curve | None:
    ends = []
    for ids in (
        (edge.source_specimen_id, edge.source_genus_id, edge.source_family_id),
        (edge.target_specimen_id, edge.target_genus_id, edge.target_family_id),
    ):
        end = next((id for id in ids if id in spots), None)
        if end is None:
            return None
        ends.append(end)
    (from_column, from_x, from_y), (to_column, to_x, to_y) = (
        (column, x, y + _apart(met, end)) for end in ends for column, x, y in (spots[end],)
    )
    if from_column == to_column:  # both go out to the right, or from the last column to the left
        side = -1 if from_column == COLUMNS - 1 else 1
        x = from_x + (WIDTH if side > 0 else 0)
        path = f"M{x} {from_y}" + _bend(x, from_y, x, to_y, side * (GUTTER - 30), side * (GUTTER - 30))
        label_y = (from_y + to_y) // 2
    else:
        side = 1 if to_column > from_column else -1
        x, y = from_x + (WIDTH if side > 0 else 0), from_y
        path, bend = f"M{x} {y}", side * GUTTER * 3 // 5
        label_y = (from_y + to_y) // 2
        for column in range(from_column + side, to_column, side):  # between two boxes of each column on the way
            middle = (y + to_y) // 2
            gap = min(passages[column], key=lambda gap: abs(gap - middle))
            gap += _apart(met, (column, gap))
            left = MARGIN + column * (WIDTH + GUTTER)
            near, far = (left, left + WIDTH)[::side]
            if column == from_column + side:
                label_y = (from_y + gap) // 2
            path += _bend(x, y, near, gap, bend, -bend) + f" H{far}"
            x, y = far, gap
        path += _bend(x, y, to_x + (0 if side > 0 else WIDTH), to_y, bend, -bend)
    label_x = from_x + (WIDTH + GUTTER // 2 if side > 0 else -GUTTER // 2)  # in the gutter beside its source
    names = [
        " › ".join(name for name in end if name)
        for end in (
            (edge.source_family, edge.source_genus, edge.source_specimen),
            (edge.target_family, edge.target_genus, edge.target_specimen),
        )
    ]
    title = f"{names[0]} {edge.kind.replace('_', ' ')} {names[1]}" + (f": {edge.note}" if edge.note else "")
    return Curve(edge.kind, path, label_x, label_y, title)


def _bend(x: int, y: int, to_x: int, to_y: int, out: int, back: int) -> str:
    return f" C{x + out} {y} {to_x + back} {to_y} {to_x} {to_y}"


def _label(name: str, left: int, size: int, count: int) -> Label:
    room = WIDTH - left - 14 - round(0.65 * size * (len(number(count)) + 1))
    ends = list(itertools.accumulate(size * _share(letter) for letter in name))
    if ends[-1] <= room:
        return Label(name, name, room)
    return Label(name, name[: bisect.bisect_right(ends, room - size)] + "…", room)


def _share(letter: str) -> float:
    """How wide a letter is about, of a font's size."""
    if unicodedata.east_asian_width(letter) in "WF" or letter in "mwMW@%—":
        return 1.05
    return 0.85 if letter.isupper() or not letter.isascii() else 0.6
