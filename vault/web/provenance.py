"""The page of a memory's provenance, and the download of the memory with its signed manifest."""

from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from governance.actor import Actor
from governance.database import acting
from governance.keys.signing_keys import signing_key
from governance.web.pages import draw, safe_page, wants_part
from vault.cubes.selectors import cube_get
from vault.provenance.rules import manifest_json
from vault.provenance.selectors import lineage_open, provenance_get
from vault.provenance.services import manifest_of_memories
from vault.vocabulary import SemanticType, Source
from vault.web.labels import SOURCES
from vault.web.readings import ShownReading, explain_message


@safe_page
def provenance(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    template = "vault/provenance/_provenance.html" if wants_part(request) else "vault/provenance/provenance.html"
    view = provenance_get(actor=actor, cube_id=memory_id)
    labels = {"source": SOURCES[Source(view.source)]}
    context = {"provenance": view, "labels": labels, "key": signing_key(), "readings": _readings(actor, memory_id)}
    return draw(request, template, context)


def _readings(actor: Actor, memory_id: UUID) -> list[ShownReading]:
    """Return the reader's decisions on a message; nothing for other memories."""
    with acting(actor):
        message = cube_get(actor=actor, cube_id=memory_id)
        made = lineage_open(actor, message.cube).derived
    if not made and message.cube.semantic_type != SemanticType.DIALOGUE:
        return []
    stored = [view.words.content for view in made]
    return explain_message(message.words.content, speaker=message.words.speaker, stored=stored)


@safe_page
def manifest(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Return the memory and its manifest as a file that scripts/manifest_verifier.py verifies."""
    with acting(actor):
        view = cube_get(actor=actor, cube_id=memory_id)
        signed = manifest_json(manifest_of_memories(actor=actor, views=[view]))
    body = {
        "id": str(view.cube.id),
        "version": view.cube.version,
        "title": view.words.title,
        "content": view.words.content,
        "manifest": signed,
    }
    return JsonResponse(body, headers={"Content-Disposition": f'attachment; filename="memory-{memory_id}.json"'})
