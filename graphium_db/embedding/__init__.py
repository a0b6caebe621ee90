"""Text into vectors, and for each vector whether it identifies its text.

The default is :func:`default_embedder`. Anything with `name`, `dimensions` and `embed` is an :class:`Embedder`;
:class:`FunctionEmbedder` makes one of a plain function from texts to vectors.
"""

from __future__ import annotations

from graphium_db.embedding.base import Embedder, Embedding, FunctionEmbedder
from graphium_db.embedding.identity import is_plain
from graphium_db.embedding.minilm import MiniLMEmbedder, default_embedder

__all__ = ["Embedder", "Embedding", "FunctionEmbedder", "MiniLMEmbedder", "default_embedder", "is_plain"]
