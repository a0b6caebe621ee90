"""Families, genera, specimens, statements: a URL for every state, a page at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.classification import LAYER_KINDS, MEMORY_TYPES
from graphium_db.console.cards import cards
from graphium_db.console.page import goto, is_partial, not_empty, render, signed_in, unless_of_filters, whole
from graphium_db.console.sessions import Session
from graphium_db.console.taxonomy import Taxon, tree
from graphium_db.inputs import clean_name
from graphium_db.models import ScopeInUse

PAGE, MOST = 30, 990


@dataclass(frozen=True, slots=True)
class Where:
    """What a URL of this page says."""

    family: str | None
    genus: str | None
    specimen: str | None
    type: list[str] | None
    layer: list[str] | None
    scope: list[str] | None
    since: str | None
    until: str | None
    after: str | None
    shown: int
    """How many there are on the page, the newest first; after `after` it is one page more."""

    @classmethod
    def of(cls, query: QueryParams) -> Where:
        def one(name: str) -> str | None:
            return query.get(name) or None

        def many(name: str) -> list[str] | None:
            return not_empty(list(query.getlist(name)))

        return cls(
            clean_name(query.get("family", "")) or None,
            clean_name(query.get("genus", "")) or None,
            clean_name(query.get("specimen", "")) or None,
            many("type"),
            many("layer"),
            many("scope"),
            one("since"),
            one("until"),
            one("after"),
            whole(query.get("shown"), PAGE, MOST, PAGE),
        )

    @property
    def filters(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("type", "layer", "scope", "since", "until")}

    @property
    def is_filtered(self) -> bool:
        return any(self.filters.values())

    @property
    def state(self) -> dict[str, object]:
        return {**self.names, **self.filters}

    @property
    def names(self) -> dict[str, str | None]:
        return {"family": self.family, "genus": self.genus, "specimen": self.specimen}


async def root(_request: Request, _session: Session) -> Response:
    return goto("/browse")


async def browse(request: Request, session: Session) -> Response:
    where = Where.of(request.query_params)
    memory, size = session.memory, PAGE if where.after else where.shown
    listed = memory.recall_context(
        where.family,
        where.genus,
        where.specimen,
        memory_types=where.type,  # type: ignore[arg-type]
        layer_kinds=where.layer,  # type: ignore[arg-type]
        required_scopes=where.scope,
        since=where.since,
        until=where.until,
        page_size=size + 1,
        after=where.after,
    )
    rows, scopes, (page, error) = await asyncio.gather(
        memory.context_tree(),
        _no_scopes() if is_partial(request) else memory.scopes_in_use(),  # htmx leaves the form as it is
        unless_of_filters(listed, where.since, where.until),
    )
    root = tree(rows)
    family, genus, specimen = _path(root, where)
    missing = next(
        (
            (kind, name)
            for kind, name, found in (
                ("family", where.family, family),
                ("genus", where.genus, genus),
                ("specimen", where.specimen, specimen),
            )
            if name is not None and found is None
        ),
        None,
    )
    here = specimen or genus or family or root
    has_more = len(page) > size
    return await render(
        request,
        "browse.html",
        session,
        status=404 if missing else error.status if error else 200,
        error=error,
        where=where,
        root=root,
        family=family,
        genus=genus,
        specimen=specimen,
        target=here,
        missing=missing,
        scopes=scopes,
        cards=await cards(memory, page[:size]),
        next_shown=min(where.shown + PAGE, MOST),
        size=size,
        next_after=page[size - 1].statement_id if has_more else None,
        types=MEMORY_TYPES,
        layers=LAYER_KINDS,
    )


async def _no_scopes() -> list[ScopeInUse]:
    return []


def _path(root: Taxon, where: Where) -> tuple[Taxon | None, Taxon | None, Taxon | None]:
    family = root.named(where.family)
    genus = family.named(where.genus) if family else None
    return family, genus, genus.named(where.specimen) if genus else None


routes = [Route("/", signed_in(root), methods=["GET"]), Route("/browse", signed_in(browse), methods=["GET"])]
