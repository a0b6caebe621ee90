from __future__ import annotations

from tests.support.shared import db, tenant

__all__ = ["db", "tenant"]
