"""Where the edges of the picture go."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from uuid import UUID

from graphium_db.console.picture import WIDTH, Picture, draw
from graphium_db.console.taxonomy import Taxon, tree
from graphium_db.models import ContextTreeRow, Symbiosis


def taxonomy(sizes: list[int]) -> Taxon:
    """Families f0, f1 … of one genus with so many specimens."""
    rows = []
    for n, size in enumerate(sizes):
        for m in range(size):
            names = (UUID(int=n + 1), f"f{n}", UUID(int=1000 + n), "g", UUID(int=10_000 + 100 * n + m), f"s{m}")
            rows.append(ContextTreeRow(*names, statements=1, family_scopes=(), specimen_scopes=()))
    return tree(rows)


def edge(n: int, source: tuple[int, int], target: tuple[int, int]) -> Symbiosis:
    ends = [
        value
        for family, specimen in (source, target)
        for value in (UUID(int=family + 1), f"f{family}", UUID(int=1000 + family), "g", UUID(int=10_000 + 100 * family + specimen), f"s{specimen}", None, None)
    ]  # fmt: skip
    return Symbiosis(UUID(int=n), "contradicts", None, datetime(2026, 1, 1, tzinfo=timezone.utc), *ends, touches=())  # type: ignore[arg-type]


def points(path: str) -> Iterator[tuple[float, float]]:
    """Of a path of M, C and H, a hundred a piece."""
    x = y = 0.0
    for letter, rest in re.findall(r"([MCH])([^MCH]+)", path):
        numbers = [float(number) for number in rest.split()]
        if letter == "M":
            x, y = numbers
        elif letter == "H":
            yield from ((x + (numbers[0] - x) * t / 100, y) for t in range(101))
            x = numbers[0]
        else:
            xs, ys = [x, *numbers[0::2]], [y, *numbers[1::2]]
            for t in (n / 100 for n in range(101)):
                weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
                yield sum(w * v for w, v in zip(weights, xs, strict=True)), sum(w * v for w, v in zip(weights, ys, strict=True))  # fmt: skip
            x, y = xs[-1], ys[-1]


def faults(picture: Picture) -> list[str]:
    """Points of edges and corners of labels that are inside of a box or outside of the picture."""
    found = []
    for curve in picture.curves:
        spots = list(points(curve.path))
        # 11 px letters are about 6 wide, and stand 4 above the point.
        spots += [(curve.label_x + dx, curve.label_y - dy) for dx in (-36, 36) for dy in (0, 14)]
        for x, y in spots:
            if not (0 <= x <= picture.width and 0 <= y <= picture.height):
                found.append(f"{curve.title} outside at {x}, {y}")
            for box in picture.boxes:
                if box.x < x < box.x + WIDTH and box.y < y < box.y + box.height:
                    found.append(f"{curve.title} on {box.label.name} at {x}, {y}")
    return found


def test_an_edge_to_the_column_after_next_goes_around_what_stands_between() -> None:
    picture = draw(taxonomy([2, 2, 2]), [edge(1, (0, 1), (2, 1)), edge(2, (2, 0), (0, 0))])
    assert len(picture.curves) == 2
    assert faults(picture) == []
    # A straight way would lead over the box in the middle.
    middle = picture.boxes[1]
    assert middle.y < picture.boxes[0].y + picture.boxes[0].lines[-1].y < middle.y + middle.height


def test_a_picture_of_one_family_ends_beside_it() -> None:
    assert draw(taxonomy([3]), []).width == 16 + WIDTH + 16  # no edge goes from a family to itself


def test_no_edge_and_no_label_is_on_a_box() -> None:
    rng = random.Random(7)
    for families in (1, 2, 3, 4, 7, 20):
        sizes = [rng.randint(1, 9) for _ in range(families)]
        edges = []
        for n in range(15 if families > 1 else 0):
            source, target = rng.sample(range(families), 2)
            edges.append(edge(n, (source, rng.randrange(sizes[source])), (target, rng.randrange(sizes[target]))))
        picture = draw(taxonomy(sizes), edges)
        assert len(picture.curves) == len(edges)
        assert faults(picture) == []
