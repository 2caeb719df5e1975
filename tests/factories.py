"""Two tenants and their people, made by the real services: acme, where most happens, and one that must see nothing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import async_to_sync
from django.test import Client

from governance.actor import Actor, CallContext
from governance.database import acting, database_now
from governance.models import Member, Tenant
from governance.tenants.selectors import actor_by_key
from governance.tenants.services import NewKey, apikey_create, command_line_actor, member_add, tenant_create
from governance.vocabulary import Channel, PrincipalKind, RoleName, Scope

API = "/api/v1/"
REQUEST_ID = "request-of-a-test"


@dataclass(frozen=True)
class Person:
    """A member, what they act as in a browser (`actor`), and an API key of theirs with every scope."""

    member: Member
    role: RoleName
    email: str
    actor: Actor
    key: NewKey

    def key_actor(self) -> Actor:
        """The same person, acting by their API key."""
        context = CallContext(channel=Channel.API)
        return actor_by_key(presented=self.key.text, request_id=REQUEST_ID, context=context)


@dataclass(frozen=True)
class World:
    """acme: olivia (owner), alice (editor), bob (viewer), ada (auditor); other: charlie (owner)."""

    acme: Tenant
    other: Tenant
    olivia: Person
    alice: Person
    bob: Person
    ada: Person
    charlie: Person

    def person(self, name: str) -> Person:
        found = getattr(self, name)
        assert isinstance(found, Person)
        return found

    def client(self, name: str) -> "ApiClient":
        """The REST API as the person with this name."""
        return client_for(self.person(name).key.text)


def world() -> World:
    """Found both tenants in the empty database of this test."""
    acme, olivia = tenant_create(slug="acme", name="Acme", owner_email="olivia@acme.example")
    other, charlie = tenant_create(slug="other", name="Other", owner_email="charlie@other.example")
    return World(
        acme=acme,
        other=other,
        olivia=_person(olivia, RoleName.OWNER, "olivia@acme.example"),
        alice=person_add(acme, "alice@acme.example", RoleName.EDITOR),
        bob=person_add(acme, "bob@acme.example", RoleName.VIEWER),
        ada=person_add(acme, "ada@acme.example", RoleName.AUDITOR),
        charlie=_person(charlie, RoleName.OWNER, "charlie@other.example"),
    )


def person_add(tenant: Tenant, email: str, role: RoleName) -> Person:
    """One more member of `tenant`, with a key."""
    member = member_add(actor=command_line_actor(tenant.id), email=email, role=role)
    return _person(member, role, email)


def database_time(world: World) -> str:
    """The database's time now, in RFC 3339."""
    with acting(world.olivia.actor):
        return database_now().isoformat()


def key_for(person: Person, *scopes: Scope) -> NewKey:
    """Another key of `person`, with just these scopes."""
    actor = command_line_actor(person.member.tenant_id)
    return apikey_create(actor=actor, member=person.member, scopes=scopes, name="of a test")


def actor_of(member: Member, scopes: frozenset[Scope] | None = None, *, role: RoleName | None = None) -> Actor:
    """`member` signed in to a browser; with `scopes`, limited as a key would be. `role`: the member's by default."""
    return Actor(
        tenant_id=member.tenant_id,
        principal_kind=PrincipalKind.MEMBER,
        principal_id=member.id,
        member_id=member.id,
        role=role or RoleName(member.role.name),
        scopes=scopes,
        request_id=REQUEST_ID,
        context=CallContext(channel=Channel.WEB),
    )


def _person(member: Member, role: RoleName, email: str) -> Person:
    actor = command_line_actor(member.tenant_id)
    key = apikey_create(actor=actor, member=member, scopes=list(Scope), name="of a test")
    return Person(member=member, role=role, email=email, actor=actor_of(member, role=role), key=key)


@dataclass(frozen=True)
class ApiReply:
    """The response of the API; `json` is None without a JSON body."""

    status: int
    json: Any
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def code(self) -> str:
        """The stable code of a problem."""
        return str(self.json["code"])


@dataclass(frozen=True)
class ApiClient:
    """Speaks JSON to the API in this process. Addresses are relative to /api/v1/ unless they begin with a slash."""

    key: str | None = field(repr=False)

    def get(self, address: str, **headers: str) -> ApiReply:
        return self.send("GET", address, None, **headers)

    def post(self, address: str, body: Any = None, **headers: str) -> ApiReply:
        return self.send("POST", address, body, **headers)

    def patch(self, address: str, body: Any = None, **headers: str) -> ApiReply:
        return self.send("PATCH", address, body, **headers)

    def delete(self, address: str, **headers: str) -> ApiReply:
        return self.send("DELETE", address, None, **headers)

    def send(self, method: str, address: str, body: Any, **headers: str) -> ApiReply:
        """`headers`: names with underscores, as in if_match='"1"'."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            sent.setdefault("authorization", f"Bearer {self.key}")
        response = Client(headers=sent, raise_request_exception=False).generic(
            method,
            address if address.startswith("/") else API + address,
            data=b"" if body is None else json.dumps(body).encode(),
            content_type="application/json",
        )
        content = async_to_sync(_whole)(response) if response.streaming else response.content
        kind = response.headers.get("Content-Type", "")
        parsed = json.loads(content) if content and kind.partition(";")[0].endswith("json") else None
        return ApiReply(status=response.status_code, json=parsed, headers=dict(response.headers), body=content)


async def _whole(response: Any) -> bytes:
    """The body of a stream; its steps run in this thread, on the connection of the test."""
    return b"".join([block async for block in response.streaming_content])


def client_for(key: str | None) -> ApiClient:
    """The API as the holder of `key`; None: as nobody."""
    return ApiClient(key=key)
