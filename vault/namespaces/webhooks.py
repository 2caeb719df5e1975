"""The filter `namespace` of webhooks: memories and namespaces at or below a path."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from governance.actor import Actor
from governance.webhooks.filters import webhook_filter
from vault.models import Cube, Namespace
from vault.namespaces.rules import PathError, check_path


def _find_fault(path: str) -> str:
    try:
        check_path(path)
    except PathError:
        return "a path such as /team/notes"
    return ""


@webhook_filter("namespace", _find_fault)
def ids_below(actor: Actor, path: str, object_type: str, ids: Sequence[UUID]) -> Sequence[UUID]:
    """Return the `ids` of memories or namespaces at `path` or below; none for another type."""
    rows: Any = {"memory": Cube.objects, "namespace": Namespace.objects}.get(object_type)
    if rows is None:
        return []
    field = "namespace__path" if object_type == "memory" else "path"
    below = Q(**{field: path}) | Q(**{f"{field}__startswith": f"{path}/"})
    matching = set(rows.filter(below, tenant_id=actor.tenant_id, id__in=ids).values_list("id", flat=True))
    return [event_id for event_id in ids if event_id in matching]
