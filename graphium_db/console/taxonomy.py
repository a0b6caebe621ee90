"""The rows of context_tree() as the families, genera and specimens that pages show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from graphium_db.models import ContextTreeRow


@dataclass(slots=True)
class Taxon:
    """A family, genus or specimen. `id` and `name` are None for what is hidden, merged."""

    id: UUID | None
    name: str | None
    statements: int = 0
    scopes: tuple[str, ...] | None = None
    children: dict[UUID | None, Taxon] = field(default_factory=dict)

    def named(self, name: str | None) -> Taxon | None:
        return next((child for child in self.children.values() if child.name == name and name is not None), None)

    @property
    def shown(self) -> list[Taxon]:
        return [child for child in self.children.values() if child.name is not None]

    @property
    def hidden_statements(self) -> int:
        """How many statements are in what has no name for this caller."""
        return sum(child.statements for child in self.children.values() if child.name is None)


def tree(rows: Sequence[ContextTreeRow]) -> Taxon:
    root = Taxon(None, None)
    family: Taxon | None = None
    genus: Taxon | None = None
    for row in rows:
        root.statements += row.statements
        if (
            family is None or row.family != family.name
        ):  # they come in the order of the names, of which no two are the same
            family = root.children[row.family_id] = Taxon(row.family_id, row.family, scopes=row.family_scopes)
            genus = None
        family.statements += row.statements
        if row.genus_id is None and row.specimen_id is None and row.family_id is not None and row.statements == 0:
            continue  # a family without genera
        if genus is None or row.genus != genus.name:
            genus = family.children[row.genus_id] = Taxon(row.genus_id, row.genus)
        genus.statements += row.statements
        if row.specimen_id is None and row.statements == 0:
            continue  # a genus without specimens
        specimen = genus.children.get(row.specimen_id)
        if specimen is None:
            specimen = genus.children[row.specimen_id] = Taxon(
                row.specimen_id, row.specimen, scopes=row.specimen_scopes
            )
        specimen.statements += row.statements
    return root


def find(root: Taxon, kind: str, id: UUID) -> tuple[Taxon, list[str]] | None:
    """A family or specimen by its id, with the names on the way to it."""
    for family in root.shown:
        if kind == "family" and family.id == id:
            return family, [str(family.name)]
        if kind == "specimen":
            for genus in family.children.values():
                if id in genus.children:
                    specimen = genus.children[id]
                    return specimen, [str(family.name), str(genus.name), str(specimen.name)]
    for family in root.children.values():  # visible, in a family that is not
        for genus in family.children.values():
            if kind == "specimen" and id in genus.children and genus.children[id].name is not None:
                return genus.children[id], [str(genus.children[id].name)]
    return None
