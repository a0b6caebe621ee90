"""What the functions take and return, as types. Names and order are those of the SQL (docs/reference/sql.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict
from uuid import UUID

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "Sequence[float] | NDArray[np.floating[Any]]"
"""An embedding: numbers in a list or a 1-d array."""

MemoryType = Literal["fact", "event", "discovery", "preference", "advice", "decision"]
LayerKind = Literal["preloaded", "on_demand"]
TaxonKind = Literal["family", "genus", "specimen"]
SymbiosisKind = Literal["related_to", "contradicts", "supersedes"]


class _StatementRequired(TypedDict):
    content: str


class StatementInput(_StatementRequired, total=False):
    """One sentence to ingest. Only `content` is required; a key that is not listed here is refused.

    `embedding` left out: the client embeds the content. Given: taken as it is. None: stored without one, and found by
    its words only. `memory_type` and `layer_kind` given: they win over the classification. `source` and `position`:
    the conversation or document it came from, and its place there. `exact_only`: the vector does not identify the
    text, so only equal text is a duplicate.
    """

    embedding: Vector | None
    memory_type: MemoryType | None
    layer_kind: LayerKind | None
    required_scopes: Sequence[str] | None
    occurred_at: datetime | date | str | None
    source: str | None
    position: int | None
    metadata: Mapping[str, Any] | None
    exact_only: bool | None


class FiledStatementInput(StatementInput):
    """One sentence for `ingest_many`: what it is about, too."""

    family: str
    genus: str
    specimen: str


class SymbiosisEnd(TypedDict, total=False):
    """One end of a symbiosis: a family, narrowed to a genus or a specimen of it by name; or one statement by id."""

    family: str
    genus: str
    specimen: str
    statement_id: str | UUID


@dataclass(frozen=True, slots=True)
class IngestedStatement:
    """What became of one input of `ingest_context`, in input order.

    `deduplicated`: the statement existed; `statement_id` is the existing one's. `similarity` is the cosine to it.
    """

    ordinal: int
    statement_id: UUID
    deduplicated: bool
    similarity: float | None
    memory_type: MemoryType
    layer_kind: LayerKind
    required_scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One row of `search_context`. `family`, `genus`, `specimen` are None where the caller may not see them.

    `similarity` is the cosine to the query (None without a query vector or a stored one); `score` is what `rank`
    orders by (superseded hits aside); `explanation` says why, where that was asked for. `is_symbiosis`: found at the
    other end of the edge `symbiosis_id`, not by the query itself.
    """

    rank: int
    statement_id: UUID
    content: str
    family: str | None
    genus: str | None
    specimen: str | None
    memory_type: MemoryType
    layer_kind: LayerKind
    similarity: float | None
    score: float
    is_symbiosis: bool
    symbiosis_kind: SymbiosisKind | None
    symbiosis_id: UUID | None
    is_superseded: bool
    access_count: int
    required_scopes: tuple[str, ...]
    occurred_at: datetime | None
    created_at: datetime
    source: str | None
    position: int | None
    metadata: dict[str, Any]
    explanation: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RecalledStatement:
    """One row of `recall_context`, newest id first."""

    statement_id: UUID
    content: str
    family: str | None
    genus: str | None
    specimen: str | None
    memory_type: MemoryType
    layer_kind: LayerKind
    is_superseded: bool
    access_count: int
    required_scopes: tuple[str, ...]
    occurred_at: datetime | None
    created_at: datetime
    source: str | None
    position: int | None
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reclassification:
    """A change that a newer rule set makes of statements that an older one labelled, and how many have it.

    `rule_before` and `version_before` are None for what no rule labelled.
    """

    rule_before: str | None
    version_before: int | None
    memory_type_before: MemoryType
    layer_kind_before: LayerKind
    rule_after: str
    version_after: int
    memory_type_after: MemoryType
    layer_kind_after: LayerKind
    statements: int
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reclassified:
    """A batch: statements looked at, how many of them got other labels, the id of the last (None: none was left)."""

    statements: int
    changed: int
    last_id: UUID | None


@dataclass(frozen=True, slots=True)
class WakeUpStatement:
    """One row of `wake_up_context`, most useful first. `tokens` = characters / 4, rounded up."""

    position: int
    statement_id: UUID
    content: str
    family: str | None
    genus: str | None
    specimen: str | None
    memory_type: MemoryType
    tokens: int
    running_tokens: int


@dataclass(frozen=True, slots=True)
class FamilyHit:
    """One row of `search_families`: the cosine of the query to the family's summary."""

    family: str
    similarity: float
    statement_count: int


@dataclass(frozen=True, slots=True)
class ContextTreeRow:
    """One row of `context_tree`: a specimen (or an empty genus or family) and how many statements of it are visible."""

    family_id: UUID | None
    family: str | None
    genus_id: UUID | None
    genus: str | None
    specimen_id: UUID | None
    specimen: str | None
    statements: int
    family_scopes: tuple[str, ...] | None
    specimen_scopes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class StatementDetails:
    """One row of `statement_details`: what `recall_context` leaves out. Ids of taxa that are hidden are None.

    `variants` is the last-seen hundred of `variant_count`, each a dict with content (None: the statement's own),
    specimen, source, position, occurred_at, seen_count, last_seen_at. `matched_words` are those of the query that it
    has.
    """

    statement_id: UUID
    family_id: UUID | None
    genus_id: UUID | None
    specimen_id: UUID | None
    rule: str | None
    is_type_chosen: bool
    is_layer_chosen: bool
    exact_only: bool
    last_accessed_at: datetime | None
    variant_count: int
    variants: list[dict[str, Any]]
    matched_words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Symbiosis:
    """One row of `list_symbioses`, read from source to target. `touches`: those asked about that it touches."""

    symbiosis_id: UUID
    kind: SymbiosisKind
    note: str | None
    created_at: datetime
    source_family_id: UUID | None
    source_family: str | None
    source_genus_id: UUID | None
    source_genus: str | None
    source_specimen_id: UUID | None
    source_specimen: str | None
    source_statement_id: UUID | None
    source_content: str | None
    target_family_id: UUID | None
    target_family: str | None
    target_genus_id: UUID | None
    target_genus: str | None
    target_specimen_id: UUID | None
    target_specimen: str | None
    target_statement_id: UUID | None
    target_content: str | None
    touches: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class ScopeInUse:
    """One row of `scopes_in_use`: how much of what the caller sees has this scope in its audience."""

    scope: str
    families: int
    specimens: int
    statements: int


@dataclass(frozen=True, slots=True)
class ScopeEditPreview:
    """One row of `preview_required_scopes`: rows of one kind and audience that the edit would change.

    Holders of `losing_scopes` that hold no scope of the new audience would lose sight of them; everybody who holds none
    of those where `losing_everyone`. `losing_principals` is told to admins only.
    """

    row_kind: Literal["family", "specimen", "statement"]
    old_scopes: tuple[str, ...]
    row_count: int
    losing_scopes: tuple[str, ...]
    losing_everyone: bool
    losing_principals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """What `prepare_query` read out of a query: the text to embed (known names taken out), who and when it names.

    `specimens` is None when it names nobody: as a filter, that is none.
    """

    dense_text: str
    specimens: tuple[str, ...] | None
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the database takes the caller for. `scopes` is None for an admin, who holds them all."""

    tenant: str
    scopes: tuple[str, ...] | None
    role: Literal["principal", "app", "admin"]
    source: Literal["principals", "setting"]
    embedding_model: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Principal:
    """One row of `list_principals`: a login role and what it may.

    Not in force: the role was dropped, re-made or renamed since, or the database restored elsewhere; such a login is
    nobody until `add_principal` binds it again.
    """

    role_name: str
    tenant: str
    scopes: tuple[str, ...]
    read_only: bool
    is_in_force: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class GraphFault:
    """One row of `check_graph`: a vertex or an edge that is not what its row says."""

    problem: str
    label: str | None
    id: UUID | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class MemoryFault:
    """One row of `check_memory`: something derived that is not what its statements say."""

    problem: str
    family: str | None
    id: UUID | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class SecurityFinding:
    """One row of `check_security`: what weakens isolation. `remedy` is SQL when it ends in a semicolon, else words."""

    lint: str
    level: Literal["error", "warning", "info"]
    object: str
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """One row of `maintenance_plan`: a statement to run on an autocommit connection, in the order of `step`."""

    step: int
    tenant: str | None
    action: str
    reason: str
    statement: str


@dataclass(frozen=True, slots=True)
class Tenant:
    """One row of `list_tenants`."""

    slug: str
    embedding_model: str
    dimensions: int
    language: str
    created_at: datetime
