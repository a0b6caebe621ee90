from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphium_db import Graphium
from tests.client.embedders import WordEmbedder
from tests.support.databases import Database
from tests.support.shared import db, tenant

__all__ = ["admin", "db", "embedder", "memory", "tenant"]


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def memory(db: Database, tenant: str, embedder: WordEmbedder) -> Iterator[Graphium]:
    """The client of an application that speaks for the tenant and holds no scope."""
    with Graphium(db.dsn("app"), tenant=tenant, embedder=embedder) as memory:
        yield memory


@pytest.fixture
def admin(db: Database, tenant: str, embedder: WordEmbedder) -> Iterator[Graphium]:
    """The client of a member of graphium_admin."""
    with Graphium(db.dsn("admin"), tenant=tenant, embedder=embedder) as admin:
        yield admin
