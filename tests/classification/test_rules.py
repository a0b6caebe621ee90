"""The rules of rules.toml: each rule's own examples, the known hard cases, and what a rule file may not be."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from graphium_db import classify
from graphium_db.classification import Rule, load, rule_set

RULES = rule_set().rules
# PostgreSQL keeps the last 32 compiled regular expressions of a session; with the fold's and ingest's own ones, more
# rules than this would be compiled again for every sentence.
MOST_RULES = 23


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_examples(rule: Rule) -> None:
    assert rule.why
    assert rule.match
    for text in rule.match:
        assert classify(text).rule == rule.id, text
    for text in rule.no_match:
        assert classify(text).rule != rule.id, text


def test_rules_fit_the_cache_of_a_session() -> None:
    assert len(RULES) <= MOST_RULES


def test_patterns_use_only_what_both_engines_read_alike() -> None:
    for rule in RULES:
        rest = re.sub(r"\[\^?\w+\]|\(\?:|\(\?!|[()|?*+^$.\w]|\{\d(,\d)?\}", "", rule.regex)
        assert rest == "", rule.id
        assert not re.search(r"[*+?}][*+?{]", rule.regex), rule.id  # no possessive or lazy quantifier


@pytest.mark.parametrize(
    ("text", "memory_type"),
    [
        ("PostgreSQL uses MVCC", "fact"),
        ("I hate cilantro", "preference"),
        ("I want error messages explained", "preference"),
        ("if we decided to move, we would need a bigger van", "fact"),
        ("If we decided to move, we would sell the house.", "fact"),
        ("She said I should rest", "advice"),
        ("The game is over because of the rain.", "fact"),
        ("It is over.", "fact"),
        ("**bold** and *stars*", "fact"),
        ("https://example.com/i-love-you/we-decided-to-go?should=you", "fact"),
        ("for i in range(10): print(i)", "fact"),
        ("if (should_retry) { return decide(x); }", "fact"),
        ("2026-11-30 06:52:11 ERROR worker: decision node failed, retry=3", "fact"),
        ("| like | hate | plan |", "fact"),
        ("**I decided to move.**", "decision"),
        ("> I hate cilantro", "preference"),
        ("- I prefer tea", "preference"),
        ("`SELECT decided FROM plans;`", "fact"),
        ("I haven't decided yet", "fact"),
        ("Did you decide?", "fact"),
        ("", "fact"),
        ("?", "fact"),
    ],
)
def test_hard_cases(text: str, memory_type: str) -> None:
    assert classify(text).memory_type == memory_type


@pytest.mark.parametrize(
    "text",
    [
        "Ich habe gestern einen Kuchen gebacken und will ihn essen.",
        "Was ist das?",
        "Me gusta mucho el café por la mañana.",
        "J'ai décidé de partir demain.",
        "Io amo i gatti e i cani.",
        "Wij gaan morgen naar de winkel.",
        "Jag älskar kaffe.",
        "Eu não gosto de chá.",
        "Мы решили переехать.",
        "我们决定搬家。",
        "お茶が好きです。",
        "ฉันชอบชา",
        "हमने जाने का फैसला किया।",
        "🍎🍌",
    ],
)
def test_a_language_that_the_rules_do_not_know_is_a_fact_on_demand(text: str) -> None:
    found = classify(text)
    assert (found.memory_type, found.layer_kind) == ("fact", "on_demand")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I don't like it", "I don’t like it"),
        ("I DECIDED TO MOVE", "i decided to move"),
        ("I\u00a0decided\tto\nmove", "I decided to move"),
        ("I decided to move", "*I* **decided** to `move`"),
        ("(I decided to move)", "“I decided to move”"),
    ],
)
def test_spelling_does_not_matter(one: str, other: str) -> None:
    assert classify(one) == classify(other)


@pytest.mark.parametrize("unit", ["a", " ", "i ", "so ", "I really ", "not ", "if you ", "a, ", ".", "'", "very ", "é"])
def test_long_lines_are_fast(unit: str) -> None:
    line = unit * (100_000 // len(unit))
    classify(line)
    start = time.process_time()
    classify(line)
    assert time.process_time() - start < 0.05


GOOD: dict[str, Any] = {
    "version": 1,
    "not_endings": "need",
    "contractions": {"i'm": "i am"},
    "classes": {"who": "i we", "all": "<who> you"},
    "macros": {"soon": "(now | soon)"},
    "rules": [
        {
            "id": "decision.going",
            "memory_type": "decision",
            "layer_kind": "on_demand",
            "pattern": "<all> am? <-ing> .{0,1} {soon} (?! <?>)",
            "why": "…",
            "match": ["…"],
            "no_match": [],
        },
        {
            "id": "x",
            "memory_type": "fact",
            "layer_kind": "on_demand",
            "pattern": "",
            "why": "…",
            "match": [],
            "no_match": [],
        },
    ],
}


def changed(**changes: Any) -> dict[str, Any]:
    """GOOD with another first rule."""
    copy: dict[str, Any] = json.loads(json.dumps(GOOD))
    copy["rules"][0] |= changes
    return copy


def test_a_pattern_is_read_as_words() -> None:
    rules = load(GOOD)
    pattern = re.compile(rules.rules[0].regex)
    assert pattern.search(rules.spell("I'm leaving now"))
    assert pattern.search(rules.spell("You walking home soon!"))
    assert not pattern.search(rules.spell("I'm leaving now?"))
    assert not pattern.search(rules.spell("I need now"))
    assert not pattern.search(rules.spell("They leaving now"))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (changed(pattern="<nobody>"), "no class"),
        (changed(pattern="{never}"), "cannot read"),
        (changed(pattern="A"), "cannot read"),
        (changed(pattern="(?<= i)"), "cannot read"),
        (changed(memory_type="opinion"), "unknown"),
        (changed(layer_kind="later"), "unknown"),
        (changed(id="x"), "share an id"),
        (GOOD | {"rules": GOOD["rules"][:1]}, "last rule"),
    ],
)
def test_a_bad_rule_file_is_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(rules)


LABELLED = Path(__file__).resolve().parents[3] / "shared" / "data" / "classify_dev.jsonl"


@pytest.mark.skipif(not LABELLED.exists(), reason="measuring data is not here: ../shared/data/classify_dev.jsonl")
def test_labelled_sentences() -> None:
    rows = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    found = [(row, classify(row["text"])) for row in rows]
    types = sum(c.memory_type in (row["memory_type"], *row.get("alt", ())) for row, c in found)
    layers = sum(c.layer_kind in (row["layer_kind"], row.get("layer_alt")) for row, c in found)
    assert types / len(rows) >= 0.88
    assert layers / len(rows) >= 0.92
