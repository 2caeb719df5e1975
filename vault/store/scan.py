"""The scan of memories for a pack: by sensitivity, policies, data subjects, personal data and secrets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid5

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import PiiUnavailable
from governance.policies.selectors import check_publishing
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from governance.vocabulary import Permission
from vault.cubes.pack_reads import find_pack_copies, find_packs
from vault.cubes.retention import facts_of
from vault.cubes.selectors import CubeView
from vault.deidentification.deidentifier import VERSION, Deidentifier, Mark, Undecided, find_marks, find_undecided
from vault.deidentification.people import People, facts_of_people, people_of
from vault.lexicon.resolved_dates import event_of_changed
from vault.screening.screen import EVERYWHERE
from vault.screening.texts import Place, Texts, find_places, redact_places
from vault.store.files import LONGEST_CONTENT, LONGEST_TITLE, DeIdentification, Item
from vault.store.rewordings import Rewordings, rewordings_apply, rewordings_of
from vault.store.wordings import Wordings, add_second, read_wordings
from vault.vocabulary import FindingRule, MemoryType, SemanticType, Sensitivity, SubjectRule, Treatment

LEAVING = frozenset({Sensitivity.PUBLIC, Sensitivity.INTERNAL})
MOST_NAMED = 100


@dataclass(frozen=True)
class LeavingRules:
    """The treatment of memories that may not be published unchanged.

    names: more names to replace in memories about data subjects. accepted: what may leave of what the preview lists as
    undecided. is_read: the publisher states that a person has read the preview of all that leaves.
    """

    findings: FindingRule = FindingRule.BLOCK
    subjects: SubjectRule = SubjectRule.DROP
    names: tuple[str, ...] = field(default=(), repr=False)
    accepted: frozenset[str] = field(default=frozenset(), repr=False)
    is_read: bool = False


@dataclass(frozen=True)
class Leaving:
    """The decision on one memory.

    item: its published form, None if it is left out. reasons: kinds of findings, or the reason for dropping it.
    subject_id: data subject of an anonymised memory. is_reworded: an accepted proposal changed it. wordings: of its
    marked sentence. marks, undecided: of an anonymised memory, by the field of the published form; `second` is the
    content with the second wording.
    """

    cube_id: UUID
    treatment: Treatment
    reasons: tuple[str, ...] = ()
    item: Item | None = field(default=None, repr=False)
    subject_id: UUID | None = None
    is_reworded: bool = False
    wordings: Wordings | None = field(default=None, repr=False)
    marks: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict, repr=False)
    undecided: Mapping[str, tuple[Undecided, ...]] = field(default_factory=dict, repr=False)


def packs_drop(actor: Actor, cube_ids: Sequence[UUID]) -> tuple[list[Leaving], list[UUID]]:
    """Drop, unopened, what came with another pack: its memories, what was made of or quotes them, and equal texts.

    Return the decisions on them, and the other ids in order. Two queries. Use inside `acting`.
    """
    of_packs = find_packs(actor, cube_ids, with_quotes=True).keys() | find_pack_copies(actor, cube_ids)
    dropped = [Leaving(cube_id, Treatment.DROPPED, ("pack",)) for cube_id in cube_ids if cube_id in of_packs]
    return dropped, [cube_id for cube_id in cube_ids if cube_id not in of_packs]


def memories_scan(
    *,
    actor: Actor,
    pack_id: UUID,
    views: Iterable[CubeView],
    rules: LeavingRules,
    texts: str = "",
    people: People | None = None,
) -> list[Leaving]:
    """Decide on each memory, in order. texts: of the pack itself; a memory about a person whom they name is blocked.

    people: those of the whole pack, whose names no memory of it keeps; None: those of these memories.

    Raises Forbidden; PiiUnavailable if a text cannot be checked. Writes: AuditEntry?.
    """
    authorize(actor, Permission.STORE_MANAGE, Target("pack", pack_id, actor.tenant_id))
    rewordings = rewordings_of(actor=actor, pack_id=pack_id)
    views = list(views)
    if people is None:
        facts = {}
        if rules.subjects is SubjectRule.ANONYMISE:
            facts = facts_of_people(actor=actor, views=views, more_names=rules.names)
        people = people_of(facts)
    named = {subject_id for subject_id, person in people.each.items() if person.is_named(texts)}
    return [
        Leaving(view.cube.id, Treatment.BLOCKED, ("pack_text",))
        if view.cube.subject_id in named
        else _decide_leaving(actor, pack_id, view, rules, rewordings, people)
        for view in views
    ]


def list_undecided(decided: Iterable[Leaving]) -> list[str]:
    """Return the distinct texts that the preview could not decide, in order."""
    found = (each.text for leaving in decided for part in leaving.undecided.values() for each in part)
    return list(dict.fromkeys(found))


def state_deidentification(decided: Sequence[Leaving], rules: LeavingRules) -> DeIdentification | None:
    """Return what was done to the anonymised memories that leave; None if there are none.

    Confirmed: the publisher states that a person read the preview, and accepted all that it could not decide.
    """
    anonymised = [leaving for leaving in decided if leaving.treatment is Treatment.ANONYMISED and leaving.item]
    if not anonymised:
        return None
    undecided = list_undecided(anonymised)
    return DeIdentification(
        rules=VERSION,
        detector=detector().version,
        memories=len(anonymised),
        replaced=dict(
            sorted(Counter(m.kind for leaving in anonymised for part in leaving.marks.values() for m in part).items())
        ),
        undecided=len(undecided),
        confirmed=rules.is_read and rules.accepted.issuperset(undecided),
    )


def compose_report(decided: Sequence[Leaving]) -> dict[str, object]:
    """Return the report of a scan: counts by treatment, dropped memories by reason, and the ids of blocking
    memories."""
    dropped = Counter(
        reason for leaving in decided if leaving.treatment is Treatment.DROPPED for reason in leaving.reasons
    )
    blocked = [leaving for leaving in decided if leaving.treatment is Treatment.BLOCKED]
    return {
        "counts": {str(kind): sum(leaving.treatment is kind for leaving in decided) for kind in Treatment},
        "dropped": dict(sorted(dropped.items())),
        "reworded": sum(leaving.is_reworded for leaving in decided),
        "marked": sum(leaving.wordings is not None for leaving in decided),
        "blocked": [
            {"memory_id": str(leaving.cube_id), "kinds": list(leaving.reasons)} for leaving in blocked[:MOST_NAMED]
        ],
    }


def is_blocked(report: Mapping[str, object]) -> bool:
    return bool(report["blocked"])


def _decide_leaving(
    actor: Actor,
    pack_id: UUID,
    view: CubeView,
    rules: LeavingRules,
    rewordings: Rewordings,
    people: People,
) -> Leaving:
    cube, key = view.cube, uuid5(pack_id, str(view.cube.id))
    if reason := _find_reason_to_stay(actor, view, rules):
        return Leaving(cube.id, Treatment.DROPPED, (reason,))
    if cube.subject_id is not None:
        person = people.each.get(cube.subject_id)
        if person is None:  # the memory became one about a person after the people were read
            return Leaving(cube.id, Treatment.DROPPED, ("subject",))
        return _anonymise(key, view, person, rewordings)
    if _names_people(people, view, rewordings_apply(view.words.content, rewordings.get(key, ()))):
        return _anonymise(key, view, people.nobody, rewordings)
    texts = Texts(view.words.content, view.words.title, tags=tuple(cube.tags))
    treatment = Treatment.AS_IS
    content = rewordings_apply(texts.content, rewordings.get(key, ()))
    is_reworded, texts = content != texts.content, replace(texts, content=content)
    places = _find_places(texts)
    kinds = tuple(sorted({str(place.span.kind) for place in places}))
    if places:
        if rules.findings is not FindingRule.REDACT:
            kept = Treatment.BLOCKED if rules.findings is FindingRule.BLOCK else Treatment.DROPPED
            return Leaving(cube.id, kept, kinds)
        treatment = Treatment.REDACTED
    texts = redact_places(texts, places) if places else texts
    marked, found = _check_marked_sentence(texts, view)
    if found and rules.findings is not FindingRule.REDACT and treatment is Treatment.AS_IS:
        kept = Treatment.BLOCKED if rules.findings is FindingRule.BLOCK else Treatment.DROPPED
        return Leaving(cube.id, kept, found)
    return Leaving(cube.id, treatment, kinds, _make_item(key, view, texts), None, is_reworded, marked)


def _names_people(people: People, view: CubeView, reworded: str) -> bool:
    """Return whether a memory about nobody has something known of a person of the pack. reworded: its content."""
    wordings = read_wordings(view.words.metadata)
    texts = [view.words.content, reworded, view.words.title, *view.cube.tags, *((wordings.second,) if wordings else ())]
    times = (view.cube.event_time, view.cube.valid_from, view.cube.valid_to)
    return people.everybody.are_in("\n".join(texts)) or any(map(people.nobody.is_birth, times))


def _anonymise(key: UUID, view: CubeView, person: Deidentifier, rewordings: Rewordings) -> Leaving:
    """Return a memory without what tells who the people of the pack are. Raises PiiUnavailable."""
    try:
        content = person.clear(view.words.content)
        reworded = rewordings_apply(content, rewordings.get(key, ()))
        is_reworded, content = reworded != content, person.clear(reworded)
        tags = tuple(tag for tag in view.cube.tags if person.clear(tag) == tag)
        texts = Texts(content, person.clear(view.words.title), tags=tags)
        wordings = _anonymise_marked_sentence(texts, view, person)
    except DetectorFailed as failure:
        raise PiiUnavailable("The pack was not built: a memory could not be checked.") from failure
    if (
        max(len(content), len(wordings.content) if wordings else 0) > LONGEST_CONTENT
        or len(texts.title) > LONGEST_TITLE
    ):
        return Leaving(view.cube.id, Treatment.DROPPED, ("length",))
    item = _make_item(key, view, texts)
    event_time, valid_from, valid_to = (
        None if person.is_birth(time) else time for time in (item.event_time, item.valid_from, item.valid_to)
    )
    item = replace(item, event_time=event_time, said_at=None, valid_from=valid_from, valid_to=valid_to)
    parts = {"content": texts.content, "title": texts.title, **{f"tags.{at}": tag for at, tag in enumerate(tags)}}
    if wordings is not None:
        parts["second"] = wordings.content
    marks = {name: found for name, part in parts.items() if (found := find_marks(part))}
    undecided = {name: left for name, part in parts.items() if (left := tuple(find_undecided(part)))}
    kinds = tuple(sorted({mark.kind for found in marks.values() for mark in found}))
    return Leaving(
        view.cube.id,
        Treatment.ANONYMISED,
        kinds,
        item,
        view.cube.subject_id,
        is_reworded,
        wordings,
        marks,
        undecided,
    )


def _anonymise_marked_sentence(texts: Texts, view: CubeView, person: Deidentifier) -> Wordings | None:
    """Return the marked sentence of an anonymised text; None if its second wording would tell who the person is."""
    wordings = read_wordings(view.words.metadata)
    if wordings is None:
        return None
    marked = add_second(texts.content, Wordings(person.clear(wordings.sentence), person.clear(wordings.second)))
    return marked if marked is not None and person.clear(marked.content) == marked.content else None


def _check_marked_sentence(texts: Texts, view: CubeView) -> tuple[Wordings | None, tuple[str, ...]]:
    """Return the marked sentence of a published text, None if its second wording has findings; and the kinds of
    findings."""
    wordings = read_wordings(view.words.metadata)
    marked = add_second(texts.content, wordings) if wordings is not None else None
    found = _find_places(Texts(marked.content)) if marked is not None else []
    return (None if found else marked), tuple(sorted({str(place.span.kind) for place in found}))


def _find_reason_to_stay(actor: Actor, view: CubeView, rules: LeavingRules) -> str:
    """Return the reason for dropping the memory before its text is scanned; empty if there is none."""
    cube = view.cube
    if cube.type != MemoryType.PLAINTEXT or not view.words.content.strip():
        return "type"
    if cube.sensitivity not in LEAVING:
        return "sensitivity"
    if not check_publishing(actor=actor, facts=facts_of(cube)).allowed:
        return "policy"
    return "subject" if cube.subject_id is not None and rules.subjects is SubjectRule.DROP else ""


def _find_places(texts: Texts) -> list[Place]:
    try:
        return find_places(detector(), texts, EVERYWHERE)
    except DetectorFailed as failure:
        raise PiiUnavailable("The pack was not built: a memory could not be checked.") from failure


def _make_item(key: UUID, view: CubeView, texts: Texts) -> Item:
    """Return the published form of a memory. key: its id in the pack, which hides the memory's own id and never
    changes."""
    cube = view.cube
    return Item(
        id=key,
        content=texts.content,
        title=texts.title,
        tags=texts.tags,
        semantic_type=SemanticType(cube.semantic_type),
        language=cube.language,
        importance=cube.importance,
        event_time=None if _is_unnamed(view, texts.content) else cube.event_time,
        said_at=cube.said_at,
        valid_from=cube.valid_from,
        valid_to=cube.valid_to,
    )


def _is_unnamed(view: CubeView, content: str) -> bool:
    """Return whether the time of an event was read from a part of the text that the published `content` lacks."""
    cube = view.cube
    kept = event_of_changed(content, view.words.content, cube.said_at, cube.event_time, is_hidden=True)
    return kept != cube.event_time
