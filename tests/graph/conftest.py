"""The graph's tests share a database per module; each has a tenant of its own."""

from __future__ import annotations

from tests.support.shared import db, tenant

__all__ = ["db", "tenant"]
