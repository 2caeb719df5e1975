"""sync/ of the REST API: peers of a tenant, and the calls by which installations synchronize memories."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, describe, page_of
from governance.api.fields import StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema, JobSchema
from governance.api.pages import whole_list
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.errors import Conflict, FieldError, Invalid
from governance.text_values import read_uuid
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.exchange.sync.peers import (
    LONGEST_ADDRESS,
    LONGEST_KEY,
    LONGEST_NAME,
    LONGEST_PATH,
    PeerDraft,
    peer_create,
    peer_get,
    peer_remove,
    peer_schedule,
    peer_sync,
    peer_update,
    peers_list,
)
from vault.exchange.sync.received_changes import changes_apply
from vault.exchange.sync.sent_memories import memories_list_for_peer, memories_open_for_peer
from vault.exchange.sync.wire import (
    LONGEST_CALL,
    MOST_AT_ONCE,
    MOST_BYTES,
    Change,
    Sent,
    applied_json,
    measure_size,
    sent_json,
    sent_read,
)
from vault.vocabulary import SyncDirection, SyncOutcome

MOST_VERSION = 2**31 - 1
NAMESPACE = OpenApiParameter("namespace", str, required=True, description="Its path.")
AFTER = OpenApiParameter("after", OpenApiTypes.UUID, description="The last id of the page before.")


class SyncPeerInput(StrictSerializer):
    name = TextField(max_length=LONGEST_NAME)
    address = TextField(max_length=LONGEST_ADDRESS, help_text="Of the other installation, as in https://host.")
    key = TextField(max_length=LONGEST_KEY, write_only=True, help_text="An API key of the other installation.")
    namespace = TextField(max_length=LONGEST_PATH, help_text="Path here.")
    remote_namespace = TextField(max_length=LONGEST_PATH, help_text="Path there.")
    direction = serializers.ChoiceField(choices=list(SyncDirection), required=False, help_text="Default: both.")


class SyncPeerChanges(StrictSerializer):
    """Changes of a peer. Its namespaces cannot change, because the linked memories are in them."""

    name = TextField(max_length=LONGEST_NAME, required=False)
    address = TextField(max_length=LONGEST_ADDRESS, required=False)
    key = TextField(max_length=LONGEST_KEY, required=False, write_only=True)
    direction = serializers.ChoiceField(choices=list(SyncDirection), required=False)


class SyncScheduleInput(StrictSerializer):
    cron = TextField(max_length=100, allow_blank=True, help_text="Five fields; empty: it never starts by itself.")
    timezone = TextField(max_length=64, required=False, help_text="Default: UTC.")


class SyncPeerSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    address = serializers.CharField()
    namespace = serializers.CharField()
    remote_namespace = serializers.CharField()
    direction = serializers.ChoiceField(choices=list(SyncDirection))
    cron = serializers.CharField(allow_blank=True, help_text="Of its schedule; empty without one.")
    timezone = serializers.CharField(allow_blank=True)
    last_job = JobSchema(allow_null=True, help_text="The newest sync, with what it did.")
    created_at = serializers.DateTimeField()


class SyncListedSchema(Schema):
    id = serializers.UUIDField()
    version = serializers.IntegerField()


class SyncListSchema(Schema):
    count = serializers.IntegerField(help_text="Of all memories of the namespace that may leave.")
    memories = SyncListedSchema(many=True)
    is_last = serializers.BooleanField()


class SyncReadInput(StrictSerializer):
    namespace = TextField(max_length=LONGEST_PATH)
    memories = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=MOST_VERSION),
        help_text=f"At most {MOST_AT_ONCE} ids, each with the version that is known already; 0 for none.",
    )


class SyncSentSchema(Schema):
    id = serializers.UUIDField()
    version = serializers.IntegerField(help_text="Of the last version that is sent; 0 where none is.")
    item = serializers.DictField(
        allow_null=True, help_text="The memory as a line of a JSON Lines export has it, without its namespace."
    )
    origin = serializers.CharField(allow_blank=True, help_text="Of a copy that a sync made: the id of its original.")
    stays = serializers.CharField(
        allow_blank=True, help_text="Why it is not sent: `gone`, `not_shared`, `policy` or `secret`."
    )


class SyncSentListSchema(Schema):
    results = SyncSentSchema(many=True, help_text="As many of the asked ones as fit, at least one.")


class SyncChangeInput(StrictSerializer):
    sent = serializers.DictField(
        allow_null=True, help_text="As `sync/memories/read/` answers it; null: it was deleted."
    )
    target = serializers.UUIDField(allow_null=True, help_text="The memory that this is a change of; null: a new one.")
    base = serializers.IntegerField(
        allow_null=True, min_value=0, max_value=MOST_VERSION, help_text="The version that this is a change of."
    )


class SyncWriteInput(StrictSerializer):
    namespace = TextField(max_length=LONGEST_PATH)
    changes = serializers.ListField(child=SyncChangeInput(), max_length=MOST_AT_ONCE, allow_empty=False)


class SyncAppliedSchema(Schema):
    outcome = serializers.ChoiceField(choices=list(SyncOutcome))
    id = serializers.UUIDField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(allow_blank=True, help_text="Of a refusal: its code.")
    theirs = serializers.DictField(allow_null=True, help_text="Of a conflict: the present version here.")


class SyncAppliedListSchema(Schema):
    results = SyncAppliedSchema(many=True, help_text="One for each change, in order.")


class SyncPeersView(ApiView):
    @describe("sync_peers_list", page_of(SyncPeerSchema))
    def get(self, request: Request) -> object:
        """List the peers: namespaces of other installations that are synchronized with local ones. Keys are not
        shown."""
        return whole_list(peers_list(actor=self.actor()))

    @describe("sync_peers_add", SyncPeerSchema, status=201, request=SyncPeerInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Add a peer: a namespace of another installation, to synchronize with a local one."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        draft = PeerDraft(**_convert_direction(self.read_body()))
        return self.post_once(lambda: peer_create(actor=actor, draft=draft))


class SyncPeerView(ApiView):
    @describe("sync_peers_get", SyncPeerSchema, may=[404])
    def get(self, request: Request, peer_id: UUID) -> object:
        """Read one peer with its newest sync."""
        return peer_get(actor=self.actor(), peer_id=peer_id)

    @describe("sync_peers_update", SyncPeerSchema, request=SyncPeerChanges, may=[404, 409])
    def patch(self, request: Request, peer_id: UUID) -> object:
        """Change name, address, key or direction of a peer."""
        actor = self.actor()
        peer_get(actor=actor, peer_id=peer_id)
        changes = _convert_direction(self.read_body())
        return peer_update(actor=actor, peer_id=peer_id, changes=changes)

    @describe("sync_peers_remove", None, status=204, may=[404])
    def delete(self, request: Request, peer_id: UUID) -> None:
        """Delete a peer with its key and schedule. Memories stay on both sides."""
        actor = self.actor()
        peer_get(actor=actor, peer_id=peer_id)
        self.read_body()
        peer_remove(actor=actor, peer_id=peer_id)


class SyncPeerRunView(ApiView):
    @describe("sync_peers_run", JobPromiseSchema, status=202, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, peer_id: UUID) -> Response:
        """Synchronize with a peer now, as a job. Its result counts received, sent and skipped memories."""
        actor = self.actor()

        def ask() -> None:
            peer_get(actor=actor, peer_id=peer_id)

        def call() -> object:
            ask()
            refuse_unknown_parameters(request)
            return peer_sync(actor=actor, peer_id=peer_id)

        return self.post_once(call, ask=ask)


class SyncPeerScheduleView(ApiView):
    @describe("sync_peers_schedule", SyncPeerSchema, request=SyncScheduleInput, may=[404, 409])
    def put(self, request: Request, peer_id: UUID) -> object:
        """Replace the schedule of the syncs with a peer."""
        actor = self.actor()
        peer_get(actor=actor, peer_id=peer_id)
        body = self.read_body()
        return peer_schedule(
            actor=actor, peer_id=peer_id, cron=body["cron"].strip(), timezone=body.get("timezone", "UTC")
        )


class SyncMemoriesView(ApiView):
    @of_memories("sync_memories_list", SyncListSchema, parameters=[NAMESPACE, AFTER], may=[404])
    def get(self, request: Request) -> object:
        """List the memories of a namespace that may leave, by id with their present version, 1,000 at a time.

        Confidential memories and memories of a pack may not leave.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request, "namespace", "after")
        after = request.query_params.get("after")
        return memories_list_for_peer(
            actor=actor,
            namespace=request.query_params.get("namespace", ""),
            after=read_uuid(after, "after", "an id of a memory") if after is not None else None,
        )


class SyncReadView(ApiView):
    @of_memories("sync_memories_read", SyncSentListSchema, request=SyncReadInput, may=[404])
    def post(self, request: Request) -> Response:
        """Read memories for another installation, with their versions and lineage.

        Memories with a secret, or that a sharing policy keeps from publishing, are left out.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        body = self.read_body()
        known = {read_uuid(text, "memories", "an id of a memory"): number for text, number in body["memories"].items()}
        sent = memories_open_for_peer(actor=actor, namespace=body["namespace"], known=known)
        return Response({"results": _first_results([sent_json(memory) for memory in sent])})


class SyncWriteView(ApiView):
    longest_body = LONGEST_CALL

    @of_memories("sync_memories_write", SyncAppliedListSchema, request=SyncWriteInput, may=[404])
    def post(self, request: Request) -> Response:
        """Store memories of another installation. Sending them again changes nothing.

        A change of a version that is no longer the present one is a conflict and is not stored.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        body = self.read_body()
        changes = [_read_change(f"changes.{index}", change) for index, change in enumerate(body["changes"])]
        applied = changes_apply(actor=actor, namespace=body["namespace"], changes=changes)
        return Response({"results": [applied_json(outcome) for outcome in applied]})


def _convert_direction(body: dict[str, Any]) -> dict[str, Any]:
    return body | ({"direction": SyncDirection(body["direction"])} if "direction" in body else {})


def _read_change(place: str, body: dict[str, Any]) -> Change:
    """Read the change. Raises Invalid."""
    sent = _read_sent(place, body["sent"]) if body["sent"] is not None else None
    return Change(sent, body["target"], body["base"])


def _read_sent(place: str, body: dict[str, Any]) -> Sent:
    """Read a memory sent by a peer. Raises Invalid."""
    try:
        sent = sent_read(body)
    except Conflict as fault:
        raise Invalid(errors=[FieldError(f"{place}.sent", "a memory as sync/memories/read/ answers it")]) from fault
    if sent.item is None:
        raise Invalid(errors=[FieldError(f"{place}.sent", sent.stays or "no memory")])
    return sent


def _first_results(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first results that fit into one response, at least one."""
    size, results_taken = 0, list[dict[str, Any]]()
    for result in results:
        size += measure_size(result)
        if results_taken and size > MOST_BYTES:
            break
        results_taken.append(result)
    return results_taken
