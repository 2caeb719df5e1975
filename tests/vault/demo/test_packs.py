"""The packs of the demo: texts of their own, and published once by `manage.py demo`."""

from collections import Counter
from uuid import UUID

import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.tenants.selectors import tenant_id_by_slug
from governance.tenants.services import command_line_actor
from tests.harness.databases import Clone
from tests.vault.demo.test_demo import demo
from tests.vault.outbox import run_jobs
from vault.demo.packs import packs_read
from vault.models import Cube, Listing, Pack, PackMemory, PackVersion, Publication

NAMES = {"first-aid", "house-plants", "onboarding", "python-debugging", "travel-phrases-en-zh"}


def test_each_pack_has_30_to_60_memories_and_no_text_twice() -> None:
    packs = packs_read()
    assert {pack.draft.name for pack in packs} == NAMES
    for pack in packs:
        assert 30 <= len(pack.memories) <= 60, pack.draft.name
        texts = (pack.draft.description, pack.draft.readme, pack.draft.licence, pack.draft.keywords)
        assert all(texts), pack.draft.name
    counts = Counter(text.strip().casefold() for pack in packs for text in pack.memories)
    assert [text for text, count in counts.items() if count > 1] == []
    assert [text for text in counts if not 8 <= len(text) <= 300] == []


def test_first_aid_begins_with_the_emergency_number() -> None:
    pack = next(pack for pack in packs_read() if pack.draft.name == "first-aid")
    assert "call the emergency number first" in pack.memories[0]


@pytest.mark.full
def test_demo_publishes_five_packs_once_and_the_workshop_subscribes_to_one(database: Clone) -> None:
    assert demo()["packs"] == len(NAMES)
    publisher, workshop = (tenant_id_by_slug(slug) for slug in ("open-shelf", "demo"))
    assert publisher is not None
    assert workshop is not None
    before = _rows(publisher)
    assert before["packs"] == before["published"] == len(NAMES)
    assert demo()["packs"] == len(NAMES)
    assert _rows(publisher) == before
    reader = command_line_actor(workshop)
    with acting(reader):
        languages = dict(Listing.objects.values_list("name", "languages"))
    assert languages.keys() == NAMES
    assert set(languages["travel-phrases-en-zh"]) >= {"en", "zh"}
    run_jobs()
    with acting(reader):
        first_aid = next(pack for pack in packs_read() if pack.draft.name == "first-aid")
        assert PackMemory.objects.count() == len(first_aid.memories)


def _rows(publisher: UUID) -> dict[str, int]:
    with acting(command_line_actor(publisher)):
        return {
            "packs": Pack.objects.count(),
            "versions": PackVersion.objects.count(),
            "published": Publication.objects.filter(state="published").count(),
            "memories": Cube.objects.count(),
            "entries": AuditEntry.objects.count(),
        }
