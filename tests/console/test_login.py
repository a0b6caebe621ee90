"""Point 1: who one is, and that nobody else changes anything in his name."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote_plus

import psycopg
import pytest
from psycopg_pool import PoolTimeout
from starlette.testclient import TestClient
from starlette.types import Message

from graphium_db.aio import AsyncGraphium
from graphium_db.console import Allowed, Config, create_app, guard
from graphium_db.console.config import read_allowed
from graphium_db.console.pages import login
from graphium_db.console.sessions import AT_ONCE, IDLE, PER_NAME, Sessions
from graphium_db.console.templating import _quoted_name
from graphium_db.errors import BadArgumentError
from tests.console.conftest import HEBREW, KEY, Filled, Visitor, config, text_of

Visit = Callable[..., Visitor]


def _hidden(page: str, *names: str) -> dict[str, str]:
    return {
        name: html.unescape(value)
        for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)
        if name in names
    }


def test_without_a_login_every_page_leads_to_it_and_back(visit: Visit) -> None:
    visitor = visit(look_in=False)
    for path in ("/", "/browse", "/search", "/ingest", "/wake-up", "/graph"):
        response = visitor.client.get(path, follow_redirects=False)
        assert (response.status_code, response.headers["location"].split("?")[0]) == (303, "/login"), path
    response = visitor.client.get("/browse?family=people&type=fact", follow_redirects=False)
    assert response.headers["location"] == "/login?next=%2Fbrowse%3Ffamily%3Dpeople%26type%3Dfact"
    visitor.get("/login")
    assert 'name="family" value="people"' in visitor.post(
        "/login", **{"as": "tenant", "tenant": "0", "key": KEY, "next": "/browse?family=people"}
    )


def test_a_session_that_ended_leads_back_to_where_one_was(visit: Visit) -> None:
    client = visit(look_in=False).client
    part = {"hx-request": "true"}
    assert client.get("/search?q=bees", headers=part).headers["hx-redirect"] == "/login?next=%2Fsearch%3Fq%3Dbees"
    path = "/scopes/statement/01a22c30-0000-7000-8000-000000000000"
    answer = client.post(f"{path}/preview", headers=part)
    assert answer.headers["hx-redirect"] == f"/login?next={quote_plus(path)}"
    for sent, form in (
        ("/ingest", "/ingest"),
        ("/ingest/preview", "/ingest"),
        ("/statement/{}/labels", "/statement/{}"),
    ):
        id = "01a22c30-0000-7000-8000-000000000000"
        answer = client.post(sent.format(id), headers={"referer": "http://["})
        assert answer.status_code == 403
        assert f'name="next" value="{form.format(id)}"' in answer.text


def test_what_was_typed_outlives_the_session(visit: Visit, filled: Filled) -> None:
    visitor = visit("hr")
    before = filled.contents()
    typed = {
        "family": "pläne",
        "genus": "g",
        "specimen": "s",
        "text": "One & two.\n שלום  +%",
        "mode": "lines",
        "scope": ["hr", "legal"],
    }

    def end_and_send(path: str, shown: str, **fields: Any) -> str:
        visitor.client.app.app.state.sessions._open.clear()  # type: ignore[attr-defined]
        visitor.client.headers["referer"] = f"http://testserver{shown}"
        page = visitor.post(path, 403, **fields)
        assert (
            "Your session has ended. Nothing was saved. Log in, and you come back to the form as you left it."
            in text_of(page)
        )
        return page

    def come_back(page: str) -> str:
        who = {"as": "tenant", "tenant": "0", "scope-0": "hr"}
        wrong = visitor.post("/login", 403, **who, key="wrong", **_hidden(page, "next", "draft"))
        return visitor.post("/login", **who, key=KEY, **_hidden(wrong, "next", "draft"))

    page = come_back(end_and_send("/ingest/preview", "/ingest", **typed))
    assert "One &amp; two.\n שלום  +%</textarea>" in page.replace("\r\n", "\n")
    assert 'value="pläne"' in page
    assert len(re.findall(r'name="scope" value="(?:hr|legal)" checked', page)) == 2
    assert "One &amp; two." not in visitor.get("/ingest")  # once

    page = visitor.post("/ingest/preview", **typed)
    page = come_back(
        end_and_send(
            "/ingest",
            "/ingest/preview",
            **typed,
            **{"content-1": "One & two.", "type-1": "decision", "layer-1": "preloaded"},
        )
    )
    page = visitor.post("/ingest/preview", **typed, **_hidden(page, "kept"))
    assert re.search(r'name="type-1".*?value="decision" selected', page, re.S)

    at = f"/statement/{filled.ids['written']}/reword"
    page = come_back(end_and_send(at, at, content="Aisha likes letters."))
    assert "Aisha likes letters.</textarea>" in page

    at = f"/scopes/statement/{filled.ids['written']}"
    page = come_back(end_and_send(at, at, scope=["hr", "board"]))
    assert re.findall(r'name="scope" value="(\w+)" checked', page) == ["hr", "board"]
    assert "1 row would change" in text_of(page)

    at = f"/statement/{filled.ids['written']}"
    for shown in (at, "/browse?family=people"):  # a card stands on many pages
        page = come_back(end_and_send(f"{at}/labels", shown, type="advice", layer="on_demand"))
        assert '<details class="menu" open>' in page
        assert re.search(r'name="type">.*?value="advice" selected.*?</select>', page, re.S)
        assert re.search(r'name="layer">.*?value="on_demand" selected.*?</select>', page, re.S)
        assert '<details class="menu">' in visitor.get(at)
    assert filled.contents() == before


def test_a_form_that_is_not_of_the_session_keeps_what_was_typed(visit: Visit, filled: Filled) -> None:
    visitor, before = visit("hr"), filled.contents()
    statement = f"/statement/{filled.ids['written']}"
    for sent, form, fields, shown in (
        ("/ingest", "/ingest", {"text": "One & two.", "mode": "lines"}, "One &amp; two.</textarea>"),
        ("/ingest/preview", "/ingest", {"text": "One & two.", "mode": "lines"}, "One &amp; two.</textarea>"),
        (f"{statement}/reword", f"{statement}/reword", {"content": "One & two."}, "One &amp; two.</textarea>"),
        (f"{statement}/labels", statement, {"type": "advice"}, 'value="advice" selected'),
        (f"/scopes{statement}", f"/scopes{statement}", {"scope": "board"}, 'value="board" checked'),
    ):
        page = visitor.post(sent, 403, csrf="0", **fields)
        assert "This form is not of your session. Nothing was changed." in text_of(page)
        assert f'href="{form}">Back to the form, as you left it' in page
        assert visitor.client.head(form).status_code == 200  # which takes nothing
        assert shown in visitor.get(form)
        assert shown not in visitor.get(form)
    assert filled.contents() == before


def test_a_login_offers_what_the_ended_session_had_chosen(visit: Visit, filled: Filled) -> None:
    def ticked(page: str) -> list[str]:
        return re.findall(r'name="scope-0" value="(\w+)" checked', page)

    visitor = visit(look_in=False)
    assert ticked(visitor.get("/login")) == ["hr", "legal"]
    for scopes in ([], ["legal"]):
        visitor.client.cookies.clear()
        visitor.look_in(*scopes)
        opened = visitor.client.app.app.state.sessions._open  # type: ignore[attr-defined]
        for session in opened.values():
            session.used -= IDLE + 1
        assert ticked(visitor.get("/browse")) == scopes  # the login, to which it leads
        assert not opened
        visitor.client.headers["referer"] = "http://testserver/ingest"
        assert ticked(visitor.post("/ingest/preview", 403, text="One.")) == scopes
    # a wrong key leaves what was ticked
    who = {"as": "tenant", "key": "wrong"}
    assert ticked(visitor.post("/login", 403, **who, tenant="0", **{"scope-0": ["hr", "board"]})) == ["hr"]
    page = visitor.post("/login", 403, **who, tenant="1")
    assert ticked(page) == []
    assert 'name="tenant" value="1" checked' in page
    # what nobody signed says nothing, and a logout leaves nothing
    cookie = visitor.client.cookies["graphium_8321"]
    visitor.client.cookies.clear()
    visitor.client.cookies["graphium_8321"] = "x" + cookie
    assert ticked(visitor.get("/login")) == ["hr", "legal"]
    visitor.client.cookies.clear()
    visitor.look_in("hr").get("/browse")
    assert ticked(visitor.post("/logout")) == ["hr", "legal"]


def test_what_is_too_long_to_be_kept_is_said_to_be_lost(visit: Visit) -> None:
    visitor = visit(look_in=False)
    page = visitor.post("/ingest/preview", 403, text="word " * 100_000)
    assert "Your session has ended. Nothing was saved. Log in, and send it again." in text_of(page)
    assert "word word" not in page


def test_what_is_kept_is_short_enough_to_log_in_with(visit: Visit) -> None:
    """Encoded twice: an asterisk is one byte from the browser, and five then."""
    visitor = visit(look_in=False)
    body = "text=" + "*" * 100_000
    headers = {"content-type": "application/x-www-form-urlencoded"}
    page = visitor.client.post("/ingest/preview", content=body, headers=headers)
    assert page.status_code == 403
    assert 'name="draft"' not in page.text
    assert "send it again" in text_of(page.text)


def test_addresses_of_strangers_are_not_kept(visit: Visit) -> None:
    client = visit(look_in=False).client
    before = _quoted_name.cache_info().currsize
    for n in range(20):
        client.get(f"/browse?family={n}" + "%00" * 1000, follow_redirects=False)
    assert _quoted_name.cache_info().currsize - before <= 1


@pytest.mark.parametrize(
    "next", ["//evil.example/", "/\\evil.example", "https://evil.example/", "/é\\evil.example", "\t//evil.example"]
)
def test_a_login_leads_to_no_other_site(visit: Visit, next: str) -> None:
    visitor = visit(look_in=False)
    visitor.get("/login")
    data = {"csrf": visitor.csrf, "as": "tenant", "tenant": "0", "key": KEY, "next": next}
    assert visitor.client.post("/login", data=data, follow_redirects=False).headers["location"] == "/browse"


@pytest.mark.parametrize(
    ("next", "sent"),
    [
        ("/é/evil.example", "/%C3%A9/evil.example"),
        ("/\u200b/evil.example", "/%E2%80%8B/evil.example"),
        ("/\t/evil.example/", "/%09/evil.example/"),
        ("/browse\r\nX: 1", "/browse%0D%0AX:%201"),
        ("/\x00", "/%00"),
        ("/search?q=caf%C3%A9+au+lait", "/search?q=caf%C3%A9+au+lait"),
    ],
)
def test_what_a_login_leads_to_is_encoded(visit: Visit, next: str, sent: str) -> None:
    visitor = visit(look_in=False)
    visitor.get("/login")
    data = {"csrf": visitor.csrf, "as": "tenant", "tenant": "0", "key": KEY, "next": next}
    assert visitor.client.post("/login", data=data, follow_redirects=False).headers["location"] == sent


def test_a_tenant_is_looked_at_with_the_key_and_the_scopes_that_were_chosen(visit: Visit, filled: Filled) -> None:
    page = visit("hr").get("/browse")
    assert "six percent" in page
    assert "court" not in page
    header = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split('class="who"')[1].split("</header>")[0]))
    assert f"Tenant {filled.tenant} Role app Scopes hr" in header
    assert "legal" not in header


def test_scopes_that_are_not_allowed_cannot_be_chosen(visit: Visit) -> None:
    visitor = visit("hr", "board")
    assert "board" not in visitor.get("/browse").split("</header>")[0]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tenant": "0", "key": "wrong"}, "The access key is wrong."),
        ({"tenant": "0", "key": ""}, "The access key is wrong."),
        ({"tenant": "7", "key": KEY}, "Choose a tenant."),
        ({"tenant": "1", "key": KEY}, 'tenant: no tenant "nobody\'s tenant" for this caller'),
    ],
)
def test_who_may_not_look_in_is_told_and_stays_outside(visit: Visit, fields: dict[str, str], said: str) -> None:
    visitor = visit(look_in=False)
    visitor.get("/login")
    assert said in text_of(visitor.post("/login", status=403, **{"as": "tenant", **fields}))
    assert visitor.client.get("/browse", follow_redirects=False).status_code == 303


def test_a_principal_logs_in_with_his_own_credentials(visit: Visit, filled: Filled) -> None:
    visitor = visit(look_in=False)
    visitor.get("/login")
    cluster = filled.db.cluster
    fields = {"as": "principal", "user": cluster.role(filled.principal), "password": cluster.password}
    page = visitor.post("/login", **fields)
    assert "principal" in page.split("</header>")[0]
    assert "six percent" in page  # he holds hr
    assert "court" not in page
    assert cluster.password not in str(visitor.client.cookies)


def test_a_login_that_is_nobody_is_refused(visit: Visit, filled: Filled) -> None:
    visitor = visit(look_in=False)
    for user in ("no such login", "n" * 10_000, filled.db.cluster.role(filled.db.login())):
        visitor.get("/login")
        page = visitor.post(
            "/login", status=403, **{"as": "principal", "user": user, "password": filled.db.cluster.password}
        )
        assert "Name or password is wrong." in text_of(page), user


def test_a_reader_has_no_buttons_that_write_and_is_refused_without_them(visit: Visit, filled: Filled) -> None:
    visitor = visit(look_in=False)
    visitor.get("/login")
    visitor.post(
        "/login",
        **{"as": "principal", "user": filled.db.cluster.role(filled.reader), "password": filled.db.cluster.password},
    )
    page = visitor.get("/browse")
    assert "reads only" in page
    assert not re.search(r'href="/ingest|/forget"|/scopes/', page)
    said = text_of(visitor.post(f"/statement/{filled.ids['written']}/forget", status=403))
    assert "permission denied for function forget_context" in said
    assert "This login only reads." in said
    assert "Aisha prefers written feedback." in filled.contents()


def test_the_cookie_is_signed_http_only_and_of_this_site_alone(visit: Visit) -> None:
    visitor = visit(look_in=False)
    response = visitor.client.get("/login")
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie  # http here; https there:
    assert "Secure" in visit(look_in=False).client.get("https://testserver/login").headers["set-cookie"]
    visitor = visit()
    (name,) = visitor.client.cookies
    good = visitor.client.cookies[name]
    forged = good[:-2] + ("AA" if good[-2:] != "AA" else "BB")
    other = visit(look_in=False)
    other.client.cookies.set(name, forged)
    assert other.client.get("/browse", follow_redirects=False).status_code == 303
    other.client.cookies.set(name, good)
    assert other.client.get("/browse", follow_redirects=False).status_code == 200  # it was the signature


def test_a_login_makes_a_new_session_and_a_logout_ends_it(visit: Visit) -> None:
    visitor = visit(look_in=False)
    visitor.get("/login")
    planted = dict(visitor.client.cookies)
    visitor.look_in()
    (name,) = visitor.client.cookies
    assert visitor.client.cookies[name] != planted[name]
    held = visitor.client.cookies[name]
    visitor.get("/browse")
    visitor.post("/logout")
    again = visit(look_in=False)
    again.client.cookies.set(name, held)
    assert again.client.get("/browse", follow_redirects=False).status_code == 303


def test_a_logout_without_its_token_is_refused_and_changes_nothing(visit: Visit) -> None:
    visitor = visit()
    response = visitor.client.post("/logout", data={"csrf": "0" * 64}, follow_redirects=False)
    assert response.status_code == 403
    assert "set-cookie" not in response.headers
    assert visitor.client.get("/browse", follow_redirects=False).status_code == 200


def test_of_one_name_the_oldest_login_ends_and_nobody_elses(visit: Visit, filled: Filled) -> None:
    cluster = filled.db.cluster

    def log_in(login: str) -> Visitor:
        visitor = visit(look_in=False)
        visitor.get("/login")
        visitor.post("/login", **{"as": "principal", "user": cluster.role(login), "password": cluster.password})
        return visitor

    def is_in(visitor: Visitor) -> bool:
        return visitor.client.get("/browse", follow_redirects=False).status_code == 200

    other, tenant = log_in(filled.reader), visit()
    visitors = [log_in(filled.principal) for _ in range(PER_NAME)]
    assert all(map(is_in, visitors))
    visitors.append(log_in(filled.principal))
    assert [is_in(visitor) for visitor in visitors] == [False] + [True] * PER_NAME
    assert is_in(other)
    assert is_in(tenant)


def test_logins_come_a_few_at_a_time(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = visit(look_in=False)
    visitor.get("/login")
    monkeypatch.setattr(login, "PATIENCE", 0.01)
    opening: list[str] = []

    async def open_session(*_arguments: object, **_caller: object) -> None:
        """As a database that answers when all are there whom it will see."""
        opening.append("")
        while len(answers) < 8 - AT_ONCE:
            await asyncio.sleep(0)
        raise psycopg.OperationalError("password authentication failed")

    answers: list[int] = []
    monkeypatch.setattr(login, "open_session", open_session)

    def knock() -> None:
        response = visitor.client.post(
            "/login", data={"csrf": visitor.csrf, "as": "principal", "user": "x", "password": "y"}
        )
        answers.append(response.status_code)
        assert (response.headers.get("retry-after") == "5") == (response.status_code == 503)

    with ThreadPoolExecutor(8) as pool:
        for knocked in [pool.submit(knock) for _ in range(8)]:
            knocked.result()
    assert sorted(answers) == [403] * AT_ONCE + [503] * (8 - AT_ONCE)
    assert len(opening) == AT_ONCE


def test_a_date_style_and_an_encoding_of_ones_own_do_no_harm(visit: Visit, filled: Filled) -> None:
    cluster = filled.db.cluster
    role = cluster.role(filled.principal)
    for setting in ("datestyle = 'SQL, DMY'", "client_encoding = latin1"):
        filled.db.connect().execute(f'alter role "{role}" set {setting}')
    visitor = visit(look_in=False)
    visitor.get("/login")
    visitor.post("/login", **{"as": "principal", "user": role, "password": cluster.password})
    assert HEBREW in visitor.get("/browse", family="people")


@pytest.mark.parametrize("token", [None, "", "0" * 64, "ü"])
def test_no_change_without_the_sessions_own_token(visit: Visit, filled: Filled, token: str | None) -> None:
    visitor = visit("hr")
    id = filled.ids["written"]
    data = {"content": "x", "scope": "hr", "line": "1", "content-1": "New."} | (
        {} if token is None else {"csrf": token}
    )
    for path in (
        f"/statement/{id}/forget",
        f"/statement/{id}/reword",
        f"/statement/{id}/labels",
        f"/scopes/statement/{id}",
        f"/scopes/statement/{id}/preview",
        "/ingest",
        "/ingest/preview",
    ):
        assert visitor.client.post(path, data=data).status_code == 403, path
    assert "Aisha prefers written feedback." in filled.contents()
    other = visit("hr")
    other.get("/browse")
    assert visitor.client.post(f"/statement/{id}/forget", data={"csrf": other.csrf}).status_code == 403
    visitor.get("/browse")
    assert visitor.client.post(f"/statement/{id}/forget", data={"csrf": visitor.csrf}).status_code == 200
    assert "Aisha prefers written feedback." not in filled.contents()


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://["}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}]
)  # fmt: skip
def test_no_change_from_another_site(visit: Visit, filled: Filled, headers: dict[str, str]) -> None:
    visitor = visit()
    visitor.get("/browse")
    path = f"/statement/{filled.ids['written']}/forget"
    assert visitor.client.post(path, data={"csrf": visitor.csrf}, headers=headers).status_code == 403
    assert "Aisha prefers written feedback." in filled.contents()


def test_it_answers_to_its_own_names_only(visit: Visit) -> None:
    client = visit(look_in=False).client
    for host in ("evil.example", "127.0.0.1.evil.example", "", "[", "testserver@evil.example"):
        assert client.get("/login", headers={"host": host}).status_code == 421, host
    for host in ("127.0.0.1:8321", "localhost", "[::1]:8321", "testserver"):
        assert client.get("/login", headers={"host": host}).status_code == 200, host


def test_every_answer_is_uncached_and_runs_nothing_that_is_not_ours(visit: Visit) -> None:
    visitor = visit()
    for path in ("/browse", "/login", "/static/console.css", "/nothing/here", "/browse?since=never"):
        headers = visitor.client.get(path).headers
        assert headers["cache-control"] == "no-store", path
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; "), path
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_what_fails_has_the_same_headers(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(config(filled))
    monkeypatch.setattr(Sessions, "find", None)  # as a fault of ours
    response = TestClient(app, raise_server_exceptions=False).get("/browse")
    assert response.status_code == 500
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("encoding", ["undefined", "punycode", "utf-7", "unicode_escape", "utf-8"])
def test_a_form_that_names_an_encoding_is_refused_unread(visit: Visit, encoding: str) -> None:
    """Python decodes punycode in quadratic time: 390 kB of it stopped the whole console for 14 s."""
    field = b'--b\r\nContent-Disposition: form-data; name="user"\r\n\r\n' + b"a" * 390_000 + b"-b\r\n--b--\r\n"
    headers = {"content-type": f"multipart/form-data; boundary=b; charset={encoding}"}
    client = visit(look_in=False).client
    for path, status in (("/login", 400), ("/ingest", 403), ("/logout", 400)):  # 403: too long for a draft
        assert client.post(path, content=field, headers=headers).status_code == status, path
    logged_in = visit()
    logged_in.get("/ingest")
    assert logged_in.client.post("/ingest", content=field, headers=headers).status_code == 400


def test_a_body_of_unknown_length_is_no_draft(visit: Visit) -> None:
    client = visit(look_in=False).client
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "content-length": "3",
        "transfer-encoding": "chunked",
    }
    answer = client.post("/ingest", content=iter([b"text=" + b"a" * 1_000_000]), headers=headers)
    assert answer.status_code == 403
    assert len(answer.text) < 20_000


def test_errors_are_told_while_the_database_is_away(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = visit()

    async def caller(_: object) -> None:
        raise PoolTimeout("no connection")

    monkeypatch.setattr(AsyncGraphium, "caller", caller)
    assert "There is no such page." in visitor.get("/nothing", status=404)
    assert visitor.client.delete("/browse").status_code == 405
    assert "not of your session" in visitor.post("/ingest", status=403, csrf="0")


def test_a_body_that_does_not_come_is_not_waited_for(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.01)
    app, sent = create_app(config(filled)), []

    async def receive() -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"testserver"), (b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": "/login", "headers": headers, "query_string": b""}
    asyncio.run(app(scope | {"scheme": "http", "server": ("testserver", 80), "root_path": ""}, receive, send))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_a_body_has_an_end(visit: Visit) -> None:
    visitor = visit()
    visitor.get("/ingest")
    assert (
        visitor.client.post("/ingest/preview", data={"csrf": visitor.csrf, "text": "x" * 2_100_000}).status_code == 413
    )


def test_of_whom_nobody_knows_less_is_taken(visit: Visit) -> None:
    for path in ("/login", "/logout"):
        for length, status in ((399_000, 403), (401_000, 413)):
            response = visit(look_in=False).client.post(
                path, content=b"&" * length, headers={"content-type": "application/x-www-form-urlencoded"}
            )
            assert response.status_code == status, path


def test_a_field_may_be_as_long_as_a_body(visit: Visit) -> None:
    visitor = visit()
    visitor.get("/ingest")
    place = {"family": "f", "genus": "g", "specimen": "s"}
    visitor.post("/ingest/preview", text="x" * 1_900_000, mode="lines", **place)


def test_what_may_be_chosen_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "allow.toml"
    file.write_text('[[allow]]\ntenant = "acme"\nscopes = ["hr", "a, b"]\n[[allow]]\ntenant = "größer"\n')
    assert read_allowed(file) == (Allowed("acme", ("hr", "a, b")), Allowed("größer", ()))
    for wrong in (
        "",
        "allow = 1",
        '[[allow]]\nscopes = ["hr"]',
        '[[allow]]\ntenant = "a"\nscope = ["hr"]',
        "[[",
        '[[allow]]\ntenant = "a"\nscopes = "hr"',
    ):
        file.write_text(wrong)
        with pytest.raises(BadArgumentError, match=r"^allow: "):
            read_allowed(file)


def test_keys_and_secrets_are_new_each_time() -> None:
    one, two = Config("dbname=x"), Config("dbname=x")
    assert len({one.access_key, two.access_key, one.secret, two.secret}) == 4
    assert "0.0.0.0" not in Config("dbname=x", host="0.0.0.0").host_names
