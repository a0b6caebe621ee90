"""Text into sentences. Every character that is not white space comes out again, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphium_db.errors import MissingExtraError

# Where a new block begins whatever the punctuation says: after an empty line, and at the line of a list item
# (-, *, •, 1., a)), a heading, a table row or a quotation.
_BLOCK = re.compile(r"(?<=\n)(?=[^\S\n]*(?:\n|[-*+•‣◦▪–—]\s|(?:\d{1,3}|[a-zA-Z])[.)]\s|#{1,6}\s|\||>))")
_LIST_MARKER = re.compile(r"\W*(?:\d{1,3}|[a-zA-Z])[.)]\s*")
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them.

    Line breaks inside a paragraph do not end a sentence; empty lines and the items of a list do. A list's marker stays
    with its item, a mark or emoji that stands alone with the sentence before it.

    Raises:
        MissingExtraError: the extra `[embed]`, which brings the splitter, is not installed.
    """
    sentences: list[list[str]] = []
    incomplete = False  # so far only a marker, or no word
    for piece in _pieces(text):
        wordless = not any(map(str.isalnum, piece))
        if sentences and (incomplete or wordless):
            sentences[-1].append(piece)
            incomplete = incomplete and wordless
        else:
            sentences.append([piece])
            incomplete = wordless or _LIST_MARKER.fullmatch(piece) is not None
    return [stripped for sentence in sentences if (stripped := "".join(sentence).strip())]


def _pieces(text: str) -> Iterator[str]:
    """The text cut at the ends of blocks and sentences; joined, the text."""
    try:
        import sentencex
    except ImportError:
        raise MissingExtraError("embed", "splitting text into sentences") from None
    for block in _BLOCK.split(text):
        # The splitter takes no half of a surrogate pair: it reads a stand-in, and the block is cut where it says.
        start = 0
        for segment in sentencex.segment("en", _HALF_PAIR.sub("\ufffd", block)):
            yield block[start : start + len(segment)]
            start += len(segment)
