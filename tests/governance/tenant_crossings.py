"""Every address of the product, asked for with another tenant's ids in every place where an id may stand."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any
from uuid import UUID

import psycopg
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.factories import Person, client_for
from tests.governance.filled_tenants import Filled
from tests.governance.tables import first_row
from tests.governance.web.visitors import signed_in
from tests.vault.api.openapi import document

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
WHO = ("session", "key", "anonymous", "foreign key")
PLACES = ("path", "query", "body", "cursor", "headers")
API = "api/v1/"
PARAMETER = re.compile(r"<\w+:(\w+)>")
TABLES = {
    "checkpoint_id": "governance_auditcheckpoint",
    "contract_id": "vault_contract",
    "conversation_id": "vault_conversation",
    "endpoint_id": "vault_modelendpoint",
    "entry_id": "governance_auditentry",
    "export_id": "governance_job",
    "form_id": "vault_memoryform",
    "form_proposal_id": "vault_formproposal",
    "grant_id": "vault_cubegrant",
    "hold_id": "vault_hold",
    "invitation_id": "governance_invitation",
    "job_id": "governance_job",
    "key_id": "governance_apikey",
    "member_id": "governance_member",
    "mount_id": "vault_mount",
    "namespace_id": "vault_namespace",
    "memory_id": "vault_cube",
    "object_id": "vault_cube",
    "pack_id": "vault_pack",
    "peer_id": "vault_syncpeer",
    "persona_id": "governance_persona",
    "policy_id": "governance_policy",
    "proposal_id": "vault_packproposal",
    "pipeline_id": "vault_pipeline",
    "publication_id": "vault_publication",
    "report_id": "vault_packreport",
    "review_id": "vault_review",
    "schedule_id": "governance_schedule",
    "segment_id": "vault_segment",
    "receipt_id": "governance_datasubject",
    "sink_id": "governance_auditsink",
    "subject_id": "governance_datasubject",
    "subscription_id": "vault_subscription",
    "relation_id": "vault_cubelink",
    "template_id": "governance_roletemplate",
    "turn_id": "vault_turn",
    "upload_id": "vault_upload",
    "view_id": "vault_savedview",
    "webhook_id": "governance_webhook",
    "delivery_id": "governance_webhookdelivery",
}
# A session is its person's, not a tenant's; a token is a secret, of which there is nothing to know beforehand.
OTHERS = {
    "address": "mcp",
    "form": "json",
    "key": "memory_id",
    "kind": "retention",
    "number": "1",
    "name": "memory_id",
    "object_type": "memory",
    "publisher": "",
    "session_id": "memory_id",
    "slug": "",
    "tenant_id": "",
    "token": "memory_id",
}
# What ends something of one's own would leave nothing to ask for: there one's own id is replaced by an unknown one.
ENDING = re.compile(r"delete|remove|revoke|end|rotate|purge|release|reject|accept|role")
OF_THE_REQUEST = re.compile(r'"request_id":\s*"[^"]*"|request_id: \S+|Request <code>[^<]*|value="[^"]*"|nonce="[^"]*"')
SIGNING = re.compile(r"^(sign-|account/|reset/|invitation/)")
FORM_NAMES = {"member": "member_id", "holder": "member_id", "reason": "memory_id", "persona": "persona_id"}
FORM_TEXTS = {"name": "a", "content": "a", "title": "a", "role": "viewer", "kind": "member", "action": "read"}
NAMED = {
    "id": "memory_id",
    "ids": "memory_id",
    "member": "member_id",
    "memory_id": "memory_id",
    "message_id": "memory_id",
    "object_id": "memory_id",
    "parents": "memory_id",
    "pack_version": "pack_id",
    "publication": "publication_id",
    "persona": "persona_id",
    "agent_persona": "persona_id",
    "personas": "persona_id",
    "principal_id": "member_id",
    "reason": "memory_id",
    "session_id": "conversation_id",
    "subject": "memory_id",
    "task_id": "job_id",
}
WRAPPED = {
    "holder": {"kind": "member", "id": "member_id"},
    "principal": {"kind": "member", "id": "member_id"},
    "object": {"type": "memory", "id": "memory_id"},
}


@dataclass(frozen=True)
class Ids:
    """The ids that a caller may know of a tenant: for each parameter an id, and the names that its people use."""

    of: Mapping[str, str]
    slug: str
    path: str
    cursors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    who: str
    method: str
    route: str
    place: str


@dataclass(frozen=True)
class Heard:
    status: int
    body: str
    sent: str

    def comparable(self, *known: Ids) -> tuple[int, str]:
        """Return the reply without what always differs: the request's id, and the requested object (`known`).

        What succeeded is compared by its status alone: it made, or listed, something of the asker's own. So are
        the pages of one's own sessions, of which every signing in makes one more.
        """
        if self.status < 400 or "/account/" in self.sent:
            return self.status, ""
        text = OF_THE_REQUEST.sub("", self.body)
        for ids in known:
            for id in (*ids.of.values(), ids.path):
                text = text.replace(id, "")
        return self.status, text


def routes(resolver: URLResolver | None = None, before: str = "") -> Iterator[str]:
    """Every address that the product answers."""
    for pattern in (resolver or get_resolver()).url_patterns:
        here = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, here)
        elif isinstance(pattern, URLPattern):
            yield here


def list_unknown_addresses(addresses: list[str]) -> list[str]:
    """The addresses that name something of which nobody has said what a foreign one is."""
    return [address for address in addresses if set(PARAMETER.findall(address)) - set(TABLES) - set(OTHERS)]


def asks(random: Random) -> list[Ask]:
    """All of them: first one of every address and method, then the rest, in an order of chance."""
    every = [Ask(*ask) for ask in product(WHO, METHODS, sorted(set(routes())), PLACES)]
    random.shuffle(every)
    seen = Counter[tuple[str, str]]()
    ranked = []
    for ask in every:
        ranked.append((seen[ask.route, ask.method], ask))
        seen[ask.route, ask.method] += 1
    return [ask for _, ask in sorted(ranked, key=lambda pair: pair[0])]


def ids_of(root: psycopg.Connection, filled: Filled, slug: str) -> Ids:
    """The first row of each kind that the tenant has, and the cursors of its lists."""
    tenant_id = filled.person.actor.tenant_id
    found = {name: str(first_row(root, table, "tenant_id", tenant_id)["id"]) for name, table in TABLES.items()}
    return Ids(found | {"tenant_id": str(tenant_id)}, slug, f"/{filled.canary}", _cursors(filled.person))


def ids_unknown(random: Random) -> Ids:
    """As many ids that never were."""
    made = {name: str(UUID(int=random.getrandbits(128), version=4)) for name in (*TABLES, "tenant_id")}
    return Ids(made, f"t{random.getrandbits(40):x}", f"/{random.getrandbits(40):x}")


def _cursors(person: Person) -> dict[str, str]:
    client, found = client_for(person.key.text), {}
    for route in sorted(set(routes())):
        if route.startswith(API) and not PARAMETER.search(route):
            reply = client.get(f"/{route}?page_size=1")
            following = reply.json.get("next") if reply.status == 200 and isinstance(reply.json, dict) else None
            if following:
                found[route] = following.partition("cursor=")[2].partition("&")[0]
    return found


class RequestingTenant:
    """The tenant that asks (`own`), in a browser and by key, and the key of a third one."""

    def __init__(self, person: Person, own: Ids, foreign_key: str, unknown: Ids) -> None:
        self.person, self.own, self.unknown = person, own, unknown
        self.keys = {"key": person.key.text, "foreign key": foreign_key}
        self.browser = signed_in(person)

    def ask(self, ask: Ask, ids: Ids) -> Heard:
        """One request with `ids` in the place that is asked about, and one's own elsewhere."""
        inside = ids if ask.place == "path" else self._own_ids(ask)
        address = "/" + fill_in(ask.route, inside)
        asked = _query(ask, ids) if ask.place in {"query", "cursor"} else ""
        body, kind = _body(ask, ids if ask.place == "body" else self.unknown)
        client = self.browser if ask.who == "session" else Client(raise_request_exception=False)
        response = client.generic(ask.method, address + asked, body, kind, headers=self._headers(ask, ids))
        if ask.who == "session" and ask.method == "POST" and SIGNING.match(ask.route):
            self.browser = signed_in(self.person)
        return Heard(response.status_code, text_of(response), address + asked + body)

    def _own_ids(self, ask: Ask) -> Ids:
        return self.unknown if ask.method == "DELETE" or ENDING.search(ask.route) else self.own

    def _headers(self, ask: Ask, ids: Ids) -> dict[str, str]:
        sent = {"authorization": f"Bearer {self.keys[ask.who]}"} if ask.who in self.keys else {}
        if ask.route.endswith("turns/") and ask.place == "headers":
            sent["accept"] = "text/event-stream"
        if ask.place == "headers":
            sent |= {
                "x-memory-session": ids.of["conversation_id"],
                "x-memory-task": ids.of["job_id"],
                "x-memory-purpose": ids.of["policy_id"],
                "x-request-id": ids.of["entry_id"],
                "hx-request": "true",
            }
        if ask.place == "headers" and ask.route == f"{API}memories/":
            sent["idempotency-key"] = ids.path[1:]  # as `fill` has used it; elsewhere one's own calls would meet
        return sent


def fill_in(route: str, ids: Ids) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name in {"slug", "publisher"}:
            return ids.slug
        return ids.of[name] if name in ids.of else ids.of.get(OTHERS[name], OTHERS[name])

    return PARAMETER.sub(value, route)


def _query(ask: Ask, ids: Ids) -> str:
    if ask.place == "cursor":
        return f"?page_size=2&cursor={ids.cursors.get(ask.route) or next(iter(ids.cursors.values()), 'x')}"
    known = {"namespace": ids.path, "tags": f"{ids.path[1:]}-tag", "speaker": ids.path[1:]}
    known |= {name: ids.of[key] for name, key in NAMED.items()} | {"after": ids.of["entry_id"]}
    known |= {"object": ids.of["memory_id"], "principal": ids.of["member_id"], "request_id": ids.of["entry_id"]}
    if not ask.route.startswith(API):
        del known["speaker"]  # a page repeats it as it was typed
    if ask.route.startswith(API):
        documented = _operation(ask).get("parameters", [])
        known = {parameter["name"]: known[parameter["name"]] for parameter in documented if parameter["name"] in known}
    return "?" + "&".join(f"{name}={value}" for name, value in known.items())


def _body(ask: Ask, ids: Ids) -> tuple[str, str]:
    if ask.method in {"GET", "HEAD", "OPTIONS"}:
        return "", "application/json"
    if not ask.route.startswith(API):
        form = FORM_TEXTS | {name: ids.of[key] for name, key in FORM_NAMES.items()} | {"organisation": ids.slug}
        return "&".join(f"{name}={value}" for name, value in form.items()), "application/x-www-form-urlencoded"
    content = _operation(ask).get("requestBody", {}).get("content", {}).get("application/json", {})
    made = _make_value("", content.get("schema", {}), ids)
    if ask.route.endswith("search/") and isinstance(made, dict):
        made |= {"query": f"the {ids.path[1:]} sings", "namespaces": [ids.path]}
    return json.dumps(made), "application/json"


def _operation(ask: Ask) -> dict[str, Any]:
    path = document()["paths"].get("/" + PARAMETER.sub(r"{\1}", ask.route), {})
    found: dict[str, Any] = path.get(ask.method.lower(), {})
    return found


def _make_value(name: str, schema: dict[str, Any], ids: Ids) -> Any:
    """A value that the document allows, with foreign ids wherever one may stand."""
    schema = _resolve(schema)
    if name in WRAPPED:
        return {key: ids.of.get(value, value) for key, value in WRAPPED[name].items()}
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        return [_make_value(name, schema.get("items", {}), ids)]
    if kind == "object" or "properties" in schema:
        required = {*schema.get("required", []), *NAMED, *WRAPPED}
        parts = {key: part for key, part in schema.get("properties", {}).items() if key in required}
        return {key: _make_value(key, part, ids) for key, part in parts.items() if not part.get("readOnly")}
    if name in NAMED:
        return ids.of[NAMED[name]]
    return {"integer": 1, "number": 0.5, "boolean": False}.get(str(kind), "a")


def _resolve(schema: dict[str, Any]) -> dict[str, Any]:
    for several in ("allOf", "oneOf", "anyOf"):
        if schema.get(several):
            return _resolve(schema[several][0])
    if "$ref" in schema:
        return _resolve(document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    return schema


def text_of(response: Any) -> str:
    """Body and headers: an address to go to next may tell, too."""
    if not response.streaming:
        whole = response.content
    else:
        whole = async_to_sync(_read_body)(response) if response.is_async else b"".join(response)
    heads = "".join(f"{name}: {value}\n" for name, value in response.headers.items() if name in {"Location", "ETag"})
    return heads + str(whole, errors="replace")


async def _read_body(response: Any) -> bytes:
    return b"".join([block async for block in response.streaming_content])
