"""What ingest_context refuses, in which words, and what it takes as it is. Everything through SQL."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.memory.conftest import ingest, ingest_many, refused
from tests.support.databases import Connection, as_caller

names = itertools.count(1)
SECRET = "The secret wording of another row"
LONG = 2_000_001


@pytest.fixture(scope="module")
def tenant(new_tenant: Callable[[int], str], app: Connection) -> str:
    slug = new_tenant(3)
    with as_caller(app, slug, ["secret"]):
        ingest(
            app,
            [{"content": SECRET, "embedding": [1, 2, 3], "required_scopes": ["secret"]}],
            family="has a secret inside",
        )
        ingest(app, [{"content": SECRET, "embedding": [1, 2, 3]}], family="hidden family", required_scopes=["secret"])
        ingest(
            app,
            [{"content": SECRET, "embedding": [1, 2, 3]}],
            family="has a secret inside",
            specimen="hidden specimen",
            required_scopes=["secret"],
        )
    return slug


def nothing_left(boss: Connection) -> tuple[Any, ...]:
    row = boss.execute(
        "select (select count(*) from graphium.dh_families), (select count(*)"
        " from graphium.dh_genera), (select count(*) from graphium.dh_specimens),"
        " (select count(*) from graphium.kg_statements), (select sum(access_count)"
        " from graphium.kg_statements), (select count(*) from graphium.kg_embeddings),"
        " (select count(*) from graphium.kg_statement_variants), (select sum(statement_count)"
        " from graphium.dh_families)"
    ).fetchone()
    assert row is not None
    return row


def refusal(app: Connection, boss: Connection, tenant: str, statements: str | None, **names_: Any) -> psycopg.Error:
    """The error, after which nothing may be left; `statements` is JSON as text."""
    before = nothing_left(boss)
    args = {
        "family": f"family {next(names)}",
        "genus": "feedback",
        "specimen": "Ada",
        "required_scopes": None,
        **names_,
    }
    with pytest.raises(psycopg.Error) as caught, as_caller(app, tenant, ["hr"]):
        app.execute(
            "select * from graphium.ingest_context(family => %(family)s, genus => %(genus)s, specimen => %(specimen)s,"
            " statements => %(statements)s::jsonb, required_scopes => %(required_scopes)s)",
            {**args, "statements": statements},
        )
    assert nothing_left(boss) == before
    diag = caught.value.diag
    assert (
        SECRET.lower()
        not in " ".join(
            filter(None, [diag.message_primary, diag.message_detail, diag.message_hint, diag.context])
        ).lower()
    )
    return caught.value


def with_field(field: str, value: str) -> str:
    """One good statement, and one whose `field` has `value`, both as JSON text."""
    fields = {"content": '"Ada likes tea"', "embedding": "[1, 2, 3]", field: value}
    if field == "position":
        fields["source"] = '"mail"'
    return (
        '[{"content": "good", "embedding": [3, 1, 1]}, {' + ", ".join(f'"{k}": {v}' for k, v in fields.items()) + "}]"
    )


j = json.dumps
REFUSED = [
    *[
        ("content", v, "MG004")
        for v in ("null", "5", "true", "[]", "{}", '""', '"   "', '"\\n\\t"', '"\\u200b\\u3000\\u00a0"', j("x" * LONG))
    ],
    *[
        ("embedding", v, "MG005")
        for v in (
            "[1, 2]",
            "[1, 2, 3, 4]",
            "[]",
            j([1] * 16001),
            "[0, 0, 0]",
            "[0.0, -0.0, 0]",
            "[1e39, 0, 0]",
            "[1e400, 0, 0]",
            "[1e-50, 0, 0]",
            "[1e20, 0, 0]",
            "[1e-20, 1e-20, 0]",
            '["1", "2", "3"]',
            "[[1, 2, 3]]",
            "[[1], [2], [3]]",
            "[1, null, 3]",
            "[true, false, true]",
            "{}",
            '{"0": 1}',
            "5",
            "true",
            "false",
            '""',
            '"abc"',
            '"1,2,3"',
            '"[1,2]"',
            '"[NaN,1,2]"',
            '"[1,Infinity,2]"',
            '"[1,2,-inf]"',
            '"[1,,2]"',
            '"[0,0,0]"',
            '"{1,2,3}"',
        )
    ],
    *[
        (field, v, "MG004")
        for field in ("memory_type", "layer_kind")
        for v in ("5", "true", "[]", "{}", '""', '"Fact"', '"on demand"', '" fact"', j("x" * 5000))
    ],
    *[
        ("required_scopes", v, "MG004")
        for v in ('"hr"', "5", "true", "{}", "[1]", "[null]", '[""]', '["  "]', '[["hr"]]', j(["x" * 201]))
    ],
    ("required_scopes", '["legal"]', "MG006"),
    ("required_scopes", '["HR"]', "MG006"),
    ("required_scopes", '["*"]', "MG006"),
    *[
        ("occurred_at", v, "MG004")
        for v in (
            "5",
            "true",
            "[]",
            "{}",
            '""',
            '"soon"',
            '"infinity"',
            '"-infinity"',
            '"2026-13-01"',
            '"2026-03-01T09:30:00 Nowhere/City"',
            '"294280-01-01"',
            '"0044-03-15 00:00 BC"',
            '"0001-01-01T00:00:00+14:00"',
            '"9999-12-31T23:59:59-15:00"',
        )
    ],
    *[("source", v, "MG004") for v in ("5", "true", "[]", "{}", '""', '"  "', j("x" * 501))],
    *[("position", v, "MG004") for v in ('"1"', "1.5", "1e30", "true", "[]", "{}", "1000000000000000000")],
    *[("metadata", v, "MG004") for v in ("5", '"x"', "[]", "true", "false")],
    *[
        ("metadata", f'{{"a": {v}}}', "MG004")
        for v in ("1e301", "[[-1e131071]]", "[" * 65 + "]" * 65, '{"a":' * 64 + "1" + "}" * 64, j("x" * 1_000_000))
    ],
    *[("exact_only", v, "MG004") for v in ('"true"', "1", "0", "[]", "{}")],
    *[
        (key, "1", "MG004")
        for key in ("foo", "Content", "embeddings", "tenant_id", "id", "access_count", "x" * 5000, 'a\\"b', "")
    ],
]


@pytest.mark.parametrize(
    ("field", "value", "code"), [pytest.param(*case, id=f"{case[0][:20]}: {case[1][:30]}") for case in REFUSED]
)
def test_refused(app: Connection, boss: Connection, tenant: str, field: str, value: str, code: str) -> None:
    error = refusal(app, boss, tenant, with_field(field, value))
    assert error.sqlstate == code
    message, hint = error.diag.message_primary or "", error.diag.message_hint or ""
    assert message.startswith("statement 2: ")
    assert field[:100].replace('\\"', '""') in message
    assert hint
    assert len(message) < 400
    assert len(hint) < 400


@pytest.mark.parametrize("element", ["5", "null", '"Ada likes tea"', "[]", "true"])
def test_elements_are_objects(app: Connection, boss: Connection, tenant: str, element: str) -> None:
    error = refusal(app, boss, tenant, f'[{{"content": "good"}}, {{"content": "too"}}, {element}]')
    assert error.sqlstate == "MG004"
    assert (error.diag.message_primary or "").startswith("statement 3: ")
    assert error.diag.message_hint


@pytest.mark.parametrize("statements", [None, "null", "{}", '{"content": "x"}', '"x"', "5"])
def test_statements_is_an_array(app: Connection, boss: Connection, tenant: str, statements: str | None) -> None:
    error = refusal(app, boss, tenant, statements)
    assert error.sqlstate == "MG004"
    assert "statements" in (error.diag.message_primary or "")
    assert error.diag.message_hint


def test_a_place_needs_a_source(app: Connection, boss: Connection, tenant: str) -> None:
    error = refusal(app, boss, tenant, '[{"content": "x", "position": 3}]')
    assert error.sqlstate == "MG004"
    assert error.diag.message_primary == "statement 1: position needs a source"


@pytest.mark.parametrize("argument", ["family", "genus", "specimen"])
@pytest.mark.parametrize("name", [None, "", "   ", "\u3000\u2003\n", "x" * 201, "𒀀" * 201])
def test_bad_names(app: Connection, boss: Connection, tenant: str, argument: str, name: str | None) -> None:
    error = refusal(app, boss, tenant, '[{"content": "x"}]', **{argument: name})
    assert error.sqlstate == "MG008"
    assert argument in (error.diag.message_primary or "")
    assert error.diag.message_hint


@pytest.mark.parametrize(
    ("scopes", "code"), [([""], "MG008"), ([None], "MG008"), (["x" * 201], "MG008"), (["legal"], "MG006")]
)
def test_bad_scopes_of_the_call(app: Connection, boss: Connection, tenant: str, scopes: list[Any], code: str) -> None:
    error = refusal(app, boss, tenant, '[{"content": "x"}]', required_scopes=scopes)
    assert error.sqlstate == code
    assert "required_scopes" in (error.diag.message_primary or "")
    assert error.diag.message_hint


@pytest.mark.parametrize(
    "where",
    [{"family": "hidden family"}, {"family": "has a secret inside", "specimen": "hidden specimen"}],
    ids=["family", "specimen"],
)
def test_hidden_names(app: Connection, boss: Connection, tenant: str, where: dict[str, str]) -> None:
    error = refusal(app, boss, tenant, '[{"content": "x"}]', **where)
    assert error.sqlstate == "MG006"
    assert error.diag.message_hint


def test_vectors_of_another_model(app: Connection, boss: Connection, tenant: str) -> None:
    before = nothing_left(boss)
    with pytest.raises(psycopg.Error) as caught, as_caller(app, tenant):
        app.execute("select graphium.ingest_context('f', 'g', 's', '[]', embedding_model => 'another-model')")
    assert caught.value.sqlstate == "MG005"
    assert nothing_left(boss) == before


# PostgreSQL reads the JSON before our function is called, and psycopg the text before PostgreSQL: what neither can
# represent is refused there, in their words.
@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ('[{"content": "a\\u0000b"}]', "22P05"),
        ('[{"content": "x", "metadata": {"k": "a\\u0000b"}}]', "22P05"),
        ('[{"content": "x", "metadata": {"a\\u0000b": 1}}]', "22P05"),
        ('[{"content": "x", "source": "\\u0000"}]', "22P05"),
        ('[{"content": "\\ud800"}]', "22P02"),
        ('[{"content": "\\udc00 x"}]', "22P02"),
        ('[{"content": "\\ud83c\\ud83c"}]', "22P02"),
        ('[{"content": "x", "embedding": [NaN, 1, 2]}]', "22P02"),
        ('[{"content": "x", "embedding": [Infinity, 1, 2]}]', "22P02"),
        ("[{'content': 'x'}]", "22P02"),
        ("", "22P02"),
    ],
)
def test_what_json_cannot_hold(app: Connection, boss: Connection, tenant: str, statements: str, code: str) -> None:
    assert refusal(app, boss, tenant, statements).sqlstate == code


@pytest.mark.parametrize("text", ["a\x00b", "\x00"])
def test_nul_in_names_and_text(app: Connection, boss: Connection, tenant: str, text: str) -> None:
    for argument in ("family", "genus", "specimen"):
        assert isinstance(refusal(app, boss, tenant, "[]", **{argument: text}), psycopg.DataError)
    assert isinstance(refusal(app, boss, tenant, text), psycopg.DataError)


@pytest.mark.parametrize("name", ["", " \u3000", "\u200b", "\u200e\ufeff"])
def test_names_that_nobody_sees(app: Connection, boss: Connection, tenant: str, name: str) -> None:
    for argument in ("family", "genus", "specimen"):
        error = refusal(app, boss, tenant, "[]", **{argument: name})
        assert (error.sqlstate, error.diag.message_primary) == ("MG008", f"{argument} must not be NULL or blank")


@pytest.mark.parametrize("when", ["yesterday", "now", "epoch", "infinity", "3/4/2026", "20260304", "2026-13-01"])
def test_times_that_are_no_iso_time(app: Connection, boss: Connection, tenant: str, when: str) -> None:
    error = refusal(app, boss, tenant, f'[{{"content": "x", "occurred_at": "{when}"}}]')
    assert (error.sqlstate, error.diag.message_primary) == ("MG004", "statement 1: occurred_at must be a time")


def test_an_audience_has_at_most_64_scopes(app: Connection, boss: Connection, tenant: str) -> None:
    scopes = [f"s{n}" for n in range(65)]
    with as_caller(app, tenant, ["s0"]):
        app.execute("select graphium.ingest_context('f', 'g', 's', '[]', %s)", [scopes[:64]])
    with pytest.raises(psycopg.Error) as caught, as_caller(app, tenant, ["s0"]):
        app.execute("select graphium.ingest_context('f', 'g', 's', '[]', %s)", [scopes])
    assert caught.value.sqlstate == "MG008"


def test_lone_surrogates_in_names(app: Connection, boss: Connection, tenant: str) -> None:
    before = nothing_left(boss)
    with pytest.raises(UnicodeEncodeError), as_caller(app, tenant):
        ingest(app, [], family="a\ud800b")
    # Raw bytes that are no UTF-8 do not get through either.
    with pytest.raises(psycopg.errors.CharacterNotInRepertoire), as_caller(app, tenant):
        app.execute(b"select graphium.ingest_context(E'a\\xed\\xa0\\x80b', 'g', 's', '[]')")
    assert nothing_left(boss) == before


# ------------------------------------------------------------------------------------------ taken as it is
TEXTS = {
    "1 MB": "Lorem ipsum dolor. " * 55_189,
    "1 MB of one word": "x" * (1 << 20),
    "1 MB of many words": " ".join(f"{n:x}" for n in range(180_000)),
    "3 kB without a space": "é" * 3000,
    "right-to-left marks": "\u200fشاي\u200e tea \u202bעברית\u202c \u2067x\u2069",
    "an override": "abc\u202edef\u202c",
    "NFD": "Cafe\u0301 is not Café",
    "quotes": "O'Brien said \"$$\" {} \\ %s %% '' \\'; drop table x; --",
    "white space": "  two  spaces,\ta tab,\na new line \r\n",
    "control characters": "\x01\x02\x1b[31mred\x7f",
    "four-byte characters": "𒀀𒀁👩‍🚀🏳️‍🌈",
    "Thai and Amharic": "ฉันชอบชา አማርኛ",
    "a mark alone": ".",
    "noncharacters": "\ufffe\uffff\U0010ffff",
}


@pytest.mark.parametrize("what", TEXTS)
def test_content_comes_back_as_it_went_in(app: Connection, tenant: str, what: str) -> None:
    text = TEXTS[what]
    with as_caller(app, tenant):
        [row] = ingest(app, [{"content": text, "embedding": None}], family="texts")
        assert row[2] is False
        assert app.execute("select content from graphium.kg_statements where id = %s", [row[1]]).fetchone() == (text,)
        assert ingest(app, [{"content": text}], family="texts")[0][1:3] == (row[1], True)
        assert app.execute(
            "select count(*) from graphium.kg_statement_variants where statement_id = %s", [row[1]]
        ).fetchone() == (0,)


NAMES = [
    "Pēteris",
    "太郎",
    "अनीता",
    "O'Brien",
    'a"b',
    "$$",
    "{}",
    "𒀀" * 200,
    "\u200fמרים\u200e",
    "a\\b",
    "%s %(x)s",
    "two\nlines",
    "null",
    "*",
    "a/b",
    "'; drop table x; --",
]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names(app: Connection, tenant: str, name: str) -> None:
    family = f"{next(names)} {name}"[:200]
    with as_caller(app, tenant):
        ingest(
            app,
            [{"content": "x", "source": name, "required_scopes": [name, "public"]}],
            family=family,
            genus=name,
            specimen=name,
        )
        assert app.execute(
            "select f.name, g.name, s.name, k.source, k.required_scopes from graphium.kg_statements k"
            " join graphium.dh_families f on f.id = k.family_id"
            "  join graphium.dh_genera g on g.id = k.genus_id join graphium.dh_specimens s"
            " on s.id = k.specimen_id where f.name = %s",
            [family],
        ).fetchone() == (family, name, name, name, sorted({name, "public"}))
        assert (
            ingest(app, [{"content": "x"}], family=f"\u3000 {family}\n", genus=f" {name}\t", specimen=f"\u00a0{name}")[
                0
            ][2]
            is True
        )


def test_names_are_nfc(app: Connection, tenant: str) -> None:
    with as_caller(app, tenant):
        first = ingest(app, [{"content": "x"}], family="Cafe\u0301", genus="e\u0301", specimen="A\u030a")
        assert ingest(app, [{"content": "x"}], family="Café", genus="é", specimen="Å")[0][1:3] == (first[0][1], True)
        assert app.execute("select name from graphium.dh_families where name like 'Caf%%'").fetchall() == [("Café",)]
        # Case is not folded in names.
        assert ingest(app, [{"content": "x"}], family="café")[0][2] is False


@pytest.mark.parametrize("slug", ["s" * 70, "𒀀" * 100, "O'Brien", 'a"b', "$$", "{}", "*", "%", "a_b", "Größe 10²"])
def test_odd_slugs(app: Connection, admin: Connection, slug: str) -> None:
    admin.execute("select graphium.create_tenant(%s, dimensions => 3)", [slug])
    with as_caller(app, slug):
        assert app.execute("select tenant from graphium.caller()").fetchone() == (slug,)
        assert ingest(app, [{"content": "x", "embedding": [1, 2, 3]}])[0][2] is False
        assert app.execute("select count(*) from graphium.kg_statements").fetchone() == (1,)
    admin.execute("select graphium.drop_tenant(%s)", [slug])


@pytest.mark.parametrize("slug", [None, "", "  ", "x" * 101])
def test_bad_slugs(admin: Connection, slug: str | None) -> None:
    for function in ("create_tenant", "drop_tenant"):
        with pytest.raises(psycopg.Error) as caught:
            admin.execute(f"select graphium.{function}(slug => %s)".encode(), [slug])
        assert caught.value.sqlstate == "MG008"
        assert "slug" in (caught.value.diag.message_primary or "")


METADATA = [
    '{"null": null, "nested": [[1, [2, []]], {"a": {"b": null, "": {}}}], "yes": true, "no": false}',
    '{"big": 123456789012345678901234567890, "small": -9007199254740993, "money": 1.10, "tiny": 1E-400}',
    f'{{"deep": {"[" * 64 + "]" * 64}, "large": 1E+300, "long": "{"x" * 900_000}"}}',
    '{"text": "\\u2028 \\ud83c\\udf4e \\\\ \\" é", "ключ": "значение", "": ""}',
    "{}",
]


@pytest.mark.parametrize("metadata", METADATA)
def test_metadata_comes_back_as_it_went_in(app: Connection, tenant: str, metadata: str) -> None:
    with as_caller(app, tenant):
        row = app.execute(
            "select statement_id from graphium.ingest_context('metadata', 'g', 's', %s::jsonb)",
            [f'[{{"content": "no {next(names)}", "metadata": {metadata}}}]'],
        ).fetchone()
        assert row is not None
        text, equal = (
            app.execute(
                "select metadata::text, metadata = %s::jsonb from graphium.kg_statements where id = %s",
                [metadata, row[0]],
            ).fetchone()
            or ()
        )
    assert equal
    from decimal import Decimal

    def exactly(document: str) -> Any:
        return json.loads(document, parse_float=Decimal, parse_int=Decimal)

    assert exactly(text) == exactly(metadata)
    assert "1.10" in text or "1.10" not in metadata  # the digits are kept, too


def test_what_jsonb_does_to_metadata(app: Connection, tenant: str) -> None:
    """Of keys given twice the last counts; the order of keys and the writing of exponents are not kept."""
    with as_caller(app, tenant):
        app.execute(
            "select graphium.ingest_context('metadata', 'g', 's', %s::jsonb)",
            ['[{"content": "keys", "metadata": {"bb": 1, "a": 2, "bb": 1e2}}]'],
        )
        row = app.execute("select metadata::text from graphium.kg_statements where content = 'keys'").fetchone()
    assert row == ('{"a": 2, "bb": 100}',)


def test_of_keys_given_twice_the_last_counts(app: Connection, tenant: str) -> None:
    with as_caller(app, tenant):
        row = app.execute(
            "select statement_id from graphium.ingest_context('twice', 'g', 's', '[{\"content\": \"first\","
            ' "content": "last"}]\')'
        ).fetchone()
        assert row is not None
        assert app.execute("select content from graphium.kg_statements where id = %s", [row[0]]).fetchone() == ("last",)


@pytest.mark.parametrize("vector", [[1, 2, 3], "[1,2,3]", " [1, 2 , 3] ", [1.0, 2.0, 3.0], "[1e0,2.0,3]"])
def test_numbers_in_any_form(app: Connection, tenant: str, vector: Any) -> None:
    with as_caller(app, tenant):
        [row] = ingest(app, [{"content": f"vector {vector}", "embedding": vector}], family=f"family {next(names)}")
        assert app.execute(
            "select embedding::text from graphium.kg_embeddings where statement_id = %s", [row[1]]
        ).fetchone() == ("[1,2,3]",)


def test_384_numbers_as_text(app: Connection, new_tenant: Callable[[int], str]) -> None:
    tenant = new_tenant(384)
    numbers = [((n * 37) % 101 - 50) / 64 for n in range(384)]
    with as_caller(app, tenant):
        first = ingest(app, [{"content": "as numbers", "embedding": numbers}])
        second = ingest(app, [{"content": "as text", "embedding": str(numbers)}])
    assert second[0][1:4] == (first[0][1], True, 1.0)


def test_null_means_not_given(app: Connection, tenant: str) -> None:
    keys = (
        "embedding",
        "memory_type",
        "layer_kind",
        "required_scopes",
        "occurred_at",
        "source",
        "position",
        "metadata",
        "exact_only",
    )
    with as_caller(app, tenant):
        [row] = ingest(app, [{"content": "nulls", **dict.fromkeys(keys)}])
        stored = app.execute(
            "select required_scopes, occurred_at, source, position, metadata, exact_only"
            " from graphium.kg_statements where id = %s",
            [row[1]],
        ).fetchone()
    assert stored == ([], None, None, None, {}, False)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T09:30:00Z", datetime(2026, 3, 1, 9, 30, tzinfo=timezone.utc)),
        ("2026-03-01T09:30:00+02:00", datetime(2026, 3, 1, 7, 30, tzinfo=timezone.utc)),
        ("2026-03-01 09:30:00.123456-05", datetime(2026, 3, 1, 14, 30, 0, 123456, tzinfo=timezone.utc)),
    ],
)
def test_times(app: Connection, tenant: str, text: str, moment: datetime) -> None:
    with as_caller(app, tenant):
        [row] = ingest(app, [{"content": f"at {text}", "occurred_at": text}])
        assert app.execute("select occurred_at from graphium.kg_statements where id = %s", [row[1]]).fetchone() == (
            moment,
        )


def test_labels_of_the_caller_win(app: Connection, tenant: str) -> None:
    with as_caller(app, tenant):
        rows = ingest(
            app,
            [
                {"content": f"x {m} {k}", "memory_type": m, "layer_kind": k}
                for m in ("fact", "event", "discovery", "preference", "advice", "decision")
                for k in ("preloaded", "on_demand")
            ],
        )
    assert [r[4:6] for r in rows] == [
        (m, k)
        for m in ("fact", "event", "discovery", "preference", "advice", "decision")
        for k in ("preloaded", "on_demand")
    ]


def test_no_statements_are_no_rows(app: Connection, boss: Connection, tenant: str) -> None:
    with as_caller(app, tenant):
        assert ingest(app, [], family="made by nothing") == []
    assert boss.execute(
        "select statement_count, summary_embedding from graphium.dh_families where name = 'made by nothing'"
    ).fetchone() == (0, None)


def test_an_error_in_a_savepoint_leaves_the_rest(app: Connection, tenant: str) -> None:
    with as_caller(app, tenant):
        ingest(app, [{"content": "before"}], family="savepoint")
        with pytest.raises(psycopg.Error) as caught, app.transaction():
            ingest(app, [{"content": "in it"}, {"content": " "}], family="savepoint")
        assert caught.value.sqlstate == "MG004"
        ingest(app, [{"content": "after"}], family="savepoint")
    with as_caller(app, tenant):
        found = app.execute(
            "select s.content from graphium.kg_statements s join graphium.dh_families f on f.id = s.family_id"
            " where f.name = 'savepoint' order by s.id"
        ).fetchall()
    assert found == [("before",), ("after",)]


def test_scopes_as_stored(app: Connection, tenant: str) -> None:
    with as_caller(app, tenant, ["hr"]):
        rows = app.execute(
            "select required_scopes from graphium.ingest_context('scopes', 'g', 's', %s, '{public}')",
            [
                Jsonb(
                    [
                        {"content": "a", "required_scopes": [" hr ", "hr", "Zed", "a\u0301"]},
                        {"content": "b"},
                        {"content": "c", "required_scopes": []},
                    ]
                )
            ],
        ).fetchall()
    assert rows == [(["Zed", "hr", "\u00e1"],), (["public"],), ([],)]


ABOUT = {"family": "f of many", "genus": "g", "specimen": "s", "content": "c"}


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ({**ABOUT, "family": None}, "MG008", "statement 2: family must not be NULL or blank"),
        ({**ABOUT, "genus": " "}, "MG008", "statement 2: genus must not be NULL or blank"),
        (
            {key: ABOUT[key] for key in ("family", "genus", "content")},
            "MG008",
            "statement 2: specimen must not be NULL or blank",
        ),
        (
            {**ABOUT, "specimen": "s" * 201},
            "MG008",
            "statement 2: specimen is 201 characters long, at most 200 are allowed",
        ),
        ({**ABOUT, "tenant": "other"}, "MG004", "statement 2: key tenant is not known"),
        ({**ABOUT, "content": " "}, "MG004", "statement 2: content is blank"),
        (
            {**ABOUT, "embedding": [1, 2]},
            "MG005",
            "statement 2: embedding has 2 dimensions, the tenant's model all-MiniLM-L6-v2 has 3",
        ),
        (
            {**ABOUT, "family": "hidden family"},
            "MG006",
            'family: the name "hidden family" belongs to a family that the caller may not see',
        ),
        (
            {**ABOUT, "family": "has a secret inside", "genus": "feedback", "specimen": "hidden specimen"},
            "MG006",
            'specimen: the name "hidden specimen" belongs to a specimen that the caller may not see',
        ),
    ],
)
def test_many_statements_name_the_one_that_is_bad(
    app: Connection, boss: Connection, tenant: str, statement: dict[str, Any], code: str, message: str
) -> None:
    before = nothing_left(boss)
    with pytest.raises(psycopg.Error) as caught, as_caller(app, tenant, ["hr"]):
        ingest_many(app, [ABOUT, statement])
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (code, message)
    assert nothing_left(boss) == before


def test_a_family_is_no_key_of_a_statement_about_one_specimen(app: Connection, tenant: str) -> None:
    assert refused(app, tenant, [ABOUT]).diag.message_primary == "statement 1: key family, genus, specimen is not known"
