"""Known names, relatives and birth dates of data subjects, from rows and memories about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.models import Persona
from governance.privacy.detection import detector
from governance.privacy.pii.dates import find_birth_dates
from governance.vocabulary import Permission, PersonaKind, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.deidentification.deidentifier import Deidentifier, NamedPeople, PersonFacts
from vault.deidentification.learning import complete_names, metadata_names, speaker_name, stated_names
from vault.deidentification.relations import find_relations
from vault.models import Cube
from vault.vocabulary import SemanticType

MOST_READ = 200  # memories about one person that are read for names, its profile first


@dataclass(frozen=True)
class People:
    """The data subjects of a pack, by id, and the de-identifier of memories about nobody."""

    each: Mapping[UUID, Deidentifier]
    nobody: Deidentifier
    everybody: NamedPeople


def people_of(facts: Mapping[UUID, PersonFacts]) -> People:
    """Return the de-identifiers of people: each replaces what is known of all of them."""
    everybody = NamedPeople(facts.values())
    each = {subject_id: Deidentifier(person, detector(), everybody) for subject_id, person in facts.items()}
    return People(each, Deidentifier(PersonFacts(), detector(), everybody), everybody)


def facts_of_people(
    *, actor: Actor, views: Iterable[CubeView], more_names: Iterable[str] = ()
) -> dict[UUID, PersonFacts]:
    """Return what is known of each data subject that the memories are about, by its id.

    more_names: names that the caller adds for all of them. The names come from the reference, the personas and speakers
    of the memories, and up to MOST_READ memories about the person that the actor may read.
    Raises Forbidden; KeyUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    about: dict[UUID, list[CubeView]] = {}
    for view in views:
        if view.cube.subject_id is not None:
            about.setdefault(view.cube.subject_id, []).append(view)
    with acting(actor):
        return {subject_id: read_person_facts(actor, chosen, more_names) for subject_id, chosen in about.items()}


def unite_facts(first: PersonFacts | None, second: PersonFacts) -> PersonFacts:
    """Return the facts of a person from two parts of the memories about it."""
    if first is None:
        return second
    return PersonFacts(
        tuple(dict.fromkeys([*first.names, *second.names])),
        tuple(dict.fromkeys([*first.speakers, *second.speakers])),
        tuple(dict.fromkeys([*first.relatives, *second.relatives])),
        first.births | second.births,
    )


def read_person_facts(actor: Actor, chosen: list[CubeView], more_names: Iterable[str] = ()) -> PersonFacts:
    """Return what is known of the subject of these memories. Use inside `acting`."""
    views = [*chosen, *_read_others(actor, chosen)]
    texts = [text for view in views for text in (view.words.content, view.words.title) if text]
    relations = [name for text in texts for _, name in find_relations(text) if name]
    stated = [
        *(view.subject.reference for view in chosen if view.subject is not None),
        *more_names,
        *chain.from_iterable(metadata_names(view.words.metadata) for view in views),
        *chain.from_iterable(map(stated_names, texts)),
    ]
    births = {
        reading
        for text in texts
        for _, date in find_birth_dates(text)
        for reading in date.readings
        if reading[1] and reading[2]
    }
    speakers = [*_persona_names(actor, views), *(speaker_name(view.words.speaker) for view in views)]
    return PersonFacts(
        tuple(complete_names([name for name in stated if name.strip()], texts)),
        tuple(dict.fromkeys(name for name in speakers if name.strip())),
        tuple(dict.fromkeys(relations)),
        frozenset(births),
    )


def _read_others(actor: Actor, chosen: list[CubeView]) -> list[CubeView]:
    """Read other memories about the same person, its profile first and then the newest."""
    subject_id, known = chosen[0].cube.subject_id, {view.cube.id for view in chosen}
    rows = Cube.objects.visible_to(actor).filter(subject_id=subject_id).exclude(id__in=known)
    profile = rows.filter(semantic_type=SemanticType.PROFILE).order_by("-id").values_list("id", flat=True)[:MOST_READ]
    others = rows.order_by("-id").values_list("id", flat=True)[:MOST_READ]
    ids = list(dict.fromkeys([*profile, *others]))[:MOST_READ]
    return cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, is_use=False) if ids else []


def _persona_names(actor: Actor, views: list[CubeView]) -> list[str]:
    ids = {view.cube.persona_id for view in views if view.cube.persona_id is not None}
    rows = Persona.objects.filter(tenant_id=actor.tenant_id, id__in=ids, kind=PersonaKind.USER)
    return [name for name, shown in rows.values_list("name", "member__display_name") for name in (name, shown) if name]
