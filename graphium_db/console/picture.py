"""Where everything stands in the picture of the taxonomy. A template makes the SVG of it.

Each family is a box with its genera and their specimens in lines; boxes stand in columns, each where the column is
shortest. Symbioses are curves between lines, from side to side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from graphium_db.console.cards import place
from graphium_db.console.taxonomy import Taxon
from graphium_db.models import Symbiosis

WIDTH, GAP, GUTTER = 300, 28, 110
HEAD, LINE, PAD, MARGIN = 44, 26, 12, 16
COLUMNS = 3
MOST = 600
"""Vertices that are drawn; above, specimens are counted instead."""
LONGEST = 32


@dataclass(frozen=True, slots=True)
class Line:
    level: str
    label: str
    name: str
    statements: int
    url: str
    y: int


@dataclass(slots=True)
class Box:
    label: str
    name: str
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
    boxes: list[Box]
    curves: list[Curve]
    vertices: int
    left_out: int


def draw(root: Taxon, edges: Sequence[Symbiosis], only: Sequence[str] | None = None) -> Picture:
    families = [family for family in root.shown if only is None or family.name in only]
    vertices = sum(1 + len(f.shown) + sum(len(g.shown) for g in f.shown) for f in families)
    with_specimens = vertices <= MOST
    heights = [MARGIN] * COLUMNS
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
        boxes.append(box)
        drawn += 1 + len(box.lines)
        _remember(spots, column, box, family, with_specimens)
    columns = min(COLUMNS, max(1, len(boxes)))
    return Picture(
        width=2 * MARGIN + columns * WIDTH + (columns - 1) * GUTTER + (GUTTER if columns == 1 else 0),
        height=max(heights) - GAP + MARGIN,
        boxes=boxes,
        curves=_curves(edges, spots),
        vertices=vertices,
        left_out=vertices - drawn,
    )


def _box(family: Taxon, with_specimens: bool) -> Box:
    name = str(family.name)
    box = Box(_short(name), name, family.statements, len(family.shown), not family.scopes, place(name))
    y = HEAD + LINE // 2
    for genus in family.shown:
        start = y
        box.lines.append(
            Line("genus", _short(str(genus.name)), str(genus.name), genus.statements, place(name, genus.name), y)
        )
        y += LINE
        twigs = []
        for specimen in genus.shown if with_specimens else ():
            twigs.append(y)
            text = str(specimen.name)
            box.lines.append(
                Line("specimen", _short(text), text, specimen.statements, place(name, genus.name, text), y)
            )
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


def _curves(edges: Sequence[Symbiosis], spots: dict[UUID, tuple[int, int, int]]) -> list[Curve]:
    """Of all edges whose ends are drawn; where several meet they stand a little apart, and so do their names."""
    curves: list[Curve] = []
    met: dict[UUID, int] = {}
    taken: list[tuple[int, int]] = []
    for edge in edges:
        curve = _curve(edge, spots, met)
        if curve is None:
            continue
        y = curve.label_y
        while any(abs(curve.label_x - x) < 70 and abs(y - other) < 14 for x, other in taken):
            y += 14
        taken.append((curve.label_x, y))
        curves.append(replace(curve, label_y=y))
    return curves


def _apart(met: dict[UUID, int], id: UUID) -> int:
    """0, 5, -5, 10, -10 for the first, second, third … edge that ends here."""
    n = met[id] = met.get(id, -1) + 1
    return (5 if n % 2 else -5) * ((n + 1) // 2) if n < 5 else 0


def _curve(edge: Symbiosis, spots: dict[UUID, tuple[int, int, int]], met: dict[UUID, int]) -> Curve | None:
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
        start_x = from_x + (WIDTH if side > 0 else 0)
        end_x = to_x + (WIDTH if side > 0 else 0)
        bend = side * (GUTTER - 30)
        label_x = start_x + side * (GUTTER // 2)
    else:
        side = 1 if to_column > from_column else -1
        start_x = from_x + (WIDTH if side > 0 else 0)
        end_x = to_x + (0 if side > 0 else WIDTH)
        bend = side * GUTTER * 3 // 5
        label_x = (start_x + end_x) // 2
    second = bend if from_column == to_column else -bend
    path = f"M{start_x} {from_y} C{start_x + bend} {from_y} {end_x + second} {to_y} {end_x} {to_y}"
    names = [
        " › ".join(name for name in side if name)
        for side in (
            (edge.source_family, edge.source_genus, edge.source_specimen),
            (edge.target_family, edge.target_genus, edge.target_specimen),
        )
    ]
    title = f"{names[0]} {edge.kind.replace('_', ' ')} {names[1]}" + (f": {edge.note}" if edge.note else "")
    return Curve(edge.kind, path, label_x, (from_y + to_y) // 2, title)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
