"""Errors that an integrator meets: each says in plain words what is wrong, and what would be right."""

from typing import Any

import pytest

from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract

DAY = "2026-01-31"
ROLES = "one of owner, admin, editor, viewer, auditor is needed"


def policy(kind: str, **document: Any) -> dict[str, Any]:
    return {"kind": kind, "name": "one", "document": document}


FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("invitations/", {"email": "ann@acme.example", "role": "king"}, "role", ROLES),
    ("policies/", policy("retention"), "document", "set a default life, a longest life or a time for restoring"),
    ("policies/", policy("retention", ttl_seconds=0), "document.ttl_seconds", "1 or more is needed"),
    ("policies/", policy("retention", ttl_seconds=0.5), "document.ttl_seconds", "a whole number is needed"),
    ("policies/", policy("retention", life=1), "document.life", "unknown field: remove it, or correct its name"),
    ("policies/", policy("pii", action="king"), "document.action", "one of allow, flag, redact or refuse is needed"),
    ("policies/", policy("purpose", where={}, purposes=[""]), "document.purposes", "1 characters or more are needed"),
    (
        "schedules/",
        {"kind": "king", "cron": "0 3 * * *"},
        "kind",
        "one of audit.export, behaviour.update, conflicts.propose, form.propose, fusions.propose, index.check, "
        "lifecycle.sweep, memories.export, memories.sync, pipeline.run, retention.apply, summaries.write, tiers.apply",
    ),
    ("memories/", {"content": "x", "tags": "red"}, "tags", "a list is needed"),
    ("memories/", {"content": "x", "ttl_seconds": 0.5}, "ttl_seconds", "a whole number is needed"),
]


@each_case(("address", "body", "field", "message"), FAULTS)
def test_wrong_field_is_named_with_what_it_needs(
    olivia: Contract, address: str, body: dict[str, Any], field: str, message: str
) -> None:
    reply = olivia.post(address, body)
    assert reply.status == 400
    assert {"field": field, "message": message} in reply.json["errors"]


def test_settings_of_a_schedule_are_refused_in_the_words_of_the_other_errors(olivia: Contract) -> None:
    body = {"kind": "audit.export", "cron": "0 3 * * *", "settings": {"colour": "red"}}
    (fault,) = olivia.post("schedules/", body).json["errors"]
    assert fault["field"] == "settings.colour"
    assert fault["message"].startswith("unknown field; known are ")


def test_a_field_or_parameter_that_is_unknown_is_answered_with_the_nearest_name(olivia: Contract) -> None:
    (fault,) = olivia.post("memories/search/", {"query": "otters", "namespace": ["/team"]}).json["errors"]
    assert fault["message"].endswith(". Did you mean namespaces?")
    (fault,) = olivia.get("memories/?personas=x").json["errors"]
    assert fault["message"].endswith(". Did you mean persona?")
    (fault,) = olivia.get("memories/?zzz=1").json["errors"]
    assert "Did you mean" not in fault["message"]


@pytest.mark.parametrize("header", ["1", "abc", "1,2"])
def test_etag_without_quotes_is_malformed_and_not_another_version(alice: Contract, header: str) -> None:
    memory = alice.add("One.")["id"]
    reply = alice.patch(f"memories/{memory}/", {"title": "x"}, if_match=header)
    assert (reply.status, reply.code) == (400, "invalid_etag")
    assert reply.json["detail"] == 'Write If-Match with quotes, as in "1".'


def test_every_filter_takes_a_date_and_a_time(world: World, olivia: Contract, alice: Contract) -> None:
    alice.add("One.", event_time=f"{DAY}T12:00:00Z")
    for moment in (DAY, f"{DAY}T00:00:00Z", f"{DAY}T00:00:00%2B01:00"):
        for address in (
            f"memories/?created_after={moment}",
            f"memories/facets/?created_before={moment}",
            f"audit/?from={moment}",
            f"audit/permission-changes/?from={moment}",
        ):
            assert olivia.get(address).status == 200, (address, moment)
    for moment in (DAY, f"{DAY}T00:00:00Z"):
        for field in ("event_time", "created_at", "valid_from", "expires_at"):
            search = {"query": "one", "filters": {field: {"gte": moment}}}
            assert alice.post("memories/search/", search).status == 200, (field, moment)
        assert alice.post("memories/search/", {"query": "one", "as_of": moment}).status == 200


def test_date_in_a_search_is_its_first_moment(alice: Contract) -> None:
    alice.add("The otter swims.", event_time=f"{DAY}T00:00:00Z")
    alice.add("The otter slept.", event_time="2026-01-30T23:59:59Z")
    hits = alice.search_contents("otter", filters={"event_time": {"gte": DAY}})
    assert hits == ["The otter swims."]
