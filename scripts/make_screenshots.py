"""Take the pictures of docs/console.md: the console on the memory of examples/conversation.jsonl, in chromium.

python -m scripts.make_screenshots
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import psycopg

from graphium_db import Graphium
from graphium_db.console import Allowed, Config
from graphium_db.models import SymbiosisEnd
from graphium_db.splitting import split_sentences
from tests.console.browser import Browser, free_port, listening
from tests.support.databases import Cluster, Database
from tests.support.server import running_server

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "console"
TENANT, KEY = "harbour", "key"


def fill(db: Database) -> None:
    with psycopg.connect(db.dsn("admin"), autocommit=True) as admin:
        admin.execute("select graphium.create_tenant(slug => %s)", [TENANT])
    turns = [json.loads(line) for line in (ROOT / "examples" / "conversation.jsonl").read_text("utf-8").splitlines()]
    with (
        Graphium(db.dsn("app"), tenant=TENANT, scopes=["hr", "legal"]) as memory,
        Graphium(db.dsn("admin"), tenant=TENANT) as admin,
    ):
        for turn in turns + turns[:5]:
            memory.ingest_context(
                turn["family"],
                turn["genus"],
                turn["specimen"],
                split_sentences(turn["text"]),
                turn.get("required_scopes"),
                source=turn["session"],
                occurred_at=turn["occurred_at"],
            )
        wordings = [
            "I prefer small pull requests that one person can review in ten minutes!!",
            "i prefer  small pull requests that one person can review in ten minutes",
        ]
        memory.ingest_context("relationships", "team", "Tomasz", wordings, source="chat")
        contract = [
            "We may show their timetables, but not store them longer than a season.",
            "The contract ends in December 2027.",
        ]
        memory.ingest_context(
            "contracts", "shipping lines", "Northern Line", contract, ["legal"], source="contract.pdf"
        )
        memory.ingest_context(
            "relationships", "partners", "دار السلام", ["تفضّل الشركة البريد الإلكتروني على المكالمات."], source="call"
        )
        (old,) = memory.ingest_context(
            "projects", "Harbour", "Ferry app", ["The ferry app goes live on the first of June."], source="kick-off"
        )
        (new,) = memory.search_context("The public launch was postponed", 1, families=["goals"], follow_symbiosis=False)
        importer: SymbiosisEnd = {"family": "projects", "genus": "Harbour", "specimen": "Timetable importer"}
        launch: SymbiosisEnd = {"family": "goals", "genus": "this year", "specimen": "Summer launch"}
        line: SymbiosisEnd = {"family": "contracts", "genus": "shipping lines", "specimen": "Northern Line"}
        admin.link_symbiosis("related_to", launch, importer, note="no launch without timetables")
        admin.link_symbiosis("contradicts", line, importer, note="the archive keeps them for years")
        admin.link_symbiosis(
            "supersedes",
            {"statement_id": str(new.statement_id)},
            {"statement_id": str(old.statement_id)},
            note="the app stores need two weeks",
        )


def take(browser: Browser, name: str) -> None:
    time.sleep(0.3)  # transitions
    browser.driver.save_screenshot(str(PICTURES / f"{name}.png"))


def take_all(address: str) -> None:
    light = Browser(address)
    take(light.go(f"/login?key={KEY}"), "login")
    light.look_in(KEY, "hr", "legal")
    take(light.go("/browse"), "browse")
    take(light.go("/browse?family=relationships&genus=team&specimen=Tomasz"), "specimen")
    light.go("/search?q=small+pull+requests&by=words").one(".card .actions a").click()
    light.until(lambda: light.all(".id"))
    light.one(".menu summary").click()
    take(light, "statement")
    light.one(".card .danger").click()
    light.until(lambda: light.all("main .danger"))
    take(light, "forget")
    take(light.go("/search?q=when+is+the+launch&count=10"), "search")
    light.run("document.querySelector('.along').scrollIntoView()")
    take(light, "symbioses")
    light.go("/ingest?family=relationships&genus=team&specimen=Tomasz").one("textarea").send_keys(
        "I prefer small pull requests that one person can review in ten minutes. We decided to rewrite the importer in"
        " Rust. Tomasz will be in Lisbon from the third of June!"
    )
    light.one("main .primary").click()
    light.until(lambda: light.all("td.content"))
    take(light, "preview")
    light.one("main .primary").click()
    light.until(lambda: light.all(".result"))
    take(light, "saved")
    light.go("/browse?family=projects").one(".title-side a").click()
    light.until(lambda: light.all("#edit"))
    light.one("input[value='hr'] + span").click()
    light.one("input[name='cascade']").click()
    light.until(lambda: "statements" in light.one("#preview").text)
    take(light, "scopes")
    take(light.go("/wake-up?budget=300"), "wake-up")
    take(light.go("/graph"), "graph")
    take(light.go("/browse?family=projects&type=preference&scope=legal"), "empty")
    light.close()
    dark = Browser(address, dark=True).look_in(KEY, "hr")
    take(dark.go("/browse?family=relationships"), "dark")
    dark.close()
    narrow = Browser(address, width=390, height=844).look_in(KEY, "hr")
    take(narrow.go("/search?q=timetable"), "narrow")
    narrow.close()


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with running_server() as server:
        cluster = Cluster(server)
        try:
            cluster.set_up()
            db = Database(cluster, cluster.take())
            fill(db)
            config = Config(db.dsn("app"), (Allowed(TENANT, ("hr", "legal")),), access_key=KEY, port=free_port())
            with listening(config) as address:
                take_all(address)
            db.close()
            cluster.give_back(db.name)
        finally:
            cluster.tear_down()


if __name__ == "__main__":
    main()
