"""REST views of api-keys/."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.fields import StrictSerializer, TextField, TimeField
from governance.api.pages import show_page
from governance.api.schema import Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.apikeys.requests import key_requests_list
from governance.apikeys.selectors import apikey_get, apikeys_list, key_view
from governance.apikeys.services import KeyChanges, apikey_revoke, apikey_rotate, apikey_update
from governance.errors import FieldError, Invalid, NotFound
from governance.idempotency.services import Reply
from governance.members.selectors import member_get
from governance.tenants.bonds import LONGEST_PURPOSE, MOST_NAMESPACES, KeyBonds
from governance.tenants.services import apikey_create
from governance.vocabulary import Permission, PersonaKind, Scope

if TYPE_CHECKING:
    from governance.models import Member

TAG = "api-keys"
LONGEST_NAME = 100


class MemberOfKeySchema(Schema):
    id = serializers.UUIDField(source="member_id")
    email = serializers.CharField(source="member_email")


class PersonaOfKeySchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(PersonaKind))


class KeySchema(Schema):
    """An API key without its text. previous_until: the end of the time in which the text before a rotation works."""

    id = serializers.UUIDField()
    prefix = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    member = MemberOfKeySchema(source="*")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=list(Scope)))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    rotated_at = serializers.DateTimeField(allow_null=True)
    previous_until = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="Up to 5 minutes behind.")
    persona = PersonaOfKeySchema(allow_null=True)
    namespaces = serializers.ListField(child=serializers.CharField())
    purpose = serializers.CharField(allow_blank=True)


class NewKeySchema(KeySchema):
    """A new API key. Only this response contains its text, `api_key`."""

    api_key = serializers.CharField()


class KeyRequestSchema(Schema):
    """An answered request of an API key. route: the pattern of the address, without ids and query."""

    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    method = serializers.CharField()
    route = serializers.CharField()
    status = serializers.IntegerField()
    milliseconds = serializers.IntegerField(help_text="Until the response began.")


class BondsInput(StrictSerializer):
    persona = TextField(
        max_length=200,
        required=False,
        allow_null=True,
        help_text="An agent or a persona of the key's member, by id or name: the key sees and writes as it alone.",
    )
    namespaces = serializers.ListField(
        child=TextField(max_length=200),
        max_length=MOST_NAMESPACES,
        required=False,
        help_text="Paths: the key sees and writes there and below alone, and to the first where a call names none.",
    )
    purpose = TextField(
        max_length=LONGEST_PURPOSE,
        required=False,
        allow_blank=True,
        help_text="Of all its calls; one that names another is refused.",
    )


class KeyInput(BondsInput):
    member = serializers.UUIDField(required=False, help_text="Whose key; default: the caller's own.")
    name = TextField(max_length=LONGEST_NAME, required=False, allow_blank=True)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=list(Scope)), min_length=1, max_length=len(Scope)
    )
    expires_at = TimeField(required=False, allow_null=True)


class KeyChangesInput(BondsInput):
    name = TextField(max_length=LONGEST_NAME, required=False, allow_blank=True)
    expires_at = TimeField(required=False, allow_null=True)


class RotateInput(StrictSerializer):
    overlap_seconds = serializers.IntegerField(
        min_value=0, max_value=settings.KEY_LONGEST_OVERLAP_SECONDS, required=False
    )


class KeysView(ApiView):
    @describe("apikeys_list", page_of(KeySchema), tag=TAG, parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the tenant's API keys, newest first, without their text."""
        return show_page(self, apikeys_list)

    @describe("apikeys_create", NewKeySchema, tag=TAG, status=201, request=KeyInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Create an API key. Only this response contains its text."""
        actor = self.actor()
        authorize(actor, Permission.APIKEY_MANAGE)
        body = self.read_body()
        member = self._member(body.get("member"))

        def call() -> Reply:
            made = apikey_create(
                actor=actor,
                member=member,
                scopes=[Scope(scope) for scope in body["scopes"]],
                name=body.get("name", ""),
                expires_at=body.get("expires_at"),
                bonds=_bonds(body),
            )
            view = key_view(apikey_get(actor=actor, key_id=made.id))
            return Reply(201, {**KeySchema.json(view), "api_key": made.text}, shows=(made.id,))

        return self.post_once(call)

    def _member(self, member_id: UUID | None) -> "Member":
        actor = self.actor()
        wanted = member_id or actor.member_id
        try:
            if wanted is None:
                raise NotFound
            return member_get(actor=actor, member_id=wanted)
        except NotFound as error:
            raise Invalid(errors=[FieldError("member", "no member of yours has this id")]) from error


class KeyView(ApiView):
    @describe("apikeys_get", KeySchema, tag=TAG, may=[404])
    def get(self, request: Request, key_id: UUID) -> object:
        """Read one API key."""
        row = apikey_get(actor=self.actor(), key_id=key_id)
        refuse_unknown_parameters(request)
        return key_view(row)

    @describe("apikeys_update", KeySchema, tag=TAG, request=KeyChangesInput, may=[404, 409])
    def patch(self, request: Request, key_id: UUID) -> object:
        """Rename an API key, or change its end or bindings.

        `null`, an empty list and an empty text remove a binding.
        """
        actor = self.actor()
        apikey_get(actor=actor, key_id=key_id)
        body = self.read_body()
        changes = KeyChanges(
            given=frozenset(body),
            name=body.get("name", ""),
            expires_at=body.get("expires_at"),
            bonds=_bonds(body),
        )
        return apikey_update(actor=actor, key_id=key_id, changes=changes)

    @describe("apikeys_revoke", None, tag=TAG, status=204, may=[404, 409])
    def delete(self, request: Request, key_id: UUID) -> None:
        """Revoke an API key: its next request is refused."""
        actor = self.actor()
        apikey_get(actor=actor, key_id=key_id)
        self.read_body()
        apikey_revoke(actor=actor, key_id=key_id)


class KeyRotateView(ApiView):
    @describe("apikeys_rotate", NewKeySchema, tag=TAG, request=RotateInput, parameters=[ONCE], may=[404])
    def post(self, request: Request, key_id: UUID) -> Response:
        """Replace the secret of an API key. The former one works for another `overlap_seconds` (default: a day)."""
        actor = self.actor()
        apikey_get(actor=actor, key_id=key_id)
        body = self.read_body()
        overlap = timedelta(seconds=body.get("overlap_seconds", settings.KEY_OVERLAP_SECONDS))

        def call() -> Reply:
            made = apikey_rotate(actor=actor, key_id=key_id, overlap=overlap)
            return Reply(200, {**KeySchema.json(made.view), "api_key": made.text}, shows=(made.view.id,))

        return self.post_once(call)


class KeyRequestsView(ApiView):
    @describe("apikeys_requests", page_of(KeyRequestSchema), tag=TAG, parameters=PAGE, may=[404])
    def get(self, request: Request, key_id: UUID) -> object:
        """List the last requests of an API key, newest first: route, status and latency, no content.

        For those who manage keys, and for the key's member. Requests appear after some seconds and stay for 7 days.
        """
        return show_page(self, key_requests_list, key_id=key_id)


def _bonds(body: dict[str, Any]) -> KeyBonds:
    return KeyBonds(body.get("persona"), tuple(body.get("namespaces", ())), body.get("purpose", ""))
