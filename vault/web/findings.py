"""Personal data in a memory's text, marked for those who may read the memory anyway."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from django.utils.functional import Promise

from governance.vocabulary import PiiKind
from vault.cubes.differences import TextDifference, text_difference
from vault.reviews.selectors import FindingView, ReviewView
from vault.screening.screen import Finding
from vault.vocabulary import PiiField, ReviewKind, ReviewStatus
from vault.web.labels import PII_KINDS, REFUSALS, RELATIONS, REVIEW_KINDS, REVIEW_STATUSES

TITLE_CHARACTERS = 120
ICONS = {
    ReviewKind.PII: "fingerprint",
    ReviewKind.SOURCE_WITHDRAWN: "eraser",
    ReviewKind.CONFLICT: "git-compare",
    ReviewKind.FEEDBACK: "message-circle",
    ReviewKind.FUSION: "git-merge",
    ReviewKind.QUARANTINE: "ban",
    ReviewKind.SYNC: "git-compare",
    ReviewKind.PACK_SUPERSEDES: "git-compare",
    ReviewKind.PACK_CONTRADICTS: "git-compare",
    ReviewKind.PACK_CONFIRMS: "git-merge",
}


@dataclass(frozen=True)
class MarkedPiece:
    """A piece of text. label: the kind of its personal data, None without any."""

    text: str = field(repr=False)
    label: Promise | None = None


@dataclass(frozen=True)
class ShownFinding:
    view: FindingView
    label: Promise
    checked: bool


@dataclass(frozen=True)
class ShownReview:
    view: ReviewView
    findings: tuple[ShownFinding, ...]
    status: Promise
    is_open: bool
    is_withdrawn: bool
    is_conflict: bool
    is_fusion: bool
    is_feedback: bool
    is_quarantined: bool
    is_sync: bool
    relation: Promise | None = None  # of a pack's statement to an own one
    refusal: Promise | None = None  # why the pack's statement is not shown

    @property
    def kind(self) -> Promise:
        return REVIEW_KINDS[ReviewKind(self.view.row.kind)]

    @property
    def icon(self) -> str:
        return ICONS[ReviewKind(self.view.row.kind)]

    @property
    def title(self) -> str:
        """The first words of the text under review, for the list; empty for who may not see it."""
        if self.view.words:
            return self.view.words.content[:TITLE_CHARACTERS]
        found = next((finding.view for finding in self.findings if finding.checked), None)
        return f"{found.before}{found.value}{found.after}" if found else ""

    @property
    def second(self) -> str:
        """The text beside the one under review: the later, the other, or the proposed one; empty without any."""
        if self.view.theirs:
            return self.view.theirs.content
        if self.view.feedback and self.view.feedback.correction:
            return self.view.feedback.correction
        return self.view.other.content if self.view.other else ""

    @property
    def difference(self) -> TextDifference | None:
        """The difference between the two texts; None without a second one."""
        return text_difference(self.view.words.content, self.second) if self.view.words and self.second else None


def mark_findings(text: str, findings: Sequence[Finding]) -> list[MarkedPiece]:
    """Return `text`, the content of a memory, cut at its findings."""
    return list(_split_at_findings(text, [finding for finding in findings if finding.place.part is PiiField.CONTENT]))


def make_shown_review(view: ReviewView) -> ShownReview:
    found = tuple(
        ShownFinding(finding, PII_KINDS[finding.kind], finding.kind is not PiiKind.UNCHECKED)
        for finding in view.findings
    )
    status = ReviewStatus(view.row.status)
    withdrawn = view.row.kind == ReviewKind.SOURCE_WITHDRAWN
    conflict, fusion = view.row.kind == ReviewKind.CONFLICT, view.row.kind == ReviewKind.FUSION
    feedback = view.row.kind == ReviewKind.FEEDBACK
    quarantined = view.row.kind == ReviewKind.QUARANTINE
    is_open = status is ReviewStatus.OPEN
    relation = RELATIONS.get(ReviewKind(view.row.kind))
    return ShownReview(
        view,
        found,
        REVIEW_STATUSES[status],
        is_open,
        withdrawn,
        conflict,
        fusion,
        feedback,
        quarantined,
        view.row.kind == ReviewKind.SYNC,
        relation,
        REFUSALS[view.refusal] if view.refusal else None,
    )


def _split_at_findings(text: str, findings: Sequence[Finding]) -> Iterator[MarkedPiece]:
    at = 0
    for span in (finding.place.span for finding in findings):
        if span.start < at or span.start == span.end:
            continue
        if span.start > at:
            yield MarkedPiece(text[at : span.start])
        yield MarkedPiece(text[span.start : span.end], PII_KINDS[span.kind])
        at = span.end
    if at < len(text):
        yield MarkedPiece(text[at:])
