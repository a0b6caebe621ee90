"""From what a caller passes to what `calls.ingest_context` takes: shared by the sync and the async client."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphium_db.calls import Moment, checked_text
from graphium_db.errors import BadArgumentError, BadStatementError
from graphium_db.models import StatementInput

if TYPE_CHECKING:
    from graphium_db.embedding import Embedding


_BLANK = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What the database trims from names."""


def clean_name(name: str) -> str:
    """A name, or a scope, as the database keeps it."""
    return unicodedata.normalize("NFC", name.strip(_BLANK))


def statement_inputs(
    statements: Sequence[str | StatementInput] | None,
    text: str | None,
    source: str | None,
    occurred_at: Moment | None,
) -> list[StatementInput]:
    """One dict per statement: copies of `statements`, or the sentences of `text`; `source` and `occurred_at` fill gaps.

    Raises:
        BadArgumentError: both or neither of `statements` and `text`, or one text where a list of statements belongs.
        BadStatementError: a statement without a text as its `content`.
    """
    if (statements is None) == (text is None):
        raise BadArgumentError("pass either statements or text", "text is split into sentences; statements are not.")
    if isinstance(statements, str):
        raise BadArgumentError("statements must be a list, got one text", "Pass text= to have it split into sentences.")
    if text is not None:
        checked_text("text", text)
        from graphium_db.splitting import split_sentences

        statements = split_sentences(text)
    inputs: list[StatementInput] = []
    for item in copies(statements or ()):
        if source is not None:
            item.setdefault("source", source)
        if occurred_at is not None:
            item.setdefault("occurred_at", occurred_at)
        inputs.append(item)
    return inputs


def copies(statements: Iterable[Any]) -> list[Any]:
    """One dict per statement, with a text as its content."""
    if isinstance(statements, (str, Mapping)) or not isinstance(statements, Iterable):
        raise BadArgumentError(
            f"statements must be a list, got {type(statements).__name__}", "Pass a list of statements."
        )
    items = []
    for ordinal, statement in enumerate(statements, start=1):
        if not isinstance(statement, (str, Mapping)):
            raise BadStatementError(
                f"statement {ordinal}: it must be a text or a dict, got {type(statement).__name__}",
                'Pass the sentence, or {"content": …} with what else there is to say.',
            )
        item = {"content": statement} if isinstance(statement, str) else dict(statement)
        if not isinstance(item.get("content"), str):
            raise BadStatementError(
                f"statement {ordinal}: content must be text, got {item.get('content')!r}", "Pass one sentence."
            )
        items.append(item)
    return items


def without_embedding(inputs: Sequence[StatementInput]) -> list[StatementInput]:
    """Those whose caller left `embedding` out. An explicit None stays None: stored, found by words only."""
    return [item for item in inputs if "embedding" not in item]


def set_embeddings(inputs: Sequence[StatementInput], embeddings: Sequence[Embedding]) -> None:
    """Give each input its vector. The caller's own `exact_only` wins over the embedder's."""
    for item, embedding in zip(inputs, embeddings, strict=True):
        item["embedding"] = embedding.vector
        if embedding.exact_only:
            item.setdefault("exact_only", True)
