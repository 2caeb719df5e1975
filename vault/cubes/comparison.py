"""Comparison of two versions of one memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.vocabulary import Verb
from vault.content.blobs import with_blobs
from vault.cubes.differences import TextDifference, text_difference
from vault.cubes.lookup import locate_readable
from vault.cubes.selectors import VersionView, versions_view
from vault.cubes.versions import visible_versions

PLAIN_FIELDS = (
    "semantic_type",
    "sensitivity",
    "access_level",
    "importance",
    "priority",
    "event_time",
    "valid_from",
    "valid_to",
    "expires_at",
)


@dataclass(frozen=True)
class FieldChange:
    """The old and new value of a clear field: a text, a number, a time, or None."""

    name: str
    before: str | float | datetime | None = field(repr=False)
    after: str | float | datetime | None = field(repr=False)


@dataclass(frozen=True)
class VersionDifference:
    before: VersionView
    after: VersionView
    content: TextDifference
    title: TextDifference
    tags_added: tuple[str, ...]
    tags_removed: tuple[str, ...]
    fields: tuple[FieldChange, ...]

    @property
    def is_next(self) -> bool:
        """True if the later version names the hash of the earlier one as its predecessor."""
        return bool(self.after.row.previous_hash) and bytes(self.after.row.previous_hash or b"") == bytes(
            self.before.row.hash
        )


@with_blobs
def versions_compare(*, actor: Actor, cube_id: UUID, before: int, after: int) -> VersionDifference:
    """Compare two versions of a memory, in either order.

    Raises NotFound; Forbidden; Invalid if the actor cannot read a version; KeyUnavailable. Writes: AuditEntry.
    """
    with acting(actor):
        cube = locate_readable(actor, cube_id)
        rows = visible_versions(actor, cube).select_related("namespace").filter(number__in=[before, after])
        views = {view.row.number: view for view in versions_view(actor, list(rows), is_named=True)}
        faults = [
            FieldError(name, "there is no such version")
            for name, number in (("from", before), ("to", after))
            if number not in views
        ]
        if faults:
            raise Invalid(errors=faults)
        record(actor=actor, verb=Verb.VERSIONS_READ, object_type="memory", object_ids=[cube.id])
    return difference_of(views[before], views[after])


def difference_of(before: VersionView, after: VersionView) -> VersionDifference:
    old, new = before.row, after.row
    return VersionDifference(
        before=before,
        after=after,
        content=text_difference(before.words.content, after.words.content),
        title=text_difference(before.words.title, after.words.title),
        tags_added=tuple(tag for tag in new.tags if tag not in old.tags),
        tags_removed=tuple(tag for tag in old.tags if tag not in new.tags),
        fields=tuple(_compare_fields(before, after)),
    )


def _compare_fields(before: VersionView, after: VersionView) -> Iterator[FieldChange]:
    for name in PLAIN_FIELDS:
        old, new = getattr(before.row, name), getattr(after.row, name)
        if old != new:
            yield FieldChange(name, old, new)
    if before.row.namespace_id != after.row.namespace_id:
        yield FieldChange("namespace", before.row.namespace.path, after.row.namespace.path)
