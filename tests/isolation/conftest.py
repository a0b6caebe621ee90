"""The isolation tests share a database per module; see tests/support/shared.py."""

from __future__ import annotations

from tests.support.shared import db, tenant

__all__ = ["db", "tenant"]
