"""Statements as cards: what recall or search said of each, with its details and the symbioses that touch it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from graphium_db.aio import AsyncGraphium
from graphium_db.console.templating import link
from graphium_db.models import RecalledStatement, SearchHit, StatementDetails, Symbiosis

KINDS = {
    "related_to": ("is related to", "is related to"),
    "contradicts": ("contradicts", "is contradicted by"),
    "supersedes": ("supersedes", "is superseded by"),
}


@dataclass(frozen=True, slots=True)
class Link:
    """One symbiosis, read from the statement's end."""

    kind: str
    reads: str
    other: str
    url: str
    note: str | None


@dataclass(frozen=True, slots=True)
class Card:
    statement: RecalledStatement | SearchHit
    details: StatementDetails
    links: list[Link]

    @property
    def id(self) -> UUID:
        return self.statement.statement_id

    @property
    def is_open(self) -> bool:
        return is_open(self.statement.required_scopes)

    @property
    def replaced_by(self) -> list[Link]:
        return [link for link in self.links if link.reads == KINDS["supersedes"][1]]

    @property
    def above(self) -> tuple[str, str | None]:
        """The page of the innermost taxon that the caller sees, and its name; the whole memory where he sees none."""
        names = list(itertools.takewhile(bool, (self.statement.family, self.statement.genus, self.statement.specimen)))
        return (place(*names), names[-1]) if names else ("/browse", None)

    @property
    def can_reword(self) -> bool:
        """Whether its new wording has a place to go: all three names are the caller's to see."""
        return None not in (self.statement.family, self.statement.genus, self.statement.specimen)


def is_open(scopes: Sequence[str]) -> bool:
    return not scopes or "public" in scopes


def place(family: str | None, genus: str | None = None, specimen: str | None = None) -> str:
    """The page of a family, genus or specimen."""
    return link("/browse", family=family, genus=genus if family else None, specimen=specimen if genus else None)


async def cards(memory: AsyncGraphium, statements: Sequence[RecalledStatement | SearchHit]) -> list[Card]:
    """Cards in the order of `statements`; of one that was forgotten meanwhile there is none."""
    if not statements:
        return []
    ids = [statement.statement_id for statement in statements]
    details, edges = await asyncio.gather(memory.statement_details(ids), memory.list_symbioses(ids))
    by_id = {row.statement_id: row for row in details}
    return [
        Card(statement, by_id[statement.statement_id], _links(by_id[statement.statement_id], edges))
        for statement in statements
        if statement.statement_id in by_id
    ]


async def card(memory: AsyncGraphium, id: str) -> Card | None:
    found = await cards(memory, await memory.recall_context(statement_ids=[id], page_size=1))
    return found[0] if found else None


def _links(details: StatementDetails, edges: Sequence[Symbiosis]) -> list[Link]:
    return [_link(details, edge) for edge in edges if details.statement_id in edge.touches]


def _link(details: StatementDetails, edge: Symbiosis) -> Link:
    # The two ends are of different families, and the statement's end of its own. Where that one's id is hidden, both
    # ends' may be; then the edge is told as it stands.
    from_here = edge.source_family_id == details.family_id or edge.source_statement_id == details.statement_id
    reads = KINDS[edge.kind][0 if from_here else 1]
    if from_here:
        names = (edge.target_family, edge.target_genus, edge.target_specimen)
        content, id = edge.target_content, edge.target_statement_id
    else:
        names = (edge.source_family, edge.source_genus, edge.source_specimen)
        content, id = edge.source_content, edge.source_statement_id
    other = content if content is not None else " › ".join(name for name in names if name) or "something hidden in part"
    return Link(edge.kind, reads, other, f"/statement/{id}" if id else place(*names), edge.note)
