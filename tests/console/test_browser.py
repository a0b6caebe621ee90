"""In a real browser: each numbered point, hostile content, two callers side by side, and people who cannot see or point."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from graphium_db import Graphium
from tests.console.browser import Browser, free_port, listening, require_browser
from tests.console.conftest import HEBREW, HOSTILE, KEY, LONG, Filled, config, fill
from tests.support.databases import Database

Open = Callable[..., Browser]


@pytest.fixture(scope="module")
def filled(db: Database) -> Filled:
    slug = f"harbour {secrets.token_hex(3)}"
    db.connect("admin").execute("select graphium.create_tenant(slug => %s)", [slug])
    return fill(db, slug)


@pytest.fixture(scope="module")
def address(filled: Filled) -> Iterator[str]:
    require_browser()
    with listening(config(filled, port=free_port())) as address:
        yield address


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    """Of one who holds hr."""
    browser = Browser(address)
    yield browser.look_in(KEY, "hr")
    browser.close()


@pytest.fixture
def open_browser(address: str) -> Iterator[Open]:
    opened: list[Browser] = []

    def open_browser(*scopes: str, **settings: object) -> Browser:
        opened.append(Browser(address, **settings))  # type: ignore[arg-type]
        return opened[-1].look_in(KEY, *scopes)

    yield open_browser
    for browser in opened:
        browser.close()


def test_two_callers_side_by_side(browser: Browser, open_browser: Open) -> None:
    other = open_browser("legal")
    mine, theirs = (b.go("/browse?family=people").texts(".card .content") for b in (browser, other))
    assert "The raise is six percent." in mine
    assert "The lawsuit goes to court." not in mine
    assert "The lawsuit goes to court." in theirs
    assert "The raise is six percent." not in theirs
    assert set(mine) & set(theirs) == {HEBREW, LONG[:600] + "…", HOSTILE, "Aisha prefers written feedback."}
    assert (browser.one(".who").text.split()[-3], other.one(".who").text.split()[-3]) == ("hr", "legal")


def test_browsing_down_and_filtering_keeps_a_url_for_every_state(browser: Browser, filled: Filled) -> None:
    browser.go("/browse").one(".overview th a").click()
    browser.until(lambda: browser.one("h1").text == "people")
    browser.one("input[name='type'][value='preference'] + span").click()
    browser.until(lambda: browser.texts(".card .content") == ["Aisha prefers written feedback."])
    assert "type=preference" in browser.driver.current_url
    # What leads on keeps the filter, as it does on the page that the URL gives.
    states = []
    for _ in range(2):
        states.append(
            [
                browser.run(
                    f"return [...document.querySelectorAll('{css}')].map(e => [e.getAttribute('href'), e.textContent])"
                )
                for css in ("#tree a", "#crumbs a", "#total", "#overview")
            ]
        )
        browser.driver.refresh()
    assert states[0] == states[1]
    assert all("type=preference" in href for href, _ in states[0][0] + states[0][1])
    assert browser.one("#total").text == "1 of 5 statements"
    assert browser.texts(".card .content") == ["Aisha prefers written feedback."]
    browser.driver.back()
    browser.until(lambda: len(browser.all(".card")) == 5)


def test_load_more_adds_to_the_page(browser: Browser, filled: Filled) -> None:
    with filled.memory() as memory:
        memory.ingest_context("many", "g", "s", [{"content": f"Number {n}.", "embedding": None} for n in range(1, 71)])
    browser.go("/browse?family=many")
    for expected, said in ((60, "30 more statements, 60 in all"), (70, "10 more statements, 70 in all")):
        first_new = len(browser.all(".card"))
        browser.one(".more a").send_keys(Keys.ENTER)
        browser.until(lambda said=said: browser.one("#said").get_attribute("textContent") == said)
        assert len(browser.all(".card")) == expected
        assert browser.driver.switch_to.active_element == browser.all(".card")[first_new]
    assert "shown=90" in browser.driver.current_url
    browser.driver.refresh()
    assert browser.texts(".card .content") == [f"Number {n}." for n in range(70, 0, -1)]
    assert browser.all(".more") == []


def test_search_as_one_types(browser: Browser) -> None:
    browser.go("/search").one("#q").send_keys("written feedback")
    browser.until(lambda: browser.texts(".card .content")[0] == "Aisha prefers written feedback.")
    assert browser.texts(".card mark")[:2] == ["written", "feedback"]
    assert "q=written%20feedback" in browser.driver.current_url
    assert browser.driver.switch_to.active_element.get_attribute("id") == "q"


def test_hostile_content_is_text(browser: Browser, filled: Filled) -> None:
    browser.complaints()
    for path in (f"/statement/{filled.ids['hostile']}", "/browse?family=people", "/search?q=script", "/graph"):
        browser.go(path)
        assert "taken" not in browser.driver.title, path
        assert browser.all("main b") == [], path
    assert browser.go(f"/statement/{filled.ids['hostile']}").one(".content").text == HOSTILE
    assert [c for c in browser.complaints() if "favicon" not in c] == []


def test_long_words_and_right_to_left_text_stay_in_their_place(
    browser: Browser, open_browser: Open, filled: Filled
) -> None:
    narrow = open_browser(width=360, height=740)
    for who in (browser, narrow):
        for path in (f"/statement/{filled.ids['long']}", "/browse?family=people", "/search?q=WWW", "/graph", "/ingest"):
            who.go(path)
            assert who.run("return document.documentElement.scrollWidth - innerWidth") <= 0, path
    browser.go(f"/statement/{filled.ids['hebrew']}")
    assert browser.run("return getComputedStyle(document.querySelector('.content')).direction") == "rtl"


def test_on_a_narrow_screen_nothing_is_cut_off(open_browser: Open, filled: Filled) -> None:
    narrow = open_browser("hr", width=390, height=844)
    beyond = "return document.documentElement.scrollWidth - innerWidth"
    for menu in narrow.go("/browse?family=people").all(".menu summary")[:2]:
        menu.click()
        box = narrow.run("return document.querySelector('[open] > .pop').getBoundingClientRect().toJSON()")
        assert (box["left"] >= 0, box["right"] <= 390, narrow.run(beyond) <= 0) == (True, True, True)
    # The tree has a box of its own; what is chosen in it is in sight, also after a filter.
    with filled.memory() as memory:
        for n in range(25):
            memory.ingest_context(f"a{n}", "g", "s", [{"content": f"Number {n} of many.", "embedding": None}])
    chosen = """
        const tree = document.getElementById("tree").getBoundingClientRect();
        const node = document.querySelector("#tree [aria-current]").getBoundingClientRect();
        return tree.top <= node.top && node.bottom <= tree.bottom"""
    narrow.go("/browse?family=people&genus=team&specimen=Aisha")
    assert narrow.run(chosen)
    narrow.one("input[name='type'][value='preference'] + span").click()
    narrow.until(lambda: narrow.one("#total").text == "1 of 5 statements")
    assert narrow.run(chosen)
    # The picture scrolls in its own box, and says so; a table is lines, of whole words.
    narrow.go("/graph")
    assert narrow.one(".scroll-hint").is_displayed()
    assert narrow.run("const c = document.querySelector('.canvas'); return c.scrollWidth > c.clientWidth")
    assert narrow.run(beyond) <= 0
    assert narrow.one("table td").size["width"] > 300


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_names_of_any_length_stay_in_their_place(open_browser: Open, filled: Filled, width: int) -> None:
    """On every page, forms and tables too; axe looks at each."""
    family, genus, specimen, scope, source = (letter * 190 for letter in "FGSCD")
    with filled.memory("hr", scope) as memory:
        item = {"content": "Aisha likes bees.", "source": source, "required_scopes": ["hr", scope]}
        (row,) = memory.ingest_context(family, genus, specimen, [item])
    with Graphium(filled.db.dsn("admin"), tenant=filled.tenant) as boss:
        boss.link_symbiosis("related_to", {"family": family}, {"family": "people"}, "n" * 190)
    who = open_browser("hr", width=width, height=844)
    place = f"family={family}&genus={genus}&specimen={specimen}"
    faults = {}

    def look(name: str) -> None:
        beyond = who.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        faults[name] = [*who.accessibility(), *([f"{beyond} px too wide"] if beyond > 0 else [])]

    for path in (
        "/browse",
        "/browse?since=" + "x" * 190,
        "/browse?scope=" + "x" * 190,
        "/browse?type=" + "x" * 190,
        f"/browse?family={family}",
        f"/browse?family={family}x",
        f"/browse?{place}",
        f"/statement/{row.statement_id}",
        f"/statement/{row.statement_id}/forget",
        f"/statement/{row.statement_id}/reword",
        f"/scopes/statement/{row.statement_id}",
        "/search?q=bees",
        "/search?q=bees&family=" + "x" * 190,
        "/search?q=" + "x" * 190,
        f"/ingest?{place}",
        "/wake-up",
        "/wake-up?family=" + "x" * 190,
        "/graph",
        f"/graph?family={family}",
        f"/graph?family={family}x",
        "/nothing",
    ):
        who.go(path)
        look(path)
    who.go(f"/browse?family={family}").one(".title-buttons a").click()
    who.until(lambda: who.all("#edit"))
    for name in (scope, "hr"):
        who.one(f"input[name='scope'][value='{name}'] + span").click()
    who.one("input[name='cascade']").click()
    who.until(lambda: "would change" in who.one("#preview").text)
    look("preview of scopes")
    who.go(f"/ingest?{place}").one("textarea").send_keys(f"Aisha likes bees. {'W' * 190}.")
    who.one("main .primary").click()
    who.until(lambda: len(who.all("td.content")) == 2)
    look("preview")
    who.one("main .primary").click()
    who.until(lambda: who.all(".result"))
    look("saved")
    who.go(f"/statement/{row.statement_id}/forget").one("main .danger").click()
    who.until(lambda: who.one("h1").text == "Forgotten")
    look("forgotten")
    who.driver.delete_all_cookies()
    who.go("/login")
    look("/login")
    assert {path: found for path, found in faults.items() if found} == {}


def test_in_the_picture_names_end_before_their_counts(browser: Browser, filled: Filled) -> None:
    names = [
        "W" * 60,
        "m" * 60,
        "i" * 60,
        "字" * 60,
        "ก" * 60,
        "ж" * 60,
        "한" * 60,
        "a name of usual length",
    ]
    with filled.memory() as memory:
        for name in names:
            memory.ingest_context(
                name, name, name, [{"content": f"{name[:3]} {n}", "embedding": None} for n in range(12)]
            )
    places = browser.go("/graph").run("""return [...document.querySelectorAll(".graph g > a")].map(a => {
        const [name, count] = a.querySelectorAll("text"), room = a.querySelector("svg");
        const width = room.width.baseVal.value;
        return [name.textContent, count.getBBox().x - room.x.baseVal.value - width, name.getBBox().width - width]})""")
    assert len(places) > 3 * len(names)
    assert [place for place in places if place[1] < 2] == []
    assert [name for name, _, beyond in places if beyond > 0 and name[0] not in "Wก字한ж"] == []  # these are clipped
    assert {"a name of usual length"} <= {name for name, _, _ in places}
    assert all(len(name) > 12 for name, _, _ in places if name.endswith("…"))


def test_an_edit_of_words_is_explained_where_one_looks_for_it(browser: Browser, filled: Filled) -> None:
    browser.go(f"/statement/{filled.ids['written']}").one(".menu summary").click()
    assert "Content cannot be edited: forget and ingest again." in browser.one(".pop").text
    browser.one(".pop a").click()
    browser.until(lambda: browser.one("textarea").get_property("value") == "Aisha prefers written feedback.")


def test_what_became_of_a_form_has_the_focus(browser: Browser, filled: Filled) -> None:
    browser.go(f"/statement/{filled.ids['long']}").one(".menu summary").click()
    browser.one(".labels select[name='layer'] option[value='preloaded']").click()
    browser.one(".labels button").click()
    browser.until(lambda: browser.all(".notice.good"))
    browser.until(lambda: browser.run("return document.activeElement.getAttribute('role')") == "status")
    assert "It has the labels that you chose." in browser.driver.switch_to.active_element.text


def test_ingest_preview_pill_and_forgetting(browser: Browser, filled: Filled) -> None:
    browser.go("/ingest?family=people&genus=team&specimen=Aisha").one("textarea").send_keys(
        "Aisha prefers written feedback. Aisha keeps bees."
    )
    browser.one("main .primary").click()
    shown = lambda: [box.get_property("value") for box in browser.all(".preview textarea")]  # noqa: E731
    browser.until(lambda: shown() == ["Aisha prefers written feedback.", "Aisha keeps bees."])
    browser.one("[name=join]").click()
    browser.until(lambda: shown() == ["Aisha prefers written feedback. Aisha keeps bees."])
    browser.one(".preview textarea").clear()
    browser.one(".preview textarea").send_keys("Aisha prefers written feedback.\n\nAisha keeps bees.")
    browser.one("[name=again]").click()
    browser.until(lambda: shown() == ["Aisha prefers written feedback.", "Aisha keeps bees."])
    browser.one("main .primary").click()
    browser.until(lambda: browser.all(".result"))
    assert browser.texts(".result .pill") == ["Dedup: matched existing statement"]
    assert browser.one(".result.known a").get_attribute("href").endswith(filled.ids["written"])
    browser.one(".result:not(.known) a").click()
    browser.until(lambda: browser.all(".card"))
    browser.one(".card .danger").click()
    browser.until(lambda: browser.one("h1").text == "Forget this statement?")
    assert "Aisha keeps bees." in browser.one("blockquote").text
    browser.one("main .danger").click()
    browser.until(lambda: browser.one("h1").text == "Forgotten")
    assert "Aisha keeps bees." not in filled.contents()


def test_scopes_are_previewed_as_chips_change(browser: Browser, filled: Filled) -> None:
    browser.go(f"/scopes/statement/{filled.ids['written']}")
    browser.one("input[name='scope'][value='hr'] + span").click()
    browser.until(lambda: "1 row would change" in browser.one("#preview").text)
    assert "everyone without hr" in browser.one("#preview").text
    browser.one("input[name='scope'][value='hr'] + span").click()
    browser.until(lambda: "That is how it is already." in browser.one("#preview").text)
    browser.one("input[list]").send_keys("board", Keys.TAB)
    browser.until(lambda: "Refused" in browser.one("#preview").text)
    browser.one("input[name='scope'][value='hr'] + span").click()  # hr or board: he still sees it
    browser.until(lambda: "1 row would change" in browser.one("#preview").text)
    browser.one("#preview .primary").click()
    browser.until(lambda: browser.one("h1").text == "1 row changed")
    browser.go(f"/scopes/statement/{filled.ids['written']}")
    for scope in ("hr", "board"):
        browser.one(f"input[name='scope'][value='{scope}'] + span").click()
    browser.until(lambda: "Everyone in the tenant would see all of it." in browser.one("#preview").text)
    browser.one("#preview .primary").click()
    browser.until(lambda: browser.one("h1").text == "1 row changed")


@pytest.mark.parametrize("scripts", [True, False], ids=["script", "no script"])
def test_no_key_saves_scopes_that_were_not_previewed(open_browser: Open, filled: Filled, scripts: bool) -> None:
    browser = open_browser("hr", scripts=scripts)
    path = f"/scopes/statement/{filled.ids['hebrew']}"

    def preview_of(*scopes: str) -> bool:
        return [i.get_attribute("value") for i in browser.all("#apply input[name='scope']")] == list(scopes)

    browser.go(path).one("input[list]").send_keys("hr", Keys.ENTER)
    browser.until(lambda: preview_of("hr"))
    for key in (Keys.TAB, Keys.ENTER):  # with a preview shown
        field = browser.one("input[list]")
        field.clear()
        field.send_keys("zeta" if key == Keys.TAB else "eta", key)
    browser.until(lambda: preview_of("hr", "eta") if not scripts else "Refused" in browser.one("#preview").text)
    assert browser.one("h1").text.startswith("Who may see")
    assert HEBREW in filled.contents()  # still open
    browser.go(path).one("input[list]").send_keys("hr", Keys.ENTER)
    browser.until(lambda: preview_of("hr"))
    browser.run("document.querySelector('input[list]').value = 'zeta'") if scripts else browser.one(
        "input[list]"
    ).send_keys("zeta")
    browser.one("#apply button").send_keys(Keys.ENTER)
    browser.until(lambda: browser.one("h1").text == "1 row changed")
    with filled.memory("hr") as memory:
        (row,) = memory.recall_context(statement_ids=[filled.ids["hebrew"]])
        assert row.required_scopes == ("hr",)
        memory.set_required_scopes("statement", row.statement_id, [])


def test_the_slider_and_the_picture(browser: Browser) -> None:
    browser.go("/wake-up?budget=100").one("#budget").send_keys(Keys.ARROW_RIGHT)
    assert browser.one("output").text == "150"
    browser.until(lambda: "of 150 tokens" in browser.one("#woken").text)
    browser.go("/graph").one("svg.graph a[href$='specimen=Aisha']").click()
    browser.until(lambda: browser.one("h1").text == "Aisha")


def test_the_key_does_not_stay_in_the_address(browser: Browser, address: str) -> None:
    other = Browser(address)
    try:
        other.go(f"/login?key={KEY}&next=/graph")
        other.until(lambda: other.driver.current_url == f"{address}/login")
        assert other.one("input[name='key']").get_attribute("value") == KEY
        assert other.one("input[name='next']").get_attribute("value") == "/graph"
    finally:
        other.close()


def test_a_console_that_is_gone_is_told_where_one_sees_it(browser: Browser) -> None:
    def search(text: str) -> None:
        browser.one("#q").clear()
        browser.one("#q").send_keys(text)

    browser.go("/search")
    assert not browser.one("#gone").is_displayed()
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/search?*"]})
    try:
        search("feedback")
        browser.until(lambda: browser.one("#gone").is_displayed())
        assert "The console does not answer" in browser.one("#gone").text
        assert browser.one("#results").get_attribute("aria-busy") != "true"
    finally:
        browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    search("written feedback")
    browser.until(lambda: browser.all(".card") and not browser.one("#gone").is_displayed())
    browser.complaints()


def test_keys_alone_are_enough(browser: Browser) -> None:
    browser.go("/browse")
    body = browser.one("body")
    body.send_keys(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to content"
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main"
    browser.driver.switch_to.active_element.send_keys("/")
    browser.until(lambda: browser.driver.switch_to.active_element.get_attribute("id") == "q")
    # Whatever can be clicked can be reached, in the order in which it is read.
    browser.go("/browse?family=people")
    unreachable = "return [...document.querySelectorAll('a[href], button, summary, input:not([type=hidden]), select')].filter(e => e.tabIndex < 0).length"
    assert browser.run(unreachable) == 0


def test_pages_read_without_scripts(open_browser: Open) -> None:
    plain = open_browser("hr", scripts=False)
    assert plain.go("/browse?family=many").texts(".card .content")[0] == "Number 70."
    plain.one(".more a").click()
    plain.until(lambda: plain.texts(".card .content")[0] == "Number 40.")
    assert plain.go("/search?q=feedback").texts(".card .content")[0] == "Aisha prefers written feedback."
    assert plain.go("/wake-up").all(".woken li")
    assert plain.go("/graph").all("svg.graph a")
    assert all(not b.is_displayed() for b in plain.all(".needs-script"))
    assert not plain.go("/wake-up").one("output").is_displayed()  # it would go on saying what it said first


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(open_browser: Open, filled: Filled, dark: bool) -> None:
    browser = open_browser("hr", dark=dark)
    ids = filled.ids
    faults = {}
    for path in ("/browse", "/browse?family=people", "/browse?family=nope", f"/statement/{ids['written']}", f"/statement/{ids['old']}", f"/statement/{ids['written']}/forget", f"/statement/{ids['written']}/reword", f"/scopes/statement/{ids['written']}", "/search?q=written+feedback&count=10", "/search", "/ingest", "/wake-up", "/graph", "/nothing"):  # fmt: skip
        faults[path] = browser.go(path).accessibility()
    browser.go("/ingest?family=people&genus=team&specimen=Aisha").one("textarea").send_keys(
        "Aisha prefers written feedback."
    )
    browser.one("main .primary").click()
    browser.until(lambda: browser.all("td.content"))
    faults["preview"] = browser.accessibility()
    browser.one("main .primary").click()
    browser.until(lambda: browser.all(".result"))
    faults["saved"] = browser.accessibility()
    browser.driver.delete_all_cookies()
    faults["/login"] = browser.go("/login").accessibility()
    assert {path: found for path, found in faults.items() if found} == {}
