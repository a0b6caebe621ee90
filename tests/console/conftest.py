"""A console on a real database with a small memory in it, for a client without a browser."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.testclient import TestClient

from graphium_db import Graphium
from graphium_db.console import Allowed, Config, create_app
from tests.client.embedders import WordEmbedder
from tests.support.databases import Database
from tests.support.shared import db

__all__ = ["db"]

HOSTILE = '<script>document.title = "taken"</script><b onclick=x>&amp; "quoted"'
HEBREW = "החברה מעדיפה דוא״ל"
LONG = "W" * 3000
KEY = "the key that was printed"


@dataclass
class Filled:
    """A tenant with: people › team › Aisha {}: written (preference, said twice), six percent {hr}, court {legal}, hostile,
    long, Hebrew; plans › year › Ferry {}: June. plans related_to Aisha; June supersedes `old` (plans2)."""

    db: Database
    tenant: str
    principal: str
    reader: str
    ids: dict[str, str] = field(default_factory=dict)

    def memory(self, *scopes: str) -> Graphium:
        return Graphium(self.db.dsn("app"), tenant=self.tenant, scopes=scopes, embedder=WordEmbedder())

    def contents(self, *scopes: str) -> set[str]:
        with self.memory(*scopes) as memory:
            return {row.content for row in memory.recall_context(page_size=1000)}


def fill(db: Database, tenant: str) -> Filled:
    filled = Filled(db, tenant, db.login(), db.login())
    admin = db.connect("admin")
    for login, scopes, read_only in ((filled.principal, ["hr"], False), (filled.reader, [], True)):
        admin.execute(
            "select graphium.add_principal(%s, %s, %s, %s)", [db.cluster.role(login), tenant, scopes, read_only]
        )
    with filled.memory("hr", "legal") as memory:

        def say(name: str, family: str, genus: str, specimen: str, content: str, *scopes: str) -> None:
            (row,) = memory.ingest_context(
                family, genus, specimen, [{"content": content, "source": "kick-off", "required_scopes": list(scopes)}]
            )
            filled.ids[name] = str(row.statement_id)

        say("written", "people", "team", "Aisha", "Aisha prefers written feedback.")
        say("again", "people", "team", "Aisha", "Aisha prefers written feedback!")
        say("raise", "people", "team", "Aisha", "The raise is six percent.", "hr")
        say("court", "people", "team", "Aisha", "The lawsuit goes to court.", "legal")
        say("hostile", "people", "team", "Aisha", HOSTILE)
        say("long", "people", "team", "Aisha", LONG)
        say("hebrew", "people", "team", "Aisha", HEBREW)
        say("june", "plans", "year", "Ferry", "We decided to launch the ferry app in June.")
        say("old", "wishes", "year", "Ferry", "The ferry app starts in April.")
    with Graphium(db.dsn("admin"), tenant=tenant) as boss:
        boss.link_symbiosis(
            "related_to", {"family": "plans"}, {"family": "people", "specimen": "Aisha"}, "she leads it"
        )
        boss.link_symbiosis("supersedes", {"statement_id": filled.ids["june"]}, {"statement_id": filled.ids["old"]})
    return filled


@pytest.fixture
def filled(db: Database) -> Filled:
    """A memory of its own for each test."""
    import secrets

    slug = f"harbour {secrets.token_hex(3)}"
    db.connect("admin").execute("select graphium.create_tenant(slug => %s)", [slug])
    return fill(db, slug)


def config(filled: Filled, **settings: Any) -> Config:
    allowed = (Allowed(filled.tenant, ("hr", "legal")), Allowed("nobody's tenant", ()))
    return Config(
        filled.db.dsn("app"), allowed, access_key=KEY, names=("testserver",), embedder=WordEmbedder(), **settings
    )


@dataclass
class Visitor:
    """A browser without eyes."""

    client: TestClient
    csrf: str = ""

    def get(self, path: str, status: int = 200, **query: Any) -> str:
        response = self.client.get(path, params=query or None)
        assert response.status_code == status, (response.status_code, text_of(response.text)[-2000:])
        self.csrf = (re.findall(r'name="csrf" value="(\w+)"', response.text) or [self.csrf])[-1]
        return response.text

    def post(self, path: str, status: int = 200, **fields: Any) -> str:
        response = self.client.post(path, data={"csrf": self.csrf, **fields})
        assert response.status_code == status, (response.status_code, text_of(response.text)[-2000:])
        self.csrf = (re.findall(r'name="csrf" value="(\w+)"', response.text) or [self.csrf])[-1]
        return response.text

    def look_in(self, *scopes: str) -> Visitor:
        self.get("/login")
        self.post("/login", **{"as": "tenant", "tenant": "0", "scope-0": list(scopes), "key": KEY})
        return self


def text_of(page: str) -> str:
    """What a person reads of a page: text without tags, white space folded."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.split("<main", 1)[-1]))).strip()


@pytest.fixture
def visit(filled: Filled) -> Iterator[Callable[..., Visitor]]:
    """A new visitor; with scopes (or `look_in=True`) one that has logged in as the tenant."""
    with TestClient(create_app(config(filled))) as first:

        def visit(*scopes: str, look_in: bool = True) -> Visitor:
            visitor = Visitor(TestClient(first.app))
            visitor.client.portal = first.portal  # one event loop, that of the console's pools
            return visitor.look_in(*scopes) if look_in else visitor

        yield visit
