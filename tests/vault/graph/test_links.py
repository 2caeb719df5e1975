"""Links behind every write: what the job makes, keeps and takes away, and that none crosses a border."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from django.db import connection

from governance.actor import system_actor
from governance.database import acting
from tests.factories import World
from tests.harness.databases import waiting_for_locks
from tests.harness.product import wait_until
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.graph.jobs import cubes_link
from vault.graph.rules import Link, LinkContext, Statement
from vault.models import CubeLink
from vault.vocabulary import LinkKind

Triples = set[tuple[str, str, str]]


def links(world: World) -> Triples:
    """All links of acme: (source, kind, target)."""
    with acting(system_actor(tenant_id=world.acme.id, request_id="test")):
        rows = CubeLink.objects.values_list("source_id", "kind", "target_id")
        return {(str(source), kind, str(target)) for source, kind, target in rows}


def say(who: Contract, *texts: str, session: str = "s1", **fields: Any) -> list[str]:
    """Messages of Ann in one session; their ids."""
    messages = [{"role": "user", "name": "Ann", "content": text} for text in texts]
    reply = who.post("memories/", {"messages": messages, "infer": False, "session_id": session, **fields})
    assert reply.status == 201, reply
    return [memory["id"] for memory in reply.json["results"]]


def link_again(world: World, ids: Sequence[str]) -> None:
    actor = system_actor(tenant_id=world.acme.id, request_id="test")
    write = cubes_link(actor, [{"ids": list(ids)}])
    with acting(actor):
        write()


def test_messages_follow_each_other_and_a_cue_names_the_cause(world: World, alice: Contract) -> None:
    first, second, third = say(alice, "It rained all day.", "So we stayed at home.", "A pity.")
    (four,) = say(alice, "Later then.")
    (other,) = say(alice, "Another session.", session="s2")
    run_jobs()
    made = links(world)
    assert made == {
        (second, "follows", first),
        (third, "follows", second),
        (four, "follows", third),
        (first, "causes", second),
    }
    assert not any(other in link for link in made)


def test_what_the_same_speaker_takes_back_is_a_contradiction(world: World, alice: Contract) -> None:
    (first,) = say(alice, "I like green tea very much", session="s1")
    (second,) = say(alice, "I don't like green tea very much", session="s2")
    run_jobs()
    assert (second, "contradicts", first) in links(world)


def test_chinese_is_linked_too(world: World, alice: Contract) -> None:
    first, second = say(alice, "王小明病了。", "所以他没来。")
    (third,) = say(alice, "王小明喜欢喝茶。", session="s2")
    (four,) = say(alice, "王小明不喜欢喝茶。", session="s3")
    run_jobs()
    made = links(world)
    assert {(first, "causes", second), (four, "contradicts", third)} <= made


def test_running_the_job_again_changes_nothing(world: World, alice: Contract) -> None:
    ids = say(alice, "It rained on Willow Shelter.", "So I don't like it there.", "Willow Shelter again, with Ben.")
    ids += [alice.add(f"Visit {number} of Willow Shelter with Ben.")["id"] for number in range(9)]
    run_jobs()
    made = links(world)
    assert made
    for _ in range(2):
        link_again(world, ids)
        assert links(world) == made


def test_a_new_version_gets_new_links_and_others_keep_theirs(world: World, alice: Contract) -> None:
    first, second, third = say(alice, "It rained.", "So we went to Willow Shelter.", "So we came home late.")
    run_jobs()
    order = {(second, "follows", first), (third, "follows", second)}
    assert links(world) == order | {(first, "causes", second), (second, "causes", third)}
    assert alice.patch(f"memories/{second}/", {"content": "We went to Munich."}, if_match='"1"').status == 200
    run_jobs()
    assert links(world) == order | {(second, "causes", third)}
    assert alice.patch(f"memories/{first}/", {"content": "It poured."}, if_match='"1"').status == 200
    run_jobs()
    assert links(world) == order | {(second, "causes", third)}


def test_purging_takes_the_links_along(world: World, alice: Contract) -> None:
    first, second, third = say(alice, "One.", "Two.", "Three.")
    run_jobs()
    assert alice.delete(f"memories/{second}/?purge=true").status == 204
    assert links(world) == set()
    assert alice.get(f"memories/{first}/").status == alice.get(f"memories/{third}/").status == 200


def test_job_waits_for_an_erasure_without_keeping_what_the_erasure_needs_next(
    world: World, alice: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    first, second = say(alice, "It rained all day.", "So we stayed at home.")
    erasure, watcher = superuser(), superuser()
    with erasure.transaction():
        erasure.execute("SELECT FROM vault_cube WHERE id = %s FOR UPDATE", [first])
        job = threading.Thread(target=link_elsewhere, args=(world, [first, second]))
        job.start()
        wait_until(lambda: waiting_for_locks(watcher) == 1, seconds=20)
        erasure.execute("SELECT FROM vault_cube WHERE id = %s FOR UPDATE NOWAIT", [second])
    job.join()
    assert (second, "follows", first) in links(world)


def link_elsewhere(world: World, ids: Sequence[str]) -> None:
    """Run the job on a connection of its own."""
    link_again(world, ids)
    connection.close()


def test_lineage_is_left_as_it_is(world: World, alice: Contract) -> None:
    first = alice.add("Willow Shelter is green.")["id"]
    second = alice.add("A summary.")["id"]
    with acting(system_actor(tenant_id=world.acme.id, request_id="test")):
        CubeLink.objects.create(tenant_id=world.acme.id, source_id=second, target_id=first, kind=LinkKind.DERIVED)
    run_jobs()
    link_again(world, [first, second])
    assert links(world) == {(second, "derived", first)}


def test_no_link_crosses_a_private_border_or_a_tenant(
    world: World, alice: Contract, olivia: Contract, charlie: Contract
) -> None:
    for who, text in (
        (alice, "I like green tea"),
        (olivia, "I don't like green tea"),
        (charlie, "I like no green tea"),
    ):
        say(who, text)
    (shared,) = say(alice, "I never like green tea", namespace="/team")
    run_jobs()
    assert links(world) == set()
    (second,) = say(alice, "I like green tea", session="s2", namespace="/team")
    run_jobs()
    assert links(world) == {(second, "contradicts", shared)}


def test_a_memory_that_moves_behind_a_border_leaves_its_links(world: World, alice: Contract) -> None:
    first, second, _ = say(alice, "Willow Shelter is open.", "So we went.", "Fine.", namespace="/team")
    run_jobs()
    assert len(links(world)) == 3
    home = alice.add("At home.")["namespace"]["path"]
    assert alice.patch(f"memories/{second}/", {"namespace": home}, if_match='"1"').status == 200
    run_jobs()
    assert links(world) == set()
    assert alice.patch(f"memories/{first}/", {"namespace": home}, if_match='"1"').status == 200
    run_jobs()
    assert links(world) == {(second, "follows", first), (first, "causes", second)}


class Everything:
    """A policy that would link all to all it is shown, and across borders what it remembers."""

    def __init__(self) -> None:
        self.seen: list[Statement] = []

    def links(self, said: Statement, around: LinkContext) -> list[Link]:
        self.seen.append(said)
        return [Link(said.id, other.id, LinkKind.FOLLOWS) for other in self.seen if other.id != said.id]


def test_whatever_a_policy_says_borders_hold(world: World, alice: Contract, olivia: Contract) -> None:
    mine = [alice.add("Willow one.")["id"], alice.add("Willow two.")["id"]]
    hers = olivia.add("Willow three.")["id"]
    actor = system_actor(tenant_id=world.acme.id, request_id="test")
    write = cubes_link(actor, [{"ids": [*mine, hers]}], Everything())
    with acting(actor):
        write()
    assert links(world) == {(mine[1], "follows", mine[0])}
