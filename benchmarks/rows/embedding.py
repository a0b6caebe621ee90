"""Embedding by the Python layer, against a bare sentence-transformers loop with batches of 64.

Both are given the same texts in the same way: 64 at a time, as calls arrive, or all in one call (who gets all sorts them by
length, and pads less). Quality is the cosine of each vector to the bare model's, in fp32. Ours reads long texts in windows, so
it is compared on short ones; int8 is here to be judged, not on offer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.bench import Bench
from benchmarks.data import Floats
from benchmarks.measure import Bar, Line, interleave, rates

BAR = Bar("≥ 1.0×", lambda ours, bare: ours >= bare)
BATCH = 64
ROUNDS = 2
QUALITY = 512  # texts whose vectors are compared

Embed = Callable[[Sequence[str]], Floats]


def run(bench: Bench) -> Iterator[Line]:
    if not importlib.util.find_spec("sentence_transformers"):
        bench.say("  sentence-transformers is not installed: row left out")
        return
    texts = _sentences(bench)
    bare = _sentence_transformers()
    onnx, torch = _ours("onnx"), _ours("torch")
    for name, embed, reference, bar in (
        ("ours, ONNX, 64 at a time", _in_loop(onnx), _in_loop(bare), BAR),
        ("ours, ONNX, all at once", onnx, bare, BAR),
        ("ours, torch, 64 at a time", _in_loop(torch), _in_loop(bare), BAR),
        ("ours, torch, all at once", torch, bare, BAR),
        ("bare, torch, int8 (dynamic), all at once", _quantised(), bare, None),
        *(
            (("bare, its own ONNX backend, all at once", _sentence_transformers("onnx"), bare, None),)
            if importlib.util.find_spec("optimum")
            else ()
        ),
    ):
        embed(texts[:BATCH])  # loads the model
        reference(texts[:BATCH])
        taken = interleave(lambda _: embed(texts), lambda _: reference(texts), ROUNDS, warm_up=0)
        cosines = (embed(texts[:QUALITY]) * bare(texts[:QUALITY])).sum(axis=1)
        yield rates(
            name,
            len(texts),
            taken.ours,
            taken.reference,
            bar,
            f"cosine to fp32: mean {cosines.mean():.6f}, least {cosines.min():.6f}",
            unit="texts/s",
        )


def _sentences(bench: Bench) -> list[str]:
    """Of words that the model knows, so that they have as many word pieces as words, as English mostly has."""
    from tokenizers import Tokenizer

    from graphium_db.embedding.minilm import _model_path

    vocabulary = Tokenizer.from_file(str(_model_path() / "tokenizer.json")).get_vocab()
    words = sorted(word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2)
    lengths = bench.generator.random.integers(6, 21, bench.sizes.texts)
    return [" ".join(bench.generator.random.choice(words, n)).capitalize() + "." for n in lengths]


def _sentence_transformers(backend: str = "torch") -> Embed:
    """The reference: what its documentation shows."""
    from sentence_transformers import SentenceTransformer

    from graphium_db.embedding.minilm import _model_path

    model = SentenceTransformer(str(_model_path()), device="cpu", local_files_only=True, backend=backend)
    return lambda texts: model.encode(list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


def _quantised() -> Embed:
    import torch
    from sentence_transformers import SentenceTransformer

    from graphium_db.embedding.minilm import _model_path

    model = SentenceTransformer(str(_model_path()), device="cpu", local_files_only=True)
    quantize: Any = torch.ao.quantization.quantize_dynamic
    model = quantize(model, {torch.nn.Linear}, dtype=torch.qint8)
    return lambda texts: model.encode(list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


def _ours(backend: str) -> Embed:
    from graphium_db.embedding import MiniLMEmbedder

    embedder = MiniLMEmbedder(backend)  # type: ignore[arg-type]

    return lambda texts: np.array([e.vector for e in embedder.embed(texts)], np.float32)


def _in_loop(embed: Embed) -> Embed:
    return lambda texts: np.concatenate([embed(texts[n : n + BATCH]) for n in range(0, len(texts), BATCH)])
