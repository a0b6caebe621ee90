"""What an embedder is. No dependency: a caller with vectors of their own needs neither numpy nor a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from graphium_db.embedding.identity import is_plain


@dataclass(frozen=True, eq=False)
class Embedding:
    """One text's vector.

    Attributes:
        vector: `dimensions` numbers, a list or a 1-d numpy array; its norm does not matter, but it is not zero.
        exact_only: another text can have this vector, or one within a cosine of 0.999, and yet say something else.
            Such a statement is a duplicate only of text that is equal after the fold.
    """

    vector: Sequence[float]
    exact_only: bool


class Embedder(Protocol):
    """Turns texts into vectors. May be called from several threads at once; blocks while it computes."""

    @property
    def name(self) -> str:
        """The model, as the tenant records it. Backends whose vectors differ by more than rounding have two names."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding per text, in the order of `texts`; of no texts, none."""


@dataclass(frozen=True)
class FunctionEmbedder:
    """An embedder made of a function: `FunctionEmbedder("my-model", 768, my_function)`.

    Attributes:
        name: the model's name, as in `create_tenant(embedding_model => …)`.
        dimensions: how many numbers each vector has.
        function: texts to vectors, one per text and in their order.
        exact_only: tells of a text whether the model can give the same vector to another one. The default trusts no
            model further than short plain words: see :func:`graphium_db.embedding.is_plain`.
    """

    name: str
    dimensions: int
    function: Callable[[Sequence[str]], Iterable[Sequence[float]]]
    exact_only: Callable[[str], bool] = lambda text: not is_plain(text)

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        if not texts:
            return []
        vectors = list(self.function(texts))
        if len(vectors) != len(texts):
            raise ValueError(
                f"the function of embedder {self.name!r} gave {len(vectors)} vectors for {len(texts)} texts"
            )
        return [Embedding(v, self.exact_only(t)) for t, v in zip(texts, vectors, strict=True)]
