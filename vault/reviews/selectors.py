"""The inbox of reviews, for actors who may read the memories."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import NotFound
from governance.object_names import names_find
from governance.pages import Pages
from governance.vocabulary import Permission, PiiKind, Verb
from vault.content.words import Words
from vault.cubes.eligibility import SEARCHABLE
from vault.cubes.lookup import cube_target, locate, locate_readable
from vault.cubes.pack_reads import find_packs, find_refusals
from vault.cubes.reader_words import open_for_reader, seal_versions
from vault.cubes.selectors import cubes_read
from vault.cubes.versions import readable_versions
from vault.lifecycle.knowledge import KNOWLEDGE
from vault.models import Cube, CubeVersion, Namespace, PiiFinding, Review
from vault.reviews.feedback import Feedback, feedback_open
from vault.reviews.sync_conflicts import Theirs, theirs_open
from vault.reviews.withdrawals import WITHHELD, select_for_decision, withdrawn_locate, withdrawn_refresh
from vault.screening.findings import finding_of
from vault.screening.screen import Finding
from vault.screening.texts import Texts, leaves_of, paths_of
from vault.vocabulary import PiiField, Refusal, ReviewKind, ReviewStatus

CONTEXT_CHARACTERS = 40  # characters of context at each side of a span
PAIRS = frozenset({ReviewKind.CONFLICT, ReviewKind.FUSION, *KNOWLEDGE})  # about two memories


@dataclass(frozen=True)
class FindingView:
    """A finding with its text. path: such as content, title, tags.2, metadata.contact.phone.

    before, after: surrounding text, with … if it is cut.
    """

    kind: PiiKind
    part: PiiField
    leaf: int
    path: str
    start: int
    end: int
    rule: str
    status: ReviewStatus
    before: str = field(repr=False)
    value: str = field(repr=False)
    after: str = field(repr=False)


@dataclass(frozen=True)
class ReviewView:
    """A review as the inbox shows it. is_current: it is about the present version; words: the text under review, if
    visible.

    other: of a conflict, the later statement; of a fusion, the other memory; of what a pack says, its memory.
    feedback: what a reader, the `author`, asks for; shown to that reader and to those who may decide.
    theirs: of a conflict of a sync, the present version at the other installation; `words` are those of then.
    refusal: why the contract of a pack does not open the other memory.
    """

    row: Review
    cube: Cube
    is_current: bool
    findings: tuple[FindingView, ...]
    words: Words | None = field(default=None, repr=False)
    other: Words | None = field(default=None, repr=False)
    feedback: Feedback | None = field(default=None, repr=False)
    author: str = ""
    theirs: Theirs | None = field(default=None, repr=False)
    refusal: Refusal | None = None

    @property
    def pack(self) -> str:
        """The name of the pack that brought the other memory; empty if none did."""
        return str(self.other.metadata.get("pack", "")) if self.other and self.row.kind in KNOWLEDGE else ""


def reviews_list(
    *, actor: Actor, kind: ReviewKind | Collection[ReviewKind] | None, status: ReviewStatus, pages: Pages
) -> list[ReviewView]:
    """Return a page of the reviews about memories that the actor may read, newest first. kind: one, several, or all.

    Raises Forbidden; KeyUnavailable. Writes: Review …, AuditEntry with the memories' ids.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        withdrawn_refresh(actor=actor)
        rows = _find_visible_reviews(actor, status)
        kinds = [kind] if isinstance(kind, str) else list(kind or ())
        page = pages.take(rows.filter(kind__in=kinds) if kinds else rows)
        views = _open_reviews(actor, page)
        ids = list(dict.fromkeys(view.cube.id for view in views))
        record(actor=actor, verb=Verb.REVIEW_LISTED, object_type="memory", object_ids=ids)
    return views


def reviews_count(*, actor: Actor) -> dict[ReviewKind, int]:
    """Return the number of open reviews of each kind that `reviews_list` would show. One query. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = _find_visible_reviews(actor, ReviewStatus.OPEN).order_by()
        counted = rows.values_list("kind").annotate(reviews=Count("id"))
        return {ReviewKind(kind): count for kind, count in counted}


def decisions_count(*, actor: Actor, since: datetime) -> int:
    """Return how many reviews that the actor may see were decided since a moment, by anybody. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        decided = [_find_visible_reviews(actor, status) for status in (ReviewStatus.ACCEPTED, ReviewStatus.REJECTED)]
        return sum(rows.filter(decided_at__gte=since).count() for rows in decided)


def _find_visible_reviews(actor: Actor, status: ReviewStatus) -> QuerySet[Review]:
    readable = Q(cube__in=Cube.objects.visible_to(actor))
    withheld = Q(kind__in=WITHHELD, cube__in=Cube.objects.stored().reached_by(actor))
    return Review.objects.filter(
        readable | withheld,
        pairs_readable(actor, status),
        status=status,
        version__in=readable_versions(actor),
        version__namespace__in=Namespace.objects.visible_to(actor),
    )


def pairs_readable(actor: Actor, status: ReviewStatus) -> Q:
    """Return the condition of reviews without a second memory, or whose second memory the actor may read.

    For open reviews both memories must also be searchable, so that they can be fused.
    """
    others = Cube.objects.visible_to(actor).filter(pk=OuterRef("other_id"))
    if status is ReviewStatus.OPEN:
        return Q(other=None) | Q(Exists(others.filter(state__in=SEARCHABLE)), cube__state__in=SEARCHABLE)
    return Q(other=None) | Q(Exists(others))


def review_view(*, actor: Actor, review: Review) -> ReviewView:
    """Return a review that was just decided; nothing of a memory with a withdrawn source is shown.

    Raises NotFound, also if the actor may not read the version; Forbidden.
    """
    with acting(actor):
        _authorize_decision(actor, review)
        return _load_views(actor, [review], frozenset())[0]


def findings_list(*, actor: Actor, cube_id: UUID) -> list[Finding]:
    """Return the open findings in the present version of a memory, if the actor may read it. One query."""
    with acting(actor):
        visible = Cube.objects.visible_to(actor).filter(id=cube_id)
        rows = PiiFinding.objects.filter(cube__in=visible, version__number=F("cube__version"), status=ReviewStatus.OPEN)
        return [finding_of(row) for row in rows.order_by("begins")]


def review_get(*, actor: Actor, review_id: UUID) -> ReviewView:
    """Return one review. Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry with the memory's id."""
    with acting(actor):
        row = Review.objects.filter(tenant_id=actor.tenant_id, id=review_id).first()
        if row is None:
            raise NotFound
        _authorize_decision(actor, row)
        (view,) = _open_reviews(actor, [row])
        record(actor=actor, verb=Verb.REVIEW_LISTED, object_type="memory", object_ids=[row.cube_id])
    return view


def _authorize_decision(actor: Actor, review: Review) -> None:
    """Check the right to decide. A withheld memory is not refused because of its withdrawn source or its quarantine."""
    withheld = review.kind in WITHHELD
    cube = withdrawn_locate(actor, review.cube_id) if withheld else locate(actor, review.cube_id)
    target = cube_target(cube)
    authorize(actor, Permission.MEMORY_READ, replace(target, sources=()) if withheld else target)
    if review.other_id is not None:
        locate_readable(actor, review.other_id)
    if not readable_versions(actor).filter(id=review.version_id).exists():
        raise NotFound


def _open_reviews(actor: Actor, rows: Iterable[Review]) -> list[ReviewView]:
    """Return the opened reviews. Texts under review are included if the actor may decide and may read their sources."""
    rows = list(rows)
    shown = _find_readable_reviews(actor, rows)
    views = _add_theirs(actor, _add_feedback(actor, _add_pairs(actor, _load_views(actor, rows, shown))))
    return _add_words(actor, views, [view for view in views if view.row.id in shown])


def _add_words(actor: Actor, views: Sequence[ReviewView], shown: Sequence[ReviewView]) -> list[ReviewView]:
    """Add the text of then to those of the views that are shown. One query. Raises KeyUnavailable."""
    words = _open_words(actor, [view.row.version for view in shown])
    ids = {view.row.id for view in shown}
    return [replace(view, words=words.get(view.row.version_id)) if view.row.id in ids else view for view in views]


def _add_pairs(actor: Actor, views: Sequence[ReviewView]) -> list[ReviewView]:
    """Add both texts to each conflict and fusion, if the actor may read them. Writes: AuditEntry?."""
    others = {view.row.id: view.row.other_id or view.cube.superseded_by for view in views if view.row.kind in PAIRS}
    proposed = {view.cube.id for view in views if view.row.other_id}  # shown as both are now
    named = {other_id for other_id in others.values() if other_id} | proposed
    readable = Cube.objects.visible_to(actor).filter(id__in=named).values_list("id", flat=True)
    opened = cubes_read(actor=actor, cube_ids=list(readable), verb=Verb.MEMORY_READ, is_use=False) if named else []
    words = {view.cube.id: view.words for view in opened}
    refusals = _find_refusals(actor, {other_id for other_id in others.values() if other_id} - words.keys())
    then = _open_words(actor, [view.row.version for view in views if view.row.id in others and not view.row.other_id])
    return [
        replace(
            view,
            words=words.get(view.cube.id) if view.row.other_id else then.get(view.row.version_id),
            other=words.get(others[view.row.id] or view.cube.id),
            refusal=refusals.get(others[view.row.id] or view.cube.id),
        )
        if view.row.id in others
        else view
        for view in views
    ]


def _find_refusals(actor: Actor, cube_ids: Collection[UUID]) -> dict[UUID, Refusal]:
    """Return why contracts do not open memories of packs. Two queries; none for no ids."""
    packs = find_packs(actor, cube_ids)
    reasons = find_refusals(actor, {pack for some in packs.values() for pack in some}) if packs else {}
    return {cube_id: reasons[pack] for cube_id, some in packs.items() for pack in some if pack in reasons}


def _add_feedback(actor: Actor, views: Sequence[ReviewView]) -> list[ReviewView]:
    """Add the proposed change, and the text at that time, for those who may decide and for its author."""
    given = {view.row.id for view in views if view.row.kind == ReviewKind.FEEDBACK and _may_see_feedback(actor, view)}
    names = names_find(
        actor.tenant_id, {asker_id for view in views if view.row.id in given and (asker_id := view.row.asked_by)}
    )
    words = _open_words(actor, [view.row.version for view in views if view.row.id in given])
    return [
        replace(
            view,
            words=words.get(view.row.version_id),
            feedback=feedback_open(view.row),
            author=str(names[view.row.asked_by]) if view.row.asked_by in names else "",
        )
        if view.row.id in given
        else view
        for view in views
    ]


def _add_theirs(actor: Actor, views: Sequence[ReviewView]) -> list[ReviewView]:
    """Add both texts to each open conflict of a sync. Raises KeyUnavailable."""
    shown = [view for view in views if view.row.kind == ReviewKind.SYNC and view.row.status == ReviewStatus.OPEN]
    ids = {view.row.id for view in shown}
    return [
        replace(view, theirs=theirs_open(view.row)) if view.row.id in ids else view
        for view in _add_words(actor, views, shown)
    ]


def _may_see_feedback(actor: Actor, view: ReviewView) -> bool:
    return view.row.asked_by == actor.principal_id or _may_decide(actor, view.cube)


def _load_views(actor: Actor, rows: Sequence[Review], shown: Collection[UUID]) -> list[ReviewView]:
    """In the order given: three queries, whatever their number, and one where there are findings.

    shown: ids of the reviews of withheld memories that may be shown; other reviews of withheld memories show nothing.
    """
    of_rows = Cube.objects.filter(id__in=[row.cube_id for row in rows]).select_related("namespace")
    cubes = {cube.id: cube for cube in of_rows}
    versions = {version.id: version for version in CubeVersion.objects.filter(id__in=[row.version_id for row in rows])}
    found: dict[UUID, list[PiiFinding]] = {}
    shown_versions = {row.id: row.version_id for row in rows if row.kind not in WITHHELD or row.id in shown}
    for finding in PiiFinding.objects.filter(version_id__in=shown_versions.values()).order_by(
        "field", "leaf", "begins"
    ):
        found.setdefault(finding.version_id, []).append(finding)
    words = _open_words(actor, [versions[version_id] for version_id in found])
    return [
        ReviewView(
            row=row,
            cube=cubes[row.cube_id],
            is_current=versions[row.version_id].number == cubes[row.cube_id].version,
            findings=tuple(
                _finding_views(versions[row.version_id], words[row.version_id], found[row.version_id])
                if row.id in shown_versions and row.version_id in words
                else ()
            ),
        )
        for row in _set_versions(rows, versions)
    ]


def _find_readable_reviews(actor: Actor, rows: Sequence[Review]) -> set[UUID]:
    """Return the ids of open reviews of withheld memories that the actor may decide and whose sources it may read."""
    waiting = [row for row in rows if row.kind in WITHHELD and row.status == ReviewStatus.OPEN]
    if not waiting:
        return set()
    cubes = select_for_decision(actor).filter(id__in=[row.cube_id for row in waiting]).select_related("namespace")
    decides = {cube.id for cube in cubes if _may_decide(actor, cube)}
    return {row.id for row in waiting if row.cube_id in decides}


def _may_decide(actor: Actor, cube: Cube) -> bool:
    return is_allowed(actor, Permission.MEMORY_UPDATE, replace(cube_target(cube), sources=()))


def _open_words(actor: Actor, versions: Sequence[CubeVersion]) -> dict[UUID, Words]:
    """Open the texts of versions, by the versions' ids. One query; none for none. Raises KeyUnavailable."""
    opened = open_for_reader(actor, seal_versions(actor, versions))
    keys = {version.id: (version.cube_id, version.number) for version in versions}
    return {version_id: opened[key] for version_id, key in keys.items() if key in opened}


def _set_versions(rows: Sequence[Review], versions: dict[UUID, CubeVersion]) -> Sequence[Review]:
    for row in rows:
        row.version = versions[row.version_id]
    return rows


def _finding_views(version: CubeVersion, words: Words, findings: Sequence[PiiFinding]) -> Iterable[FindingView]:
    texts = Texts(words.content, words.title, words.metadata, tuple(version.tags), words.speaker)
    leaves = {(leaf.part, leaf.index): leaf.text for leaf in leaves_of(texts)}
    names = paths_of(words.metadata)
    for row in findings:
        part = PiiField(row.field)
        text = leaves.get((part, row.leaf), "")
        yield FindingView(
            kind=PiiKind(row.kind),
            part=part,
            leaf=row.leaf,
            path=_leaf_path(part, row.leaf, names),
            start=row.begins,
            end=row.ends,
            rule=row.rule,
            status=ReviewStatus(row.status),
            before=("…" if row.begins > CONTEXT_CHARACTERS else "")
            + text[max(0, row.begins - CONTEXT_CHARACTERS) : row.begins],
            value=text[row.begins : row.ends],
            after=text[row.ends : row.ends + CONTEXT_CHARACTERS]
            + ("…" if row.ends + CONTEXT_CHARACTERS < len(text) else ""),
        )


def _leaf_path(part: PiiField, leaf: int, names: Sequence[str]) -> str:
    if part is PiiField.METADATA and leaf < len(names):
        return names[leaf]
    return f"{part}.{leaf}" if part is PiiField.TAGS else str(part)
