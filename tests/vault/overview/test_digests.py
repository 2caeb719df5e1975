"""The mailed digest: in the morning, when something new waits, to members who want it, with counts alone."""

from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend

from governance.vocabulary import RoleName
from tests.factories import Person, World, person_add
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import (
    TEXTS,
    build_version,
    memories_of,
    pack_of,
    publish_version,
    subscribe,
)
from vault.overview import digests
from vault.overview.counts import counts_ask
from vault.overview.digests import digests_ask

Superuser = Callable[[], psycopg.Connection]


def zone_at(hour: int) -> str:
    """A time zone in which the clock shows this hour now."""
    ahead = (hour - datetime.now(tz=UTC).hour + 12) % 24 - 12
    return f"Etc/GMT{-ahead:+d}" if ahead else "Etc/GMT"


def wakes(superuser: Superuser, person: Person, hour: int = 12) -> None:
    """The person has signed in, and it is this hour where they are; their last digest was two days ago, if any."""
    signed_in(person)
    superuser().execute(
        "UPDATE governance_member SET timezone = %s, digest_at = digest_at - interval '2 days' WHERE id = %s",
        [zone_at(hour), person.member.id],
    )


def add_expiring(world: World, who: str, content: str) -> None:
    """A memory of this person that expires in an hour, and the counts that tell of it."""
    reply = world.client(who).post("memories/", {"content": content, "namespace": "/team", "ttl_seconds": 3600})
    assert reply.status == 201, reply.json
    counts_ask()
    run_jobs()


def send() -> list[str]:
    """Send the digests of this hour; return their receivers."""
    before = len(mail.outbox)
    digests_ask()
    run_jobs()
    return sorted(item.to[0] for item in mail.outbox[before:])


def test_what_waits_is_mailed_once_with_counts_and_no_content(world: World, superuser: Superuser) -> None:
    add_expiring(world, "alice", "The heron nests by the mill.")
    wakes(superuser, world.alice)
    assert send() == ["alice@acme.example"]
    text = str(mail.outbox[-1].body)
    assert "Memories that expire in 7 days" in text
    assert ": 1\n" in text
    assert "/account/" in text
    assert "heron" not in text
    assert "heron" not in mail.outbox[-1].subject
    assert "Acme" in mail.outbox[-1].subject
    assert send() == []


def test_the_next_morning_only_something_new_is_mailed(world: World, superuser: Superuser) -> None:
    add_expiring(world, "alice", "The heron nests by the mill.")
    wakes(superuser, world.alice)
    assert send() == ["alice@acme.example"]
    wakes(superuser, world.alice)
    assert send() == []
    add_expiring(world, "alice", "The otter swims at night.")
    wakes(superuser, world.alice)
    assert send() == ["alice@acme.example"]
    assert ": 2\n" in mail.outbox[-1].body


def test_each_member_learns_what_their_role_may_solve_in_their_tenant(world: World, superuser: Superuser) -> None:
    add_expiring(world, "alice", "The heron nests by the mill.")
    for item in (world.alice, world.bob, world.ada, world.charlie):
        wakes(superuser, item)
    assert send() == ["alice@acme.example"]


def test_nobody_is_mailed_at_night_or_before_their_address_is_proved(world: World, superuser: Superuser) -> None:
    add_expiring(world, "alice", "The heron nests by the mill.")
    superuser().execute("UPDATE governance_member SET timezone = %s", [zone_at(12)])
    assert send() == []
    wakes(superuser, world.alice, hour=3)
    assert send() == []


def test_a_member_turns_the_digest_off_and_on(world: World, superuser: Superuser) -> None:
    add_expiring(world, "alice", "The heron nests by the mill.")
    wakes(superuser, world.alice)
    client = signed_in(world.alice)
    assert client.post("/account/digest/").status_code == 303
    assert "The digest is turned off." in client.get("/account/?changed=digest").content.decode()
    assert send() == []
    assert client.post("/account/digest/", {"digest": "on"}).status_code == 303
    assert "are mailed each morning" in client.get("/account/?changed=digest").content.decode()
    assert send() == ["alice@acme.example"]
    changes = superuser().execute(
        "SELECT principal_id, detail->>'wants_digest' FROM governance_auditentry"
        " WHERE verb = 'member.changed' ORDER BY id"
    )
    assert changes.fetchall() == [(world.alice.member.id, "false"), (world.alice.member.id, "true")]


def test_a_mail_that_cannot_be_sent_is_sent_the_next_time(
    world: World, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: EmailBackend, messages: object) -> int:
        raise OSError("no route")

    add_expiring(world, "alice", "The heron nests by the mill.")
    wakes(superuser, world.alice)
    with monkeypatch.context() as patched:
        patched.setattr(EmailBackend, "send_messages", refuse)
        assert send() == []
    assert send() == ["alice@acme.example"]


def test_many_members_are_served_in_parts(world: World, superuser: Superuser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MOST", 1)
    add_expiring(world, "alice", "The heron nests by the mill.")
    for item in (world.alice, world.olivia):
        wakes(superuser, item)
    assert send() == ["alice@acme.example", "olivia@acme.example"]


def test_packs_that_wait_reach_the_bell_and_the_digest_of_those_who_manage_them(
    world: World, superuser: Superuser, charlie: Contract, olivia: Contract
) -> None:
    pack, ids = pack_of(charlie), memories_of(charlie, *TEXTS)
    version = build_version(charlie, pack, ids[:1])
    subscribe(olivia, publish_version(charlie, version, terms={"days": 3})["id"])
    publish_version(charlie, build_version(charlie, pack, ids, "1.1.0"), terms={"days": 3})
    adam = person_add(world.acme, "adam@acme.example", RoleName.ADMIN)
    own = build_version(Contract(key=adam.key.text), pack_of(olivia, "own"), memories_of(olivia, "Our pond has carp."))
    publish_version(Contract(key=adam.key.text), own)  # waits for another member
    run_jobs()
    lines = ("pack waits for approval", "pack has an update", "contract of a pack ends")
    for person, shown in ((world.olivia, lines), (adam, lines[1:]), (world.bob, ()), (world.charlie, ())):
        page = signed_in(person).get("/notices/").content.decode()
        assert tuple(line for line in lines if line in page) == shown, person
    wakes(superuser, world.olivia)
    wakes(superuser, adam)
    wakes(superuser, world.bob)
    assert send() == ["adam@acme.example", "olivia@acme.example"]
    (text,) = (str(sent.body) for sent in mail.outbox[-2:] if sent.to == ["olivia@acme.example"])
    for words in ("Packs that wait for approval", "Packs with an update", "Contracts of packs"):
        assert words in text
