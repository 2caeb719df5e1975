"""The one place that opens words for a reader. Those of a pack are asked about and counted here.

tests/architecture/test_opened_words.py lists the modules that open words in another way, and why.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from governance.actor import Actor
from governance.policies.active import policies_active
from governance.policies.purposes import denied_rows
from governance.policies.rules import purpose_levels
from vault.content.blobs import blob_ref, blobs_require
from vault.content.words import Words, words_open
from vault.cubes.pack_reads import find_packs, pack_reads_take
from vault.models import Cube, CubeSource, CubeVersion


@dataclass(frozen=True)
class SealedVersion:
    """A version to open. packs: the namespaces of the packs whose words it has."""

    cube_id: UUID
    number: int
    sealed: bytes | memoryview = field(repr=False)
    packs: Collection[UUID] = ()


OpenedWords = dict[tuple[UUID, int], Words]  # by memory and number of the version


def seal_versions(actor: Actor, rows: Sequence[CubeVersion]) -> list[SealedVersion]:
    """Return the rows with their packs, to open. One query; none for no rows."""
    packs = find_packs(actor, {row.cube_id for row in rows})
    return [SealedVersion(row.cube_id, row.number, row.sealed, packs.get(row.cube_id, ())) for row in rows]


def find_bound_cubes(actor: Actor, cube_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return those memories whose words a contract or a purpose binds, or that were made of such: no job sends these
    words to a model, because nobody reads them there under the contract, or for the purpose. Three queries.
    """
    if not cube_ids:
        return frozenset()
    bound = set(find_packs(actor, cube_ids, with_quotes=True))
    denied = denied_rows(purpose_levels(policies_active(actor).purpose, ""))
    if denied is not None:
        rows = Cube.objects.filter(denied, tenant_id=actor.tenant_id)
        bound |= set(rows.filter(id__in=cube_ids).values_list("id", flat=True))
        made = CubeSource.objects.filter(cube_id__in=cube_ids, source_id__in=rows.values("id"))
        bound |= set(made.values_list("cube_id", flat=True))
    return frozenset(bound)


def open_for_reader(
    actor: Actor, versions: Sequence[SealedVersion], *, is_shown: bool = True, leaves: bool = False
) -> OpenedWords:
    """Open versions that the caller found visible; those that a contract does not open are left out.

    is_shown: a person or a client receives the words, so that a read of each pack is counted. leaves: they leave the
    installation, as in an export. Raises KeyUnavailable. Writes as `pack_reads_take`.
    """
    packs = (pack for version in versions for pack in version.packs)
    closed = pack_reads_take(actor, packs, leaves=leaves) if is_shown else frozenset()
    shown = [version for version in versions if closed.isdisjoint(version.packs)]
    blobs_require(
        blob_ref(
            tenant_id=actor.tenant_id, cube_id=version.cube_id, number=version.number, stored=bytes(version.sealed)
        )
        for version in shown
    )
    return {
        (version.cube_id, version.number): words_open(
            tenant_id=actor.tenant_id, cube_id=version.cube_id, number=version.number, blob=bytes(version.sealed)
        )
        for version in shown
    }
