"""A BERT sentence encoder with mean pooling as an ONNX graph, made from its weights when it is loaded.

The packaged model holds no ONNX file, and an exporter would bring torch along and leave a file in some cache. The graph
is small: onnxruntime has BERT's layers as fused operators (domain com.microsoft, its ContribOperators.md), so it is
written out here: the weights go in, nothing is approximated, nothing touches the disk.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

if TYPE_CHECKING:
    from graphium_db.embedding.minilm import Forward

_FUSED = {"EmbedLayerNormalization", "Attention", "SkipLayerNormalization", "BiasGelu"}


def load(path: Path) -> Forward:
    """The forward function of the model in the directory `path`: `config.json` and `model.safetensors`."""
    options = onnxruntime.SessionOptions()
    # Idle threads sleep: a busy neighbour costs less, and on two cores it was the faster of the two.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(_graph(path), options, providers=["CPUExecutionProvider"])

    def forward(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        (states,) = session.run(None, {"ids": ids.astype(np.int32), "mask": mask.astype(np.int32)})
        sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
        vectors: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    return forward


def _graph(path: Path) -> bytes:
    config = json.loads((path / "config.json").read_text("utf-8"))
    weights = load_file(path / "model.safetensors")
    epsilon = config["layer_norm_eps"]
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(array: NDArray[np.float32]) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"c{len(constants)}"))
        return str(constants[-1].name)

    def weight(name: str) -> str:
        return constant(weights[name])

    def node(operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"n{len(nodes)}_{i}" for i in range(outputs)]
        domain = "com.microsoft" if operator in _FUSED else ""
        nodes.append(helper.make_node(operator, list(inputs), names, domain=domain, **attributes))
        return names[0]

    def matmul(states: str, name: str) -> str:
        return node("MatMul", states, constant(weights[f"{name}.weight"].T))

    def add_and_normalise(states: str, residual: str, output: str) -> str:
        """LayerNorm(states + bias of the dense layer + residual)."""
        norm = (weight(f"{output}.LayerNorm.weight"), weight(f"{output}.LayerNorm.bias"))
        return node("SkipLayerNormalization", states, residual, *norm, weight(f"{output}.dense.bias"), epsilon=epsilon)

    # One segment only: its embedding is part of every position.
    positions = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    norm = (weight("embeddings.LayerNorm.weight"), weight("embeddings.LayerNorm.bias"))
    tables = (weight("embeddings.word_embeddings.weight"), constant(positions))
    states = node("EmbedLayerNormalization", "ids", "", *tables, "", *norm, "mask", outputs=2, epsilon=epsilon)
    lengths = nodes[-1].output[1]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}"
        qkv = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
        attended = node(
            "Attention",
            states,
            constant(np.concatenate([weights[f"{name}.weight"].T for name in qkv], axis=1)),
            constant(np.concatenate([weights[f"{name}.bias"] for name in qkv])),
            lengths,
            num_heads=config["num_attention_heads"],
        )
        attended = matmul(attended, f"{prefix}.attention.output.dense")
        states = add_and_normalise(attended, states, f"{prefix}.attention.output")
        hidden = matmul(states, f"{prefix}.intermediate.dense")
        hidden = node("BiasGelu", hidden, weight(f"{prefix}.intermediate.dense.bias"))
        states = add_and_normalise(matmul(hidden, f"{prefix}.output.dense"), states, f"{prefix}.output")

    inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "length"]) for name in ("ids", "mask")]
    output = helper.make_tensor_value_info(states, TensorProto.FLOAT, ["batch", "length", config["hidden_size"]])
    graph = helper.make_graph(nodes, "bert", inputs, [output], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    return model
