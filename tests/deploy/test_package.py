"""What a plain install is: for a DBA, without torch, without a server."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "transformers", "sentence_transformers", "onnxruntime", "numpy", "sentencex", "pgserver")


def test_importing_needs_no_extra() -> None:
    blocked = "".join(f"sys.modules[{name!r}] = None; " for name in HEAVY)
    code = f"import sys; {blocked}import graphium_db, graphium_db.cli, graphium_db.deploy; graphium_db.deploy.sql()"
    subprocess.run([sys.executable, "-c", code], check=True)
