"""statement_details(), list_symbioses(), scopes_in_use(), and recall_context() by scope: for people who look after memory."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from graphium_db import Graphium
from tests.support.databases import Database
from tests.support.shared import db, tenant

__all__ = ["db", "tenant"]


@pytest.fixture
def hr(db: Database, tenant: str) -> Iterator[Graphium]:
    with Graphium(db.dsn("app"), tenant=tenant, scopes=["hr"]) as memory:
        yield memory


@pytest.fixture
def open_eyes(db: Database, tenant: str) -> Iterator[Graphium]:
    """Of one without scopes."""
    with Graphium(db.dsn("app"), tenant=tenant) as memory:
        yield memory


def say(memory: Graphium, family: str, content: str, *scopes: str, **more: object) -> UUID:
    item = {"content": content, "embedding": None, "required_scopes": list(scopes), **more}
    (row,) = memory.ingest_context(family, "g", "s", [item])  # type: ignore[list-item]
    return row.statement_id


def test_details_tell_rule_last_match_variants_and_words(hr: Graphium) -> None:
    id = say(hr, "people", "I prefer tea in meetings.", source="monday", position=4)
    by_hand = say(hr, "people", "Ships are blue.", memory_type="fact", layer_kind="preloaded")
    first, second = hr.statement_details([by_hand, id], "What about meetings with tea and coffee?")
    assert [first.statement_id, second.statement_id] == [id, by_hand]  # by id
    assert (first.rule, first.last_accessed_at, first.variant_count, first.variants) == ("preference.like", None, 0, [])
    assert first.matched_words == ("meet", "tea")  # as they are indexed, in the query's order
    assert (second.rule, second.matched_words) == (None, ())
    (specimen,) = {row.specimen_id for row in hr.context_tree()}
    assert first.specimen_id == specimen
    for _ in range(2):
        say(hr, "people", "I prefer tea in meetings!", source="tuesday")
    say(hr, "people", "I prefer tea in meetings.", source="wednesday", position=9)
    (details,) = hr.statement_details([id])
    assert details.last_accessed_at is not None
    assert details.variant_count == 2
    newest, older = details.variants
    assert (newest["content"], newest["source"], newest["position"], newest["seen_count"]) == (None, "wednesday", 9, 1)
    assert (older["content"], older["source"], older["seen_count"]) == ("I prefer tea in meetings!", "tuesday", 2)


def test_a_long_statement_is_split_once_however_many_words_are_asked_for(
    db: Database, tenant: str, hr: Graphium
) -> None:
    id = say(hr, "people", "Rain, tea, ships, meetings and a ferry.")
    boss = db.connect()
    calls = "select coalesce(pg_stat_get_xact_function_calls('graphium_private.words_v2(text, text)'::regprocedure), 0)"
    with boss.transaction():
        boss.execute("select graphium.set_caller(%s, '{hr}')", [tenant])
        boss.execute("set local track_functions = 'all'")
        details = "select matched_words from graphium.statement_details(array[%s::uuid], %s)"
        found = [boss.execute(details, [id, text]).fetchone() for text in ("tea", "tea ships ferry meetings rain")]
        assert found == [(["tea"],), (["tea", "ship", "ferri", "meet", "rain"],)]
        assert boss.execute(calls).fetchone() == (2 + 2,)  # each splits the query, and the statement


def test_details_of_what_is_hidden_are_not_there(hr: Graphium, open_eyes: Graphium) -> None:
    hidden = say(hr, "people", "The raise is six percent.", "hr")
    seen = say(hr, "people", "It rains.")
    assert [row.statement_id for row in open_eyes.statement_details([hidden, seen], "raise")] == [seen]


def test_of_a_hidden_family_the_id_is_not_told(db: Database, hr: Graphium, open_eyes: Graphium) -> None:
    (row,) = hr.ingest_context(
        "secret", "g", "s", [{"content": "Open.", "embedding": None, "required_scopes": []}], ["hr"]
    )
    (details,) = open_eyes.statement_details([row.statement_id])
    assert (details.family_id, details.genus_id, details.specimen_id) == (None, None, None)
    assert None not in (hr.statement_details([row.statement_id])[0].family_id,)


def test_symbioses_are_listed_with_both_ends_and_by_what_they_touch(
    db: Database, tenant: str, hr: Graphium, open_eyes: Graphium
) -> None:
    new, old, other = say(hr, "plans", "June."), say(hr, "wishes", "April."), say(hr, "plans", "Boats.")
    gated = say(hr, "secrets", "A secret.", "hr")
    with Graphium(db.dsn("admin"), tenant=tenant) as admin:
        edge = admin.link_symbiosis("supersedes", {"statement_id": str(new)}, {"statement_id": str(old)}, note="later")
        wide = admin.link_symbiosis("related_to", {"family": "plans"}, {"family": "wishes", "specimen": "s"})
        hidden = admin.link_symbiosis("contradicts", {"family": "plans"}, {"statement_id": str(gated)})
    assert [row.symbiosis_id for row in hr.list_symbioses()] == [hidden, wide, edge]
    assert [row.symbiosis_id for row in hr.list_symbioses(max_count=1)] == [hidden]
    seen = open_eyes.list_symbioses()
    assert [row.symbiosis_id for row in seen] == [wide, edge]
    last = seen[1]
    assert (last.kind, last.note, last.source_content, last.target_content) == (
        "supersedes",
        "later",
        "June.",
        "April.",
    )
    assert (last.source_family, last.source_genus, last.source_specimen) == ("plans", "g", "s")
    assert (seen[0].source_family, seen[0].source_genus, seen[0].target_specimen) == ("plans", None, "s")
    touching = {row.symbiosis_id: set(row.touches) for row in hr.list_symbioses([new, old, other])}
    assert touching == {edge: {new, old}, wide: {new, old, other}, hidden: {new, other}}
    assert [row.symbiosis_id for row in open_eyes.list_symbioses([gated])] == []


def test_scopes_in_use_are_those_of_what_one_sees(hr: Graphium, open_eyes: Graphium, db: Database, tenant: str) -> None:
    with Graphium(db.dsn("app"), tenant=tenant, scopes=["legal"]) as legal:
        say(legal, "people", "For the court.", "legal")
    say(hr, "people", "For two.", "hr", "legal")
    say(hr, "people", "For one.", "hr")
    say(hr, "people", "For five.", "hr", "a", "b", "c", "d")
    hr.ingest_context("pay", "g", "s", [{"content": "Pay.", "embedding": None}], ["hr"])
    found = {row.scope: (row.families, row.specimens, row.statements) for row in hr.scopes_in_use()}
    assert found == {
        "hr": (1, 1, 4),
        "legal": (0, 0, 1),
        "a": (0, 0, 1),
        "b": (0, 0, 1),
        "c": (0, 0, 1),
        "d": (0, 0, 1),
    }
    assert list(found) == ["a", "b", "c", "d", "hr", "legal"]
    assert open_eyes.scopes_in_use() == []


def test_recall_by_scope(hr: Graphium) -> None:
    say(hr, "people", "Open.")
    say(hr, "people", "Public.", "public")
    say(hr, "people", "Hr.", "hr")
    say(hr, "people", "Both.", "hr", "legal")

    def recalled(*scopes: str) -> list[str]:
        return [row.content for row in hr.recall_context(required_scopes=scopes)]

    assert recalled("hr") == ["Both.", "Hr."]
    assert recalled("legal") == ["Both."]
    assert recalled("public") == ["Public.", "Open."]
    assert recalled("public", "legal") == ["Both.", "Public.", "Open."]
    assert recalled("nobody's", "it's {}, \\") == []
    assert recalled() == []  # an empty list matches nothing, as of the other filters


def test_a_preview_says_what_the_edit_then_does(hr: Graphium, open_eyes: Graphium) -> None:
    say(hr, "people", "Open.")
    say(hr, "people", "Hr.", "hr")
    say(hr, "people", "Both.", "hr", "legal")
    (family,) = {row.family_id for row in hr.context_tree()}
    assert family is not None
    rows = hr.preview_required_scopes("family", [family], ["hr"], cascade=True)
    assert [(r.row_kind, r.old_scopes, r.row_count, r.losing_scopes, r.losing_everyone) for r in rows] == [
        ("family", (), 1, (), True),
        ("specimen", (), 1, (), True),
        ("statement", (), 1, (), True),
        ("statement", ("hr", "legal"), 1, ("legal",), False),
    ]
    assert hr.preview_required_scopes("family", [family], []) == []
    assert len(open_eyes.recall_context()) == 1  # nothing was changed
    assert hr.set_required_scopes("family", family, ["hr"], cascade=True) == sum(row.row_count for row in rows)
    opened = hr.preview_required_scopes("family", [family], ["public"], cascade=True)
    assert {(r.losing_scopes, r.losing_everyone) for r in opened} == {((), False)}
