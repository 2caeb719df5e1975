"""The texts of a pack itself, which others read: none of them may name a person whom its versions anonymised."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.models import DataSubject
from governance.privacy.services import subject_view
from governance.vocabulary import Verb
from vault.cubes.selectors import cubes_read
from vault.deidentification.deidentifier import PersonFacts
from vault.deidentification.people import facts_of_people, people_of
from vault.models import Cube, Pack, PackVersion

PART = 200  # people whose names are read at once
NAMES_PERSON = "it names a person whom a version of the pack anonymised"


def join_own_texts(pack: Pack, changelog: str) -> str:
    """Return the texts about a pack that others read."""
    texts = [pack.name, pack.title, pack.description, pack.readme, pack.licence, *pack.authors, *pack.keywords]
    return "\n".join([*texts, changelog])


def check_own_texts(actor: Actor, pack: Pack, texts: Mapping[str, Any]) -> None:
    """Refuse new texts of a pack, by field, if one names a data subject of the pack's versions.

    The names are read anew; of an erased person nothing is known, and nothing is refused. A value that is neither a
    text nor texts is not read. Raises Invalid; Forbidden; KeyUnavailable. Writes: AuditEntry?.
    """
    written = {name: "\n".join(_texts_in(value)) for name, value in texts.items()}
    if not any(map(str.strip, written.values())):
        return
    with acting(actor):
        versions = PackVersion.objects.filter(pack=pack).values_list("subjects", flat=True)
        subjects = sorted({subject_id for ids in versions for subject_id in ids})
        for start in range(0, len(subjects), PART):
            people = people_of(_read_facts(actor, subjects[start : start + PART])).each.values()
            errors = [
                FieldError(name, NAMES_PERSON)
                for name, text in written.items()
                if any(person.is_named(text) for person in people)
            ]
            if errors:
                raise Invalid(errors=errors)


def _read_facts(actor: Actor, subject_ids: list[UUID]) -> dict[UUID, PersonFacts]:
    """Return what is known of data subjects; of those without memories the reference. Use inside `acting`."""
    rows = Cube.objects.visible_to(actor).filter(subject_id__in=subject_ids)
    ids = list(rows.order_by("subject_id", "-id").distinct("subject_id").values_list("id", flat=True))
    views = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, is_use=False) if ids else []
    subjects = DataSubject.objects.filter(tenant_id=actor.tenant_id, id__in=subject_ids)
    references = {row.id: PersonFacts((subject_view(row).reference,)) for row in subjects}
    return references | facts_of_people(actor=actor, views=views)


def _texts_in(value: Any) -> Iterable[str]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return (str(each) for each in values if isinstance(each, str))
