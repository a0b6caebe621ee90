"""Deterministic classification of single sentences, by rules that Python and SQL read alike.

The rules are data: `db/classification/rules.toml`. A rule's pattern is a regular expression whose letters are words:
`<subject> <adverb>* decided`. A sentence is first spelled with one symbol per word, where words that no rule tells
apart share a symbol; then each pattern, compiled to those symbols, is searched in it, and the first rule that matches
decides. So a pattern holds nothing but symbols, brackets and quantifiers, which `re` and PostgreSQL read in the same
way, and a sentence is a string of a dozen characters: the whole rule set takes microseconds. :func:`render_sql` writes
the same steps as one SQL function. docs/classification.md says how rules are read and written.
"""

from __future__ import annotations

import json
import re
import string
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphium_db.resources import db_path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MEMORY_TYPES = ("fact", "event", "discovery", "preference", "advice", "decision")
LAYER_KINDS = ("preloaded", "on_demand")

# A sentence's kind shows in its first words; the limit bounds the time that a megabyte takes.
MAX_CHARACTERS = 1000
# Code between backticks, and a URL, are a word that no rule knows; what is called with a string is code.
_NAMES = (
    ("`", "`[^`]*`", " x "),
    ('("', r'[A-Za-z0-9_]\("[^"]*"', " = x "),
    ("('", r"[A-Za-z0-9_]\('[^']*'", " = x "),
    ("://", r"[A-Za-z]+://[^ \t\n\v\f\r]*", " x "),
)
# What separates words becomes a space (markup too), a comma or a full stop; what only code has, "="; apostrophes become
# one; A-Z become a-z.
_ASCII_SPACES = '\t\n\v\f\r()[<>*`~^#"'
_ASCII_CODE, _ASCII_COMMAS = "{}\\", ";|"
_ASCII_FROM = _ASCII_SPACES + _ASCII_CODE + _ASCII_COMMAS
_ASCII_TO = " " * len(_ASCII_SPACES) + "=" * len(_ASCII_CODE) + "," * len(_ASCII_COMMAS)
_UNICODE = {
    " ": "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200C))) + "\u2028\u2029\u202f\u205f\u3000\ufeff“”„‟«»",
    ",": "—–―、，；：",
    ".": "…。！．",
    "?": "？",
    "'": "’‘‛ʼ＇",
}
_UNICODE_FROM = "".join(_UNICODE.values())
_UNICODE_TO = "".join(to * len(chars) for to, chars in _UNICODE.items())
_TABLE = str.maketrans(
    string.ascii_uppercase + _ASCII_FROM + _UNICODE_FROM,
    string.ascii_lowercase + _ASCII_TO + _UNICODE_TO,
)
# Then marks at the end of a word become words: in this order, on the text between two spaces.
_REPLACEMENTS = (
    *(
        ("] ", " , "),
        ("]", " "),
        (": ", ","),
        ("=", " = "),
        ("!", "."),
        ("..", " "),
        (",", " , "),
        ("?", " ? "),
        (". ", " . "),
    ),
    *((" - ", " , "), (" -", " - "), (" _", " "), ("_ ", " "), (" '", " "), ("' ", " ")),
)
# What a word that the lexicon does not hold counts as, by the first that fits.
_ENDINGS = ("ed", "ing", "ly")
_PSEUDO_WORDS = ("-number", *(f"-{ending}" for ending in _ENDINGS), "-other")
_PUNCTUATION = (",", ".", "?", "=", "-")
# Symbols: letters below U+0800, which PostgreSQL's regular expressions look up fastest. Capitals stand for rules.
_ALPHABET = string.ascii_lowercase + string.digits + "".join(filter(str.isalpha, map(chr, range(0xC0, 0x530))))
_RULE_LETTERS = string.ascii_uppercase
# Words that most sentences have: a rule that needs one of them is seldom ruled out by it.
_MOST_COMMON_WORDS = ". , i -other"
_COMMON_WORDS = "you we it is are am 's have do not a an the to and of in on for with my that -ed -ing -ly -number"
# One token of a pattern: a class, a macro, a literal word, or an operator.
_TOKEN = re.compile(
    r"\s*(?:<(?P<negated>!?)(?P<words>[^<>!\s]+)>|\{(?P<macro>[a-z_]+)\}|(?P<literal>[a-z']+(?:-[a-z]+)*)"
    r"|(?P<operator>\(\?!|[()|?*+^$.]|\{\d(?:,\d)?\}))"
)


@dataclass(frozen=True)
class Classification:
    """What kind of memory a sentence is.

    Attributes:
        memory_type: fact, event, discovery, preference, advice or decision.
        layer_kind: preloaded (given to an agent at the start of a session) or on_demand.
        rule: the id of the rule that decided.
    """

    memory_type: str
    layer_kind: str
    rule: str


@dataclass(frozen=True)
class Rule:
    """One rule of rules.toml. `pattern` is written in words, `regex` in symbols.

    Whatever it matches has one of the symbols `keys`; empty: there may be none that it needs.
    """

    id: str
    memory_type: str
    layer_kind: str
    why: str
    pattern: str
    regex: str
    keys: frozenset[str]
    match: tuple[str, ...]
    no_match: tuple[str, ...]


@dataclass(frozen=True)
class RuleSet:
    """The compiled rules.toml. `lexicon` spells in symbols each word that it holds, and each pseudo-word."""

    version: int
    lexicon: dict[str, str]
    rules: tuple[Rule, ...]

    def spell(self, text: str) -> str:
        """The sentence in symbols: one for each word, and one more for each further word in a contraction."""
        return "".join(map(self._spell_word, _normalised(text).split(" ")))

    def _spell_word(self, word: str) -> str:
        known = self.lexicon.get(word)
        if known is not None:
            return known
        if word.endswith("'s"):
            return self.lexicon.get(word[:-2], self.lexicon["-other"]) + self.lexicon["'s"]
        if "0" <= word[0] <= "9":
            return self.lexicon["-number"]
        ending = next((ending for ending in _ENDINGS if word.endswith(ending)), "other")
        return self.lexicon[f"-{ending}"]


def classify(text: str) -> Classification:
    """The kind of memory that a sentence is: the same answer as SQL's `graphium.classify`, for every text."""
    rules, regexes = _installed()
    symbols = rules.spell(text)
    present = frozenset(symbols)
    rule = next(
        rule
        for rule, regex in zip(rules.rules, regexes, strict=True)
        if not (rule.keys and rule.keys.isdisjoint(present)) and regex.search(symbols)
    )
    return Classification(rule.memory_type, rule.layer_kind, rule.id)


def rule_set() -> RuleSet:
    """The rules of this installation."""
    return _installed()[0]


@lru_cache(maxsize=1)
def _installed() -> tuple[RuleSet, tuple[re.Pattern[str], ...]]:
    rules = load(tomllib.loads((db_path() / "classification" / "rules.toml").read_text("utf-8")))
    return rules, tuple(re.compile(rule.regex) for rule in rules.rules)


def _normalised(text: str) -> str:
    text = text[:MAX_CHARACTERS]
    for sign, name, word in _NAMES:
        if sign in text:
            text = re.sub(name, word, text)
    text = f" {text.translate(_TABLE)} "
    for old, new in _REPLACEMENTS:
        text = text.replace(old, new)
    return text


def load(data: dict[str, Any]) -> RuleSet:
    """Compile the content of rules.toml.

    Raises:
        ValueError: a pattern cannot be read, or names what does not exist; an unknown type or layer; two rules with
            one id; a last rule that does not match every sentence.
    """
    classes: dict[str, set[str]] = {}
    for name, words in data["classes"].items():
        # A class may contain others, which stand before it.
        classes[name] = set().union(*(_members(part, classes) for part in words.split()))
    patterns = {rule["id"]: _with_choices(list(_tokens(rule["pattern"], data["macros"]))) for rule in data["rules"]}

    # The sets of words that patterns tell apart.
    atoms = {atom: _members(atom, classes) for tokens in patterns.values() for atom, _ in tokens if atom}
    not_endings = set(data["not_endings"].split())
    others = set().union(*(_members(part, classes) for part in data["others"].split()))
    for members in atoms.values():
        members |= others if "-other" in members else set()
    contractions = {word: expansion.split() for word, expansion in data["contractions"].items()}
    words = {*_PSEUDO_WORDS, *_PUNCTUATION, "'s", *not_endings}.union(*atoms.values(), *contractions.values())
    for ending in _ENDINGS:  # "decided" is a word in -ed, "need" is not
        ended = {word for word in words - not_endings if word.endswith(ending)}
        for members in atoms.values():
            members |= ended if f"-{ending}" in members else set()

    # Words that are in the same sets share a symbol.
    symbols: dict[frozenset[str], str] = {}
    lexicon = {"": ""}
    for word in sorted(words):
        signature = frozenset(atom for atom, members in atoms.items() if word in members)
        lexicon[word] = symbols.setdefault(signature, _ALPHABET[len(symbols)])
    lexicon.update({word: "".join(lexicon[part] for part in parts) for word, parts in contractions.items()})

    def regex(tokens: list[tuple[str, str]]) -> str:
        return "".join(_bracket({lexicon[word] for word in atoms[a]}, text) if a else text for a, text in tokens)

    weights: dict[str, int] = {}
    common, most_common = _COMMON_WORDS.split(), _MOST_COMMON_WORDS.split()
    for word in words:
        weight = 1000 if word in most_common else 100 if word in common else 1
        weights[lexicon[word]] = weights.get(lexicon[word], 0) + weight

    def symbols_of(atom: str) -> frozenset[str]:
        return frozenset(lexicon[word] for word in atoms[atom])

    rules = tuple(
        Rule(
            **{key: rule[key] for key in ("id", "memory_type", "layer_kind", "why", "pattern")},
            regex=regex(patterns[rule["id"]]),
            keys=_keys(iter(patterns[rule["id"]]), symbols_of, weights),
            match=tuple(rule["match"]),
            no_match=tuple(rule["no_match"]),
        )
        for rule in data["rules"]
    )
    if any(rule.memory_type not in MEMORY_TYPES or rule.layer_kind not in LAYER_KINDS for rule in rules):
        raise ValueError("unknown memory_type or layer_kind")
    if len(patterns) != len(rules):
        raise ValueError("two rules share an id")
    if rules[-1].regex != "":
        raise ValueError("the last rule must match every sentence")
    return RuleSet(data["version"], lexicon, rules)


def _tokens(pattern: str, macros: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of an atom (a set of words) and "" or "^" (any word but those), or of "" and an operator."""
    position, pattern = 0, pattern.rstrip()
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None or (token["macro"] and token["macro"] not in macros):
            raise ValueError(f"cannot read this pattern from here: {pattern[position:]}")
        position = token.end()
        if token["macro"]:
            yield from [("", "(?:"), *_tokens(macros[token["macro"]], macros), ("", ")")]
        elif token["operator"]:
            yield "", "(?:" if token["operator"] == "(" else token["operator"]
        else:
            yield token["literal"] or f"<{token['words']}>", "^" if token["negated"] else ""


def _with_choices(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pattern with each choice between sets of words, "(a | <b>)", made one set: fewer symbols, a faster search."""
    found: list[tuple[str, str]] = []
    for token in tokens:
        found.append(token)
        if token == ("", ")"):
            start = len(found) - 1 - found[::-1].index(("", "(?:")) if ("", "(?:") in found else len(found)
            inner = found[start + 1 : -1]
            choice = all(not text and atom for atom, text in inner[::2]) and all(t == ("", "|") for t in inner[1::2])
            if inner and choice and len(inner) % 2:
                found[start:] = [("|".join(atom for atom, _ in inner[::2]), "")]
    return found


def _keys(
    tokens: Iterator[tuple[str, str]], symbols_of: Callable[[str], frozenset[str]], weights: dict[str, int]
) -> frozenset[str]:
    """Of a pattern, or a group up to its bracket: symbols one of which is in all that it matches (empty: no such set).

    Of what a branch needs one after the other, the rarest; of branches, all together.
    """
    branches: list[frozenset[str]] = []
    needed: list[frozenset[str]] = [frozenset()]  # by this branch
    for atom, text in tokens:
        if text in ("|", ")"):
            branches.append(_rarest(needed, weights))
            needed = [frozenset()]
            if text == ")":
                break
        elif atom:
            needed.append(frozenset() if text else symbols_of(atom))
        elif text in ("(?:", "(?!"):
            group = _keys(tokens, symbols_of, weights)
            needed.append(group if text == "(?:" else frozenset())
        elif text in ("?", "*") or text.startswith("{0"):
            needed[-1] = frozenset()
        elif text in (".", "^", "$"):
            needed.append(frozenset())  # "." may be what a "*" is of
    else:
        branches.append(_rarest(needed, weights))
    return frozenset().union(*branches) if all(branches) else frozenset()


def _rarest(keys: list[frozenset[str]], weights: dict[str, int]) -> frozenset[str]:
    return min(filter(None, keys), key=lambda key: sum(weights[symbol] for symbol in key), default=frozenset())


def _members(atom: str, classes: dict[str, set[str]]) -> set[str]:
    if "|" in atom:
        return set().union(*(_members(choice, classes) for choice in atom.split("|")))
    if not atom.startswith("<"):
        return {atom}
    name = atom[1:-1]
    if name in classes:
        return set(classes[name])
    if name in (*_PUNCTUATION, *_PSEUDO_WORDS):
        return {name}
    raise ValueError(f"{atom} is no class of words")


def _bracket(symbols: set[str], negation: str) -> str:
    text = "".join(sorted(symbols))
    return text if len(text) == 1 and not negation else f"[{negation}{text}]"


def render_sql() -> str:
    """The SQL that creates `graphium_private._classify_by_rules(content)` from the rules of this installation."""
    rules = rule_set()
    letters = {rule.id: letter for rule, letter in zip(rules.rules, _RULE_LETTERS, strict=False) if rule.keys}
    marks = {
        s: "".join(letters[r.id] for r in rules.rules if s in r.keys) for s in set("".join(rules.lexicon.values()))
    }
    spelled = {word: "".join(s + marks[s] for s in symbols) for word, symbols in rules.lexicon.items()}
    lexicon = json.dumps(spelled, ensure_ascii=False, separators=(",", ":"))
    names = "\n".join(
        f"  if strpos(v_text, {_literal(sign)}) > 0 then\n"
        f"    v_text := regexp_replace(v_text, {_literal(name)} collate \"C\", '{word}', 'g');\n  end if;"
        for sign, name, word in _NAMES
    )
    of_these = "[" + re.sub(r"([]^\\])", r"\\\1", _ASCII_FROM) + "]"
    replaced = "v_text"
    for old, new in _REPLACEMENTS:
        replaced = f"replace({replaced}, {_literal(old)}, {_literal(new)})"
    endings = "\n".join(
        f"          when right(v_word, {len(ending)}) = '{ending}' then {_literal(spelled[f'-{ending}'])}"
        for ending in _ENDINGS
    )
    answers = [f"'{{{rule.memory_type},{rule.layer_kind},{rule.id}}}'" for rule in rules.rules]
    ruled_out = {rule.id: f"strpos(v_spelled, '{letters[rule.id]}') > 0 and " for rule in rules.rules if rule.keys}
    cases = "\n".join(
        f"    when {ruled_out.get(rule.id, '')}v_symbols ~ {_literal(rule.regex)} collate pg_catalog.pg_c_utf8"
        f" then {answer}"
        for rule, answer in zip(rules.rules[:-1], answers, strict=False)
    )
    return f"""\
-- Written by graphium_db.classification.render_sql() from db/classification/rules.toml, version {rules.version}.
-- Each word becomes a symbol, words that no rule tells apart the same one; each rule is a pattern of symbols.
set local role graphium_owner;

create or replace function graphium_private._classify_by_rules(
  content text, out memory_type text, out layer_kind text, out rule text)
  language plpgsql immutable strict parallel safe security invoker set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $classify_by_rules$
declare
  c_lexicon constant jsonb := {_literal(lexicon)}::jsonb;
  v_text text := lower(left(content, {MAX_CHARACTERS}) collate "C");
  v_word text;
  v_spelled text := '';
  v_symbols text;
  v_answer text[];
begin
{names}
  if octet_length(v_text) > length(v_text) then
    v_text := translate(v_text, {_literal(_UNICODE_FROM)}, {_literal(_UNICODE_TO)});
  end if;
  if v_text ~ {_literal(of_these)} collate pg_catalog.pg_c_utf8 then
    v_text := translate(v_text, {_literal(_ASCII_FROM)}, {_literal(_ASCII_TO)});
  end if;
  v_text := ' ' || v_text || ' ';
  foreach v_word in array string_to_array({replaced}, ' ') loop
    v_spelled := v_spelled || coalesce(
      c_lexicon ->> v_word,
      case when right(v_word, 2) = '''s' then coalesce(c_lexicon ->> left(v_word, -2), {_literal(spelled["-other"])}) || {_literal(spelled["'s"])}
          when ascii(v_word) between 48 and 57 then {_literal(spelled["-number"])}
{endings}
          else {_literal(spelled["-other"])}
      end);
  end loop;
  v_symbols := translate(v_spelled, '{"".join(letters.values())}', '');
  v_answer := case
{cases}
    else {answers[-1]}
  end;
  memory_type := v_answer[1];
  layer_kind := v_answer[2];
  rule := v_answer[3];
end
$classify_by_rules$;
comment on function graphium_private._classify_by_rules(text) is
  'Type, layer and deciding rule of a sentence, by version {rules.version} of the classification rules.';
revoke all on function graphium_private._classify_by_rules(text) from public;

create or replace function graphium_private._rules_version() returns int
  language sql immutable parallel safe security invoker
  return {rules.version};
comment on function graphium_private._rules_version() is 'Version of the classification rules that are deployed.';
revoke all on function graphium_private._rules_version() from public;
"""  # noqa: E501


def _literal(text: str) -> str:
    """An SQL string constant; control and invisible characters escaped, so that the file can be read."""
    if text.isprintable() and "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return "E'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + "'"
