"""The default embedder against sentence-transformers itself, and what every embedder promises."""

from __future__ import annotations

import importlib.util
import itertools
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphium_db.embedding import FunctionEmbedder, MiniLMEmbedder, default_embedder, minilm
from graphium_db.errors import MissingExtraError

TEXTS = [
    "Ada likes tea.",
    "",
    " ",
    "The deadline is October 15th, not the 16th.",
    "¿Dónde está la biblioteca? 🍎 มะม่วง",
    "a" * 300,
    "Each of us brought a dish, and " * 20,
]
LONG = " ".join(f"On day {n} we walked {n * 7} miles past the old mill, and nobody complained." for n in range(80))


@lru_cache
def embedder(backend: Literal["onnx", "torch"]) -> MiniLMEmbedder:
    return MiniLMEmbedder(backend)


@lru_cache
def reference() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm._model_path()), device="cpu", local_files_only=True)


def vectors(backend: Literal["onnx", "torch"], texts: list[str]) -> np.ndarray:
    return np.array([e.vector for e in embedder(backend).embed(texts)])


@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_agrees_with_sentence_transformers(backend: Literal["onnx", "torch"]) -> None:
    ours, theirs = vectors(backend, TEXTS), reference().encode(TEXTS)
    assert ours.shape == (len(TEXTS), 384)
    assert ours.dtype == np.float32
    assert np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)
    assert (ours * theirs).sum(axis=1).min() > 0.999999


@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_a_vector_does_not_depend_on_its_batch(backend: Literal["onnx", "torch"]) -> None:
    together = vectors(backend, [*TEXTS, LONG, *(f"Filler number {n}." for n in range(150))])
    for text, vector in zip([*TEXTS, LONG], together, strict=False):
        assert vectors(backend, [text])[0] @ vector > 0.999999


def test_a_long_text_is_the_mean_of_its_windows() -> None:
    tokenizer = reference().tokenizer
    ids = tokenizer(LONG, add_special_tokens=False, truncation=False)["input_ids"]
    assert len(ids) > 1000
    # 254 pieces in a window, at least 32 shared: ceil((n - 254) / 222) steps of equal length
    steps = -(-(len(ids) - 254) // 222)
    starts = [step * (len(ids) - 254) // steps for step in range(steps + 1)]
    mean = np.zeros(384)
    for start in starts:
        window = {"input_ids": [tokenizer.cls_token_id, *ids[start : start + 254], tokenizer.sep_token_id]}
        padded = tokenizer.pad([window], return_tensors="pt")
        mean += reference()(dict(padded))["sentence_embedding"][0].detach().numpy()
    assert vectors("onnx", [LONG])[0] @ mean / np.linalg.norm(mean) > 0.999999


def test_the_end_of_a_long_text_counts() -> None:
    one, other = vectors("onnx", [LONG + " We cancel the project.", LONG + " We double its budget."])
    assert one @ other < 0.99999


@given(st.integers(0, 2000))
def test_windows_cover_the_text(length: int) -> None:
    windows = list(minilm._windows(list(range(length)), 254))
    assert sorted({i for window in windows for i in window}) == list(range(length))
    assert all(len(window) == 254 for window in windows) or len(windows) == 1
    assert all(len(set(a) & set(b)) >= 32 for a, b in itertools.pairwise(windows))
    assert len(windows) == 1 + max(0, -(-(length - 254) // 222))


def test_batches_keep_their_limits() -> None:
    lengths = [3] * 130 + [200] * 30 + [256] * 20
    batches = list(minilm._batches([(0, [0] * n) for n in lengths]))
    assert [len(w) for b in batches for _, w in b] == lengths
    assert all(len(b) <= 64 and len(b) * len(b[-1][1]) <= 4096 for b in batches)


@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_needs_no_network(backend: Literal["onnx", "torch"], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert len(MiniLMEmbedder(backend).embed(["Ada likes tea."])) == 1


def test_threads_share_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    load = minilm._onnx_forward
    monkeypatch.setattr(minilm, "_onnx_forward", lambda path: loads.append(path) or load(path))
    shared = MiniLMEmbedder("onnx")
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda text: shared.embed([text])[0].vector, TEXTS * 4))
    assert len(loads) == 1
    assert (np.array(results) * np.tile(vectors("onnx", TEXTS), (4, 1))).sum(axis=1).min() > 0.999999


def test_onnx_is_chosen_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MiniLMEmbedder().backend == "onnx"
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else find(name))
    assert MiniLMEmbedder().backend == "torch"
    with pytest.raises(MissingExtraError, match=r"\[onnx\]"):
        MiniLMEmbedder("onnx").embed(["Ada likes tea."])


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert MiniLMEmbedder().embed([]) == []
    with pytest.raises(MissingExtraError, match=r"\[embed\]"):
        MiniLMEmbedder().embed(["Ada likes tea."])


def test_the_default_is_one_for_the_process() -> None:
    assert default_embedder() is default_embedder()
    assert (default_embedder().name, default_embedder().dimensions) == ("all-MiniLM-L6-v2", 384)


def test_a_function_is_an_embedder() -> None:
    made = FunctionEmbedder("lengths", 2, lambda texts: [[len(text), 1] for text in texts])
    assert made.embed([]) == []
    tea, road = made.embed(["Ada likes tea.", "Route 66"])
    assert (tea.vector, tea.exact_only) == ([14, 1], False)
    assert (road.vector, road.exact_only) == ([8, 1], True)
    trusting = FunctionEmbedder("lengths", 2, made.function, exact_only=lambda text: False)
    assert not trusting.embed(["Route 66"])[0].exact_only
    with pytest.raises(ValueError, match="1 vectors for 2 texts"):
        FunctionEmbedder("short", 1, lambda texts: [[1.0]]).embed(["a", "b"])
