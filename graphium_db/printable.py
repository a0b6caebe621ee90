"""Text that others wrote, made safe to print: names and sentences are data, a terminal or a log reads more in them."""

from __future__ import annotations

import json
import re

# C1 controls (CSI is one character of them), marks and overrides of direction, what has no width, the line ends of
# Unicode: they rewrite the reader's terminal, or pass for another text or another line.
_ACTING = "\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\U000e0000-\\U000e007f"
_UNPRINTABLE = re.compile(f"[\\x00-\\x1f{_ACTING}]")
_RAW_IN_JSON = re.compile(f"[{_ACTING}]")
_LINE_END = re.compile(r"(?<!\s)\s*[\r\n\t\u2028\u2029]\s*")


def printable(text: str) -> str:
    """`text` on one line, without characters that act on a terminal."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", _LINE_END.sub(" ", text))


def escaped(json_text: str) -> str:
    """The same JSON, with escapes for what `json.dumps(ensure_ascii=False)` leaves and a terminal would obey."""
    return _RAW_IN_JSON.sub(lambda character: json.dumps(character[0])[1:-1], json_text)
