"""Import of other projects' conversations as memories and pages, through the services that members use."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby

from django.db.models import Q

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.vocabulary import Permission
from vault.content.drafts import CubeDraft
from vault.cubes.services import AddedCube
from vault.cubes.writer.builder import texts_index
from vault.layers.formats import Imported, Turn
from vault.layers.services import memories_add
from vault.models import Page
from vault.reader.services import messages_read
from vault.vocabulary import MessageRole, SemanticType, Source

PART = 100  # messages of one transaction


@dataclass(frozen=True)
class ImportReport:
    """The counts of an import.

    messages, facts, profiles: newly stored; pages: built from the messages; derived: statements stored beside the
    messages; present: already stored; skipped, pictures, left_out: as in `Imported`.
    """

    messages: int = 0
    pages: int = 0
    derived: int = 0
    facts: int = 0
    profiles: int = 0
    present: int = 0
    skipped: int = 0
    pictures: int = 0
    left_out: tuple[tuple[str, str], ...] = ()

    def plus(self, other: "ImportReport") -> "ImportReport":
        return ImportReport(*(mine + more for mine, more in zip(astuple(self), astuple(other), strict=True)))


def conversations_import(
    *, actor: Actor, imported: Imported, persona: str | None, namespace: str | None
) -> ImportReport:
    """Store the content of files in parts; importing the same files again stores nothing twice.

    Raises Forbidden; Invalid; PiiUnavailable; QuotaExceeded. Writes the rows of `memories_add`.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    common = CubeDraft(content="", persona=persona, namespace=namespace, source=Source.IMPORT)
    messages = pages = derived = present = 0
    for part in _split_turns(imported.turns):
        drafts = _make_drafts(part, common)
        added = _store_drafts(actor, drafts)
        present += sum(memory.duplicate for memory in added)
        new = [draft for draft, memory in zip(drafts, added, strict=True) if not memory.duplicate]
        messages += sum(draft.is_message for draft in new)
        derived += sum(not draft.is_message for draft in new)
        pages += _count_pages(actor, [memory for draft, memory in zip(drafts, added, strict=True) if draft.page_role])
    facts = [replace(common, content=text, semantic_type=SemanticType.FACT) for text in imported.facts]
    profiles = [replace(common, content=text, semantic_type=SemanticType.PROFILE) for text in imported.profiles]
    stored = [
        _store_drafts(actor, some[at : at + PART]) for some in (facts, profiles) for at in range(0, len(some), PART)
    ]
    repeated = sum(memory.duplicate for some in stored for memory in some)
    kinds = [memory.cube.semantic_type for some in stored for memory in some if not memory.duplicate]
    return ImportReport(
        messages=messages,
        pages=pages,
        derived=derived,
        facts=kinds.count(SemanticType.FACT),
        profiles=kinds.count(SemanticType.PROFILE),
        present=present + repeated,
        skipped=imported.skipped,
        pictures=imported.pictures,
        left_out=imported.left_out,
    )


def _split_turns(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """Yield PART messages of one session at a time; PART is even, so that no page is cut."""
    for _, some in groupby(turns, key=lambda turn: turn.session):
        whole = list(some)
        yield from (whole[at : at + PART] for at in range(0, len(whole), PART))


def _make_drafts(turns: Sequence[Turn], common: CubeDraft) -> list[CubeDraft]:
    answers = {turn.message.message_id for turn in turns if turn.answers}
    common = replace(common, session_id=turns[0].session)
    drafts = messages_read([turn.message for turn in turns], infer=True, common=common)
    return [
        replace(draft, page_role=MessageRole.ASSISTANT) if draft.page_role and draft.message_id in answers else draft
        for draft in drafts
    ]


def _count_pages(actor: Actor, added: Sequence[AddedCube]) -> int:
    """Return the number of pages of the newly stored messages."""
    ids = [memory.cube.id for memory in added if not memory.duplicate]
    with acting(actor):
        return Page.objects.filter(Q(query_id__in=ids) | Q(response_id__in=ids)).count()


def _store_drafts(actor: Actor, drafts: Sequence[CubeDraft]) -> list[AddedCube]:
    return memories_add(actor=actor, drafts=drafts, texts=texts_index(actor.tenant_id, drafts))
