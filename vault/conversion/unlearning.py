"""Removal of erased caches and adapters from the engine, and trainings anew without the memories that are gone."""

import json
from collections.abc import Sequence
from uuid import UUID

from governance.actor import Actor
from governance.database import acting
from governance.jobs.services import job_create
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Topic
from vault.content.words import words_open
from vault.forms.payloads import handle_of, salt_of
from vault.models import Cube
from vault.providers.registry import engine
from vault.vocabulary import MemoryType

TITLE = "Trained anew"  # where the former name may tell of a data subject


def forms_drop(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Remove erased caches and adapters from the engine, and ask for the training of what adapters had beside what was
    erased. An adapter that a person erased, while all its memories are there, is not trained anew. Neither is that of a
    pack, whose publisher offers the next.

    Raises ProviderUnavailable. Writes: Job …, AuditEntry …, OutboxEvent ….
    """
    runs_in = engine()
    if runs_in is not None:
        for payload in payloads:
            handle = handle_of(actor.tenant_id, UUID(str(payload["form"])))
            runs_in.drop_cache(handle)
            runs_in.drop_adapter(handle)
        runs_in.forget_prefixes(salt_of(actor.tenant_id))  # of prompts with the erased text

    def write() -> None:
        for payload in payloads:
            if payload.get("kind") == MemoryType.PARAMETER and not payload.get("pack"):
                _train_anew(actor, payload)

    return write


def _train_anew(actor: Actor, payload: Payload) -> None:
    parents = payload["parents"]
    assert isinstance(parents, list)
    with acting(actor):
        left = set(Cube.objects.visible_to(actor).filter(id__in=parents).values_list("id", flat=True))
    rest = [parent for parent in parents if UUID(parent) in left]
    if not rest or len(rest) == len(parents):
        return
    settings = {"memories": rest, "kind": MemoryType.PARAMETER, "persona": "", "replaces": str(payload["form"])}
    request = json.dumps({"title": _open_name(actor, payload) or TITLE}).encode()
    job_create(actor=actor, kind=Topic.FORM_BUILD, settings=settings, request=request)


def _open_name(actor: Actor, payload: Payload) -> str:
    """Return the name of an erased adapter, or nothing. Raises KeyUnavailable."""
    name = payload.get("name")
    if not isinstance(name, dict):
        return ""
    sealed, cube_id = bytes.fromhex(name["sealed"]), UUID(name["cube"])
    return words_open(tenant_id=actor.tenant_id, cube_id=cube_id, number=name["number"], blob=sealed).title
