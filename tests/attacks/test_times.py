"""No time that anybody writes makes a page or a call fail for its readers, wherever they are."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from governance.time_range import FIRST_YEAR, LAST_YEAR
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from vault.lexicon.resolved_dates import EARLIEST_YEAR, LATEST_YEAR, write_dates
from vault.reader.rules import read_statements

Superuser = Callable[[], psycopg.Connection]
FIELDS = ("event_time", "valid_from", "valid_to", "expires_at")
TOO_EARLY, TOO_LATE = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
ZONES = ("America/New_York", "Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Pago_Pago")
PAGES = ("memories/", "memories/?order=expiring", "graph/", "graph/?form=timeline", "graph/?form=list", "overview/")
PAGES_OF_ONE = ("", "pane/", "edit/", "provenance/")
FORM = {"version": "1", "content": "One.", "title": "", "tags": "", "semantic_type": "fact", "sensitivity": "internal"}


@pytest.mark.parametrize("when", [TOO_EARLY, TOO_LATE])
def test_a_time_that_some_zone_cannot_tell_is_refused_by_the_api(world: World, when: str) -> None:
    olivia = world.client("olivia")
    for field in FIELDS:
        assert olivia.post("memories/", {"content": "One.", field: when}).status == 400, field
    message = {"role": "user", "content": "I moved to Oslo 5 years ago.", "timestamp": when}
    assert olivia.post("memories/", {"messages": [message]}).status == 400
    assert olivia.post("api-keys/", {"scopes": ["memories:read"], "expires_at": when}).status == 400
    memory = olivia.post("memories/", {"content": "One."}).json["results"][0]["id"]
    grant: dict[str, Any] = {
        "principal": {"kind": "member", "id": str(world.bob.member.id)},
        "object": {"type": "memory", "id": memory},
        "action": "read",
    }
    for more in ({"expires_at": when}, {"conditions": {"not_before": when}}, {"conditions": {"not_after": when}}):
        assert olivia.post("grants/", {**grant, **more}).status == 400, more
    assert olivia.get(f"audit/?from={when}").status == 400


@pytest.mark.parametrize(
    ("zone", "when"), [("Asia/Tokyo", "0001-01-01"), ("America/New_York", "9999-12-31T23:59")], ids=["east", "west"]
)
def test_a_day_outside_the_calendar_of_the_database_is_refused_by_every_form(
    world: World, superuser: Superuser, zone: str, when: str
) -> None:
    """Once stored, it could not be read by anybody of the tenant: neither the list nor a search."""
    alice = world.client("alice")
    memory = alice.post("memories/", {"content": "One.", "namespace": "/team"}).json["results"][0]["id"]
    superuser().execute("UPDATE governance_member SET timezone = %s", [zone])
    browser = signed_in(world.alice)
    for field in ("valid_from", "expires_at"):
        assert browser.post(f"/memories/{memory}/edit/", {**FORM, field: when}).status_code == 422
    new = {**FORM, "namespace": "/team", "expires_at": when}
    assert browser.post("/memories/new/", new).status_code == 422
    expire = {"action": "expire", "id": [memory], "confirmed": "yes", "expires_at": when}
    assert browser.post("/memories/bulk/", expire).status_code == 422
    for name in ("alice", "bob"):
        assert signed_in(world.person(name)).get("/memories/").status_code == 200
        assert world.client(name).post("memories/search/", {"query": "one"}).status == 200


@pytest.mark.parametrize("zone", ZONES)
def test_the_first_and_the_last_time_show_in_every_zone(world: World, superuser: Superuser, zone: str) -> None:
    alice = world.client("alice")
    early, late = f"{FIRST_YEAR:04}-01-01T00:00:00Z", f"{LAST_YEAR}-12-31T23:59:59Z"
    times = [
        {"event_time": early, "valid_from": early, "valid_to": late},
        {"event_time": late, "valid_from": late, "expires_at": late},
    ]
    ids = []
    for at, time in enumerate(times):
        reply = alice.post("memories/", {"content": f"Boathouse {at}.", "namespace": "/team", **time})
        assert reply.status == 201, reply
        ids.append(reply.json["results"][0]["id"])
        assert alice.patch(f"memories/{ids[-1]}/", {"valid_from": None}, if_match='"1"').status == 200
    superuser().execute("UPDATE governance_member SET timezone = %s", [zone])
    browser = signed_in(world.alice)
    addresses = [f"/{page}" for page in PAGES] + [f"/memories/{id}/{page}" for id in ids for page in PAGES_OF_ONE]
    statuses = {address: browser.get(address).status_code for address in addresses}
    assert set(statuses.values()) == {200}, statuses


@each_case("year", [FIRST_YEAR, EARLIEST_YEAR, LATEST_YEAR, LAST_YEAR])
@each_case(
    "text",
    [
        "I moved here 999 years ago.",
        "I met Anna 31 months ago.",
        "I met Anna last year.",
        "I went there on 1 January.",
        "I will go there next winter.",
        "999年前我搬家了。",
        "I went to Oslo in the last 999 years.",
    ],
)
def test_a_statement_about_times_is_read_in_any_year(year: int, text: str) -> None:
    for said_at in (datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)):
        stated = read_statements(text, speaker="user", said_at=said_at)
        assert [statement.text for statement in stated] == [text]
        assert all(
            statement.event_time is None or FIRST_YEAR <= statement.event_time.year <= LAST_YEAR for statement in stated
        )
        written = write_dates(text, said_at)
        assert not written or " = " in written
