"""Two worlds that differ in nothing but what their readers may not see answer their searches with the same numbers.

The first holds no hidden memory. The second is built in the same steps and has some among what is seen, each of which
would change the numbers: they say the words of the questions, often and at length, in the name of one who is asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest

from governance.database import acting
from governance.vocabulary import RoleName, Scope
from tests.factories import ApiClient, World, client_for, person_add
from tests.governance.access.grants.test_grants import give_grant
from tests.governance.personas.test_personas import create_persona as persona_made
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy as policy_made
from vault.graph import walks
from vault.retrieval import statements, tags
from vault.retrieval.queries import SearchQuery
from vault.retrieval.scope import resolve_scope

Superuser = Callable[[], psycopg.Connection]
Told = tuple[str, float, dict[str, float]]  # content, score, its parts
Answers = dict[tuple[Callable[["Tenant"], list[ApiClient]], bool], list[dict[tuple[str, str], list[Told]]]]
SEEN = (
    "The otter swims at noon.",
    "The heron waits by the weir.",
    "We saw Ada Miller feed the otter.",
    "Ada Miller met Yan at the weir.",
    "Quiet water sleeps.",
)
HIDDEN = tuple(
    f"The otter, the otter {number} met Ada Miller and a heron at noon by the weir." for number in range(len(SEEN))
)
QUESTIONS = (
    "Where does Zelda see the otter sleep at noon?",
    "What about Ada Miller and the weir?",
    "What did Yan say about the otter since 2020?",
)
MODES = ("hybrid", "lexical", "dense", "tag", "graph")
WORK = "at work"
RARE = 4  # all that is seen and names Ada Miller, and fewer than with what is hidden
PURPOSE = {"where": {"sensitivities": ["restricted"]}, "purposes": ["audit"]}


@dataclass
class Tenant:
    """One of the two worlds. people: olivia owns it, alice writes in it, bob and ada read in it."""

    people: World
    superuser: Superuser
    hidden: list[str] = field(default_factory=list)

    def client(self, name: str) -> ApiClient:
        return self.people.client(name)

    def deny(self, object_type: str, object_id: str) -> None:
        for name in ("bob", "ada"):
            give_grant(self.client("olivia"), self.people, name, object_type, object_id, effect="deny")

    def delete(self, asked: str = "") -> None:
        for memory_id in self.hidden:
            assert self.client("alice").delete(f"memories/{memory_id}/{asked}").status == 204

    def expire(self) -> None:
        self.superuser().execute("UPDATE vault_cube SET expires_at = now() WHERE id = ANY(%s::uuid[])", [self.hidden])

    def deny_namespace(self) -> None:
        for memory_id in self.hidden[:1]:
            self.deny("namespace", self.client("alice").get(f"memories/{memory_id}/").json["namespace"]["id"])

    def bound_key(self, **bonds: Any) -> ApiClient:
        asked = {"member": str(self.people.bob.member.id), "scopes": list(Scope), **bonds}
        reply = self.client("olivia").post("api-keys/", asked)
        assert reply.status == 201, reply.json
        return client_for(reply.json["api_key"])


def _readers(tenant: Tenant) -> list[ApiClient]:
    return [tenant.client("bob"), tenant.client("ada")]


@dataclass(frozen=True)
class Way:
    """A way of being hidden. place, more: of what is written; hide: what is done to it then.

    counted: whether the jobs run before that, and not only after it; readers: from whom it is hidden.
    """

    place: str = "/team"
    more: dict[str, Any] = field(default_factory=dict)
    hide: Sequence[Callable[[Tenant], Any]] = ()
    counted: bool = True
    readers: Callable[[Tenant], list[ApiClient]] = _readers


def _deny(tenant: Tenant) -> None:
    for memory_id in tenant.hidden:
        tenant.deny("memory", memory_id)


def _restore(tenant: Tenant) -> None:
    for memory_id in tenant.hidden:
        assert tenant.client("alice").post(f"memories/{memory_id}/restore/").status == 200


def _purge(tenant: Tenant) -> None:
    tenant.delete("?purge=true")


WAYS = {
    "denied": Way(hide=[_deny]),
    "denied with its namespace": Way("/closed", hide=[Tenant.deny_namespace]),
    "another's own": Way("/users/alice"),
    "another's chat": Way("/users/alice/chat"),
    "deleted": Way(hide=[Tenant.delete]),
    "deleted before it was counted": Way(hide=[Tenant.delete], counted=False),
    "expired when it was counted": Way(hide=[Tenant.expire], counted=False),
    "expired since it was counted": Way(hide=[Tenant.expire]),
    "purged": Way(hide=[_purge]),
    "deleted and purged": Way(hide=[Tenant.delete, _purge]),
    "denied and deleted": Way(hide=[_deny, Tenant.delete]),
    "denied, deleted and restored": Way(hide=[_deny, Tenant.delete, _restore]),
    "denied and purged": Way(hide=[_deny, _purge]),
    "denied and expired": Way(hide=[_deny, Tenant.expire]),
    "bound to a purpose": Way(more={"sensitivity": "restricted"}),
    "outside of a key's namespaces": Way("/else", readers=lambda tenant: [tenant.bound_key(namespaces=["/team"])]),
    "of another persona than a key's": Way(readers=lambda tenant: [tenant.bound_key(persona=WORK)]),
}


@pytest.fixture
def worlds(world: World, superuser: Superuser, monkeypatch: pytest.MonkeyPatch) -> tuple[Tenant, Tenant]:
    """Two tenants with the same people in the same roles. So few names are looked at that what is hidden is more."""
    monkeypatch.setattr(walks, "RARE", RARE)
    monkeypatch.setattr(walks, "MOST_NAMED", RARE)
    monkeypatch.setattr(tags, "MOST_TAGS", 1)
    first = replace(world, ada=person_add(world.acme, "reader@acme.example", RoleName.VIEWER))
    second = replace(
        world,
        acme=world.other,
        olivia=world.charlie,
        alice=person_add(world.other, "alice@other.example", RoleName.EDITOR),
        bob=person_add(world.other, "bob@other.example", RoleName.VIEWER),
        ada=person_add(world.other, "reader@other.example", RoleName.VIEWER),
    )
    return Tenant(first, superuser), Tenant(second, superuser)


@pytest.fixture(scope="module")
def answers_without() -> Answers:
    """Return the answers in a world without hidden memories, built once for all tests that share it."""
    return {}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
def test_invisible_memories_change_no_number(worlds: tuple[Tenant, Tenant], answers_without: Answers, way: str) -> None:
    without, within = worlds
    readers, is_bound = WAYS[way].readers, bool(WAYS[way].more)
    if (readers, is_bound) not in answers_without:
        _build(without, WAYS[way], ())
        answers_without[readers, is_bound] = [_answers(reader) for reader in readers(without)]
    _build(within, WAYS[way], HIDDEN)
    assert [_answers(reader) for reader in readers(within)] == answers_without[readers, is_bound]


@pytest.mark.parametrize("way", ["another's own", "denied", "expired since it was counted"])
def test_invisible_memories_take_no_place_among_the_nearest(
    worlds: tuple[Tenant, Tenant], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """As many are hidden as are looked at, and each is nearer than what is seen."""
    monkeypatch.setattr(statements, "NEAREST", 1)
    top_k = int(len(HIDDEN) / statements.CANDIDATES_PER_RESULT)
    without, within = worlds
    _build(without, WAYS[way], ())
    before = [_scored_results(reader, HIDDEN[0], "dense", top_k=top_k) for reader in WAYS[way].readers(without)]
    _build(within, WAYS[way], HIDDEN)
    assert [_scored_results(reader, HIDDEN[0], "dense", top_k=top_k) for reader in WAYS[way].readers(within)] == before


def test_statements_without_exceptions_change_no_number(worlds: tuple[Tenant, Tenant]) -> None:
    """bob, whom nothing is granted or denied but by his role, and ada, to whom something is."""
    tenant, _ = worlds
    _build(tenant, WAYS["another's own"], HIDDEN)
    for person, has_some in ((tenant.people.bob, False), (tenant.people.ada, True)):
        actor = person.key_actor()
        with acting(actor):
            assert bool(resolve_scope(actor, SearchQuery("otter")).exceptions) is has_some


def test_memories_of_another_tenant_change_no_number(worlds: tuple[Tenant, Tenant]) -> None:
    without, within = worlds
    _build(without, Way(), ())
    before = [_answers(reader) for reader in _readers(without)]
    _build(within, Way(), HIDDEN)
    assert [_answers(reader) for reader in _readers(without)] == before


def test_visible_memories_change_the_numbers(worlds: tuple[Tenant, Tenant]) -> None:
    """Else the tests above would show nothing."""
    without, within = worlds
    _build(without, Way(), ())
    _build(within, Way(), HIDDEN)
    for name in ("bob", "ada"):
        before, after = (_answers(tenant.client(name)) for tenant in worlds)
        told = {asked: [hit for hit in found if hit[0] not in HIDDEN] for asked, found in after.items()}
        for mode, question in after:
            assert told[mode, question] != before[mode, question] or mode in ("dense", "tag")
        # A vector tells of nothing but itself; of tags the second question names some.
        assert told["tag", QUESTIONS[1]] != before["tag", QUESTIONS[1]]


def test_chat_memories_come_last_and_change_no_number(worlds: tuple[Tenant, Tenant]) -> None:
    """It is hidden from nobody: who asked it may read it, and an open search fills up with it."""
    without, within = worlds
    chat = Way("/users/alice/chat")
    _build(without, chat, ())
    _build(within, chat, HIDDEN)
    before, after = (_answers(tenant.client("alice")) for tenant in worlds)
    for asked, found in after.items():
        assert found[: len(before[asked])] == before[asked]
        assert {(content, score) for content, score, _ in found[len(before[asked]) :]} == {
            (content, 0) for content in HIDDEN
        }


def test_archived_memory_is_counted_but_no_result(worlds: tuple[Tenant, Tenant]) -> None:
    """It is hidden from nobody: whoever reads in its place may ask for it. No service archives a memory yet."""
    without, within = worlds
    _build(without, Way(), ())
    _build(within, Way(), HIDDEN)
    within.superuser().execute("UPDATE vault_cube SET state = 'archived' WHERE id = ANY(%s::uuid[])", [within.hidden])
    bob = within.client("bob")
    for question in QUESTIONS:
        shown, asked = (_scored_results(bob, question, "lexical", include_archived=asks) for asks in (False, True))
        assert _contents(shown) == _contents(_scored_results(without.client("bob"), question, "lexical"))
        assert _contents(asked) == _contents(shown) | {*HIDDEN}


def _build(tenant: Tenant, way: Way, hidden: Sequence[str]) -> None:
    """bob reads by his role alone; to ada one memory is granted and one is denied by itself.

    Only what is bound to a purpose has a policy: it would except something from everyone's sight.
    """
    olivia, alice = tenant.client("olivia"), tenant.client("alice")
    persona_made(olivia, WORK, kind="agent")
    if way.more:
        policy_made(olivia, "purpose", PURPOSE)
    (granted,) = _say(alice, "A kestrel at noon over the weir.", namespace="/users/alice")
    (denied,) = _say(olivia, "A lynx at noon by the otter.", namespace="/team", persona=WORK)
    give_grant(alice, tenant.people, "ada", "memory", granted)
    give_grant(olivia, tenant.people, "ada", "memory", denied, effect="deny")
    for number, text in enumerate(SEEN):
        _say(olivia, text, namespace="/team", session_id="seen", persona=WORK, tags=["weir"])
        for words in hidden[number : number + 1]:
            more = {"namespace": way.place, "session_id": "hidden", "tags": ["Ada"], **way.more}
            tenant.hidden += _say(alice, words, name="Zelda", **more)
    if way.counted:
        run_jobs()
    assert len(tenant.hidden) == len(hidden)
    for hide in way.hide:
        hide(tenant)
    run_jobs()


def _say(person: ApiClient, text: str, name: str = "Yan", **more: Any) -> list[str]:
    messages = [{"role": "user", "name": name, "content": text}]
    reply = person.post("memories/", {"messages": messages, "infer": False, **more})
    assert reply.status == 201, reply.json
    return [memory["id"] for memory in reply.json["results"]]


def _answers(reader: ApiClient) -> dict[tuple[str, str], list[Told]]:
    return {(mode, question): _scored_results(reader, question, mode) for mode in MODES for question in QUESTIONS}


def _scored_results(reader: ApiClient, question: str, mode: str, **more: Any) -> list[Told]:
    asked = {"query": question, "mode": mode, "explain": True, "top_k": 30, **more}
    reply = reader.post("memories/search/", asked)
    assert reply.status == 200, reply.json
    return [(hit["content"], hit["score"], hit["score_parts"]) for hit in reply.json["results"]]


def _contents(told: Sequence[Told]) -> set[str]:
    return {content for content, *_ in told}
