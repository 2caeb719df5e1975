"""Row 16: requests that are sent many times at once have one effect, and no edit of many at once is lost."""

import http.client
import json
import select
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.harness.evidence import Evidence
from tests.harness.product import RunningServer
from tests.journeys.live import AGAIN, Live, NoAnswer, superuser
from tests.journeys.live import number as number_of

pytestmark = pytest.mark.full
LONGEST_ANSWER = 60.0  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0  # seconds
STALE = 412
STORED = "SELECT count(*) FROM governance_idempotencykey"
FORGET_REPLIES = """
CREATE FUNCTION test_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN DELETE FROM governance_idempotencykey WHERE id = NEW.id; RETURN NULL; END $$;
CREATE TRIGGER test_forget AFTER INSERT ON governance_idempotencykey FOR EACH ROW EXECUTE FUNCTION test_forget();
"""
FORGET_NO_MORE = "DROP TRIGGER test_forget ON governance_idempotencykey; DROP FUNCTION test_forget()"


@pytest.fixture
def live(running_server: RunningServer) -> Live:
    return Live.of(running_server)


@pytest.fixture
def place() -> str:
    """A namespace of this test alone."""
    return f"/once/{uuid4().hex}"


def at_once(works: Sequence[Callable[[], object]]) -> None:
    """Run all in threads that start together; what one raises is raised."""
    barrier, errors = threading.Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        barrier.wait(timeout=LONGEST_ANSWER)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread of the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10 * LONGEST_ANSWER)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def send_until_answered(
    live: Live, method: str, address: str, body: Any, counts: Counter[str], **headers: str
) -> tuple[int, Any]:
    """The first answer that is no reason to send the same request again. Waits longer before each repetition."""
    pause = FIRST_PAUSE
    while True:
        try:
            status, answer = live.call(method, address, body, **headers)
        except NoAnswer:
            status, answer = 0, None
        counts[str(status)] += 1
        if status and status not in AGAIN:
            return status, answer
        threading.Event().wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def send_repeatedly(live: Live, place: str, keys: int, times: int, counts: Counter[str]) -> int:
    """Send `keys` requests, each `times` times at once; how many memories there are more than keys.

    Each answer to one key must be the same.
    """
    for number in range(keys):
        key, replies = str(uuid4()), list[tuple[int, Any]]()
        body = {"content": f"Stored under key {number}.", "namespace": place, "allow_duplicates": True}

        def send(key: str = key, body: dict[str, Any] = body, replies: list[tuple[int, Any]] = replies) -> None:
            replies.append(send_until_answered(live, "POST", "memories/", body, counts, idempotency_key=key))

        at_once([send] * times)
        assert [status for status, _ in replies] == [201] * times
        counts["answers to one key that differ"] += sum(reply != replies[0] for reply in replies)
    return len(live.contents(f"namespace={place}")) - keys


def test_identical_requests_at_once_have_one_effect(
    live: Live, place: str, evidence: Evidence, full_size: bool
) -> None:
    keys, times = (50, 200) if full_size else (3, 20)
    counts = Counter[str]()
    assert send_repeatedly(live, place, keys, times, counts) == 0
    assert counts["answers to one key that differ"] == 0
    figures = {
        "keys": keys,
        "requests at once for each key": times,
        "requests with retries": sum(count for name, count in counts.items() if name.isdigit()),
        "answers 409, in flight": counts["409"],
        "effects besides one for each key": 0,
        "answers to one key that differ": 0,
    }
    evidence(row=16, name="identical-requests", figures=figures)


def cut_off(live: Live, body: Any, key: str) -> None:
    """Send a request, and close the connection when the answer begins: its effect is committed, nobody reads it."""
    address = urlsplit(live.base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=LONGEST_ANSWER)
    headers = {"Authorization": f"Bearer {live.key}", "Content-Type": "application/json", "Idempotency-Key": key}
    try:
        connection.request("POST", "/api/v1/memories/", json.dumps(body), headers)
        ready, _, _ = select.select([connection.sock], [], [], LONGEST_ANSWER)
        assert ready
    finally:
        connection.close()


def test_a_request_whose_reply_was_cut_off_is_repeated_without_effect(
    running_server: RunningServer, live: Live, place: str, evidence: Evidence, full_size: bool
) -> None:
    times, committed, counts = 500 if full_size else 10, 0, Counter[str]()
    for number in range(times):
        key = str(uuid4())
        body = {"content": f"Cut off {number}.", "namespace": place, "allow_duplicates": True}
        cut_off(live, body, key)
        committed += number_of(running_server, f"{STORED} WHERE key = '{key}'")
        assert send_until_answered(live, "POST", "memories/", body, counts, idempotency_key=key)[0] == 201
    assert committed == times, "each was cut off after its commit"
    stored = live.contents(f"namespace={place}")
    assert sorted(stored) == sorted(f"Cut off {number}." for number in range(times))
    evidence(row=16, name="replies-cut-off", figures={"replies cut off after the commit": times, "second effects": 0})


def append_mark(
    live: Live, memory: dict[str, Any], mark: str, counts: Counter[str], *, rereads: bool = True
) -> dict[str, Any]:
    """Append a mark to a memory; where another edit came first, read the memory again and append to that.

    rereads: False appends to the text that was read first, as a careless client does. Returns the changed memory.
    """
    address, text = f"memories/{memory['id']}/", memory["content"]
    while True:
        etag = f'"{memory["version"]}"'
        status, answer = send_until_answered(
            live, "PATCH", address, {"content": f"{text} {mark}"}, counts, if_match=etag
        )
        if status == 200:
            return dict(answer)
        assert status == STALE, (status, answer)
        _, memory = send_until_answered(live, "GET", address, None, Counter())
        text = memory["content"] if rereads else text


def edits_at_once(live: Live, place: str, marks: Sequence[Sequence[str]], counts: Counter[str], **how: bool) -> str:
    """Edit one memory in a thread for each list of marks, all from its first version; its id."""
    body = {"content": "Marks:", "namespace": place}
    first: dict[str, Any] = live.done("POST", "memories/", body)["results"][0]

    def edit(mine: Sequence[str]) -> None:
        memory = first
        for mark in mine:
            memory = append_mark(live, memory, mark, counts, **how)

    at_once([partial(edit, mine) for mine in marks])
    return str(first["id"])


def list_lost_marks(live: Live, memory_id: str, marks: Sequence[Sequence[str]]) -> set[str]:
    """The marks that the present text does not have."""
    text = live.done("GET", f"memories/{memory_id}/")["content"].split()
    return {mark for mine in marks for mark in mine} - set(text)


def numbers(live: Live, memory_id: str) -> list[int]:
    """The version numbers of a memory, ascending."""
    address, found = f"memories/{memory_id}/versions/?page_size=200", list[int]()
    while address:
        page = live.done("GET", address)
        found += [version["version"] for version in page["results"]]
        address = (page["next"] or "").partition("/api/v1/")[2]
    return sorted(found)


def test_no_edit_of_many_at_once_is_lost(live: Live, place: str, evidence: Evidence, full_size: bool) -> None:
    threads, edits = (50, 4) if full_size else (8, 3)
    marks = [[f"t{thread}e{edit}" for edit in range(edits)] for thread in range(threads)]
    counts = Counter[str]()
    memory_id = edits_at_once(live, place, marks, counts)
    assert list_lost_marks(live, memory_id, marks) == set()
    assert numbers(live, memory_id) == list(range(1, threads * edits + 2))
    assert counts["200"] == threads * edits
    figures = {
        "threads": threads,
        "edits": threads * edits,
        "refused for a stale version and repeated": counts[str(STALE)],
        "lost updates": 0,
        "gaps in the versions": 0,
    }
    evidence(row=16, name="edits-at-once", figures=figures)


@contextmanager
def forget_replies(server: RunningServer) -> Iterator[None]:
    """The product stores no reply for a repeated request."""
    with superuser(server) as connection:
        connection.execute(FORGET_REPLIES)
    try:
        yield
    finally:
        with superuser(server) as connection:
            connection.execute(FORGET_NO_MORE)


def test_replies_that_are_not_stored_show(running_server: RunningServer, live: Live, place: str) -> None:
    counts = Counter[str]()
    with forget_replies(running_server):
        assert send_repeatedly(live, place, 1, 5, counts) == 4
    assert counts["answers to one key that differ"] == 4


def test_a_client_that_ignores_a_conflict_shows(live: Live, place: str) -> None:
    marks = [[f"t{thread}"] for thread in range(8)]
    memory_id = edits_at_once(live, place, marks, Counter(), rereads=False)
    assert len(list_lost_marks(live, memory_id, marks)) == len(marks) - 1
