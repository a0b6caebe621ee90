"""Embedders for tests: no model, the same vectors everywhere."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence

from graphium_db.embedding import Embedding


class WordEmbedder:
    """A bag of words, hashed into 384 dimensions: texts that share words are near, others are not.

    Texts with the same words in another order get the same vector; those with a digit are said to be `exact_only`.
    """

    name = "all-MiniLM-L6-v2"
    dimensions = 384

    def __init__(self, while_embedding: Callable[[], None] = lambda: None) -> None:
        self.while_embedding = while_embedding
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        self.texts += texts
        self.while_embedding()
        return [Embedding(vector=self.vector(text), exact_only=any(c.isdigit() for c in text)) for text in texts]

    def vector(self, text: str) -> list[float]:
        values = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()) or ["?"]:
            values[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % self.dimensions] += 1.0
        norm = math.hypot(*values)
        return [value / norm for value in values]
