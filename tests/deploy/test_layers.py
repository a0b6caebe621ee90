"""Imports point downward: a module may use those of the layers below its own, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "graphium_db"
LAYERS = [
    {"cli", "console", "mcp", "demo"},
    {"client", "aio", "inputs"},
    {"embedding", "splitting", "classification", "retrieval", "deploy", "server"},
    {"calls", "models", "errors", "resources", "printable"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# Side by side, and meant: the deployer renders the classification rules, the embedded server deploys.
NEIGHBOURS = {
    ("deploy", "classification"),
    ("server", "deploy"),
    ("client", "inputs"),
    ("aio", "inputs"),
    ("aio", "client"),
}


def imports(path: Path) -> set[str]:
    """The graphium_db modules that a file imports, by the first part of their name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "graphium_db" else [f"graphium_db.{a.name}" for a in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("graphium_db.")}
    return found


def test_layers() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if module in ("__init__", "_db"):
            continue
        assert module in RANK, f"which layer is graphium_db.{module} in?"
        for other in sorted(imports(path) - {module}):
            side_by_side = RANK.get(other) == RANK[module] and (
                (module, other) in NEIGHBOURS or RANK[module] == len(LAYERS) - 1
            )
            if other in RANK and RANK[other] <= RANK[module] and not side_by_side:
                wrong.append(f"{path.relative_to(PACKAGE.parent)} imports graphium_db.{other}")
    assert wrong == []


def test_every_package_of_a_plain_install_is_used() -> None:
    text = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    (block,) = re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    wanted = {name.removesuffix("-migrations") for name in re.findall(r'^    "([a-z-]+)', block, re.MULTILINE)}
    imported = {
        name.split(".")[0]
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert {"psycopg", "pgvector", "yoyo", "sqlglot"} <= wanted
    assert wanted <= imported
