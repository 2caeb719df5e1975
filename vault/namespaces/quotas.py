"""The quota of a namespace: the largest number of its memories."""

from collections import Counter
from collections.abc import Iterable

from governance.errors import QuotaExceeded
from vault.models import Cube, Namespace


def room_take(namespaces: Iterable[Namespace]) -> None:
    """Refuse memories beyond the quota of their namespace; the argument has one item for each memory to be stored.

    Writers of a namespace with a quota wait for each other. No query without quotas. Raises QuotaExceeded.
    """
    wanted = Counter(namespace.id for namespace in namespaces if namespace.quota is not None)
    if not wanted:
        return
    rows = Namespace.objects.filter(id__in=wanted).order_by("id").select_for_update(no_key=True)
    for namespace in rows:
        stored = Cube.objects.stored().filter(tenant_id=namespace.tenant_id, namespace=namespace).count()
        if namespace.quota is not None and stored + wanted[namespace.id] > namespace.quota:
            raise QuotaExceeded(
                f"The namespace {namespace.path} may hold {namespace.quota} memories, and these would be more."
            )
