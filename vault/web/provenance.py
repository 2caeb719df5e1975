"""The page of a memory's provenance, and the download of the memory with its signed manifest."""

from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from governance.actor import Actor
from governance.database import acting
from governance.keys.signing_keys import signing_key
from governance.web.pages import draw, page, wants_part
from vault.cubes.selectors import cube_get
from vault.provenance.rules import manifest_json
from vault.provenance.selectors import provenance_get
from vault.provenance.services import manifest_of_memories
from vault.vocabulary import Source
from vault.web.labels import SOURCES


@require_http_methods(["GET", "HEAD"])
@page
def provenance(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    template = "vault/provenance/_provenance.html" if wants_part(request) else "vault/provenance/provenance.html"
    view = provenance_get(actor=actor, cube_id=memory_id)
    labels = {"source": SOURCES.get(Source(view.source), view.source)}
    return draw(request, template, {"provenance": view, "labels": labels, "key": signing_key()})


@require_http_methods(["GET", "HEAD"])
@page
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
