"""Who may see what, and what each call answers: all tenants' memory in Python, row by row, written from the contract.

Ids are the database's. A method first refuses what must be refused, and only then looks at the database's answer for
the ids of what it made. Names, audiences and vectors are short, so that a failing story can be read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from tests.memory.model import THRESHOLD, audience, clean, cosine, fold, includes, sees
from tests.search.reference import Candidate, fused

Row = tuple[Any, ...]
Vector = tuple[float, ...]
Place = tuple[str, UUID]  # ("family" | "genus" | "specimen" | "statement", id): a row, as an edge's end names it

# What can be said: the content, and its words as a search sees them. The first two are the same statement.
CONTENTS: dict[str, tuple[str, list[str]]] = {
    "tea": ("Ada drinks tea", ["ada", "drink", "tea"]),
    "tea.": ("ada drinks  tea.", ["ada", "drink", "tea"]),
    "tea?": ("Ada drinks tea?", ["ada", "drink", "tea"]),
    "milk": ("Milk is milk", ["milk", "milk"]),
    "cows": ("Cows give Ada milk", ["cow", "give", "ada", "milk"]),
}
WORDS = dict(CONTENTS.values())
QUERIES = {"tea": ["tea"], "milk": ["milk"], "ada, milk or tea": ["ada", "milk", "tea"], "the of and": []}
# x and 2x are alike, x+ is within reach of x and of x++, which are not within reach of each other.
VECTORS: dict[str, Vector] = {
    "x": (1, 0, 0),
    "2x": (2, 0, 0),
    "x+": (1, 0.03, 0),
    "x++": (1, 0.055, 0),
    "y": (0, 1, 0),
    "y+": (0, 1, 0.03),
    "xyz": (3, 2, 1),
}


class Roughly(float):
    """A number that the database's may be off from by as much as `within`."""

    within: float

    def __new__(cls, value: float, within: float) -> Roughly:
        number = super().__new__(cls, value)
        number.within = within
        return number


class Refused(Exception):
    """What the database must say: an SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def refuse_if(is_wrong: bool, sqlstate: str) -> None:
    if is_wrong:
        raise Refused(sqlstate)


@dataclass
class Family:
    id: UUID
    name: str
    scopes: list[str]


@dataclass
class Genus:
    id: UUID
    family: UUID
    name: str


@dataclass
class Specimen:
    id: UUID
    genus: UUID
    name: str
    scopes: list[str]


@dataclass
class Statement:
    id: UUID
    specimen: UUID
    content: str
    vector: Vector | None
    scopes: list[str]
    exact_only: bool
    layer: str
    source: str | None
    position: int | None
    access_count: int = 0
    variants: Counter[Row] = field(default_factory=Counter)  # content, specimen, source, position


@dataclass
class Edge:
    id: UUID
    kind: str
    note: str | None
    source: Place
    target: Place


@dataclass
class Said:
    """One input of an ingest, as in "tea x+ {hr} talk/3 preloaded exact": content, vector (or -) and what is not the default."""

    content: str
    vector: Vector | None
    scopes: list[str] | None = None
    source: str | None = None
    position: int | None = None
    preloaded: bool = False
    exact_only: bool = False

    @classmethod
    def parse(cls, text: str) -> Said:
        content, vector, *rest = text.split()
        said = cls(CONTENTS[content][0], VECTORS.get(vector))
        for word in rest:
            if word.startswith("{"):
                said.scopes = scopes_in(word)
            elif word.startswith("talk"):
                said.source, _, position = word.partition("/")
                said.position = int(position) if position else None
            else:
                said.preloaded |= word == "preloaded"
                said.exact_only |= word == "exact"
        return said

    def as_json(self) -> dict[str, Any]:
        given = {
            "content": self.content,
            "embedding": self.vector and list(self.vector),
            "memory_type": "fact",
            "layer_kind": "preloaded" if self.preloaded else None,
            "required_scopes": self.scopes,
            "source": self.source,
            "position": self.position,
            "exact_only": self.exact_only,
        }
        return {key: value for key, value in given.items() if value is not None}


def scopes_in(text: str) -> list[str]:
    return clean([scope for scope in text.strip("{}").split(",") if scope])


class Tenant:
    def __init__(self, slug: str, id: UUID) -> None:
        self.slug, self.id = slug, id
        self.families: dict[UUID, Family] = {}
        self.genera: dict[UUID, Genus] = {}
        self.specimens: dict[UUID, Specimen] = {}
        self.statements: dict[UUID, Statement] = {}
        self.edges: dict[UUID, Edge] = {}
        self.scope_edits: list[Row] = []

    def path(self, place: Place) -> tuple[UUID, UUID | None, UUID | None]:
        """Family, genus and specimen of a row; those that it has."""
        level, id = place
        if level == "family":
            return id, None, None
        if level == "genus":
            return self.genera[id].family, id, None
        specimen = self.specimens[id if level == "specimen" else self.statements[id].specimen]
        return self.genera[specimen.genus].family, specimen.genus, specimen.id

    def family_of(self, statement: Statement) -> Family:
        return self.families[self.path(("statement", statement.id))[0]]

    def covers(self, place: Place, statement: Statement) -> bool:
        return place[1] in (*self.path(("statement", statement.id)), statement.id)

    def find(self, path: str) -> Place | None:
        """The taxon "family/genus/specimen", or the first two of them, or one."""
        names = path.split("/")
        for level, rows, depth in (
            ("family", self.families, 1),
            ("genus", self.genera, 2),
            ("specimen", self.specimens, 3),
        ):
            for id in rows if depth == len(names) else ():
                parents = self.path((level, id))
                tables: tuple[dict[UUID, Any], ...] = (self.families, self.genera, self.specimens)
                if [tables[n][i].name for n, i in enumerate(parents) if i] == names:
                    return level, id
        return None

    def table(self, level: str) -> dict[UUID, Any]:
        tables: dict[str, dict[UUID, Any]] = {
            "family": self.families,
            "genus": self.genera,
            "specimen": self.specimens,
            "statement": self.statements,
        }
        return tables[level]

    def prune(self) -> None:
        """After a deletion: nothing stays without what it hangs on."""
        self.genera = {i: g for i, g in self.genera.items() if g.family in self.families}
        self.specimens = {i: s for i, s in self.specimens.items() if s.genus in self.genera}
        self.statements = {i: s for i, s in self.statements.items() if s.specimen in self.specimens}
        for s in self.statements.values():
            s.variants = Counter({v: n for v, n in s.variants.items() if v[1] is None or v[1] in self.specimens})
        self.edges = {
            i: e for i, e in self.edges.items() if all(end[1] in self.table(end[0]) for end in (e.source, e.target))
        }

    def summary(self, family: Family) -> tuple[int, np.ndarray[Any, Any] | None]:
        """Count and mean over what every reader of the family may see."""
        seen = [
            s for s in self.statements.values() if self.family_of(s) is family and includes(s.scopes, family.scopes)
        ]
        vectors = [s.vector for s in seen if s.vector]
        return len(seen), np.mean(vectors, axis=0) if vectors else None


@dataclass
class World:
    """All that a database holds."""

    tenants: dict[str, Tenant] = field(default_factory=dict)
    principals: dict[str, tuple[str, list[str], bool]] = field(default_factory=dict)  # tenant, scopes, read_only

    def caller(self, who: str) -> Caller:
        """`who` is a login, and the settings that its session makes: "app acme {hr}", "ann {}", "admin acme"."""
        login, *settings = who.split()
        named = next((s for s in settings if not s.startswith("{")), None)
        scopes = next((scopes_in(s) for s in settings if s.startswith("{")), None)
        if login in self.principals:
            slug, held, read_only = self.principals[login]
            narrowed = held if scopes is None else [s for s in held if s in scopes]
            return Caller(self, login, "principal", self.tenants[slug], narrowed, read_only)
        role = login if login in ("app", "admin") else None
        tenant = self.tenants.get(named or "") if role else None
        return Caller(self, login, role, tenant, None if role == "admin" and tenant else scopes or [])


RIGHTS = {
    "eve": (),
    "rob": ("read",),
    "ann": ("read", "write"),
    "bob": ("read", "write"),
    "app": ("read", "write"),
    "admin": ("read", "write", "admin"),
}


@dataclass
class Caller:
    world: World
    login: str
    role: str | None
    of: Tenant | None
    scopes: list[str] | None  # None: all of them
    read_only: bool = False

    def require(self, right: str, tenant: bool = True) -> None:
        refuse_if(right not in RIGHTS[self.login], "42501")
        refuse_if(tenant and self.of is None, "MG001")
        refuse_if(right == "write" and self.read_only, "42501")

    @property
    def tenant(self) -> Tenant:
        assert self.of is not None
        return self.of

    # ------------------------------------------------------------------------------------------ what he sees
    def sees(self, place: Place) -> bool:
        level, id = place
        if level == "genus":
            level, id = "family", self.tenant.genera[id].family
        return sees(self.scopes, self.tenant.table(level)[id].scopes)

    def visible(self, level: str) -> list[Any]:
        return [row for id, row in sorted(self.tenant.table(level).items()) if self.sees((level, id))]

    def edges(self) -> list[Edge]:
        return [e for _, e in sorted(self.tenant.edges.items()) if self.sees(e.source) and self.sees(e.target)]

    def names(self, statement: Statement) -> list[str | None]:
        """Of family, genus and specimen; None for what is hidden."""
        path = zip(("family", "genus", "specimen"), self.tenant.path(("statement", statement.id)), strict=True)
        return [self.tenant.table(level)[id].name if id and self.sees((level, id)) else None for level, id in path]

    def is_under(self, statement: Statement, families: Sequence[str] | None, *narrower: str | None) -> bool:
        """Filters by name. A name that is hidden matches nothing."""
        family, *rest = self.names(statement)
        return (families is None or family in families) and all(
            n in (None, m) for n, m in zip(narrower, rest, strict=True)
        )

    def is_superseded(self, statement: Statement) -> bool:
        return any(e.kind == "supersedes" and self.tenant.covers(e.target, statement) for e in self.edges())

    def tables(self) -> dict[str, list[Row]]:
        """Each table that a reader may read, as he sees it; vectors apart."""
        if self.of is None:
            return {name: [] for name in TABLES}
        of, statements = self.tenant, self.visible("statement")
        paths = {s.id: of.path(("statement", s.id)) for s in statements}
        return {
            "tenants": [(of.id, of.slug)],
            "dh_families": [(f.id, f.name, f.scopes, *of.summary(f)) for f in self.visible("family")],
            "dh_genera": [(g.id, g.family, g.name) for g in self.visible("genus")],
            "dh_specimens": [
                (s.id, of.genera[s.genus].family, s.genus, s.name, s.scopes) for s in self.visible("specimen")
            ],
            "kg_statements": [
                (s.id, *paths[s.id], s.content, s.layer, s.scopes, s.exact_only, s.access_count, s.source, s.position)
                for s in statements
            ],
            "kg_statement_variants": [
                (s.id, *variant, count) for s in statements for variant, count in s.variants.items()
            ],
            "kg_embeddings": [(s.id, *paths[s.id], s.layer, s.scopes, s.vector) for s in statements if s.vector],
            "dh_symbioses": [(e.id, e.kind, e.note, *self._end(e.source), *self._end(e.target)) for e in self.edges()],
        }

    def admin_tables(self) -> dict[str, list[Row]]:
        self.require("admin", tenant=False)
        bound = self.world.principals.items()
        return {
            "principals": [(login, *p) for login, p in bound if self.of and p[0] == self.of.slug],
            "scope_edits": self.of.scope_edits if self.of else [],
        }

    def _end(self, end: Place) -> Row:
        level, id = end
        return self.tenant.path(end)[0], *(
            id if level == narrower else None for narrower in ("genus", "specimen", "statement")
        )

    def tree(self) -> list[Row]:
        """Counted by what of each path is visible; a family or genus stands for itself only when nothing below does."""
        self.require("read")
        counts: Counter[Row] = Counter()
        for level in ("statement", "specimen", "genus", "family"):
            for row in self.visible(level):
                path = zip(("family", "genus", "specimen"), self.tenant.path((level, row.id)), strict=True)
                counts[tuple(id if id and self.sees((at, id)) else None for at, id in path)] += level == "statement"
        families, genera = Counter(f for f, _, _ in counts), Counter(g for _, g, _ in counts)
        of = self.tenant
        return [
            (f, f and of.families[f].name, g, g and of.genera[g].name, s, s and of.specimens[s].name, n)
            for (f, g, s), n in counts.items()
            if n or s or (genera[g] == 1 if g else f and families[f] == 1)
        ]

    def graph(self) -> tuple[list[Row], list[Row]]:
        """Vertices and edges."""
        self.require("read")
        families, genera, specimens = (self.visible(level) for level in ("family", "genus", "specimen"))
        vertices = [("Family", f.id, f.name) for f in families] + [("Genus", g.id, g.name) for g in genera]
        vertices += [("Specimen", s.id, s.name) for s in specimens]
        edges = [("HAS_GENUS", g.family, g.id) for g in genera]
        edges += [("HAS_SPECIMEN", s.genus, s.id) for s in specimens]
        edges += [("CONTAINS_SPECIMEN", self.tenant.genera[s.genus].family, s.id) for s in specimens]
        there = {v[1] for v in vertices}
        return vertices, [e for e in edges if e[1] in there and e[2] in there]

    def recall(self, family: str | None, genus: str | None, specimen: str | None) -> list[Row]:
        self.require("read")
        return [
            (s.id, s.content, *self.names(s), self.is_superseded(s), s.access_count, s.scopes, s.source, s.position)
            for s in reversed(self.visible("statement"))
            if self.is_under(s, None if family is None else [family], genus, specimen)
        ]

    def wake_up(self, budget: int) -> list[Row]:
        """Alternately the newest and the one said most often, each once, as far as the budget reaches."""
        self.require("read")
        newest = [
            s
            for s in reversed(self.visible("statement"))
            if s.layer == "preloaded" and not self.is_superseded(s) and math.ceil(len(s.content) / 4) <= budget
        ]
        most_said = sorted((s for s in newest if s.access_count), key=lambda s: -s.access_count)
        rank = {s.id: n for n, s in enumerate(newest)}
        most = {s.id: n for n, s in enumerate(most_said)}
        chosen, spent = [], 0
        for s in sorted(newest, key=lambda s: (min(rank[s.id], most.get(s.id, len(newest))), rank[s.id])):
            tokens = math.ceil(len(s.content) / 4)
            if spent + tokens <= budget:
                spent += tokens
                chosen.append((s.id, s.content, *self.names(s), tokens, spent))
        return chosen

    def search_families(self, query: Vector) -> list[Row]:
        self.require("read")
        found = [(f.name, *self.tenant.summary(f)) for f in self.visible("family")]
        return [(name, cosine(mean, np.array(query)), count) for name, count, mean in found if mean is not None]

    # ------------------------------------------------------------------------------------------ searching
    def bm25(self, words: list[str]) -> dict[UUID, float]:
        """Scores by words, everything counted over what he sees."""
        texts = {s.id: WORDS[s.content] for s in self.visible("statement")}
        lists = {w: {i: t for i, t in texts.items() if w in t} for w in words}
        lists = {w: found for w, found in lists.items() if found}
        if not lists:
            return {}
        counted = sum(self.tenant.summary(f)[0] for f in self.visible("family"))
        documents = max(counted, *(len(found) for found in lists.values()))
        length = np.mean([len(t) for found in lists.values() for t in found.values()])
        scores: dict[UUID, float] = {}
        for word, found in lists.items():
            rarity = math.log(1 + (documents - len(found) + 0.5) / (len(found) + 0.5))
            for id, text in found.items():
                n = text.count(word)
                scores[id] = scores.get(id, 0) + rarity * n * 2.2 / (n + 1.2 * (0.6 + 0.4 * len(text) / length))
        return scores

    def search(
        self,
        vector: Vector | None,
        text: str | None,
        count: int,
        families: list[str] | None,
        hops: int,
        at_least: float | None,
    ) -> list[Row]:
        self.require("read")
        refuse_if(vector is None and (text is None or at_least is not None), "MG008")
        words, query = QUERIES.get(text or "", []), np.array(vector)
        near = (
            {s.id: cosine(np.array(s.vector), query) for s in self.visible("statement") if s.vector} if vector else {}
        )
        matched = self.bm25(words)
        admitted = [s for s in self.visible("statement") if self.is_under(s, families, None, None)]
        near_here = {s.id: near[s.id] for s in admitted if s.id in near}
        matched_here = {s.id: matched[s.id] for s in admitted if s.id in matched}
        hits = best_first(
            self._fuse(near_here, matched_here, words)
            if vector and matched_here
            else [(id, c, c) for id, c in near_here.items()]
            if vector
            else [(id, None, score) for id, score in matched_here.items()]
        )
        hits = [h for h in hits if at_least is None or (h[1] is not None and h[1] >= at_least)][:count]
        hits = self._below_replacements(hits)
        found = self._follow([h[0] for h in hits], near, matched, bool(vector), hops, at_least) if hops else []
        rows = [(*h, False, None, None) for h in hits] + [(*f[:3], True, f[3].kind, f[3].id) for f in found]
        return [(*row, *self._as_found(self.tenant.statements[row[0]])) for row in rows]

    def _fuse(self, near: dict[UUID, float], matched: dict[UUID, float], words: list[str]) -> Iterable[Row]:
        """(id, cosine, score). No query names anybody or a time."""
        found = [self.tenant.statements[id] for id in near | matched]
        pool = [
            Candidate(
                s.id, WORDS[s.content], near.get(s.id), s.source, s.position, -0.15 if s.content.endswith("?") else 0
            )
            for s in found
        ]
        # the database has cosines in single precision, and a small spread magnifies what that is off by
        spread = max(near.values(), default=0) - min(near.values(), default=0)
        within = 1e-5 + (1e-6 / spread if spread >= 1e-9 else 0)
        return [(id, near.get(id), Roughly(score, within)) for id, score in fused(pool, words).items()]

    def _below_replacements(self, hits: list[Row]) -> list[Row]:
        """What edges of the kind supersedes replace comes after all hits that they, and those that replace these, come from."""
        of, edges = self.tenant, [e for e in self.edges() if e.kind == "supersedes"]

        def covered(place: Place) -> list[int]:
            return [n for n, hit in enumerate(hits) if of.covers(place, of.statements[hit[0]])]

        edges = [e for e in edges if covered(e.source)]

        def place(n: int) -> tuple[int, int, int]:
            above: list[Edge] = []
            replaced = {n}
            while new := [e for e in edges if e not in above and replaced & set(covered(e.target))]:
                above += new
                replaced |= {m for e in new for m in covered(e.source)}
            return max([n, *(m for e in above for m in covered(e.source))]), len(above), n

        return [hits[n] for n in sorted(range(len(hits)), key=place)]

    def _follow(
        self,
        primary: list[UUID],
        near: dict[UUID, float],
        matched: dict[UUID, float],
        by_vector: bool,
        hops: int,
        at_least: float | None,
    ) -> list[Row]:
        """Over each edge that touches a primary hit, either way, to what its other end covers: (id, cosine, score, edge)."""
        of = self.tenant
        leads: list[tuple[Edge, Place]] = []
        for edge in self.edges():
            for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
                if any(of.covers(here, of.statements[id]) for id in primary):
                    leads.append((edge, there))
        reached = {
            s.id: next(e for e, there in leads if of.covers(there, s))
            for s in self.visible("statement")
            if s.id not in primary and any(of.covers(there, s) for _, there in leads)
        }
        found = best_first((id, near[id], near[id]) for id in reached if id in near)
        if at_least is not None:
            found = [f for f in found if f[1] >= at_least]
        else:
            rest = {id for id in reached if id not in near}
            found += [
                (id, None, 0.0 if by_vector else score)
                for id, _, score in best_first((id, None, matched[id]) for id in rest if id in matched)
            ]
            rest -= matched.keys()
            found += [(id, None, 0.0) for id in sorted(rest) if ("statement", id) in [there for _, there in leads]]
        return [(*f, reached[f[0]]) for f in found[:hops]]

    def _as_found(self, s: Statement) -> Row:
        return s.content, *self.names(s), self.is_superseded(s), s.access_count, s.scopes, s.source, s.position

    # ------------------------------------------------------------------------------------------ what he does
    def ingest(
        self, path: str, inputs: list[Said], scopes: list[str] | None, answer: Callable[[], tuple[list[Row], Row]]
    ) -> list[Row]:
        """Rows that ingest_context must return. `answer` gives its rows, and ids of family, genus and specimen."""
        self.require("write")
        of = self.tenant
        taxa = ["/".join(path.split("/")[:depth]) for depth in (1, 2, 3)]
        there = [of.find(taxon) for taxon in taxa]
        born_with = scopes or []
        refuse_if(not self._may_use(there[0], born_with) or not self._may_use(there[2], born_with), "MG006")
        default = of.specimens[there[2][1]].scopes if there[2] and scopes is None else born_with
        wanted = [default if said.scopes is None else said.scopes for said in inputs]
        refuse_if(not all(sees(self.scopes, w) for w in wanted), "MG006")

        rows, (family, genus, specimen) = answer()
        names = path.split("/")
        of.families.setdefault(family, Family(family, names[0], born_with))
        of.genera.setdefault(genus, Genus(genus, family, names[1]))
        of.specimens.setdefault(specimen, Specimen(specimen, genus, names[2], born_with))
        assert [of.find(taxon) for taxon in taxa] == [("family", family), ("genus", genus), ("specimen", specimen)]
        taken = [
            self._take(family, specimen, said, w, row[1]) for said, w, row in zip(inputs, wanted, rows, strict=True)
        ]
        return [
            (ordinal, s.id, not is_new, None if is_new else self._likeness(s.vector, said.vector), s.scopes)
            for ordinal, ((s, is_new), said) in enumerate(zip(taken, inputs, strict=True), 1)
        ]

    def _may_use(self, place: Place | None, born_with: list[str]) -> bool:
        return self.sees(place) if place else sees(self.scopes, born_with)

    @staticmethod
    def _likeness(a: Vector | None, b: Vector | None) -> float:
        return 1.0 if a is None or b is None else cosine(np.array(a), np.array(b))

    def _take(
        self, family: UUID, specimen: UUID, said: Said, wanted: list[str], new_id: UUID
    ) -> tuple[Statement, bool]:
        """The statement that an input is, and whether it is new: equal text, or near enough, of the same audience."""
        candidates = [
            s
            for s in self.visible("statement")
            if self.tenant.family_of(s).id == family and audience(s.scopes) == audience(wanted)
        ]
        same = [s for s in candidates if fold(s.content) == fold(said.content)]
        if not same and said.vector and not said.exact_only:
            likeness = {
                s.id: self._likeness(s.vector, said.vector) for s in candidates if s.vector and not s.exact_only
            }
            same = sorted(
                (s for s in candidates if likeness.get(s.id, 0) >= THRESHOLD), key=lambda s: (-likeness[s.id], s.id)
            )
        if not same:
            position = self._next_position(said.source) if said.source and said.position is None else said.position
            layer = "preloaded" if said.preloaded else "on_demand"
            new = Statement(
                new_id, specimen, said.content, said.vector, wanted, said.exact_only, layer, said.source, position
            )
            assert new.id not in self.tenant.statements, "the model says new, the database gives an old id"
            self.tenant.statements[new.id] = new
            return new, True
        s = same[0]
        s.access_count += 1
        if said.preloaded:
            s.layer = "preloaded"
        is_there = said.source is None or (said.source == s.source and said.position in (None, s.position))
        variant = (
            None if said.content == s.content else said.content,
            None if specimen == s.specimen else specimen,
            None if is_there else said.source,
            None if is_there else said.position,
        )
        if variant != (None, None, None, None):
            s.variants[variant] += 1
        if s.vector is None and said.vector:
            s.vector, s.exact_only = said.vector, s.exact_only or said.exact_only
        return s, False

    def _next_position(self, source: str) -> int:
        """After the last of that source that he can see."""
        places = [(s.source, s.position) for s in self.visible("statement")]
        places += [key[2:] for s in self.visible("statement") for key in s.variants]
        return max((p for its, p in places if its == source and p is not None), default=0) + 1

    def edit(self, level: str, ids: list[UUID], scopes: list[str], cascade: bool) -> int:
        """Rows that got another audience; each is on record."""
        self.require("write")
        refuse_if(not all(id in self.tenant.table(level) and self.sees((level, id)) for id in ids), "MG007")
        refuse_if(not sees(self.scopes, scopes), "MG006")
        rows = [(level, id) for id in dict.fromkeys(ids)]
        inside = {"family": ("specimen", "statement"), "specimen": ("statement",), "statement": ()}[level]
        for narrower in inside if cascade else ():
            rows += [
                (narrower, r.id) for r in self.visible(narrower) if set(self.tenant.path((narrower, r.id))) & set(ids)
            ]
        changed = 0
        for at, id in rows:
            row = self.tenant.table(at)[id]
            if row.scopes != scopes:
                changed += 1
                self.tenant.scope_edits.append(
                    (at, id, row.scopes, scopes, self.login, self.tenant.slug, self.role, self.scopes)
                )
                row.scopes = scopes
        return changed

    def forget(self, ids: list[UUID]) -> int:
        self.require("write")
        found = {id for id in ids if id in self.tenant.statements and self.sees(("statement", id))}
        for id in found:
            del self.tenant.statements[id]
        self.tenant.prune()
        return len(found)

    def find(self, level: str, id: UUID) -> Any:
        """A row, for an admin."""
        self.require("admin")
        refuse_if(id not in self.tenant.table(level), "MG007")
        return self.tenant.table(level)[id]

    def rename(self, level: str, id: UUID, name: str) -> None:
        row = self.find(level, id)
        parent = {"family": None, "genus": "family", "specimen": "genus"}[level]
        others = [r for r in self.tenant.table(level).values() if r is not row]
        refuse_if(
            any(r.name == name and (not parent or getattr(r, parent) == getattr(row, parent)) for r in others), "MG008"
        )
        row.name = name

    def move(self, id: UUID, genus: UUID) -> None:
        specimen, to = self.find("specimen", id), self.find("genus", genus)
        refuse_if(self.tenant.genera[specimen.genus].family != to.family, "MG008")
        others = [s for s in self.tenant.specimens.values() if s is not specimen and s.genus == genus]
        refuse_if(any(s.name == specimen.name for s in others), "MG008")
        specimen.genus = genus

    def forget_taxon(self, level: str, id: UUID) -> int:
        self.find(level, id)
        before = len(self.tenant.statements)
        del self.tenant.table(level)[id]
        self.tenant.prune()
        return before - len(self.tenant.statements)

    def link(
        self, kind: str, source: Place | None, target: Place | None, note: str | None, answer: Callable[[], UUID]
    ) -> UUID:
        """Linking the same ends again keeps the edge, and takes the note if there is one."""
        self.require("admin")
        if (
            source is None
            or target is None
            or source[1] not in self.tenant.table(source[0])
            or target[1] not in self.tenant.table(target[0])
        ):
            raise Refused("MG007")
        refuse_if(self.tenant.path(source)[0] == self.tenant.path(target)[0], "MG008")
        for edge in self.tenant.edges.values():
            if (edge.kind, edge.source, edge.target) == (kind, source, target):
                edge.note = note or edge.note
                return edge.id
        edge = Edge(answer(), kind, note, source, target)
        self.tenant.edges[edge.id] = edge
        return edge.id

    def unlink(self, id: UUID) -> None:
        self.require("admin")
        refuse_if(id not in self.tenant.edges, "MG007")
        del self.tenant.edges[id]

    def bind(self, login: str, slug: str, scopes: list[str], read_only: bool) -> None:
        self.require("admin", tenant=False)
        refuse_if(slug not in self.world.tenants, "MG002")
        self.world.principals[login] = slug, scopes, read_only

    def unbind(self, login: str) -> None:
        self.require("admin", tenant=False)
        refuse_if(login not in self.world.principals, "MG002")
        del self.world.principals[login]

    def create_tenant(self, slug: str, answer: Callable[[], UUID]) -> None:
        self.require("admin", tenant=False)
        refuse_if(slug in self.world.tenants, "MG008")
        self.world.tenants[slug] = Tenant(slug, answer())

    def drop_tenant(self, slug: str) -> None:
        self.require("admin", tenant=False)
        refuse_if(slug not in self.world.tenants, "MG002")
        del self.world.tenants[slug]
        self.world.principals = {login: p for login, p in self.world.principals.items() if p[0] != slug}


def best_first(found: Iterable[Row]) -> list[Row]:
    """By score; of equals the oldest."""
    return sorted(found, key=lambda hit: (-np.float32(hit[2]), hit[0]))


TABLES: dict[str, str] = {
    "tenants": "id, slug",
    "dh_families": "id, name, required_scopes, statement_count, summary_embedding::real[]",
    "dh_genera": "id, family_id, name",
    "dh_specimens": "id, family_id, genus_id, name, required_scopes",
    "kg_statements": "id, family_id, genus_id, specimen_id, content, layer_kind, required_scopes, exact_only, access_count,"
    " source, position",
    "kg_statement_variants": "statement_id, content, specimen_id, source, position, seen_count",
    "kg_embeddings": "statement_id, family_id, genus_id, specimen_id, layer_kind, required_scopes, embedding::real[]",
    "dh_symbioses": "id, kind, note, source_family_id, source_genus_id, source_specimen_id, source_statement_id,"
    " target_family_id, target_genus_id, target_specimen_id, target_statement_id",
}
ADMIN_TABLES: dict[str, str] = {
    "principals": "role_name, tenant, scopes, read_only",
    "scope_edits": "kind, row_id, old_scopes, new_scopes, login, caller_tenant, caller_role, caller_scopes",
}
