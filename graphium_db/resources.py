"""Where the SQL tree and the classification rules are: packed into the wheel, or beside the package in a checkout."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def db_path() -> Path:
    """The directory `db/` of this installation.

    Raises:
        FileNotFoundError: the package was built from an incomplete checkout.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "_db", package.parent / "db"):
        if (root / "bootstrap.sql").is_file():
            return root
    raise FileNotFoundError(f"no db/ directory beside {package}: the package was not built from a whole checkout")
