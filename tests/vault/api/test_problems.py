"""Tests of errors: RFC 9457, in the order of the contract, and never a 500."""

import json
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from governance.accounts.attempts import forget_local_attempts
from tests.factories import API, World
from tests.vault.api.contract import MISSING, Contract, check_problem, contract, fields_at_fault
from tests.vault.api.openapi import document
from tests.vault.forms.stored import form_add, proposal_add
from tests.vault.outbox import run_jobs

UNDER_API = "There is nothing at this address."


def test_a_problem_has_all_its_parts(alice: Contract) -> None:
    reply = alice.get(f"memories/{MISSING}/")
    check_problem(reply)
    assert reply.json["type"] == "urn:memos:problem:not_found"
    assert reply.json["code"] == "not_found"
    assert reply.json["title"]
    assert reply.json["request_id"] == reply.headers["X-Request-ID"]


CALLS: list[tuple[str, str]] = [
    ("GET", "memories/"),
    ("POST", "memories/"),
    ("POST", "memories/bulk/"),
    ("POST", "memories/search/"),
    ("GET", f"memories/{MISSING}/"),
    ("PATCH", f"memories/{MISSING}/"),
    ("DELETE", f"memories/{MISSING}/"),
    ("POST", f"memories/{MISSING}/restore/"),
    ("GET", f"memories/{MISSING}/versions/"),
    ("GET", "conversations/"),
    ("POST", "conversations/"),
    ("GET", f"conversations/{MISSING}/"),
    ("PATCH", f"conversations/{MISSING}/"),
    ("DELETE", f"conversations/{MISSING}/"),
    ("GET", f"conversations/{MISSING}/turns/"),
    ("POST", f"conversations/{MISSING}/turns/"),
    ("GET", "jobs/"),
    ("GET", f"jobs/{MISSING}/"),
    ("POST", f"jobs/{MISSING}/retry/"),
]


def test_without_a_key_every_call_answers_401_and_says_how(world: World) -> None:
    for key in (None, "", "nonsense", "mos_a_b", world.alice.key.text[:-1] + "!"):
        for method, address in CALLS:
            forget_local_attempts()  # wrong keys of one prefix are slowed down
            reply = Contract(key=key).send(method, address, {"speling": 1})
            assert (reply.status, reply.code) == (401, "unauthenticated"), (method, address, key)
            assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_me_is_refused_as_the_document_says(world: World) -> None:
    assert Contract(key=None).get("me/").status == 401
    assert Contract(key=world.alice.key.text).delete("me/").status == 405


def test_an_id_that_never_was_is_404_whatever_the_body(alice: Contract) -> None:
    for method, address in CALLS:
        if str(MISSING) in address:
            assert alice.send(method, address, {"speling": 1}, if_match='"1"').status == 404, (method, address)


def test_a_method_that_an_address_does_not_take_is_405_with_what_it_takes(alice: Contract) -> None:
    for method, address, allowed in (
        ("PUT", "memories/", {"GET", "POST"}),
        ("GET", "memories/search/", {"POST"}),
        ("GET", "memories/bulk/", {"POST"}),
        ("POST", f"memories/{MISSING}/", {"GET", "PATCH", "DELETE"}),
        ("DELETE", f"memories/{MISSING}/versions/", {"GET"}),
    ):
        reply = alice.send(method, address, {})
        assert (reply.status, reply.code) == (405, "method_not_allowed")
        assert allowed <= set(reply.headers["Allow"].split(", "))


def test_an_address_that_does_not_exist_is_a_problem_too(alice: Contract) -> None:
    for address in ("nothing/", "memories/not-an-id/", f"memories/{MISSING}/nothing/", "/api/", "/api/v2/memories/"):
        reply = alice.get(address)
        assert (reply.status, reply.code, reply.json["detail"]) == (404, "not_found", UNDER_API), address


def test_unknown_query_parameter_is_refused(world: World, alice: Contract) -> None:
    """Over every operation of the document, each on an object that is there; and nothing of it is done."""
    olivia = contract(world, "olivia")
    memory, turns = olivia.add("One: a@b.example.")["id"], olivia.post("conversations/", {}).json["id"]
    review = olivia.get("reviews/").json["results"][0]["id"]
    job = olivia.post("memories/?async=true", {"content": "Later.", "persona": "nobody"}).json["job"]["id"]
    export = olivia.post("audit/export/", {}).json["id"]
    exported = olivia.post("memories/actions/", {"action": "export", "ids": [memory]}).json["job"]["id"]
    run_jobs()
    rule = {"kind": "retention", "name": "rule", "document": {"grace_days": 1}}
    policy = olivia.post("policies/", rule).json["id"]
    hold = olivia.post("holds/", {"reason": "Case 17.", "subject": "carla"}).json["id"]
    invitation = olivia.post("invitations/", {"email": "new@acme.example", "role": "viewer"}).json["id"]
    ids = {
        "{invitation_id}": invitation,
        "{member_id}": str(world.bob.member.id),
        "{key_id}": str(world.bob.key.id),
        "{memory_id}": memory,
        "{relation_id}": memory,
        "{conversation_id}": turns,
        "{job_id}": job,
        "{policy_id}": policy,
        "{hold_id}": hold,
        "{review_id}": review,
    }
    sink = olivia.post("audit/sinks/", {"name": "s", "kind": "syslog", "address": "syslog+tls://log.example"}).json[
        "id"
    ]
    hook = olivia.post("webhooks/", {"url": "https://webhook.invalid/", "events": ["job.created"]}).json["id"]
    peer = {"name": "x", "address": "https://x.example", "key": "k", "namespace": "/x", "remote_namespace": "/x"}
    ids |= {"{peer_id}": olivia.post("sync/peers/", peer).json["id"]}
    schedule = olivia.post("schedules/", {"kind": "retention.apply", "cron": "0 3 * * *"}).json["id"]
    listing = olivia.post("views/", {"name": "of a test", "query": "q=x"}).json["id"]
    steps = {"name": "of a test", "steps": [{"op": "list"}]}
    ids |= {"{pipeline_id}": olivia.post("pipelines/", steps).json["id"]}
    ids |= {"{form_id}": str(form_add(world.olivia.actor, [UUID(memory)]).id)}
    ids |= {"{form_proposal_id}": str(proposal_add(world.olivia.actor, [UUID(memory)]).id)}
    subject = olivia.post("subjects/", {"reference": "of-a-test"}).json["id"]
    about_it = olivia.post(f"subjects/{subject}/export/").json["job"]["id"]
    run_jobs()
    ids |= {"{export_id}": export, "{sink_id}": sink, "{subject_id}": subject}
    ids |= _of_namespaces(olivia)
    sent = olivia.get(f"webhooks/{hook}/deliveries/").json["results"][0]["id"]
    ids |= {"{webhook_id}": hook, "{delivery_id}": sent}
    endpoint = olivia.post("models/", {"model": "tiny", "address": "https://model.example/v1"}).json["id"]
    ids |= {"{endpoint_id}": endpoint}
    ids |= {
        "{upload_id}": olivia.raw(
            "imports/uploads/?name=x.csv", b"id,content", content_type="application/octet-stream"
        ).json["id"]
    }
    ids |= {"{schedule_id}": schedule, "{view_id}": listing, "{number}": "1"}
    ids |= _of_packs(olivia, memory)
    ids |= _of_grants(olivia, memory, world.bob.member.id)
    for name, listed in (("{entry_id}", "audit/"), ("{checkpoint_id}", "audit/checkpoints/")):
        ids[name] = olivia.get(listed).json["results"][0]["id"]
    bodies = {"memories/": {"content": "x"}, "memories/bulk/": {"items": [{"content": "x"}]}}
    for path, operations in document()["paths"].items():
        address = path.removeprefix(API).replace("actions/{job_id}", f"actions/{exported}")
        address = address.replace("subjects/{subject_id}/exports/{job_id}", f"subjects/{subject}/exports/{about_it}")
        address = address.replace("exports/{job_id}", f"exports/{exported}")
        address = address.replace("{pack_id}/versions/{number}", "{pack_id}/versions/1.0.0")
        for name, value in ids.items():
            address = address.replace(name, value)
        for method in operations:
            body = bodies.get(address, {"query": "x"} if "search" in address else {"content": "x?", "title": "x"})
            reply = olivia.send(method.upper(), address + "?speling=1", body, if_match='"1"')
            assert fields_at_fault(reply) == {"speling"}, (method, address)
    assert sorted(olivia.list_contents()) == ["42", "One: [email].", "One: a@b.example."], (
        "the second is of the installed pack"
    )
    assert olivia.get(f"jobs/{job}/").json["status"] == "failed"
    assert olivia.get(f"holds/{hold}/").json["status"] == "active"
    assert fields_at_fault(olivia.post("memories/bulk/?async=true", bodies["memories/bulk/"])) == {"async"}


def _of_packs(olivia: Contract, memory: str) -> dict[str, str]:
    pack = olivia.post("packs/", {"name": "herons", "title": "Herons"}).json["id"]
    olivia.post(f"packs/{pack}/versions/", {"version": "1.0.0", "ids": [memory], "findings": "redact"})
    run_jobs()
    version = olivia.get(f"packs/{pack}/versions/1.0.0/").json["id"]
    publication = olivia.post("publications/", {"pack_version": version}).json["id"]
    subscription = olivia.post("subscriptions/", {"publication": publication}).json["subscription"]["id"]
    run_jobs()
    (installed,) = olivia.get("memories/?namespace=/packs/acme/herons").json["results"]
    change = {"memory": installed["id"], "content": "One, anew.", "reason": "It is shorter."}
    sent = olivia.post(f"subscriptions/{subscription}/proposals/", change).json["id"]
    run_jobs()
    return {
        "{proposal_id}": next(
            proposal["id"] for proposal in olivia.get("proposals/").json["results"] if proposal["id"] != sent
        ),
        "{pack_id}": pack,
        "{publication_id}": publication,
        "{subscription_id}": subscription,
        "{contract_id}": olivia.get("contracts/").json["results"][0]["id"],
    }


def _of_namespaces(olivia: Contract) -> dict[str, str]:
    namespace = olivia.post("namespaces/", {"path": "/team/results", "kind": "pipeline_cache"}).json["id"]
    olivia.add("42", namespace="/team/results", metadata={"key": "sum"})
    return {
        "{namespace_id}": namespace,
        "{mount_id}": olivia.post("mounts/", {"namespace": "/team/results", "task_id": "ticket-17"}).json["id"],
        "{session_id}": "of-a-test",
        "{key}": "sum",
    }


def _of_grants(olivia: Contract, memory: str, bob: UUID) -> dict[str, str]:
    body = {"principal": {"kind": "member", "id": str(bob)}, "object": {"type": "memory", "id": memory}}
    return {
        "{grant_id}": olivia.post("grants/", {**body, "action": "read"}).json["id"],
        "{persona_id}": olivia.post("personas/", {"name": "Nurse", "kind": "agent"}).json["id"],
        "{template_id}": olivia.post("role-templates/", {"name": "Nurses"}).json["id"],
    }


def test_invalid_query_parameter_is_reported_after_404_403_and_412(world: World, alice: Contract) -> None:
    memory = alice.add("One.", namespace="/team")["id"]
    bob = contract(world, "bob")
    for asked in ("?purge=maybe", "?dry_run=maybe", "?speling=1", "?purge=true&dry_run=maybe"):
        assert alice.delete(f"memories/{MISSING}/{asked}").status == 404, asked
        assert bob.delete(f"memories/{memory}/{asked}").status == 403, asked
        assert alice.delete(f"memories/{memory}/{asked}", if_match='"9"').status == 412, asked
        assert alice.delete(f"memories/{memory}/{asked}").status == 400, asked
    for address, status in ((f"memories/{MISSING}/restore/", 404), (f"jobs/{MISSING}/retry/", 404)):
        assert alice.post(address, idempotency_key="tab\there").status == status
    assert bob.post(f"memories/{memory}/restore/", idempotency_key="tab\there").status == 403
    assert alice.post(f"memories/{memory}/restore/", idempotency_key="tab\there").status == 400
    assert alice.list_contents() == ["One."]


BAD_BODIES = [
    b"{",
    b"",
    b'{"content": }',
    b'{"content": NaN}',
    b'{"content": "x", "importance": NaN}',
    b'{"content": "x", "importance": Infinity}',
    b'{"content": "x", "importance": 1e999}',
    b'{"content": "x", "ttl_seconds": 1e999}',
    b'{"content": "x", "metadata": {"a": 1e999}}',
    b'{"content": "\xff"}',
    b'{"content": "x"} {"content": "y"}',
    b"\x00",
]


def test_a_body_that_is_no_json_is_refused(alice: Contract) -> None:
    for body in BAD_BODIES:
        assert alice.raw("memories/", body).status == 400, body
    assert alice.list_contents() == []


def test_a_body_of_another_kind_is_refused(alice: Contract) -> None:
    for kind in (
        "text/plain",
        "application/xml",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
    ):
        assert alice.raw("memories/", b'{"content": "x"}', content_type=kind).status == 415, kind
    assert alice.list_contents() == []


def test_a_body_nested_too_deeply_is_refused(alice: Contract) -> None:
    for depth, status in ((50, 201), (100, 400), (450, 400), (900, 400), (50_000, 400)):
        nested = b"[" * depth + b"]" * depth
        body = b'{"content": "Deep %d.", "metadata": {"a": %s}}' % (depth, nested)
        assert alice.raw("memories/", body).status == status, depth
        calls = b'{"messages": [{"role": "assistant", "content": "", "tool_calls": [%s]}]}' % nested
        assert alice.raw("memories/", calls).status == status, depth
        search = b'{"query": "x", "filters": {"metadata.a": %s}}' % nested
        assert alice.raw("memories/search/", search).status in {200, 400}, depth


def test_what_is_nested_as_deeply_as_may_be_goes_through_a_job(alice: Contract) -> None:
    nested: list[Any] = []
    for _ in range(60):
        nested = [nested]
    assert alice.post("memories/?async=true", {"content": "Deep.", "metadata": {"a": nested}}).status == 202
    run_jobs()
    assert alice.get("memories/").json["results"][0]["metadata"] == {"a": nested}


def test_numbers_and_times_at_the_edge_are_no_failure_of_ours(alice: Contract) -> None:
    values: list[Any] = [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        10**400,
        -1,
        {},
    ]
    for value in values:
        for field in ("event_time", "valid_from", "expires_at", "ttl_seconds", "importance"):
            reply = alice.post("memories/", {"content": "Edge.", field: value, "allow_duplicates": True})
            assert reply.status in {201, 400}, (field, value)
        assert alice.post("memories/search/", {"query": "edge", "as_of": value}).status in {200, 400}, value
        filters = {"event_time": {"gte": value}, "importance": {"lt": value}}
        assert alice.post("memories/search/", {"query": "edge", "filters": filters}).status in {200, 400}, value
    assert alice.get("memories/").status == 200


def test_a_page_that_was_not_given_out_is_refused(alice: Contract) -> None:
    for list_ in ("memories/", "conversations/", "jobs/", f"memories/{alice.add('One.')['id']}/versions/"):
        for cursor in ("nonsense", "cD1ub25zZW5zZQ%3D%3D", "bz0tMQ%3D%3D"):  # no base64; p=nonsense; o=-1
            assert fields_at_fault(alice.get(f"{list_}?cursor={cursor}")) == {"cursor"}, (list_, cursor)


def test_the_search_body_is_only_read_after_the_right_to_search(ada: Contract) -> None:
    for method, address in CALLS:
        if address.startswith("memories/") and str(MISSING) not in address:
            assert ada.send(method, address, {"speling": 1}).status == 403, (method, address)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_session_without_its_token_changes_nothing(world: World, method: str) -> None:
    """Cookies alone are no permission to write; and without a key or a session there is nobody."""
    response = Client(enforce_csrf_checks=True).generic(
        method, "/api/v1/memories/", data=json.dumps({"content": "x"}), content_type="application/json"
    )
    assert response.status_code == 401
