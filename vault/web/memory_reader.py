"""The pane that shows one memory next to the list."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.vocabulary import Permission
from governance.web.pagination import Newest
from vault.cubes.lookup import cube_target
from vault.cubes.selectors import cube_get, versions_list
from vault.listing.endings import endings_find
from vault.listing.selectors import memories_choose
from vault.web.labels import make_labels
from vault.web.memory_rows import ScorePart, hits_mark, layer_class, make_heat, score_parts

VERSIONS = 3  # of the pane
PARTS: tuple[Promise, ...] = (_("Words"), _("Meaning"), _("Context"), _("Heat"), _("Trust"))
LONGEST_PARTS = 60


def reader_context(request: HttpRequest, actor: Actor, memory_id: UUID) -> dict[str, Any]:
    """Return the context of `_reader.html`. Raises NotFound; Forbidden. Writes: AuditEntry, OutboxEvent."""
    with acting(actor):
        view = cube_get(actor=actor, cube_id=memory_id)
        take = Newest(size=VERSIONS, key="number")
        versions = versions_list(actor=actor, cube_id=memory_id, pages=take)
        target = cube_target(view.cube)
        text = request.GET.get("q", "")[:1000]
        score, parts = _read_score(request)
        return {
            "memory": view,
            "labels": make_labels(view.cube),
            "layer": layer_class(view.cube.layer),
            "heat": make_heat(view.heat),
            "pieces": list(hits_mark(view.words.content, text)),
            "versions": versions,
            "score": score,
            "parts": parts,
            "may_change": is_allowed(actor, Permission.MEMORY_UPDATE, target),
            "may_freeze": is_allowed(actor, Permission.MEMORY_FREEZE, target),
            "may_delete": is_allowed(actor, Permission.MEMORY_DELETE, target),
            "may_reword": bool(view.pack) and is_allowed(actor, Permission.STORE_MANAGE),
        }


def inactive_context(actor: Actor, memory_id: UUID) -> dict[str, Any]:
    """Return the context of a deleted or expired memory. Raises NotFound, also for who may not restore it."""
    if not is_allowed(actor, Permission.MEMORY_DELETE):
        raise NotFound
    with acting(actor):
        views = memories_choose(actor=actor, ids=[memory_id], inactive=True)
        if not views:
            raise NotFound
        endings = endings_find(actor, views)
    return {"memory": views[0], "labels": make_labels(views[0].cube), "ending": endings[memory_id]}


def _read_score(request: HttpRequest) -> tuple[float | None, list[ScorePart]]:
    """Read the score of this memory in the list and its parts from the query string."""
    try:
        score = float(request.GET.get("score", ""))
        values = [float(part) for part in request.GET.get("parts", "")[:LONGEST_PARTS].split("-")]
    except ValueError:
        return None, []
    if len(values) != len(PARTS) or not all(0 <= value <= 1 for value in (score, *values)):
        return None, []
    return score, score_parts(score, [(str(name), value) for name, value in zip(PARTS, values, strict=True)])
