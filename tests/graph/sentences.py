"""Random Cypher of the grammar in db/functions/330_cypher_grammar.sql: mostly sense, sometimes one token away from it.

Written to find what crashes Apache AGE: each kind of value meets each place where a value may stand.
"""

from __future__ import annotations

import random
import re

PARAMS = {"name": "Ada", "map": {"name": "Ada", "a": 1}, "list": [1, 2], "missing": None}
LITERALS = [
    "1",
    "-1",
    "0",
    "1.5",
    "'a'",
    "''",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[1, 2]",
    "{a: 1}",
    "$name",
    "$map",
    "$list",
    "$missing",
]
LITERALS += ["9223372036854775807", "'Ada'", "1e300", "$map.a"]
SCALAR = {
    1: [
        "abs",
        "acos",
        "asin",
        "atan",
        "ceil",
        "cos",
        "cot",
        "degrees",
        "exp",
        "floor",
        "head",
        "keys",
        "label",
        "labels",
        "last",
        "length",
        "log",
        "log10",
        "lTrim",
        "nodes",
        "properties",
        "radians",
        "relationships",
        "reverse",
        "rTrim",
        "sign",
        "sin",
        "size",
        "sqrt",
        "tail",
        "tan",
        "toUpper",
        "toLower",
        "trim",
        "type",
        "round",
        "coalesce",
    ],
    2: ["atan2", "left", "right", "split", "round", "substring", "coalesce"],
    3: ["substring", "coalesce"],
    0: ["e", "pi", "rand", "timestamp"],
}
MAKES_A_VALUE = ["toBoolean", "toString", "toFloat", "toInteger"]
AGGREGATES = {1: ["collect", "count", "max", "min", "stDev", "stDevP", "sum"], 2: ["percentileCont", "percentileDisc"]}
VERTEX_LABELS = ["", ":Family", ":Genus", ":Specimen", ":Nothing", ":HAS_GENUS", ":`Family`", ":_ag_label_vertex"]
EDGE_LABELS = ["", ":HAS_GENUS", ":HAS_SPECIMEN", ":CONTAINS_SPECIMEN", ":Nothing", ":Family", ":_ag_label_edge"]
TOKEN = re.compile(r"'[^']*'|[$\w]+|<>|<=|>=|=~|\.\.|\|\||\S")
STRAY = TOKEN.findall(
    "MATCH (n:Family {name: 'a'})-[e:HAS_GENUS]->(m) OPTIONAL WHERE n.name = 1 AND OR NOT XOR IN STARTS WITH ENDS CONTAINS IS NULL true UNWIND AS x"
    " DISTINCT ORDER BY DESC SKIP LIMIT RETURN count(*) collect CASE WHEN THEN ELSE END exists coalesce $map $list [1..2] < > <= + - * / % ^ =~ UNION ALL"
)


class Sentences:
    """`next()` gives one query; the same `seed` gives the same queries."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bound: list[str] = []

    def next(self) -> str:
        query = self.query()
        return self.mutated(query) if self.random.random() < 0.25 else query

    def one(self, choices: list[str]) -> str:
        return self.random.choice(choices)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def name(self) -> str:
        return self.one(self.bound) if self.bound else self.one(["1", "'a'", "$name", "null"])

    def property(self) -> str:
        return f"{self.one(self.bound)}.{self.one(['name', 'id', 'x'])}" if self.bound else "$map.name"

    def bind(self, pool: str) -> str:
        free = [v for v in pool if v not in self.bound]
        if not free:
            return ""
        self.bound.append(free[0])
        return free[0]

    def value(self, depth: int, aggregates: bool) -> str:
        if depth > 3 or self.chance(0.3):
            return self.one([self.one(LITERALS), self.name(), self.property(), self.property()])
        deeper = lambda: self.value(depth + 1, aggregates)  # noqa: E731
        anything = lambda: self.anything(depth + 1, aggregates)  # noqa: E731
        n = self.random.choice([0, 1, 1, 1, 1, 2, 2, 3])
        forms = [
            lambda: f"{self.one(SCALAR[n])}({', '.join(deeper() for _ in range(n))})",
            lambda: f"{self.one(MAKES_A_VALUE)}({anything()})",
            lambda: f"substring({deeper()}, {self.one(['0', '1', '9'])}, {deeper()})",
            lambda: f"{deeper()} {self.one(['+', '-', '*', '/', '%', '^', '||'])} {deeper()}",
            lambda: f"({deeper()})",
            lambda: f"[{', '.join(anything() for _ in range(self.random.randint(0, 3)))}]",
            lambda: "{" + ", ".join(f"{key}: {anything()}" for key in "abc"[: self.random.randint(0, 3)]) + "}",
            lambda: f"({deeper()})[{deeper()}]",
            lambda: f"({deeper()})[{self.one(['', '0', '-1'])}..{self.one(['', '1', '2'])}]",
            lambda: f"({deeper()}).name",
            lambda: f"-({deeper()})",
            lambda: f"CASE WHEN {anything()} THEN {deeper()} {'ELSE ' + deeper() if self.chance(0.5) else ''} END",
            lambda: f"CASE {deeper()} WHEN {deeper()} THEN {deeper()} END",
        ]
        if aggregates and self.chance(0.15):
            n = self.random.choice([1, 1, 1, 2])
            return f"{self.one(AGGREGATES[n])}({self.one(['', 'DISTINCT '])}{', '.join(self.value(depth + 1, False) for _ in range(n))})"
        return self.random.choice(forms)()

    def test(self, depth: int, aggregates: bool) -> str:
        deeper = lambda: self.value(depth + 1, aggregates)  # noqa: E731
        operand = lambda: self.one([self.one(LITERALS[2:]), self.name(), self.property(), f"({deeper()})"])  # noqa: E731
        forms = [
            lambda: f"{deeper()} {self.one(['=', '<>', '<', '<=', '>', '>='])} {deeper()}",
            lambda: f"{operand()} {self.one(['IN', 'STARTS WITH', 'ENDS WITH', 'CONTAINS', '=~'])} {operand()}",
            lambda: f"{operand()} IS {self.one(['', 'NOT '])}NULL",
            lambda: f"exists({self.path(False)})",
            lambda: f"isEmpty({deeper()})",
            lambda: f"NOT {self.anything(depth + 1, aggregates)}",
            lambda: (
                f"{self.anything(depth + 1, aggregates)} {self.one(['AND', 'OR', 'XOR'])} {self.anything(depth + 1, aggregates)}"
            ),
        ]
        if self.bound:
            forms.append(lambda: f"exists({self.one(self.bound)}.{self.one(['name', 'x'])})")
        if aggregates:
            forms.append(lambda: f"avg({self.value(depth + 1, False)})")
        return self.random.choice(forms[: 5 if depth > 3 else None])()

    def anything(self, depth: int, aggregates: bool) -> str:
        return self.test(depth, aggregates) if depth < 4 and self.chance(0.4) else self.value(depth, aggregates)

    def properties(self, in_match: bool) -> str:
        values = ["1", "-1", "'Ada'", "1.5", "true", "null", "$name", "$missing", "$map", "$list"]
        if in_match and self.bound:
            values += [self.property(), self.one(self.bound)]
        return self.one(
            [
                "",
                "",
                "",
                " {}",
                f" {{name: {self.one(values)}}}",
                f" {{name: {self.one(values)}, id: {self.one(values)}}}",
            ]
        )

    def node(self, in_match: bool) -> str:
        known = [v for v in self.bound if v in "nmab"]
        if known and self.chance(0.4):
            return f"({self.one(known)})"
        return f"({self.bind('nmab') if in_match and self.chance(0.6) else ''}{self.one(VERTEX_LABELS)}{self.properties(in_match)})"

    def edge(self, in_match: bool) -> str:
        inside = f"[{self.bind('efg') if in_match and self.chance(0.6) else ''}{self.one(EDGE_LABELS)}{self.properties(in_match)}]"
        return self.one([f"-{inside}->", f"<-{inside}-", f"-{inside}-", "--", "-->", "<--"])

    def path(self, in_match: bool) -> str:
        return self.node(in_match) + "".join(
            self.edge(in_match) + self.node(in_match) for _ in range(self.random.choice([0, 1, 1, 1, 2, 3]))
        )

    def items(self, named: bool) -> str:
        if self.bound and self.chance(0.08):
            return "*"
        if not named:
            return self.anything(1, True) + (f" AS {self.one(['r', 's'])}" if self.chance(0.3) else "")
        values = [self.one([self.value(1, True), self.name()]) for _ in range(self.random.choice([1, 2, 2, 3]))]
        self.bound = []
        return ", ".join(f"{value} AS {self.bind('xyzw')}" for value in values)

    def tail(self) -> str:
        order = f" ORDER BY {self.anything(2, True)}{self.one(['', ' DESC'])}" if self.chance(0.2) else ""
        skip = f" SKIP {self.one(['0', '1', self.value(3, False)])}" if self.chance(0.1) else ""
        return order + skip + (f" LIMIT {self.one(['1', '2', self.value(3, False)])}" if self.chance(0.2) else "")

    def query(self) -> str:
        self.bound = []
        optional = False
        clauses = []
        for _ in range(self.random.choice([0, 1, 1, 2, 2, 3])):
            if self.chance(0.65):
                optional = optional or self.chance(0.3)
                path = "p = " if "p" not in self.bound and self.chance(0.3) else ""
                clause = f"{'OPTIONAL ' if optional else ''}MATCH {path}" + ", ".join(
                    self.path(True) for _ in range(self.random.choice([1, 1, 1, 2]))
                )
                self.bound += ["p"] if path else []
                clauses.append(clause + (f" WHERE {self.anything(1, False)}" if self.chance(0.4) else ""))
            elif self.chance(0.4):
                value = self.value(1, False)
                clauses.append(f"UNWIND {value} AS {self.bind('xyzw') or 'more'}")
            else:
                optional = False
                clause = f"WITH {self.one(['', 'DISTINCT '])}{self.items(True)}{self.tail()}"
                clauses.append(clause + (f" WHERE {self.anything(1, False)}" if self.chance(0.3) else ""))
        clauses.append(f"RETURN {self.one(['', '', 'DISTINCT '])}{self.items(False)}{self.tail()}")
        if self.chance(0.06):
            clauses.append(self.one(["UNION ", "UNION ALL "]) + self.query())
        return " ".join(clauses)

    def mutated(self, query: str) -> str:
        tokens = TOKEN.findall(query)
        for _ in range(self.random.choice([1, 1, 2, 3])):
            at = self.random.randrange(len(tokens))
            tokens[at : at + self.random.choice([0, 1, 1])] = self.random.choice([[], [self.one(STRAY)]]) or []
            if not tokens:
                return "RETURN"
        return " ".join(tokens)
