"""Brute force: what the right answer is, and how much of it a search found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Floats, Memory


class Truth:
    """The similarities of some queries to all rows of a tenant."""

    def __init__(self, memory: Memory, queries: Floats) -> None:
        self.memory = memory
        self.similarities = queries @ memory.rows.vectors.T

    def recall(self, query: int, found: Sequence[str], admitted: NDArray[np.bool_], count: int = 10) -> float:
        """Share of the nearest `count` admitted rows in what was found; of equally near ones any will do.

        Rows that should not be there count as nothing, and so do rows that are missing.
        """
        similarity = np.where(admitted, self.similarities[query], -2)
        there = min(count, int(admitted.sum()))
        if there == 0:
            return float(not found)
        least = np.partition(similarity, -there)[-there] - 1e-6  # the server's arithmetic differs in the last digit
        return sum(bool(similarity[self.memory.index[id]] >= least) for id in set(found)) / there
