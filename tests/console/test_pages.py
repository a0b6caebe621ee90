"""Points 2 to 7, as the server sees them."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Callable

import pytest
from psycopg_pool import PoolTimeout

from graphium_db import Graphium
from graphium_db.aio import AsyncGraphium
from graphium_db.console.pages.ingest import MOST
from graphium_db.console.templating import percent
from tests.client.embedders import WordEmbedder
from tests.console.conftest import HEBREW, HOSTILE, LONG, Filled, Visitor, text_of
from tests.support.concurrency import in_thread, wait_until_it_blocks

Visit = Callable[..., Visitor]


def contents(page: str) -> list[str]:
    """What the cards of a page say, in order."""
    return [html.unescape(text) for text in re.findall(r'<p class="content" dir="auto">([^<]*)</p>', page)]


def test_families_lead_to_genera_specimens_and_statements_with_counts(visit: Visit) -> None:
    visitor = visit("hr")
    page = visitor.get("/browse")
    assert "people 5" in text_of(page)  # of six, `court` is hidden
    for path in ("/browse?family=people", "/browse?family=people&amp;genus=team"):
        assert f'href="{path}"' in page
    page = visitor.get("/browse", family="people", genus="team", specimen="Aisha")
    assert "Context people team Aisha" in text_of(page)
    assert contents(page) == [
        HEBREW,
        LONG[:600] + "…",
        HOSTILE,
        "The raise is six percent.",
        "Aisha prefers written feedback.",
    ]
    assert "people 4" in text_of(visit().get("/browse"))


def test_a_hundred_statements_come_a_page_at_a_time(visit: Visit, filled: Filled) -> None:
    with filled.memory() as memory:
        memory.ingest_context("many", "g", "s", [{"content": f"Number {n}.", "embedding": None} for n in range(1, 101)])
    visitor = visit()
    page = visitor.get("/browse", family="many")
    seen = contents(page)
    while more := re.search(r'class="more"><a class="button" href="([^"]+)"', page):
        page = visitor.get(more[1].replace("&amp;", "&"))
        seen += contents(page)
    assert seen == [f"Number {n}." for n in range(100, 0, -1)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("type=decision", ["We decided to launch the ferry app in June."]),
        ("type=decision&type=preference", ["We decided to launch the ferry app in June.", "Aisha prefers written feedback."]),
        ("layer=preloaded", ["Aisha prefers written feedback."]),
        ("scope=hr", ["The raise is six percent."]),
        ("scope=public&family=wishes", ["The ferry app starts in April."]),
        ("until=2020-01-01", []),
        ("since=2020-01-01&family=plans", ["We decided to launch the ferry app in June."]),
        ("family=plans&type=advice", []),
    ],
)  # fmt: skip
def test_filters(visit: Visit, query: str, expected: list[str]) -> None:
    page = visit("hr").get(f"/browse?{query}")
    assert contents(page) == expected
    assert ("No statement passes these filters." in page) == (expected == [])


@pytest.mark.parametrize("path", ["/browse", "/search"])
def test_a_time_that_no_clock_has_is_a_note(visit: Visit, path: str) -> None:
    page = visit().get(path, status=422, q="feedback", since="2026-01-01T00:00+15:59:60")
    assert "Since: “2026-01-01T00:00+15:59:60” is no time." in text_of(page)


def test_letters_that_are_taken_apart_are_the_same_name(visit: Visit, filled: Filled) -> None:
    visitor = visit()
    visitor.get("/ingest")
    place = {"family": "Zoe\u0308", "genus": "g", "specimen": "s"}
    page = visitor.post("/ingest", **place, line="1", **{"content-1": "Bees hum."})
    (about,) = set(re.findall(r'href="(/browse\?family=[^"]+specimen=s)"', page))
    assert contents(visitor.get(html.unescape(about))) == ["Bees hum."]
    assert contents(visitor.get("/browse", family="Zoe\u0308")) == ["Bees hum."]
    visitor.get("/graph", family="Zoe\u0308")


def test_a_place_that_is_asked_for_comes_before_what_waits(visit: Visit) -> None:
    visitor = visit()
    visitor.post("/ingest", 403, csrf="0", family="people", text="Waiting.", mode="lines")
    page = visitor.get("/ingest", family="plans", genus="year", specimen="Ferry")
    assert "Waiting." not in page
    assert 'name="family" value="plans"' in page
    assert "Waiting." in visitor.get("/ingest")


def test_what_waits_outlives_a_page_that_failed(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = visit()
    visitor.post("/ingest", 403, csrf="0", text="Waiting.", mode="lines")
    with monkeypatch.context() as away:

        async def context_tree(_: object) -> None:
            raise PoolTimeout("no connection")

        away.setattr(AsyncGraphium, "context_tree", context_tree)
        visitor.get("/ingest", status=503)
    assert "Waiting.</textarea>" in visitor.get("/ingest")


def test_without_a_splitter_what_waits_is_shown_all_the_same(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = visit()
    monkeypatch.setitem(sys.modules, "sentencex", None)
    visitor.post("/ingest", 403, csrf="0", text="One. Two.", mode="text")
    page = visitor.get("/ingest", status=400)
    assert "cannot split text" in text_of(page)
    assert "One. Two.</textarea>" in page


def test_a_preview_does_not_wait_for_who_else_writes_there(visit: Visit, filled: Filled) -> None:
    visitor, other = visit(), filled.db.connect("app")
    other.execute("begin")
    other.execute("select graphium.set_caller(tenant => %s, scopes => '{}')", [filled.tenant])
    other.execute("select graphium.ingest_context('people', 'team', 'Aisha', '[{\"content\": \"Bees hum.\"}]')")
    place = {"family": "people", "genus": "team", "specimen": "Aisha"}
    assert previewed(visitor.post("/ingest/preview", **place, text="Bees sleep.")) == ["Bees sleep."]
    other.execute("rollback")


@pytest.mark.parametrize("path", ["/browse", "/search"])
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"since": "banana"}, "Since: “banana” is no time. MG008 As in 2026-03-01, 2026-03-01 12:00+01 or yesterday."),
        ({"until": "2026-02-30"}, "Before: “2026-02-30” is no time."),
        ({"type": "opinion"}, 'Type: "opinion" is not known. MG008 Any of fact, event,'),
        ({"layer": "deep"}, 'Layer: "deep" is not known. MG008 Any of preloaded, on_demand;'),
    ],
)
def test_a_filter_that_is_none_is_a_note_in_words(visit: Visit, path: str, query: dict[str, str], told: str) -> None:
    page = visit().get(path, status=422, q="feedback", **query)
    assert told in text_of(page)
    assert "That did not work" not in page
    assert contents(page) == []


@pytest.mark.parametrize("path", ["/browse", "/search"])
def test_a_time_that_ends_before_it_begins_is_a_note_on_the_page_itself(visit: Visit, path: str) -> None:
    query = {"q": "feedback", "since": "2026-03-02", "until": "2026-03-01", "type": "preference"}
    page = visit().get(path, status=422, **query)
    assert "That did not work" not in page
    note = page.index("No time is since 2026-03-02 and before 2026-03-01.")
    assert page.index('<form class="search"' if path == "/search" else '<form class="filters"') < note
    assert page.index('id="results"') < note  # htmx puts it there too
    for field in ('name="since" value="2026-03-02"', 'name="until" value="2026-03-01"', 'value="preference" checked'):
        assert field in page
    assert contents(page) == []
    assert "Nothing found" not in page
    assert "No statement passes" not in page
    assert contents(visit().get(path, **query | {"since": "2026-02-01", "until": "2100-01-01"})) == [
        "Aisha prefers written feedback."
    ]


def test_a_search_is_filtered_by_time(visit: Visit, filled: Filled) -> None:
    with filled.memory() as memory:
        memory.ingest_context(
            "plans",
            "year",
            "Ferry",
            [
                {"content": f"The ferry app moved to {town}.", "occurred_at": f"2020-0{n}-01T00:00Z"}
                for n, town in enumerate(("Rome", "Oslo", "Riga"), start=1)
            ],
        )
    visitor = visit()
    for times, towns in (
        ({"until": "2021-01-01"}, {"Rome", "Oslo", "Riga"}),
        ({"since": "2020-02-01", "until": "2021-01-01"}, {"Oslo", "Riga"}),
        ({"since": "2020-02-01", "until": "2020-03-01"}, {"Oslo"}),
    ):
        for mode in ("both", "meaning", "words"):
            page = visitor.get("/search", q="ferry app moved", by=mode, **times)
            found = {text.split()[-1].strip(".") for text in contents(page.split('class="along"')[0])}
            assert found == towns, (times, mode)
            for name, value in times.items():
                assert f'name="{name}" value="{value}"' in page


def test_what_is_hidden_and_what_is_missing_are_told_alike(visit: Visit, filled: Filled) -> None:
    with filled.memory("legal") as memory:
        memory.ingest_context("secret", "g", "s", ["Hidden."], ["legal"])
    visitor = visit("hr")
    for path in ("/browse", "/graph"):
        pages = [visitor.get(path, status=404, family=name).replace(name, "?") for name in ("secret", "absent")]
        assert pages[0] == pages[1]
    assert "There is no family “ ? ” here." in text_of(pages[0])
    assert "first sentences" not in pages[0]
    hidden, absent = filled.ids["court"], "01a22c30-0000-7000-8000-000000000000"
    for path in ("/statement/{}", "/statement/{}/forget", "/statement/{}/reword", "/scopes/statement/{}"):
        said = [text_of(visitor.get(path.format(id), status=404)) for id in (hidden, absent)]
        assert said[0] == said[1], path


def test_a_card_tells_all_that_there_is_to_tell(visit: Visit, filled: Filled) -> None:
    said = text_of(visit().get(f"/statement/{filled.ids['written']}"))
    for part in ("preference", "preloaded", "open", "people › team › Aisha", "in kick-off #1", "Matched 1 ×, last 2", "by preference.", "1 variant folded in", "Aisha prefers written feedback!", "1 time, last 2", "is related to plans", "she leads it", "Content cannot be edited: forget and ingest again."):  # fmt: skip
        assert part in said, part
    assert "superseded" in text_of(visit().get(f"/statement/{filled.ids['old']}"))
    assert "is superseded by We decided to launch" in text_of(visit().get(f"/statement/{filled.ids['old']}"))
    assert "supersedes The ferry app starts in April." in text_of(visit().get(f"/statement/{filled.ids['june']}"))


def test_hostile_text_is_text_everywhere(visit: Visit, filled: Filled) -> None:
    with filled.memory() as memory:
        memory.ingest_context(
            HOSTILE[:90], HOSTILE[:90], HOSTILE[:90], [{"content": HOSTILE, "source": HOSTILE, "embedding": None}]
        )
    visitor = visit()
    for path, query in (
        ("/browse", {}),
        ("/browse", {"family": HOSTILE[:90]}),
        ("/browse", {"family": "<script>alert(1)</script>"}),
        ("/search", {"q": HOSTILE}),
        ("/graph", {}),
        ("/wake-up", {"family": HOSTILE}),
        ("/ingest", {"family": HOSTILE}),
        (f"/statement/{filled.ids['hostile']}", {}),
        (f"/statement/{filled.ids['hostile']}/forget", {}),
        (f"/statement/{filled.ids['hostile']}/reword", {}),
    ):
        page = visitor.client.get(path, params=query).text
        assert "<script>" not in page, path
        assert "onclick=x>" not in page.replace("onclick=x&gt;", ""), path
        assert re.findall(r"<script[^>]*>", page) == [
            '<script src="/static/htmx.min.js" defer>',
            '<script src="/static/console.js" defer>',
        ], path


def test_forgetting_asks_first_and_says_what_goes(visit: Visit, filled: Filled) -> None:
    visitor = visit()
    id = filled.ids["written"]
    said = text_of(visitor.get(f"/statement/{id}/forget"))
    assert "people › team › Aisha" in said
    assert "1 variant that was folded into it: “ Aisha prefers written feedback! ”" in said
    assert "Aisha prefers written feedback." in filled.contents()  # asked, not done
    assert "Forgotten" in visitor.post(f"/statement/{id}/forget")
    assert "Aisha prefers written feedback." not in filled.contents()
    assert "There is no such statement" in visitor.post(f"/statement/{id}/forget", status=404)


def test_from_what_was_forgotten_one_gets_to_a_place_that_one_sees(visit: Visit, filled: Filled) -> None:
    with filled.memory("legal") as memory:
        (family,) = {row.family_id for row in memory.context_tree() if row.family == "people"}
        memory.set_required_scopes("family", family, ["legal"])
    visitor = visit("hr")
    visitor.get(f"/statement/{filled.ids['hebrew']}/forget")
    page = visitor.post(f"/statement/{filled.ids['hebrew']}/forget")
    assert 'href="/browse">Back to <bdi>Context</bdi>' in page  # its family is hidden, and with it Aisha's page


def test_another_wording_replaces_the_statement_in_its_place(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    with filled.memory("hr") as memory:
        (old,) = memory.recall_context(required_scopes=["hr"])
    visitor.get(f"/statement/{filled.ids['raise']}/reword")
    said = text_of(visitor.post(f"/statement/{filled.ids['raise']}/reword", content="The raise is seven percent."))
    assert "Saved in its new wording." in said
    assert "people › team › Aisha" in said
    assert filled.contents("hr") - filled.contents() == {"The raise is seven percent."}  # for the same scopes
    with filled.memory("hr") as memory:
        (row,) = memory.recall_context(required_scopes=["hr"])
        assert (row.source, row.position) == ("kick-off", old.position)
    # The same words in another case are a duplicate, were the old one not forgotten first:
    visitor.get(f"/statement/{row.statement_id}/reword")
    assert "Saved in its new" in visitor.post(
        f"/statement/{row.statement_id}/reword", content="The raise is SEVEN percent!"
    )
    # and what is known already stays one statement:
    said = text_of(visitor.post(f"/statement/{filled.ids['hebrew']}/reword", content="Aisha prefers written feedback"))
    assert "Dedup: matched existing statement" in said
    assert HEBREW not in filled.contents()


def test_another_wording_keeps_what_was_chosen_and_relabels_nothing_else(visit: Visit, filled: Filled) -> None:
    visitor = visit()
    with filled.memory() as memory:
        place = ("people", "team", "Aisha")
        (chosen,) = memory.ingest_context(*place, [{"content": "The order was cancelled.", "memory_type": "decision"}])
        (known,) = memory.ingest_context(*place, ["Aisha hates liquorice."])
    page = visitor.get(f"/statement/{chosen.statement_id}")
    assert "type by hand, layer by event.past" in text_of(page)
    page = visitor.post(f"/statement/{chosen.statement_id}/reword", content="I love rain.")
    assert "type by hand, layer by preference.like" in text_of(page)
    (id,) = re.findall(r'data-copy="([^"]+)"', page)
    page = visitor.post(f"/statement/{id}/reword", content="Aisha hates liquorice.")
    assert f'data-copy="{known.statement_id}"' in page
    with filled.memory() as memory:
        (row,) = memory.recall_context(statement_ids=[known.statement_id])
        assert (row.memory_type, row.layer_kind) == ("preference", "preloaded")
        (details,) = memory.statement_details([known.statement_id])
        assert (details.is_type_chosen, details.is_layer_chosen) == (False, False)
        assert memory.recall_context(statement_ids=[id]) == []


def test_a_new_wording_that_is_refused_leaves_the_old_one(visit: Visit, filled: Filled) -> None:
    visitor = visit()
    visitor.get(f"/statement/{filled.ids['written']}/reword")
    for content in ("", "Aisha prefers written feedback.", "a\x00b"):
        visitor.post(f"/statement/{filled.ids['written']}/reword", status=400, content=content)
        assert "Aisha prefers written feedback." in filled.contents()


def test_a_new_wording_that_is_refused_is_not_lost(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    at = f"/statement/{filled.ids['raise']}/reword"
    fields = dict(re.findall(r'type="hidden" name="(family|genus|specimen|scope)" value="([^"]+)"', visitor.get(at)))
    assert fields == {"family": "people", "genus": "team", "specimen": "Aisha", "scope": "hr"}
    for content, told in (("The raise is six percent.", "The wording is the same"), ("a\x00<b>", "U+0000")):
        page = visitor.post(at, 400, content=content)
        assert told in text_of(page)
        assert f"{content.replace('<', '&lt;').replace('>', '&gt;')}</textarea>" in page
    with filled.memory("hr") as memory:
        memory.forget_context([filled.ids["raise"]])
    page = visitor.post(at, 404, content="Aisha & I\nprefer letters.", **fields)
    assert "There is no such statement" in text_of(page)
    assert 'href="/ingest">Ingest what you wrote' in page
    page = visitor.get("/ingest")
    assert "Aisha &amp; I prefer letters.</textarea>" in page
    assert 'value="lines" checked' in page
    for field in ('name="family" value="people"', 'name="specimen" value="Aisha"', 'name="scope" value="hr" checked'):
        assert field in page  # for nobody who did not see the old words


def test_a_form_of_what_is_gone_leads_nowhere(visit: Visit, filled: Filled) -> None:
    visitor, id = visit("hr"), filled.ids["written"]
    visitor.get(f"/statement/{id}")
    with filled.memory() as memory:
        memory.forget_context([id])
    for path, fields in (
        (f"/statement/{id}/labels", {"type": "advice"}),
        (f"/statement/{id}/forget", {}),
        (f"/scopes/statement/{id}/preview", {"scope": "hr"}),
        (f"/scopes/statement/{id}", {"scope": "hr"}),
    ):
        page = visitor.post(path, 404, **fields)
        assert "hidden from you" in text_of(page), path
        assert re.findall(r'<a class="button[^"]*" href="([^"]+)"', page) == ["/browse"], path


def test_a_new_wording_of_what_is_gone_is_kept_when_its_form_was_not_of_the_session(
    visit: Visit, filled: Filled
) -> None:
    visitor, at = visit("hr"), f"/statement/{filled.ids['written']}/reword"
    with filled.memory() as memory:
        memory.forget_context([filled.ids["written"]])
    typed = {"content": "Aisha & I\nprefer letters.", "family": "people"}
    assert f'href="{at}">Back to the form' in visitor.post(at, 403, csrf="0", **typed)
    page = visitor.get(at, status=404)
    assert "There is no such statement" in text_of(page)
    assert 'href="/ingest">Ingest what you wrote' in page
    page = visitor.get("/ingest")
    assert "Aisha &amp; I prefer letters.</textarea>" in page
    assert 'name="family" value="people"' in page
    assert "Ingest what you wrote" not in visitor.get(at, status=404)


def test_an_address_that_takes_no_such_request_is_told_in_words(visit: Visit) -> None:
    visitor = visit()
    assert "This address takes no such request." in text_of(visitor.get("/logout", status=405))
    assert visitor.client.get("/logout").headers["allow"] == "POST"


def test_what_became_of_a_form_is_told_once_and_by_no_address(visit: Visit, filled: Filled) -> None:
    visitor, id = visit("hr"), filled.ids["written"]
    for said in ("labelled", "reworded", "matched"):
        assert 'role="status" tabindex' not in visitor.get(f"/statement/{id}", said=said)
    page = visitor.post(f"/statement/{id}/labels", type="advice")
    assert 'class="notice good" role="status" tabindex="-1" autofocus>' in page
    assert "It has the labels that you chose." not in visitor.get(f"/statement/{id}")


def test_an_address_that_only_takes_a_form_leads_to_it(visit: Visit, filled: Filled) -> None:
    visitor, id = visit("hr"), filled.ids["written"]
    for path, form in (
        ("/ingest/preview", "/ingest"),
        (f"/scopes/statement/{id}/preview", f"/scopes/statement/{id}"),
        (f"/statement/{id}/labels", f"/statement/{id}"),
    ):
        response = visitor.client.get(path, follow_redirects=False)
        assert (response.status_code, response.headers["location"]) == (303, form)


def test_labels_are_changed_by_hand(visit: Visit, filled: Filled) -> None:
    visitor, id = visit("hr"), filled.ids["raise"]

    def facts() -> tuple[object, ...]:
        with filled.memory("hr") as memory:
            (row,) = memory.recall_context(statement_ids=[id])
            (more,) = memory.statement_details([id])
        return (row.memory_type, row.layer_kind, more.is_type_chosen, more.is_layer_chosen, row.access_count), (
            row.required_scopes,
            row.source,
            row.position,
            more.variant_count,
        )

    page = visitor.get(f"/statement/{id}")
    assert f'action="/statement/{id}/labels"' in page
    assert "counts as matched once more" in text_of(page)
    (labels, rest), before = facts(), filled.contents("hr")
    assert labels == ("fact", "on_demand", False, False, 0)
    said = text_of(visitor.post(f"/statement/{id}/labels", type="decision", layer="on_demand"))
    assert "It has the labels that you chose." in said
    assert "decision on demand type by hand, layer by" in said
    assert facts() == (("decision", "on_demand", True, False, 1), rest)
    said = text_of(visitor.post(f"/statement/{id}/labels", type="decision", layer="preloaded"))
    assert "decision preloaded labelled by hand" in said
    assert facts() == (("decision", "preloaded", True, True, 2), rest)
    for fields, refusal in (
        ({"type": "decision", "layer": "preloaded"}, "It has these labels already."),
        ({"type": "opinion"}, "opinion"),
        ({"layer": "a\x00"}, "contains U+0000"),
    ):
        assert refusal in text_of(visitor.post(f"/statement/{id}/labels", 400, **fields))
    assert facts() == (("decision", "preloaded", True, True, 2), rest)
    assert filled.contents("hr") == before


def test_labels_of_what_is_there_twice_go_to_no_other_statement(visit: Visit, filled: Filled) -> None:
    place = ("people", "team", "Aisha")
    with filled.memory("hr") as memory:
        (first,) = memory.ingest_context(*place, ["The bridge is red."])
        (second,) = memory.ingest_context(*place, ["The bridge is red."], ["hr"])
        memory.set_required_scopes("statement", second.statement_id, [])
    visitor = visit("hr")
    said = text_of(visitor.get(f"/statement/{second.statement_id}"))
    said = text_of(visitor.post(f"/statement/{second.statement_id}/labels", 400, type="advice"))
    assert "another statement with the same words. Nothing was changed." in said
    with filled.memory("hr") as memory:
        for row in memory.recall_context(statement_ids=[first.statement_id, second.statement_id]):
            assert (row.memory_type, row.access_count) == ("fact", 0)


def test_who_may_not_change_labels_is_told(visit: Visit, filled: Filled) -> None:
    with filled.memory("legal") as memory:
        memory.ingest_context("secret", "g", "s", [{"content": "All see this.", "required_scopes": []}], ["legal"])
        (row,) = memory.recall_context("secret")
    visitor = visit("hr")
    page = visitor.get(f"/statement/{row.statement_id}")
    assert "/labels" not in page
    assert '<a href="/browse">‹ Context</a>' in page
    assert "so you cannot ingest there" in visitor.get(f"/statement/{row.statement_id}/reword")
    said = text_of(visitor.post(f"/statement/{row.statement_id}/labels", 400, type="advice"))
    assert "You do not see the place of this statement." in said
    assert "There is no such statement" in visitor.post(f"/statement/{filled.ids['court']}/labels", 404, type="advice")


def test_search_says_why_each_hit_is_there(visit: Visit) -> None:
    visitor = visit("hr")
    page = visitor.get("/search", q="written feedback", by="words")
    assert contents(page)[0] == "Aisha prefers written feedback."
    assert "<mark>written</mark><mark>feedback</mark>" in page
    assert "<meter" not in page  # nobody asked for the meaning
    page = visitor.get("/search", q="written feedback", by="meaning", count="10")
    # two of the four words: a cosine of 2 / (√2 · √4)
    assert re.search(r'value="0\.70\d+" aria-label="Similarity"', page)
    assert "<mark>" not in page
    assert "court" not in page
    # By both: what its specimen's name in the query adds is said, and a stem is shown as the query has it.
    said = text_of(visitor.get("/search", q="which feedbacks does Aisha prefer"))
    card = said[said.index(" 1 score") : said.index("Aisha prefers written feedback.")]
    assert re.search(r"meaning \.\d\d no\. \d", card), card
    assert re.search(r"words feedbacks prefer no\. 1", card), card
    assert re.search(r"about whom the query names \+\.\d\d", card), card
    assert "in the family of whom the query names +" in card
    assert "six percent" not in visit().get("/search", q="raise percent")


def test_what_was_replaced_says_by_what(visit: Visit, filled: Filled) -> None:
    page = visit().get("/search", q="the ferry app starts in April", by="words")
    assert contents(page) == ["We decided to launch the ferry app in June.", "The ferry app starts in April."]
    scores = [float(score) for score in re.findall(r'<span>score</span><span class="figure">([\d.]+)<', page)]
    assert scores[0] < scores[1]
    first, second = page.split("</article>")[:2]
    assert "Replaced" not in text_of("<main" + first)
    assert (
        "Replaced by We decided to launch the ferry app in June. (where both are hits, this one stands below"
        in text_of(second)
    )
    assert f'Replaced by <a href="/statement/{filled.ids["june"]}">' in second


def test_a_card_and_what_it_offers_are_named_by_its_sentence(visit: Visit, filled: Filled) -> None:
    page = visit().get("/browse", family="wishes")
    card = page.split("<article")[1].split("</article>")[0]
    assert 'aria-label="The ferry app starts in April."' in card
    for name in ("Open", "Copy id", "Scopes", "Edit", "Forget"):
        assert re.search(rf'aria-label="{name}: The ferry app starts in April\.">(<svg.*</svg>)?{name}<', card), name


def test_a_long_content_is_cut_where_it_is_one_of_many(visit: Visit, filled: Filled) -> None:
    visitor = visit()
    for path, query in (("/browse", {"family": "people"}), ("/search", {"q": LONG, "by": "meaning"})):
        page = visitor.get(path, **query)
        assert LONG[:601] not in page.replace("?q=" + LONG, "").replace(f'value="{LONG[:2000]}"', "").replace(
            f"<title>{LONG[:2000]}", ""
        )
        assert f'<a href="/statement/{filled.ids["long"]}" aria-label="See all 3000 characters: {LONG[:80]}…">' in page
    assert contents(visitor.get(f"/statement/{filled.ids['long']}")) == [LONG]


def test_symbiosis_hits_stand_apart(visit: Visit) -> None:
    page = visit().get("/search", q="written feedback", by="meaning", count="1")
    primary, along = page.split('class="along"')
    assert "Aisha prefers written feedback." in primary
    assert contents(along) == ["We decided to launch the ferry app in June."]
    assert "related to" in text_of(along)


def test_an_empty_search_and_one_without_hits_say_what_to_do(visit: Visit) -> None:
    assert "What do the agents know about" in visit().get("/search")
    assert "Nothing found for" in visit().get("/search", q="zzz", by="words")


def previewed(page: str) -> list[str]:
    return [html.unescape(content) for content in re.findall(r'<textarea name="content-\d+"[^>]*>([^<]*)', page)]


def test_text_is_previewed_then_saved_and_what_is_known_has_the_pill(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    visitor.get("/ingest")
    place = {"family": "people", "genus": "team", "specimen": "Aisha"}
    text = "We decided to move. Aisha prefers written feedback. Aisha likes tea."
    before = filled.contents()
    page = visitor.post("/ingest/preview", text=text, mode="text", **place)
    assert "3 statements for" in text_of(page)
    assert "decision.chosen" in page
    assert filled.contents() == before  # nothing is saved yet
    fields = {
        f"content-{n}": s
        for n, s in enumerate(["We decided to move.", "Aisha prefers written feedback.", "Aisha likes tea."], 1)
    }
    page = visitor.post("/ingest", **place, **fields, line=["1", "2"], **{"type-1": "event", "type-2": "preference"})
    said = text_of(page)
    assert "1 saved, 1 known already" in said
    assert "Dedup: matched existing statement see the statement similarity 1.0000" in said
    assert f'href="/statement/{filled.ids["written"]}"' in page
    assert filled.contents() - before == {"We decided to move."}
    assert text_of(visitor.get("/ingest/saved")) == said  # loading it again ingests nothing again
    with filled.memory() as memory:
        (known,) = memory.recall_context(statement_ids=[filled.ids["written"]])
        assert known.access_count == 2
        (row,) = memory.recall_context(memory_types=["event"])
        assert row.content == "We decided to move."  # its type as it was set by hand


def test_lines_are_taken_as_they_are_and_scopes_hold(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    visitor.get("/ingest")
    page = visitor.post(
        "/ingest/preview",
        text="One. Two.\n\n Three \n",
        mode="lines",
        family="f",
        genus="g",
        specimen="s",
        scope=["hr", ""],
    )
    assert previewed(page) == ["One. Two.", "Three"]
    visitor.post(
        "/ingest",
        **{"family": "f", "genus": "g", "specimen": "s", "scope": ["hr"], "line": ["1"], "content-1": "Three"},
    )
    assert "Three" in filled.contents("hr") - filled.contents()


def test_an_ingest_that_is_refused_keeps_what_was_typed(visit: Visit) -> None:
    visitor = visit()
    visitor.get("/ingest")
    page = visitor.post("/ingest/preview", status=400, text="Kept.", mode="text", family="f", genus="", specimen="s")
    assert "genus is missing" in text_of(page)
    assert "Kept.</textarea>" in page
    fields = {
        "family": "f",
        "genus": "g",
        "specimen": "s",
        "scope": ["legal"],
        "line": ["1"],
        "content-1": "Kept.",
        "text": "Kept.",
    }
    page = visitor.post("/ingest", status=403, **fields)
    assert "MG006" in page
    assert "Kept.</textarea>" in page


PLACE = {"family": "f", "genus": "g", "specimen": "s"}


def test_a_line_is_saved_once_however_often_it_is_named(visit: Visit, filled: Filled) -> None:
    visitor = visit()
    visitor.get("/ingest")
    page = visitor.post("/ingest", **PLACE, line=["1"] * 4900 + ["77"], **{"content-1": "Bees hum."})
    assert "1 saved In f" in text_of(page)
    many = {f"content-{n}": f"Bee {n} hums." for n in range(1, MOST + 2)}
    page = visitor.post("/ingest", 400, **PLACE, line=["1"], **many)
    assert f"more than {MOST} lines" in page
    assert f"Bee {MOST} hums." in page  # nothing that was typed is lost
    assert "Bee 1 hums." not in filled.contents()


def test_going_back_keeps_what_was_changed_by_hand(visit: Visit) -> None:
    visitor = visit()
    visitor.get("/ingest")
    text = {"text": "Bees hum. Wasps sting.", "mode": "text"}
    fields = {"content-1": "Bees hum.", "type-1": "event", "layer-1": "preloaded", "content-2": "Wasps sting."}
    page = visitor.post("/ingest", **PLACE, **text, **fields, line=["1"], back="1")
    (kept,) = re.findall(r'name="kept" value="([^"]+)"', page)
    page = visitor.post("/ingest/preview", **PLACE, **text, kept=html.unescape(kept))
    first, second = page.split("<tr>")[2:]
    assert 'value="1" checked' in first
    assert re.findall(r'value="(\w+)" selected', first) == ["event", "preloaded"]
    assert 'value="2" aria-label' in second
    for broken in ("[", "[1]", '{"Bees hum.": 1}', '{"Bees hum.": [[], {}, 0, 1]}', "[" * 100_000):
        visitor.post("/ingest/preview", **PLACE, **text, kept=broken)


def test_a_wrong_split_is_mended_in_the_preview(visit: Visit, filled: Filled) -> None:
    visitor = visit()
    visitor.get("/ingest")
    text = {"text": "We met Dr.\r\nNo. He left early and we decided to move", "mode": "text"}
    contents = {"content-1": "We met Dr.", "content-2": "No.", "content-3": "He left early\r\n \r\nwe decided to move"}
    ruled = {f"ruled-{n}": "fact on_demand" for n in (1, 2, 3)}
    labels = {
        "type-1": "event",
        "layer-1": "on_demand",
        "type-2": "fact",
        "layer-2": "on_demand",
        "type-3": "fact",
        "layer-3": "on_demand",
    }
    page = visitor.post("/ingest", **PLACE, **text, **contents, **ruled, **labels, line=["1", "3"], join="2")
    mended = ["We met Dr. No.", "He left early", "we decided to move"]
    assert previewed(page) == mended
    rows = page.split("<tr>")[2:]
    assert [re.findall(r'value="(\w+)" selected', row) for row in rows] == [
        ["event", "on_demand"],
        ["event", "on_demand"],
        ["decision", "on_demand"],
    ]
    assert "Nothing is saved yet." in page

    fields = {f"content-{n}": content for n, content in enumerate(mended, 1)} | {
        "ruled-3": "decision on_demand",
        "type-3": "decision",
        "layer-3": "on_demand",
    }
    page = visitor.post("/ingest", **PLACE, **text, **fields, line=["1"], back="1")
    assert "\n".join(mended) + "</textarea>" in page  # the mended text, one a line, when one goes back
    assert 'value="lines" checked' in page
    fields["content-2"] = " "
    fields["content-3"] = "Bees hum."  # a rule's label follows the words
    assert "2 saved" in text_of(visitor.post("/ingest", **PLACE, **text, **fields, line=["1", "2", "3"]))
    with filled.memory() as memory:
        rows = memory.recall_context("f")
        assert {(row.content, row.memory_type) for row in rows} == {("We met Dr. No.", "event"), ("Bees hum.", "fact")}


def test_blanks_without_end_are_parted_in_no_time(visit: Visit) -> None:
    """Each character was looked at once for each of them: 100,000 stopped everybody for 47 s."""
    visitor = visit()
    visitor.get("/ingest")
    content = "Bees" + " " * 300_000 + "hum.\n" + " \t" * 100_000 + "\nWasps sting." + "\n" * 100_000
    page = visitor.post("/ingest", **PLACE, text="x", mode="lines", again="1", **{"content-1": content})
    assert previewed(page) == ["Bees" + " " * 300_000 + "hum.", "Wasps sting."]


def test_a_sentence_over_two_lines_stays_one(visit: Visit) -> None:
    visitor = visit()
    visitor.get("/ingest")
    page = visitor.post("/ingest/preview", **PLACE, text="Bees hum\r\nin June. Wasps sting.", mode="text")
    assert previewed(page) == ["Bees hum\nin June.", "Wasps sting."]
    fields = {"content-1": "Bees hum\r\nin June.", "content-2": "Wasps sting."}
    page = visitor.post("/ingest", **PLACE, text="Bees hum\r\nin June. Wasps sting.", mode="text", again="1", **fields)
    assert previewed(page) == ["Bees hum\nin June.", "Wasps sting."]


def test_no_line_chosen_keeps_the_preview(visit: Visit) -> None:
    visitor = visit()
    visitor.get("/ingest")
    page = visitor.post("/ingest", 400, **PLACE, **{"content-1": "Bees hum.", "type-1": "event"})
    assert "No line is chosen." in text_of(page)
    assert previewed(page) == ["Bees hum."]
    assert 'value="event" selected' in page
    assert 'value="1" aria-label' in page  # without its mark still


def test_what_saving_would_be_refused_for_is_told_at_the_preview(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    visitor.get("/ingest")
    said = text_of(visitor.post("/ingest/preview", 403, **PLACE, text="Bees hum.", scope=["legal"]))
    assert "the caller holds none of the scopes {legal}" in said
    before = filled.contents("hr", "legal")
    visitor.post("/ingest/preview", **PLACE, text="Bees hum.", scope=["legal", "hr"])
    with filled.memory("legal") as memory:
        memory.ingest_context("secret", "g", "s", ["The bees are sold."], ["legal"])
        families = {row.family for row in memory.context_tree()}
    said = text_of(visitor.post("/ingest/preview", 403, **PLACE | {"family": "secret"}, text="Bees hum."))
    assert 'the name "secret" belongs to a family that the caller may not see' in said
    assert "occurred_at" in text_of(visitor.post("/ingest/preview", 400, **PLACE, text="Bees hum.", occurred_at="soon"))
    assert filled.contents("hr", "legal") == before | {"The bees are sold."}
    with filled.memory("legal") as memory:
        assert {row.family for row in memory.context_tree()} == families


def seen_in(page: str) -> str:
    """What a preview of scopes has for the form that carries it out."""
    (seen,) = re.findall(r'name="seen" value="(\w+)"', page)
    return str(seen)


def test_an_edit_that_would_do_other_than_its_preview_said_is_asked_again(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    page = visitor.get("/browse", family="people", genus="team", specimen="Aisha")
    path = re.search(r'href="(/scopes/specimen/[^"]+)"', page)[1]  # type: ignore[index]
    edit = {"scope": ["hr"], "cascade": "1"}
    seen = seen_in(visitor.post(f"{path}/preview", **edit))
    with filled.memory() as memory:
        memory.ingest_context("people", "team", "Aisha", ["Aisha keeps bees."])
    for sent in (seen, "", "0" * 64):
        page = visitor.post(path, 409, **edit, seen=sent)
        assert "Nothing was changed" in text_of(page)
        assert "6 rows would change" in text_of(page)
    assert filled.contents() >= {HEBREW, "Aisha keeps bees."}
    assert "6 rows changed" in visitor.post(path, **edit, seen=seen_in(page))
    assert not filled.contents() & {HEBREW, "Aisha keeps bees."}
    page = visitor.post(path, 409, **edit, seen=seen)  # sent once more
    assert "That is how it is already." in text_of(page)


def test_an_edit_is_carried_out_on_what_was_seen_though_as_many_rows_would_change(visit: Visit, filled: Filled) -> None:
    """A statement gets another audience between the look and the change: somebody else would lose sight of it."""
    visitor, observer, other = visit("hr"), filled.db.connect(), filled.db.connect("app")
    path, id = f"/scopes/statement/{filled.ids['raise']}", filled.ids["raise"]
    with filled.memory("hr", "board") as memory:
        memory.set_required_scopes("statement", id, ["hr", "board"])
    seen = seen_in(visitor.post(f"{path}/preview", scope="hr"))
    other.execute("begin")
    other.execute("select graphium.set_caller(tenant => %s, scopes => '{hr,legal}')", [filled.tenant])
    other.execute("select graphium.set_required_scopes('statement', %s, '{hr,legal}')", [id])
    with in_thread(lambda: visitor.post(path, 409, scope="hr", seen=seen)) as sent:
        wait_until_it_blocks(observer, other)
        other.execute("commit")
    assert "holders of legal alone" in text_of(sent.result())
    with filled.memory("legal") as memory:
        (row,) = memory.recall_context(statement_ids=[id])
        assert row.required_scopes == ("hr", "legal")
    # nor does the digest of one edit carry out another
    seen = seen_in(visitor.post(f"{path}/preview", scope=["hr", "a"]))
    visitor.post(path, 409, scope=["hr", "b"], seen=seen)


def test_a_scope_over_two_lines_stays_itself_in_a_form(visit: Visit, filled: Filled) -> None:
    """Browsers send each line break as two characters."""
    with filled.memory("hr") as memory:
        memory.set_required_scopes("statement", filled.ids["raise"], ["hr", "board\nroom"])
    visitor, path = visit("hr"), f"/scopes/statement/{filled.ids['raise']}"
    visitor.get(path)
    assert "That is how it is already." in visitor.post(f"{path}/preview", scope=["hr", "board\r\nroom"])


def test_all_scopes_that_something_has_are_in_its_form(visit: Visit, filled: Filled) -> None:
    scopes = ["hr", *(f"s{n:02}" for n in range(61))]
    with filled.memory("hr") as memory:
        memory.set_required_scopes("statement", filled.ids["raise"], scopes)
    page = visit("hr").get(f"/scopes/statement/{filled.ids['raise']}")
    assert sorted(re.findall(r'name="scope" value="(\w+)" checked', page)) == scopes


def test_an_edit_that_others_overtake_between_its_look_and_its_change_is_asked_again(
    visit: Visit, filled: Filled
) -> None:
    visitor, observer = visit("hr"), filled.db.connect()
    page = visitor.get("/browse", family="people", genus="team", specimen="Aisha")
    path = re.search(r'href="(/scopes/specimen/[^"]+)"', page)[1]  # type: ignore[index]
    edit = {"scope": ["hr"], "cascade": "1"}
    seen = seen_in(visitor.post(f"{path}/preview", **edit))
    other = filled.db.connect("app")
    other.execute("begin")
    other.execute("select graphium.set_caller(tenant => %s, scopes => '{}')", [filled.tenant])
    other.execute("select graphium.ingest_context('people', 'team', 'Aisha', '[{\"content\": \"Bees hum.\"}]')")
    with in_thread(lambda: visitor.post(path, 409, **edit, seen=seen)) as sent:
        wait_until_it_blocks(observer, other)
        other.execute("commit")
    page = sent.result()
    assert "6 rows would change" in text_of(page)
    assert filled.contents() >= {HEBREW, "Bees hum."}


def test_an_edit_of_scopes_is_previewed_and_refused_where_the_caller_would_lose_sight(
    visit: Visit, filled: Filled
) -> None:
    visitor = visit("hr")
    page = visitor.get("/browse", family="people", genus="team", specimen="Aisha")
    path = re.search(r'href="(/scopes/specimen/[^"]+)"', page)[1]  # type: ignore[index]
    visitor.get(path)
    said = text_of(visitor.post(f"{path}/preview", scope=["hr"], cascade="1"))
    assert "5 rows would change" in said  # Aisha, and what is open; the raise is for hr already, the court is hidden
    assert "Everyone in the tenant who holds none of hr would lose sight" in said
    assert "1 specimen open hr everyone without hr" in said
    assert "4 statements open hr everyone without hr" in said
    assert filled.contents() & {HEBREW}  # nothing changed yet
    for step in ("/preview", ""):
        said = text_of(visitor.post(path + step, status=403 if not step else 200, scope=["legal"]))
        assert "Refused: after this edit you could not see it yourself." in said
    seen = seen_in(visitor.post(f"{path}/preview", scope=["hr"], cascade="1"))
    assert "5 rows changed" in visitor.post(path, scope=["hr"], cascade="1", seen=seen)
    assert not filled.contents() & {HEBREW}
    assert filled.contents("legal") >= {"The lawsuit goes to court."}  # as it was


def test_what_is_applied_is_what_was_previewed(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    path = f"/scopes/statement/{filled.ids['written']}"
    visitor.get(path)
    page = visitor.post(f"{path}/preview", scope=["hr", "a\u202eb"])
    edit, apply = (part.split("</form>")[0] for part in page.split('<form id="')[1:])
    assert "formaction" not in page
    assert f'action="{path}/preview"' in edit
    assert f'action="{path}"' in apply
    assert re.findall(r'<input type="(\w+)" name="(?:scope|cascade)" value="([^"]+)"', apply) == [
        ("hidden", "hr"),
        ("hidden", "a\u202eb"),
    ]
    assert "everyone without <bdi>hr</bdi> or <bdi>a\u202eb</bdi>" in page  # each keeps its direction to itself


def test_opening_up_says_that_nobody_loses_sight(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    path = f"/scopes/statement/{filled.ids['raise']}"
    visitor.get(path)
    assert "Nobody would lose sight of anything. Everyone in the tenant would see all of it." in text_of(
        visitor.post(f"{path}/preview")
    )
    assert "That is how it is already." in text_of(visitor.post(f"{path}/preview", scope="hr"))


def test_wake_up_keeps_to_the_budget(visit: Visit) -> None:
    page = visit().get("/wake-up", budget="50")
    assert contents(re.sub(r"<a [^>]+>|</a>", "", page)) == ["Aisha prefers written feedback."]
    assert "8 of 50 tokens, 1 statement" in text_of(page)  # 31 characters / 4, rounded up
    assert "50 tokens" in text_of(visit().get("/wake-up", budget="-7"))


def test_the_graph_is_a_picture_with_links(visit: Visit) -> None:
    page = visit().get("/graph")
    svg = page.split('<svg class="graph"')[1].split("</svg>\n</div>")[0]
    for url in ("family=people", "family=people&amp;genus=team", "family=people&amp;genus=team&amp;specimen=Aisha"):
        assert f'href="/browse?{url}"' in svg
    assert svg.count('class="curve k-related_to"') == 1
    assert svg.count('class="curve k-supersedes"') == 1
    assert "plans related to people › team › Aisha: she leads it" in svg


def test_the_graph_of_a_family_lists_the_symbioses_that_touch_it(visit: Visit) -> None:
    visitor = visit()
    said = {name: text_of(visitor.get("/graph", family=name)) for name in ("people", "plans", "wishes")}
    assert "she leads it" in said["people"]
    assert "supersedes" not in said["people"].split("1 symbiosis")[1]
    assert "2 symbioses" in said["plans"]
    assert "she leads it" not in said["wishes"].split("1 symbiosis")[1]


def test_a_name_of_the_address_that_is_not_offered_is_still_told(visit: Visit) -> None:
    visitor = visit()
    assert '<option value="absent" selected>absent</option>' in visitor.get("/search", q="bees", family="absent")
    assert '<option value="absent" selected>absent</option>' in visitor.get("/browse", scope="absent")
    assert "There is no family “ absent ” here." in text_of(visitor.get("/wake-up", status=404, family="absent"))
    assert "There is no family" not in visitor.get(
        "/wake-up", family="wishes", budget=50
    )  # which has nothing preloaded


def test_a_similarity_just_below_nothing_is_nothing() -> None:
    assert [percent(value) for value in (-0.004, 0.004, -0.006, 0.5, 0.996)] == [".00", ".00", "-.01", ".50", "1.00"]


def test_an_admin_is_told_which_logins_would_lose_sight(filled: Filled) -> None:
    with Graphium(filled.db.dsn("admin"), tenant=filled.tenant, embedder=WordEmbedder()) as admin:
        (row,) = admin.preview_required_scopes("statement", [filled.ids["written"]], ["hr"])
        assert row.losing_principals == (filled.db.cluster.role(filled.reader),)  # the other one holds hr
        assert (row.row_kind, row.old_scopes, row.row_count, row.losing_everyone) == ("statement", (), 1, True)
    with filled.memory("hr") as memory:
        (row,) = memory.preview_required_scopes("statement", [filled.ids["written"]], ["hr"])
        assert row.losing_principals == ()


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\x1b[31m", "\u202e", "\ufffe"], ids=ascii)
def test_characters_that_no_text_has_are_refused_or_shown(visit: Visit, filled: Filled, text: str) -> None:
    visitor = visit("hr")
    statement = filled.ids["written"]
    for path, names in {
        "/browse": ("family", "genus", "specimen", "type", "layer", "scope", "since", "until", "after"),
        "/search": ("q", "by", "family", "type", "layer", "since"),
        "/wake-up": ("budget",),
        "/graph": ("family",),
        "/ingest": ("family", "specimen"),
        f"/statement/{statement}": ("said",),
    }.items():
        for name in names:
            response = visitor.client.get(path, params={name: text})
            assert response.status_code in (200, 400, 404, 422), (path, name, text_of(response.text))
    visitor.get("/ingest")
    for path, fields in {
        "/ingest/preview": {**PLACE, "text": f"Bees{text} hum."},
        "/ingest": {**PLACE, "family": f"f{text}", "content-1": "Bees hum.", "line": "1"},
        f"/statement/{statement}/reword": {"content": f"Bees{text} sing."},
        f"/scopes/statement/{statement}": {"scope": ["hr", text]},
    }.items():
        response = visitor.client.post(path, data={"csrf": visitor.csrf, **fields})
        assert response.status_code in (200, 400, 403, 404), (path, text_of(response.text))
        if "\x00" in text and path != "/ingest/preview":
            assert "contains U+0000" in text_of(response.text), path
