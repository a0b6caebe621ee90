"""What a search by vector and words must answer: the formula in the head of functions/205_rank_pool.sql, from its words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Candidate:
    """A statement in the pool."""

    id: UUID
    words: Sequence[str]
    cosine: float | None
    source: str | None = None
    position: int | None = None
    boost: float = 0  # for what the query names, less for being a question


def fused(pool: Sequence[Candidate], words: Sequence[str]) -> dict[UUID, float]:
    """The scores of a pool, at the settings' defaults."""
    bags = {c.id: Counter(c.words) for c in pool}
    having = [c for c in pool if any(w in bags[c.id] for w in words)]
    mean = sum(len(c.words) for c in having) / len(having) if having else 1
    own: dict[UUID, dict[str, float]] = defaultdict(dict)
    for word in words:
        n = sum(word in bag for bag in bags.values())
        for c in having:
            if times := bags[c.id][word]:
                length = 1.2 * (0.6 + 0.4 * len(c.words) / mean)
                own[c.id][word] = math.log(1 + (len(pool) - n + 0.5) / (n + 0.5)) * times / (times + length)

    def heard(c: Candidate) -> float:
        total = 0.0
        for word in words:
            scores = [own[c.id].get(word, 0.0)]
            for other in pool if c.source is not None and c.position is not None else ():
                if other.source == c.source and other.position is not None:
                    share = {1: 1, 2: 0.5, -1: 0.5, -2: 0.25}.get(c.position - other.position, 0)
                    scores.append(share * own[other.id].get(word, 0.0))
            total += max(scores)
        return total

    lexical = {c.id: heard(c) for c in pool}
    most = max(lexical.values(), default=0.0)
    cosines = [c.cosine for c in pool if c.cosine is not None]
    low, high = min(cosines, default=0), max(cosines, default=0)
    base = {}
    for c in pool:
        near = 0.0 if c.cosine is None else (c.cosine - low) / (high - low) if high - low > 1e-9 else 1.0
        base[c.id] = 0.5 * near + 0.5 * (lexical[c.id] / most if most else 0) + c.boost
    scores = {}
    for c in pool:
        around = [base[o.id] for o in pool if o.source == c.source] if c.source is not None else [base[c.id]]
        scores[c.id] = base[c.id] + 0.5 * sum(max(b, 0) for b in sorted(around, reverse=True)[:5]) / 5
    return scores
