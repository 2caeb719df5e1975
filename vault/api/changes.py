"""Calls that change one memory: as a dry run, or once per Idempotency-Key."""

from collections.abc import Callable
from uuid import UUID

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.response import Response

from governance.api.views import ApiView
from governance.idempotency.services import Reply
from vault.api.representations import dry_run_json, memory_json
from vault.api.schema import DryRunSchema, MemorySchema
from vault.cubes.selectors import cube_view

MEMORY_OR_DRY_RUN = PolymorphicProxySerializer(
    "MemoryOrDryRun", serializers=[MemorySchema, DryRunSchema], resource_type_field_name=None
)


def change_and_answer(
    view: ApiView, memory_id: UUID, change: Callable[[], object], *, ask: Callable[[], object]
) -> Response:
    """Change a memory once and return it. A dry run, which the address asks for, returns its id and is rolled back.

    ask: checks permissions and versions before a stored response is repeated.
    """
    if view.dry_run:
        view.rehearse(change)
        return Response(dry_run_json([memory_id]))

    def call() -> Reply:
        change()
        shown = cube_view(actor=view.actor(), cube_id=memory_id)
        return Reply(200, memory_json(shown), shows=(memory_id,))

    response = view.post_once(call, ask=lambda: view.rehearse(ask))
    response["ETag"] = f'"{response.data["version"]}"'
    return response
