"""An answer as its page shows it: quotes as text, a model's words as Markdown, and chips for citations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from django.utils.safestring import mark_safe
from django.utils.translation import ngettext

from vault.chat.memory_changes import CONFIRMED
from vault.chat.rules import UNSUPPORTED
from vault.chat.selectors import Citation, TurnView
from vault.chat.services import FOLLOWED
from vault.cubes.passages import MARKER
from vault.reader.rules import Intent, read_tag, whole_question
from vault.vocabulary import TurnEnd
from vault.web.markdown import CITE, markdown_html


@dataclass(frozen=True)
class Piece:
    """A piece of an answer: text, or the marker of a citation."""

    text: str = field(repr=False)
    citation: Citation | None = None


@dataclass(frozen=True)
class ShownTurn:
    """A turn as its page shows it. searched: the completed question that was searched for, if it differs from the
    question."""

    turn: TurnView
    pieces: tuple[Piece, ...]
    searched: str = field(default="", repr=False)

    @property
    def is_quoted(self) -> bool:
        """Return whether the answer consists only of sentences of memories."""
        return self.turn.extractive and bool(self.turn.citations)

    @property
    def packs(self) -> list[tuple[str, list[int]]]:
        """Return the packs that are cited, each with the markers of its memories."""
        found: dict[str, list[int]] = {}
        for citation in self.turn.citations:
            if citation.pack and citation.available:
                found.setdefault(citation.pack, []).append(citation.marker)
        return list(found.items())

    @property
    def has_unsupported(self) -> bool:
        """Return whether a model wrote a sentence that no memory supports."""
        return not self.turn.extractive and UNSUPPORTED in (self.turn.answer or "")

    @property
    def offer(self) -> str:
        """Return the words of the button that does what the answer offers with the memories it lists; empty without
        an offer.
        """
        count = sum(citation.available for citation in self.turn.citations)
        count += self.turn.offered_messages
        if not count or self.turn.intent not in CONFIRMED or self.turn.answer is None:
            return ""
        has_no_tag = self.turn.intent == Intent.TAG and not read_tag(self.turn.question or "")
        return "" if has_no_tag else _offer_words(Intent(self.turn.intent), count)

    @property
    def can_retry(self) -> bool:
        """Return whether the question can be asked again. Statements and requests for an operation cannot."""
        is_asked = self.turn.intent not in {Intent.ADD, Intent.UPDATE, *CONFIRMED}
        return bool(self.turn.question) and is_asked and not self.turn.stated

    @property
    def is_interrupted(self) -> bool:
        return self.turn.end is TurnEnd.INTERRUPTED


def _offer_words(intent: Intent, count: int) -> str:
    words = {
        Intent.DELETE: ngettext("Forget %(n)s memory", "Forget %(n)s memories", count),
        Intent.ARCHIVE: ngettext("Archive %(n)s memory", "Archive %(n)s memories", count),
        Intent.RESTORE: ngettext("Restore %(n)s memory", "Restore %(n)s memories", count),
        Intent.TAG: ngettext("Tag %(n)s memory", "Tag %(n)s memories", count),
    }
    return words[intent] % {"n": count}


def make_shown_turns(turns: Sequence[TurnView]) -> list[ShownTurn]:
    """Return the turns in order, each with its question completed from the questions before it."""
    questions = [turn.question for turn in turns]
    return [make_shown_turn(turn, questions[max(0, at - FOLLOWED) : at]) for at, turn in enumerate(turns)]


def make_shown_turn(turn: TurnView, past: Sequence[str] = ()) -> ShownTurn:
    """Return a turn with its completed question. past: the questions before it."""
    whole = whole_question(turn.question, [question for question in past if question]) if turn.question else ""
    cut = pieces if turn.extractive else split_markdown
    available = tuple(citation for citation in turn.citations if citation.available)
    searched = "" if whole == turn.question else whole
    return ShownTurn(turn=turn, pieces=tuple(cut(turn.answer or "", available)), searched=searched)


def pieces(answer: str, citations: tuple[Citation, ...]) -> Iterator[Piece]:
    """Yield `answer` cut at the markers of `citations`. A marker without a citation stays text."""
    known = {citation.marker: citation for citation in citations}
    start = 0
    for match in MARKER.finditer(answer):
        citation = known.get(int(match[1]))
        if citation is None:
            continue
        if match.start() > start:
            yield Piece(answer[start : match.start()])
        yield Piece(match[0], citation)
        start = match.end()
    if start < len(answer):
        yield Piece(answer[start:])


def split_markdown(answer: str, citations: tuple[Citation, ...]) -> Iterator[Piece]:
    """Yield the pieces of a model's answer as sanitised HTML, cut at citations. A marker within code stays text."""
    known = {citation.marker: citation for citation in citations}
    for index, part in enumerate(CITE.split(markdown_html(answer, known))):
        if index % 2:
            yield Piece(f"[{part}]", known[int(part)])
        elif part:
            yield Piece(mark_safe(part))  # nh3 has cleaned it
