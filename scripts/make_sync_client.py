"""Generate graphium_db/client.py from graphium_db/aio.py, so that the two clients cannot differ.

python scripts/make_sync_client.py           # write it
python scripts/make_sync_client.py --check   # exit 1 when the file is not what would be written
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "graphium_db"
DOCSTRING = '''"""The synchronous client. Generated from aio.py by scripts/make_sync_client.py: edit that one."""'''
# In this order: from pattern to replacement.
REPLACEMENTS = (
    (r'\A""".*?"""', DOCSTRING),
    (r"await asyncio\.to_thread\((\S+), (\w+)\)", r"\1(\2)"),
    (r"\bimport asyncio\b", "import threading"),
    (r"\basyncio\.Lock\b", "threading.Lock"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync (?=def|with|for)", ""),
    (r"\(await (psycopg\.Connection\.connect\(dsn\))\)", r"\1"),
    (r"\bawait ", ""),
)


def generated() -> str:
    """The text of client.py, formatted."""
    text = (PACKAGE / "aio.py").read_text(encoding="utf-8")
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    for command in (["check", "--quiet", "--fix-only", "--select", "I"], ["format", "--quiet"]):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(PACKAGE / "client.py"), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


def main() -> int:
    target = PACKAGE / "client.py"
    text = generated()
    if "--check" in sys.argv[1:]:
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            print("graphium_db/client.py is not generated from graphium_db/aio.py: run scripts/make_sync_client.py")
            return 1
        return 0
    target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
