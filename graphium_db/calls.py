"""All SQL that a client sends, and how its rows become objects.

A `Call` is one `select … from graphium.function(name => …)` with its parameters and the decoder of its rows. Nothing
here touches a connection: `aio.py` and `client.py` run calls, and whoever has a cursor of their own can, too.

Text is checked before it is sent: PostgreSQL stores neither U+0000 nor half of a surrogate pair, and its own message
for them names no argument.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timezone
from numbers import Real
from typing import Any, Generic, NoReturn, TypeVar
from uuid import UUID

import pgvector

from graphium_db import models
from graphium_db.errors import BadArgumentError, BadEmbeddingError, BadStatementError, GraphiumError
from graphium_db.models import FiledStatementInput, StatementInput, SymbiosisEnd, Vector

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Moment = datetime | date | str
"""A point in time: a datetime with a time zone, or text that PostgreSQL reads as `timestamptz`."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One statement to send: `cursor.execute(call.sql, call.parameters)`, then `call.decode(cursor.fetchall())`."""

    sql: bytes
    parameters: Mapping[str, Any]
    decode: Callable[[Rows], T]


def _sql(function: str, columns: Sequence[str] = (), /, **argument_types: str) -> bytes:
    """`select columns from graphium.function(argument => parameter::type, …)`.

    An argument of type '' is sent untyped: the schema of the type vector differs between databases.
    """
    arguments = ", ".join(
        f"{name} => %({name})s" + (f"::{sql_type}" if sql_type else "") for name, sql_type in argument_types.items()
    )
    return f"select {', '.join(columns) or '*'} from graphium.{function}({arguments})".encode()  # noqa: S608  # names


def _columns(model: type) -> list[str]:
    return [field.name for field in fields(model)]


def _rows_as(model: type[T]) -> Callable[[Rows], list[T]]:
    """Decoder of rows whose columns are the fields of `model`, arrays as tuples."""
    arrays = [i for i, field in enumerate(fields(model)) if str(field.type).startswith("tuple[")]  # type: ignore[arg-type]

    def decode(rows: Rows) -> list[T]:
        decoded = []
        for row in rows:
            values = list(row)
            for i in arrays:
                values[i] = None if values[i] is None else tuple(values[i])
            decoded.append(model(*values))
        return decoded

    return decode


def _first_row_as(model: type[T]) -> Callable[[Rows], T]:
    decode = _rows_as(model)
    return lambda rows: decode(rows)[0]


def _scalar(rows: Rows) -> Any:
    return rows[0][0]


def _nothing(_rows: Rows) -> None:
    return None


# --- checks and encodings of arguments -------------------------------------------------------------------------


def _unstorable(text: str) -> str | None:
    """Why PostgreSQL could not store `text`, or None."""
    if "\x00" in text:
        return "contains U+0000, which PostgreSQL cannot store"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"contains half of a surrogate pair (U+{ord(text[error.start]):04X}) at character {error.start + 1}"
    return None


def _refuse_text(error: type[GraphiumError], where: str, problem: str) -> NoReturn:
    raise error(
        f"{where} {problem}", "Remove or replace the character: text.replace(…) or text.encode(errors='ignore')."
    )


def checked_text(name: str, value: str | None) -> str | None:
    """`value`, when it is text that PostgreSQL can store, or None."""
    if isinstance(value, str):
        if problem := _unstorable(value):
            _refuse_text(BadArgumentError, name, problem)
    elif value is not None:
        raise BadArgumentError(f"{name} must be text, got {type(value).__name__}", f"Pass {name} as a str.")
    return value


def _listed(name: str, values: Any, kind: str) -> list[Any]:
    if isinstance(values, (str, bytes)):
        raise BadArgumentError(f"{name} must be a list of {kind}, got one text", f"Pass [{values!r}].")
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise BadArgumentError(f"{name} must be a list of {kind}, got {type(values).__name__}", "Pass a list.")
    return list(values)


def _texts(name: str, values: Sequence[str] | None) -> list[str] | None:
    if values is None:
        return None
    listed = _listed(name, values, "texts")
    for value in listed:
        if checked_text(name, value) is None:
            raise BadArgumentError(f"{name} must be a list of texts, got None in it", "Leave None out.")
    return listed


def _integer(name: str, value: int) -> int:
    if not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise BadArgumentError(f"{name} must be an integer below 2^31, got {value!r}", f"Pass {name} as an int.")
    return value


def _number(name: str, value: float | None) -> float | None:
    if value is not None and not isinstance(value, Real):
        raise BadArgumentError(f"{name} must be a number, got {value!r}", f"Pass {name} as a float.")
    return value


def _boolean(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise BadArgumentError(f"{name} must be True or False, got {value!r}", "Leave it out for its default.")
    return value


def _uuid(name: str, value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise BadArgumentError(
            f"{name} must be a uuid, got {value!r}", "Pass an id that a call returned, as a UUID or its text."
        ) from None


def _uuids(name: str, values: Sequence[UUID | str]) -> list[UUID]:
    return [_uuid(name, value) for value in _listed(name, values, "uuids")]


def _moment(name: str, value: Moment | None, error: type[GraphiumError] = BadArgumentError) -> str | None:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise error(f"{name} has no time zone: {value.isoformat()}", "Add one: value.replace(tzinfo=timezone.utc).")
        return value.isoformat()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc).isoformat()
    if isinstance(value, str) and (problem := _unstorable(value)):
        _refuse_text(error, name, problem)
    if value is not None and not isinstance(value, str):
        raise error(f"{name} must be a point in time, got {value!r}", "Pass a datetime with a time zone, or a text.")
    return value


def vector_text(embedding: Vector) -> str:
    """pgvector's text form, in single precision, which is what the database stores. In JSON it is read three times
    faster than an array of numbers. Nine digits are all that a number in single precision has.

    Raises:
        BadEmbeddingError: an element is not a number. NaN, infinity, wrong dimensions are the database's to refuse.
    """
    try:
        numbers = pgvector.Vector(embedding.tolist() if hasattr(embedding, "tolist") else list(embedding)).to_list()
        return f"[{','.join(['%.9g'] * len(numbers)) % tuple(numbers)}]"
    except (TypeError, ValueError, OverflowError):
        raise BadEmbeddingError("the embedding must be a list of numbers", "Pass a list of floats.") from None


def _dict(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadArgumentError(f"{name} must be a dict, got {type(value).__name__}", "Pass values by their names.")
    return dict(value)


def _check_json(value: Any, where: str, error: type[GraphiumError]) -> None:
    """Refuse text that PostgreSQL cannot store anywhere inside of `value`, keys included."""
    if isinstance(value, str):
        if problem := _unstorable(value):
            _refuse_text(error, where, problem)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check_json(key, f"a key of {where}", error)
            _check_json(item, f"{where}.{key}" if isinstance(key, str) else where, error)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_json(item, where, error)


_JSON_HINT = "JSON has texts, finite numbers, True, False, None, lists, and dicts with texts as keys."


def _json(value: Any, where: str, error: type[GraphiumError]) -> str:
    """Strict JSON: no NaN, no type that JSON does not have."""
    _check_json(value, where, error)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise error(f"{where} cannot be written as JSON: {problem}", _JSON_HINT) from None


def _statement(ordinal: int, statement: StatementInput) -> dict[str, Any]:
    """`statement` as the function reads it. Unknown keys go along: the database refuses them by name."""
    encoded: dict[str, Any] = dict(statement)
    if (embedding := encoded.get("embedding")) is not None and not isinstance(embedding, str):
        try:
            encoded["embedding"] = vector_text(embedding)
        except BadEmbeddingError as error:
            raise BadEmbeddingError(f"statement {ordinal}: {error.message}", error.hint) from None
    if "occurred_at" in encoded:
        encoded["occurred_at"] = _moment(f"statement {ordinal}: occurred_at", encoded["occurred_at"], BadStatementError)
    if (scopes := encoded.get("required_scopes")) is not None and not isinstance(scopes, str):
        encoded["required_scopes"] = list(scopes)
    check_statement(f"statement {ordinal}", encoded)
    return encoded


def _statements(statements: Sequence[StatementInput]) -> str:
    encoded = [_statement(ordinal, statement) for ordinal, statement in enumerate(statements, start=1)]
    try:
        return json.dumps(encoded, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        for ordinal, statement in enumerate(encoded, start=1):  # find the one to blame
            _json(statement, f"statement {ordinal}", BadStatementError)
        raise BadStatementError(f"statements cannot be written as JSON: {problem}", _JSON_HINT) from None


def check_statement(where: str, statement: Mapping[str, Any]) -> None:
    """Refuse text that PostgreSQL cannot store in any field of `statement`; `where` names it in the message.

    Tokenizers cannot read such text either, so this comes before the embedding.
    """
    try:
        for field, value in statement.items():
            _check_json(field, f"{where}: a key", BadStatementError)
            if field != "embedding":
                _check_json(value, f"{where}: {field}", BadStatementError)
    except RecursionError:
        raise BadStatementError(
            f"{where} is nested too deeply", "Lists in lists and dicts in dicts: flatten."
        ) from None


# --- identity --------------------------------------------------------------------------------------------------

_SET_CALLER = _sql("set_caller", tenant="text", scopes="text[]")
_CALLER = _sql("caller", _columns(models.Caller))


def set_caller(tenant: str | None, scopes: Sequence[str] | None = None) -> Call[None]:
    """`tenant` None: a principal's own. `scopes` None: not named, which leaves a principal all of his own and an
    application none; empty: none at all."""
    return Call(_SET_CALLER, {"tenant": checked_text("tenant", tenant), "scopes": _texts("scopes", scopes)}, _nothing)


def caller() -> Call[models.Caller]:
    return Call(_CALLER, {}, _first_row_as(models.Caller))


# --- memory ----------------------------------------------------------------------------------------------------

_INGEST = _sql(
    "ingest_context",
    _columns(models.IngestedStatement),
    family="text",
    genus="text",
    specimen="text",
    statements="jsonb",
    required_scopes="text[]",
    embedding_model="text",
)


def ingest_context(
    family: str,
    genus: str,
    specimen: str,
    statements: Sequence[StatementInput],
    required_scopes: Sequence[str] | None = None,
    embedding_model: str | None = None,
) -> Call[list[models.IngestedStatement]]:
    return Call(
        _INGEST,
        {
            "family": checked_text("family", family),
            "genus": checked_text("genus", genus),
            "specimen": checked_text("specimen", specimen),
            "statements": _statements(statements),
            "required_scopes": _texts("required_scopes", required_scopes),
            "embedding_model": checked_text("embedding_model", embedding_model),
        },
        _rows_as(models.IngestedStatement),
    )


_INGEST_MANY = _sql(
    "ingest_many",
    _columns(models.IngestedStatement),
    statements="jsonb",
    required_scopes="text[]",
    embedding_model="text",
)


def ingest_many(
    statements: Sequence[FiledStatementInput],
    required_scopes: Sequence[str] | None = None,
    embedding_model: str | None = None,
) -> Call[list[models.IngestedStatement]]:
    return Call(
        _INGEST_MANY,
        {
            "statements": _statements(statements),
            "required_scopes": _texts("required_scopes", required_scopes),
            "embedding_model": checked_text("embedding_model", embedding_model),
        },
        _rows_as(models.IngestedStatement),
    )


_FILTER_TYPES = {
    "memory_types": "text[]",
    "layer_kinds": "text[]",
    "since": "timestamptz",
    "until": "timestamptz",
}
_SEARCH = _sql(
    "search_context",
    _columns(models.SearchHit),
    query_embedding="",
    query_text="text",
    match_count="int",
    families="text[]",
    genera="text[]",
    specimens="text[]",
    **_FILTER_TYPES,
    min_similarity="real",
    follow_symbiosis="bool",
    symbiosis_count="int",
    embedding_model="text",
    now="timestamptz",
    explain="bool",
)
_PREPARE_QUERY = _sql("prepare_query", _columns(models.PreparedQuery), query_text="text", now="timestamptz")


def prepare_query(query_text: str, now: Moment | None = None) -> Call[models.PreparedQuery]:
    return Call(
        _PREPARE_QUERY,
        {"query_text": checked_text("query_text", query_text), "now": _moment("now", now)},
        _first_row_as(models.PreparedQuery),
    )


def search_context(
    query_embedding: Vector | None = None,
    query_text: str | None = None,
    match_count: int = 10,
    families: Sequence[str] | None = None,
    genera: Sequence[str] | None = None,
    specimens: Sequence[str] | None = None,
    memory_types: Sequence[str] | None = None,
    layer_kinds: Sequence[str] | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    min_similarity: float | None = None,
    follow_symbiosis: bool = True,
    symbiosis_count: int = 5,
    embedding_model: str | None = None,
    now: Moment | None = None,
    explain: bool = False,
) -> Call[list[models.SearchHit]]:
    return Call(
        _SEARCH,
        {
            "query_embedding": None if query_embedding is None else vector_text(query_embedding),
            "query_text": checked_text("query_text", query_text),
            "match_count": _integer("match_count", match_count),
            "families": _texts("families", families),
            "genera": _texts("genera", genera),
            "specimens": _texts("specimens", specimens),
            "memory_types": _texts("memory_types", memory_types),
            "layer_kinds": _texts("layer_kinds", layer_kinds),
            "since": _moment("since", since),
            "until": _moment("until", until),
            "min_similarity": _number("min_similarity", min_similarity),
            "follow_symbiosis": _boolean("follow_symbiosis", follow_symbiosis),
            "symbiosis_count": _integer("symbiosis_count", symbiosis_count),
            "embedding_model": checked_text("embedding_model", embedding_model),
            "now": _moment("now", now),
            "explain": _boolean("explain", explain),
        },
        _rows_as(models.SearchHit),
    )


_RECALL = _sql(
    "recall_context",
    _columns(models.RecalledStatement),
    family="text",
    genus="text",
    specimen="text",
    statement_ids="uuid[]",
    **_FILTER_TYPES,
    page_size="int",
    after="uuid",
    required_scopes="text[]",
)


def recall_context(
    family: str | None = None,
    genus: str | None = None,
    specimen: str | None = None,
    statement_ids: Sequence[UUID | str] | None = None,
    memory_types: Sequence[str] | None = None,
    layer_kinds: Sequence[str] | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    page_size: int = 50,
    after: UUID | str | None = None,
    required_scopes: Sequence[str] | None = None,
) -> Call[list[models.RecalledStatement]]:
    return Call(
        _RECALL,
        {
            "family": checked_text("family", family),
            "genus": checked_text("genus", genus),
            "specimen": checked_text("specimen", specimen),
            "statement_ids": None if statement_ids is None else _uuids("statement_ids", statement_ids),
            "memory_types": _texts("memory_types", memory_types),
            "layer_kinds": _texts("layer_kinds", layer_kinds),
            "since": _moment("since", since),
            "until": _moment("until", until),
            "page_size": _integer("page_size", page_size),
            "after": None if after is None else _uuid("after", after),
            "required_scopes": _texts("required_scopes", required_scopes),
        },
        _rows_as(models.RecalledStatement),
    )


_STATEMENT_DETAILS = _sql(
    "statement_details", _columns(models.StatementDetails), statement_ids="uuid[]", query_text="text"
)


def statement_details(
    statement_ids: Sequence[UUID | str], query_text: str | None = None
) -> Call[list[models.StatementDetails]]:
    return Call(
        _STATEMENT_DETAILS,
        {"statement_ids": _uuids("statement_ids", statement_ids), "query_text": checked_text("query_text", query_text)},
        _rows_as(models.StatementDetails),
    )


_LIST_SYMBIOSES = _sql("list_symbioses", _columns(models.Symbiosis), statement_ids="uuid[]", max_count="int")


def list_symbioses(
    statement_ids: Sequence[UUID | str] | None = None, max_count: int = 1000
) -> Call[list[models.Symbiosis]]:
    return Call(
        _LIST_SYMBIOSES,
        {
            "statement_ids": None if statement_ids is None else _uuids("statement_ids", statement_ids),
            "max_count": _integer("max_count", max_count),
        },
        _rows_as(models.Symbiosis),
    )


_WAKE_UP = _sql(
    "wake_up_context",
    _columns(models.WakeUpStatement),
    token_budget="int",  # noqa: S106
    families="text[]",
    specimens="text[]",
)


def wake_up_context(
    token_budget: int = 800, families: Sequence[str] | None = None, specimens: Sequence[str] | None = None
) -> Call[list[models.WakeUpStatement]]:
    return Call(
        _WAKE_UP,
        {
            "token_budget": _integer("token_budget", token_budget),
            "families": _texts("families", families),
            "specimens": _texts("specimens", specimens),
        },
        _rows_as(models.WakeUpStatement),
    )


_SEARCH_FAMILIES = _sql("search_families", _columns(models.FamilyHit), query_embedding="", match_count="int")


def search_families(query_embedding: Vector, match_count: int = 5) -> Call[list[models.FamilyHit]]:
    return Call(
        _SEARCH_FAMILIES,
        {"query_embedding": vector_text(query_embedding), "match_count": _integer("match_count", match_count)},
        _rows_as(models.FamilyHit),
    )


_CONTEXT_TREE = _sql("context_tree", _columns(models.ContextTreeRow))


def context_tree() -> Call[list[models.ContextTreeRow]]:
    return Call(_CONTEXT_TREE, {}, _rows_as(models.ContextTreeRow))


_FORGET = _sql("forget_context", statement_ids="uuid[]")


def forget_context(statement_ids: Sequence[UUID | str]) -> Call[int]:
    return Call(_FORGET, {"statement_ids": _uuids("statement_ids", statement_ids)}, _scalar)


_SCOPES_IN_USE = _sql("scopes_in_use", _columns(models.ScopeInUse))


def scopes_in_use() -> Call[list[models.ScopeInUse]]:
    return Call(_SCOPES_IN_USE, {}, _rows_as(models.ScopeInUse))


_PREVIEW_REQUIRED_SCOPES = _sql(
    "preview_required_scopes",
    _columns(models.ScopeEditPreview),
    kind="text",
    ids="uuid[]",
    required_scopes="text[]",
    cascade="bool",
)


def preview_required_scopes(
    kind: str, ids: Sequence[UUID | str], required_scopes: Sequence[str], cascade: bool = False
) -> Call[list[models.ScopeEditPreview]]:
    return Call(
        _PREVIEW_REQUIRED_SCOPES,
        {
            "kind": checked_text("kind", kind),
            "ids": _uuids("ids", ids),
            "required_scopes": _texts("required_scopes", required_scopes),
            "cascade": _boolean("cascade", cascade),
        },
        _rows_as(models.ScopeEditPreview),
    )


_SET_REQUIRED_SCOPES = _sql("set_required_scopes", kind="text", id="uuid", required_scopes="text[]", cascade="bool")


def set_required_scopes(kind: str, id: UUID | str, required_scopes: Sequence[str], cascade: bool = False) -> Call[int]:
    return Call(
        _SET_REQUIRED_SCOPES,
        {
            "kind": checked_text("kind", kind),
            "id": _uuid("id", id),
            "required_scopes": _texts("required_scopes", required_scopes),
            "cascade": _boolean("cascade", cascade),
        },
        _scalar,
    )


_SET_MANY_REQUIRED_SCOPES = _sql(
    "set_many_required_scopes", kind="text", ids="uuid[]", required_scopes="text[]", cascade="bool"
)


def set_many_required_scopes(
    kind: str, ids: Sequence[UUID | str], required_scopes: Sequence[str], cascade: bool = False
) -> Call[int]:
    return Call(
        _SET_MANY_REQUIRED_SCOPES,
        {
            "kind": checked_text("kind", kind),
            "ids": _uuids("ids", ids),
            "required_scopes": _texts("required_scopes", required_scopes),
            "cascade": _boolean("cascade", cascade),
        },
        _scalar,
    )


_PLAN_RECLASSIFICATION = _sql("plan_reclassification", _columns(models.Reclassification), sample_count="int")


def plan_reclassification(sample_count: int = 3) -> Call[list[models.Reclassification]]:
    return Call(
        _PLAN_RECLASSIFICATION,
        {"sample_count": _integer("sample_count", sample_count)},
        _rows_as(models.Reclassification),
    )


_RECLASSIFY = _sql("reclassify", _columns(models.Reclassified), batch_size="int", after="uuid")


def reclassify(batch_size: int = 1000, after: UUID | str | None = None) -> Call[models.Reclassified]:
    return Call(
        _RECLASSIFY,
        {"batch_size": _integer("batch_size", batch_size), "after": None if after is None else _uuid("after", after)},
        _first_row_as(models.Reclassified),
    )


_CYPHER = _sql("cypher", query="text", params="jsonb")


def cypher(query: str, params: Mapping[str, Any] | None = None) -> Call[list[Any]]:
    return Call(
        _CYPHER,
        {
            "query": checked_text("query", query),
            "params": _json(_dict("params", params or {}), "params", BadArgumentError),
        },
        lambda rows: [row[0] for row in rows],
    )


# --- administration --------------------------------------------------------------------------------------------

_CREATE_TENANT = _sql("create_tenant", slug="text", embedding_model="text", dimensions="int", language="text")
_DROP_TENANT = _sql("drop_tenant", slug="text")
_LIST_TENANTS = _sql("list_tenants", _columns(models.Tenant))
_ADD_PRINCIPAL = _sql("add_principal", role_name="text", tenant="text", scopes="text[]", read_only="bool")
_REMOVE_PRINCIPAL = _sql("remove_principal", role_name="text")
_LIST_PRINCIPALS = _sql("list_principals", _columns(models.Principal))
_RENAME_TAXON = _sql("rename_taxon", kind="text", id="uuid", name="text")
_MOVE_SPECIMEN = _sql("move_specimen", id="uuid", genus_id="uuid")
_FORGET_TAXON = _sql("forget_taxon", kind="text", id="uuid")
_LINK_SYMBIOSIS = _sql("link_symbiosis", kind="text", source="jsonb", target="jsonb", note="text")
_UNLINK_SYMBIOSIS = _sql("unlink_symbiosis", id="uuid")


def create_tenant(
    slug: str, embedding_model: str = "all-MiniLM-L6-v2", dimensions: int = 384, language: str = "english"
) -> Call[UUID]:
    return Call(
        _CREATE_TENANT,
        {
            "slug": checked_text("slug", slug),
            "embedding_model": checked_text("embedding_model", embedding_model),
            "dimensions": _integer("dimensions", dimensions),
            "language": checked_text("language", language),
        },
        _scalar,
    )


def drop_tenant(slug: str) -> Call[None]:
    return Call(_DROP_TENANT, {"slug": checked_text("slug", slug)}, _nothing)


def list_tenants() -> Call[list[models.Tenant]]:
    return Call(_LIST_TENANTS, {}, _rows_as(models.Tenant))


def add_principal(role_name: str, tenant: str, scopes: Sequence[str] = (), read_only: bool = False) -> Call[None]:
    return Call(
        _ADD_PRINCIPAL,
        {
            "role_name": checked_text("role_name", role_name),
            "tenant": checked_text("tenant", tenant),
            "scopes": _texts("scopes", scopes),
            "read_only": _boolean("read_only", read_only),
        },
        _nothing,
    )


def remove_principal(role_name: str) -> Call[None]:
    return Call(_REMOVE_PRINCIPAL, {"role_name": checked_text("role_name", role_name)}, _nothing)


def list_principals() -> Call[list[models.Principal]]:
    return Call(_LIST_PRINCIPALS, {}, _rows_as(models.Principal))


def rename_taxon(kind: str, id: UUID | str, name: str) -> Call[None]:
    return Call(
        _RENAME_TAXON,
        {"kind": checked_text("kind", kind), "id": _uuid("id", id), "name": checked_text("name", name)},
        _nothing,
    )


def move_specimen(id: UUID | str, genus_id: UUID | str) -> Call[None]:
    return Call(_MOVE_SPECIMEN, {"id": _uuid("id", id), "genus_id": _uuid("genus_id", genus_id)}, _nothing)


def forget_taxon(kind: str, id: UUID | str) -> Call[int]:
    return Call(_FORGET_TAXON, {"kind": checked_text("kind", kind), "id": _uuid("id", id)}, _scalar)


def _symbiosis_end(name: str, end: SymbiosisEnd) -> str:
    values = {key: str(value) if isinstance(value, UUID) else value for key, value in _dict(name, end).items()}
    return _json(values, name, BadArgumentError)


def link_symbiosis(kind: str, source: SymbiosisEnd, target: SymbiosisEnd, note: str | None = None) -> Call[UUID]:
    return Call(
        _LINK_SYMBIOSIS,
        {
            "kind": checked_text("kind", kind),
            "source": _symbiosis_end("source", source),
            "target": _symbiosis_end("target", target),
            "note": checked_text("note", note),
        },
        _scalar,
    )


def unlink_symbiosis(id: UUID | str) -> Call[None]:
    return Call(_UNLINK_SYMBIOSIS, {"id": _uuid("id", id)}, _nothing)


_CHECK_GRAPH = _sql("check_graph", _columns(models.GraphFault), tenant="text")
_REBUILD_GRAPH = _sql("rebuild_graph", tenant="text")
_CHECK_MEMORY = _sql("check_memory", _columns(models.MemoryFault), tenant="text")
_REBUILD_MEMORY = _sql("rebuild_memory", tenant="text")
_CHECK_SECURITY = _sql("check_security", _columns(models.SecurityFinding))
_MAINTENANCE_PLAN = _sql("maintenance_plan", _columns(models.MaintenanceStep))


def check_graph(tenant: str | None = None) -> Call[list[models.GraphFault]]:
    return Call(_CHECK_GRAPH, {"tenant": checked_text("tenant", tenant)}, _rows_as(models.GraphFault))


def rebuild_graph(tenant: str | None = None) -> Call[int]:
    return Call(_REBUILD_GRAPH, {"tenant": checked_text("tenant", tenant)}, _scalar)


def check_memory(tenant: str | None = None) -> Call[list[models.MemoryFault]]:
    return Call(_CHECK_MEMORY, {"tenant": checked_text("tenant", tenant)}, _rows_as(models.MemoryFault))


def rebuild_memory(tenant: str | None = None) -> Call[int]:
    return Call(_REBUILD_MEMORY, {"tenant": checked_text("tenant", tenant)}, _scalar)


def check_security() -> Call[list[models.SecurityFinding]]:
    return Call(_CHECK_SECURITY, {}, _rows_as(models.SecurityFinding))


def maintenance_plan() -> Call[list[models.MaintenanceStep]]:
    return Call(_MAINTENANCE_PLAN, {}, _rows_as(models.MaintenanceStep))
