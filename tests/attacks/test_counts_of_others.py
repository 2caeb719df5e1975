"""Counts count what their reader may see: what a colleague keeps private changes no number of anybody else's."""

from collections.abc import Iterator
from typing import Any

import pytest

from governance.database import acting
from governance.vocabulary import RoleName
from tests.factories import Person, World, person_add
from tests.mem0.test_rights import sent
from tests.vault.api.contract import Contract, contract
from tests.vault.lifecycle.test_summaries import run_job
from tests.vault.outbox import run_jobs
from vault.layers.persona import traits_list
from vault.layers.selectors import layer_counts, streams_list
from vault.lifecycle import summaries
from vault.models import Page
from vault.overview.attention import attention_list
from vault.overview.counts import counts_ask
from vault.overview.selectors import overview_get

PLACE, PRIVATE = "/team/herons", "/users/alice/diary"
OPEN = [f"The heron of pond {number} fishes at dawn, as every heron does." for number in range(9)]
HIDDEN = [f"The canary of cage {number} is my secret, as every canary is." for number in range(9)]
ADDRESSES = (
    "memories/?page_size=5",
    f"memories/?namespace={PLACE}",
    "memories/facets/",
    "namespaces/",
    "personas/",
    "reviews/",
    "quotas/",
    "conversations/",
    "jobs/",
    "subscriptions/",
)
OF_USE = {"access_count", "visits"}  # of what the reader sees, by anybody
OF_PERSONA = ("stm/", "segments/", "segments/?evicted=true", "traits/", "profile/", "working-set/")


class Scene:
    """alice shares memories and an agent with all of acme, and keeps other memories of both to herself."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alice, self.olivia = contract(world, "alice"), contract(world, "olivia")
        self.agent = self.alice.post("personas/", {"name": "guide", "kind": "agent"}).json["id"]
        self.shared = [self.alice.add(text, namespace=PLACE) for text in OPEN]
        self._talk(OPEN, PLACE)
        self.place = self.shared[0]["namespace"]["id"]
        self.dora = person_add(world.acme, "dora@acme.example", RoleName.EDITOR)
        self._add_denied("Denied before anything is counted.")
        self.run()

    def add_private(self) -> None:
        for text in HIDDEN:
            self._add_denied(text)
        self.alice.delete(f"memories/{self.alice.add('Gone.', namespace=PRIVATE)['id']}/?purge=true")
        self._talk(HIDDEN, PRIVATE)
        self.run()

    def _add_denied(self, text: str) -> None:
        memory = self.alice.add(text, namespace=PLACE)["id"]
        for person in (self.world.bob, self.dora):
            principal = {"kind": "member", "id": str(person.member.id)}
            body = {
                "principal": principal,
                "action": "read",
                "object": {"type": "memory", "id": memory},
                "effect": "deny",
            }
            assert self.olivia.post("grants/", body).status == 201

    def run(self) -> None:
        run_job(self.olivia)
        counts_ask()
        run_jobs()

    def _talk(self, texts: list[str], namespace: str) -> None:
        for text in texts:
            messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
            body = {"messages": messages, "namespace": namespace, "persona": "guide", "session_id": namespace}
            assert self.alice.post("memories/", body).status == 201
        run_jobs()

    def read_all(self, people: list[Person]) -> None:
        """Let the reading itself have had its effects on heat and distillation."""
        for person in people:
            self.numbers(person)
        self.run()

    def numbers(self, person: Person) -> dict[str, Any]:
        """All that the person is told in whole numbers, by where."""
        client = Contract(key=person.key.text)
        addresses = [*ADDRESSES, *(f"personas/{self.agent}/{part}" for part in OF_PERSONA)]
        addresses += [f"namespaces/{self.place}/", f"namespaces/{self.place}/summary/"]
        told = {address: list(whole_numbers(client.get(address).json)) for address in addresses}
        found = client.post("memories/search/", {"query": "secret canary heron", "top_k": 50}).json
        told["search"] = [len(found["results"])]
        told["mem0"] = list(whole_numbers(sent(person.key.text, "POST", "/v3/memories/", {})[1].get("count")))
        restored = {"as_of": self.shared[0]["created_at"]}
        told["past"] = list(whole_numbers(client.post(f"namespaces/{self.place}/restore/?dry_run=true", restored).json))
        told["services"] = list(self._ask_services(person))
        return told

    def _ask_services(self, person: Person) -> Iterator[Any]:
        """Yield the numbers of pages that the REST API does not have."""
        with acting(person.actor):
            overview = overview_get(actor=person.actor, days=7)
            yield overview.memories, overview.growth, dict(overview.states), list(overview.places), overview.series
            yield [(item.kind, item.count) for item in attention_list(actor=person.actor, overview=overview)]
            if person.member.tenant_id == self.world.acme.id:
                counts = layer_counts(actor=person.actor, persona_id=self.agent, stream_id=None)
                yield counts.segments, counts.hot, counts.entries, counts.today
                yield [stream.pages for stream in streams_list(actor=person.actor, persona_id=self.agent)]
                yield [len(trait.evidence) for trait in traits_list(actor=person.actor, persona_id=self.agent)]


def whole_numbers(value: Any) -> Iterator[int]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    if isinstance(value, dict):
        value = [part for name, part in value.items() if name not in OF_USE]
    for part in value if isinstance(value, list) else ():
        yield from whole_numbers(part)


@pytest.fixture
def scene(world: World) -> Scene:
    return Scene(world)


def test_private_memories_change_no_number_of_others(world: World, scene: Scene) -> None:
    readers = {"bob": world.bob, "dora": scene.dora, "charlie": world.charlie}
    scene.read_all([*readers.values(), world.alice])
    before = {name: scene.numbers(person) for name, person in {**readers, "alice": world.alice}.items()}
    assert before["bob"][f"namespaces/{scene.place}/summary/"][0] > 0
    assert before["dora"]["services"][2][0] > 0, "the agent has segments"
    scene.add_private()
    for name, person in readers.items():
        after = scene.numbers(person)
        told = {where: (before[name][where], after[where]) for where in after if before[name][where] != after[where]}
        assert told == {}, f"{name}: {told}"
    alices = scene.numbers(world.alice)
    changed = {where for where in alices if alices[where] != before["alice"][where]}
    assert {
        "memories/?page_size=5",
        "memories/facets/",
        f"namespaces/{scene.place}/",
        f"namespaces/{scene.place}/summary/",
        f"personas/{scene.agent}/segments/",
        "past",
        "services",
    } <= changed, "their owner counts them"


def test_refusal_by_the_quota_of_the_organisation_has_no_number_of_use(world: World) -> None:
    olivia = contract(world, "olivia")
    for text in HIDDEN[:3]:
        olivia.add(text)
    limits = {"holder": {"kind": "tenant"}, "limits": {"memories": 1}}
    assert olivia.send("PUT", "quotas/", limits).status == 200
    refused = contract(world, "alice").post("memories/", {"content": "One more.", "namespace": PLACE})
    assert (refused.status, refused.json["detail"]) == (
        429,
        "The quota of this tenant is 1 memories, and this would be more.",
    )


# Broken on purpose


def test_counts_of_private_memories_show(world: World, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "_count_readable", lambda actor, row: row.memories)
    monkeypatch.setattr("vault.layers.selectors.visible_pages", lambda actor: Page.objects.all())
    scene.read_all([world.bob])
    before = scene.numbers(world.bob)
    scene.add_private()
    after = scene.numbers(world.bob)
    changed = {where for where in after if after[where] != before[where]}
    assert {f"namespaces/{scene.place}/summary/", f"personas/{scene.agent}/segments/", "services"} <= changed
