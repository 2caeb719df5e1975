"""mounts/ and sessions/ of the REST API, and the entries of a pipeline cache."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.fields import FlagField, StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema
from governance.api.pages import show_page
from governance.api.schema import NullTextField, Schema
from governance.api.views import ApiView
from governance.errors import FieldError, Invalid
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission
from vault.api.inputs import make_label_field
from vault.api.schema import NamedSchema, NamespaceSchema
from vault.jobs.sessions import session_end_ask, session_end_later
from vault.listing.entries import entry_find
from vault.namespaces.mounts import (
    LONGEST_TASK,
    MountDraft,
    mount_create,
    mount_create_ask,
    mount_remove,
    mounts_list,
)

LONGEST_SESSION = 200


class MountInput(StrictSerializer):
    """A namespace, and exactly one of: a persona, a conversation, a task."""

    namespace = TextField(max_length=200, help_text="Its path.")
    persona = make_label_field(help_text="Id or name of a persona.")
    conversation = serializers.UUIDField(required=False, help_text="One of the caller's own.")
    task_id = TextField(max_length=LONGEST_TASK, required=False, help_text="As in X-Memory-Task.")
    writable = FlagField(required=False, help_text="Default: false: what is done there does not write in it.")


class MountSchema(Schema):
    id = serializers.UUIDField(source="mount.id")
    namespace = NamespaceSchema(source="mount.namespace")
    persona = NamedSchema(source="mount.persona", allow_null=True)
    conversation = serializers.UUIDField(source="mount.conversation_id", allow_null=True)
    task_id = NullTextField()
    writable = serializers.BooleanField(source="mount.writable")
    created_at = serializers.DateTimeField(source="mount.created_at")


class EntrySchema(Schema):
    memory_id = serializers.UUIDField(source="id")
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)


class MountsView(ApiView):
    @describe("mounts_list", page_of(MountSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the mounts of the caller's personas and conversations, and of tasks, newest first."""
        authorize(self.actor(), Permission.MEMORY_READ)
        return show_page(self, mounts_list)

    @describe("mounts_create", MountSchema, status=201, request=MountInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request) -> Response:
        """Mount a namespace: searches of a persona, a conversation or a task include it. A mount grants no right."""
        actor = self.actor()
        body = self.read_body(lambda: mount_create_ask(actor=actor))
        draft = MountDraft(
            namespace=body["namespace"],
            persona_id=persona_get(actor=actor, reference=body["persona"]).id if "persona" in body else None,
            conversation_id=body.get("conversation"),
            task_id=body.get("task_id", ""),
            writable=body.get("writable", False),
        )
        return self.post_once(lambda: mount_create(actor=actor, draft=draft))


class MountDetailView(ApiView):
    @describe("mounts_delete", None, status=204, may=[404])
    def delete(self, request: Request, mount_id: UUID) -> None:
        """Unmount a namespace. Memories and rights do not change."""
        self.read_body()
        mount_remove(actor=self.actor(), mount_id=mount_id)


class SessionEndView(ApiView):
    @describe("sessions_end", JobPromiseSchema, status=202, request=None, parameters=[ONCE])
    def post(self, request: Request, session_id: str) -> Response:
        """End a session, as a job that deletes its agents' memories in a context pool."""
        actor = self.actor()
        self.read_body(
            lambda: session_end_ask(actor=actor, session_id=session_id), lambda _: _check_session(session_id)
        )
        return self.post_once(lambda: session_end_later(actor=actor, session_id=session_id))


class EntryView(ApiView):
    @describe("namespaces_entry", EntrySchema, may=[404])
    def get(self, request: Request, namespace_id: UUID, key: str) -> object:
        """Read the entry of a pipeline cache with this key. A later entry with the key replaces it."""
        return entry_find(actor=self.actor(), namespace_id=namespace_id, key=key)


def _check_session(session_id: str) -> None:
    if len(session_id) > LONGEST_SESSION or "\x00" in session_id:
        raise Invalid(errors=[FieldError("session_id", f"at most {LONGEST_SESSION} characters")])
