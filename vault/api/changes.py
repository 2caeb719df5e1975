"""Calls that change one memory: as a dry run, or once per Idempotency-Key."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.response import Response

from governance.api.descriptions import DRY_RUN, IF_MATCH, ONCE
from governance.api.views import ApiView, expected_versions
from governance.idempotency.services import Reply
from vault.api.descriptions import of_memories
from vault.api.representations import dry_run_json, memory_json
from vault.api.schema import DryRunSchema, MemorySchema
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.selectors import cube_view

MEMORY_OR_DRY_RUN = PolymorphicProxySerializer(
    "MemoryOrDryRun", serializers=[MemorySchema, DryRunSchema], resource_type_field_name=None
)
of_change = partial(
    of_memories, reply=MEMORY_OR_DRY_RUN, parameters=[IF_MATCH, ONCE, DRY_RUN], may=[404, 409, 412, 423]
)


class MemoryChangeView(ApiView):
    """A POST that changes one memory. check: raises the errors of the call, for the versions that If-Match allows."""

    check: Callable[..., object] = staticmethod(cube_change_ask)

    def read_change(self, memory_id: UUID) -> Any:
        """Return the validated body, after the checks of the memory."""
        self.versions = expected_versions(self.request)
        return self.read_body(self.bind(self.check, memory_id))

    def bind(self, service: Callable[..., object], memory_id: UUID, **values: Any) -> Callable[[], Any]:
        """Return the call of a service for the memory, as the request's actor and for its versions."""
        return partial(service, actor=self.actor(), cube_id=memory_id, expected_versions=self.versions, **values)

    def change(self, memory_id: UUID, service: Callable[..., object], **values: Any) -> Response:
        """Change the memory by `service`, and return it. A dry run returns its id and is rolled back."""
        ask = partial(self.check, actor=self.actor(), cube_id=memory_id)
        return change_and_answer(self, memory_id, self.bind(service, memory_id, **values), ask=ask)


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
