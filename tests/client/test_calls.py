"""What is sent, and what is refused before anything is sent. No database."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from graphium_db import Graphium, calls, errors
from graphium_db.errors import BadArgumentError, BadEmbeddingError, BadStatementError

ID = UUID("0199e3a0-6a0b-7c3e-9d53-0c9f5d2f7a11")


def sent(statement: dict[str, object]) -> dict[str, object]:
    call = calls.ingest_context("f", "g", "s", [statement])  # type: ignore[list-item]
    return json.loads(call.parameters["statements"])[0]  # type: ignore[no-any-return]


def test_a_call_is_one_select_from_one_function_by_name() -> None:
    call = calls.wake_up_context(400, families=["goals"])
    assert call.sql.decode() == (
        "select position, statement_id, content, family, genus, specimen, memory_type, tokens, running_tokens "
        "from graphium.wake_up_context(token_budget => %(token_budget)s::int, "
        "families => %(families)s::text[], specimens => %(specimens)s::text[])"
    )
    assert call.parameters == {"token_budget": 400, "families": ["goals"], "specimens": None}


def test_a_vector_is_sent_as_text_that_holds_each_32_bit_float() -> None:
    # 0.1 in single precision is 0.100000001490116…, of which nine digits identify it
    assert calls.vector_text([0.1, -1.0, 3, 2**-60]) == "[0.100000001,-1,3,8.67361738e-19]"
    assert sent({"content": "c", "embedding": [0.5, 0.25]})["embedding"] == "[0.5,0.25]"
    assert sent({"content": "c", "embedding": None})["embedding"] is None


def test_a_time_is_sent_with_its_zone() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    assert sent({"content": "c", "occurred_at": noon})["occurred_at"] == "2026-03-01T12:00:00+01:00"
    assert sent({"content": "c", "occurred_at": date(2026, 3, 1)})["occurred_at"] == "2026-03-01T00:00:00+00:00"
    assert calls.recall_context(since=noon).parameters["since"] == "2026-03-01T12:00:00+01:00"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ({"content": "a\x00b"}, "statement 1: content contains U+0000"),
        ({"content": "a\ud800b"}, "statement 1: content contains half of a surrogate pair (U+D800) at character 2"),
        ({"content": "c", "metadata": {"k": ["\x00"]}}, "statement 1: metadata.k contains U+0000"),
        ({"content": "c", "metadata": {"k\x00": 1}}, "a key of statement 1: metadata contains U+0000"),
        ({"content": "c", "source": "\udfff"}, "statement 1: source contains half of a surrogate pair (U+DFFF)"),
        ({"content": "c", "required_scopes": ["\x00"]}, "statement 1: required_scopes contains U+0000"),
        ({"content": "c", "k\x00": 1}, "statement 1: a key contains U+0000"),
        ({"content": "c", "metadata": {"k": float("nan")}}, "statement 1 cannot be written as JSON"),
        ({"content": "c", "metadata": {"k": object()}}, "statement 1 cannot be written as JSON"),
        ({"content": "c", "occurred_at": datetime(2026, 3, 1)}, "statement 1: occurred_at has no time zone"),  # noqa: DTZ001
    ],
)
def test_a_statement_that_cannot_be_stored_is_refused_by_ordinal_and_field(statement: object, message: str) -> None:
    with pytest.raises(BadStatementError) as raised:
        calls.ingest_context("f", "g", "s", [statement])  # type: ignore[list-item]
    assert raised.value.message.startswith(message)
    assert raised.value.sqlstate == "MG004"


def test_the_second_of_two_statements_is_the_one_blamed() -> None:
    with pytest.raises(BadStatementError, match=r"^statement 2: content contains U\+0000"):
        calls.ingest_context("f", "g", "s", [{"content": "fine"}, {"content": "\x00"}])
    with pytest.raises(BadStatementError, match=r"^statement 2 cannot be written as JSON"):
        calls.ingest_context("f", "g", "s", [{"content": "fine"}, {"content": "c", "metadata": {"k": {1, 2}}}])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calls.ingest_context("f\x00", "g", "s", []), "family contains U+0000"),
        (lambda: calls.ingest_context("f", "g", "\ud83d", []), "specimen contains half of a surrogate pair (U+D83D)"),
        (lambda: calls.ingest_context("f", 1, "s", []), "genus must be text, got int"),
        (lambda: calls.ingest_context("f", "g", "s", [], required_scopes="hr"), "required_scopes must be a list"),
        (lambda: calls.search_context(query_text="\x00"), "query_text contains U+0000"),
        (lambda: calls.search_context(families=[None]), "families must be a list of texts, got None"),
        (lambda: calls.search_context(match_count=2**31), "match_count must be an integer below 2^31"),
        (lambda: calls.recall_context(after="nonsense"), "after must be a uuid, got 'nonsense'"),
        (lambda: calls.forget_context([ID, None]), "statement_ids must be a uuid, got None"),
        (lambda: calls.cypher("RETURN 1", {"k": "\x00"}), "params.k contains U+0000"),
        (lambda: calls.cypher("RETURN 1", {"k": float("inf")}), "params cannot be written as JSON"),
        (lambda: calls.set_caller("acme", ["\x00"]), "scopes contains U+0000"),
        (lambda: calls.link_symbiosis("related_to", {"family": "\x00"}, {}), "source.family contains U+0000"),
        (lambda: calls.recall_context(since=datetime(2026, 3, 1)), "since has no time zone"),  # noqa: DTZ001
        (lambda: calls.recall_context(until=5), "until must be a point in time, got 5"),
        (lambda: calls.search_context(query_text=5), "query_text must be text, got int"),
        (lambda: calls.search_context(match_count="a"), "match_count must be an integer below 2^31, got 'a'"),
        (lambda: calls.search_context(min_similarity="high"), "min_similarity must be a number, got 'high'"),
        (lambda: calls.search_context(follow_symbiosis=None), "follow_symbiosis must be True or False, got None"),
        (lambda: calls.search_context(families=5), "families must be a list of texts, got int"),
        (lambda: calls.search_context(families={"a": 1}), "families must be a list of texts, got dict"),
        (lambda: calls.recall_context(statement_ids=7), "statement_ids must be a list of uuids, got int"),
        (lambda: calls.forget_context("abc"), "statement_ids must be a list of uuids, got one text"),
        (lambda: calls.set_required_scopes("statement", "x", []), "id must be a uuid, got 'x'"),
        (lambda: calls.set_required_scopes("family", ID, [], cascade=None), "cascade must be True or False, got None"),
        (lambda: calls.set_many_required_scopes("family", "abc", []), "ids must be a list of uuids, got one text"),
        (lambda: calls.add_principal("r", "acme", read_only=None), "read_only must be True or False, got None"),
        (lambda: calls.cypher("RETURN 1", ["a"]), "params must be a dict, got list"),
        (lambda: calls.link_symbiosis("related_to", "goals", {}), "source must be a dict, got str"),
        (lambda: calls.set_caller(5), "tenant must be text, got int"),
        (lambda: calls.set_caller("acme", [None]), "scopes must be a list of texts, got None in it"),
        (lambda: Graphium(tenant="acme").search_context(5), "query_text must be text, got int"),
        (
            lambda: Graphium(tenant="acme").search_context("x", query_embedding="[1,0]"),
            'query_embedding must be "auto"',
        ),
        (lambda: Graphium(tenant="acme").search_families(), "query_text and query_embedding are both None"),
        (lambda: Graphium(tenant="acme").ingest_context("f", "g", "s", 5), "statements must be a list, got int"),
        (
            lambda: Graphium(tenant="acme").ingest_context("f", "g", "s", {"content": "x"}),
            "statements must be a list, got dict",
        ),
        (lambda: Graphium(tenant="acme").ingest_context("f", "g", "s", text=5), "text must be text, got int"),
        (lambda: Graphium(tenant="acme").ingest_many("x"), "statements must be a list, got str"),
    ],
)
def test_an_argument_that_cannot_be_sent_is_refused_by_name(make, message: str) -> None:
    with pytest.raises(BadArgumentError) as raised:
        make()
    assert raised.value.message.startswith(message)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["fine", 1], "statement 2: it must be a text or a dict, got int"),
        ([None], "statement 1: it must be a text or a dict, got NoneType"),
        ([{"content": 5}], "statement 1: content must be text, got 5"),
        ([{"content": "x", "occurred_at": 5}], "statement 1: occurred_at must be a point in time, got 5"),
    ],
)
def test_a_statement_that_is_none_is_refused_by_its_ordinal(statements: list[Any], message: str) -> None:
    memory = Graphium(tenant="acme")
    filed = [{"family": "f", "genus": "g", "specimen": "s"} | s if isinstance(s, dict) else s for s in statements]
    if statements[0] == "fine":
        filed[0] = {"family": "f", "genus": "g", "specimen": "s", "content": "fine"}
    for call in (lambda: memory.ingest_context("f", "g", "s", statements), lambda: memory.ingest_many(filed)):
        with pytest.raises(BadStatementError) as raised:
            call()
        assert raised.value.message == message
        assert raised.value.hint


def test_an_embedding_of_words_is_refused() -> None:
    with pytest.raises(BadEmbeddingError, match=r"^statement 1: the embedding must be a list of numbers"):
        calls.ingest_context("f", "g", "s", [{"content": "c", "embedding": ["a"]}])  # type: ignore[list-item]
    for wrong in ([None], 7, [[1.0]]):
        with pytest.raises(BadEmbeddingError):
            calls.search_context(query_embedding=wrong)  # type: ignore[arg-type]


def test_each_sqlstate_of_ours_has_one_exception() -> None:
    assert sorted(errors.BY_SQLSTATE) == [f"MG{number:03}" for number in range(1, 11)]
    assert len(set(errors.BY_SQLSTATE.values())) == 10
    for cls in [*errors.BY_SQLSTATE.values(), errors.MissingExtraError, errors.ServerError]:
        assert cls.meaning
        assert cls.remedy


def test_an_error_says_what_to_do() -> None:
    assert str(BadArgumentError("match_count is 0", "Pass more.")) == "match_count is 0\nHint: Pass more."
    assert str(BadArgumentError("match_count is 0")) == "match_count is 0"
