"""Which texts an embedding identifies.

Dedup merges statements whose vectors have a cosine of at least 0.999. That is safe only where no other text, unequal
after the fold, gets such a vector. Two things make it so, and a text must have both:

* The model reads the whole of it. Models throw away case, accents, control characters and white space, and map what
  they do not know to one token. So only words of ASCII letters count as plain, with a capital at most in front, with
  apostrophes and hyphens inside and sentence marks behind. Among such texts the model's tokens determine the text
  up to the case of first letters and the white space, which is what the fold ignores too. Digits are never plain:
  of two long numbers that differ in one digit the vectors reach 0.9987 and, with other numbers, more.
* It is short. Each word's share of a mean over all tokens shrinks with the length. Of 46,000 one-word edits (number
  words, names, negations, roles, "and"/"or", "more"/"less") of real sentences of up to 10 word pieces, none reached
  0.999 but "a" for "an", which is the same statement; 0.02 % did at 11 and 12, 0.1 % at 13 to 16, 3 % at 30.
  docs/decisions/0030-exact-only.md has more.
"""

from __future__ import annotations

import re

MAX_WORD_PIECES = 10
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z]*(?:['-][a-z]+)*[,;.!?]?")


def is_plain(text: str, max_words: int = MAX_WORD_PIECES) -> bool:
    """Whether `text` is a few plain words: 1 to `max_words`, ASCII letters, no digits, no capital inside a word."""
    words = text.split()
    return 0 < len(words) <= max_words and all(_PLAIN_WORD.fullmatch(word) for word in words)
