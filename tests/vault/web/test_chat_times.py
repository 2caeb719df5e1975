"""Dates in replies of the chat, in the time zone of who reads them."""

from datetime import UTC, date, datetime

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.outbox import run_jobs
from tests.vault.web.test_chat import stream_answer, text
from vault.cubes.quotes import localise_event

LATE = datetime(2026, 5, 7, 23, 30, tzinfo=UTC)
QUESTION = "How does Ana travel?"
IN_UTC, IN_TOKYO = "(7 May 2026; yesterday = 6 May 2026)", "(8 May 2026; yesterday = 7 May 2026)"


@pytest.fixture
def alice(world: World) -> Client:
    memory = {"content": "Ana travels by train since yesterday.", "event_time": LATE.isoformat()}
    assert world.client("alice").post("memories/", memory).status == 201
    run_jobs()
    return signed_in(world.alice)


@pytest.mark.parametrize(
    ("zone", "moment", "day"),
    [
        ("Asia/Tokyo", LATE, date(2026, 5, 8)),
        ("Asia/Tokyo", LATE.replace(hour=0, minute=0), date(2026, 5, 7)),
        ("America/Lima", LATE.replace(hour=0, minute=0), date(2026, 5, 7)),
        ("America/Lima", LATE.replace(hour=1), date(2026, 5, 6)),
    ],
)
def test_the_day_of_an_event_is_the_same_in_every_time_zone(zone: str, moment: datetime, day: date) -> None:
    with timezone.override(zone):
        event = localise_event(moment)
    assert event is not None
    assert event.date() == day


def test_a_reply_has_the_dates_of_its_readers_time_zone(alice: Client) -> None:
    address = alice.post("/chat/", {"content": QUESTION})["Location"].partition("#")[0]
    assert IN_UTC in text(alice, address)
    assert alice.post("/account/time-zone/", {"timezone": "Asia/Tokyo"}).status_code == 303
    assert IN_TOKYO in text(alice, address)
    assert " JST\n" in text(alice, f"{address}export/")


def test_a_streamed_reply_has_the_dates_of_its_readers_time_zone(alice: Client) -> None:
    alice.post("/account/time-zone/", {"timezone": "Asia/Tokyo"})
    _, events = stream_answer(alice, "/chat/", QUESTION)
    assert IN_TOKYO in "".join(data["text"] for name, data in events if name == "token")
