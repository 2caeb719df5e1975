"""Measures searches of a tenant with installed packs next to a tenant with the same memories without packs.

Both get each question in turn, so that other load on the machine affects both alike.
"""

import time
from typing import Any
from uuid import UUID

from benchmarks.client import BenchmarkError
from benchmarks.databases import vacuum_and_analyse
from benchmarks.report import timing
from benchmarks.synthetic import conversation, questions
from benchmarks.tables import markdown
from benchmarks.tenants import await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.actor import Actor, CallContext
from governance.database import acting
from governance.tenants.principals import reload_actor
from governance.vocabulary import Channel, PrincipalKind
from vault.chat.services import ConversationDraft, conversation_create
from vault.models import Conversation, PackMemory, PackVersion, Publication, Subscription
from vault.namespaces.mounts import MountDraft, mount_create
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.store.publications import PublicationDraft, publication_create
from vault.store.services import PackDraft, VersionDraft, pack_create, version_build
from vault.store.subscriptions import SubscriptionDraft, subscription_create
from vault.vocabulary import PackState, Visibility

SEED = 20_261_125
OPEN = "/open"
GOAL = 1.3  # times a search without packs
WARM_UP = 20


def packs_search(packs: int, memories: int, own: int, queries: int) -> dict[str, Any]:
    """Return the figures of one run. packs: with `memories` each; own: memories of the searching tenant.

    The tenants are kept, so that the next run need not load them. Raises BenchmarkError.
    """
    name = f"{packs}-{memories}"
    offers = _publish(_member(owner_of(f"bench-publisher-{name}").actor), packs, memories)
    plain, mounted = (_load_tenant(f"bench-{kind}-{name}-{own}", own) for kind in ("plain", "packs"))
    places = [(plain, _conversation(plain)), (mounted, _with_packs(mounted, offers, memories))]
    await_jobs(mounted)
    vacuum_and_analyse()
    took: list[list[float]] = [[], []]
    of_packs = 0
    turns = conversation(own, SEED)
    for number, question in enumerate(questions(turns, queries + WARM_UP, SEED)):
        for which, (actor, asked_in) in enumerate(places):
            started = time.perf_counter()
            hits = memories_search(actor=actor, search=SearchQuery(question, conversation_id=asked_in))
            if number >= WARM_UP:
                took[which].append((time.perf_counter() - started) * 1_000)
                of_packs += sum(bool(hit.view.pack) for hit in hits)
    without, with_packs = timing(took[0]), timing(took[1])
    return {
        "seed": SEED,
        "packs": packs,
        "memories of a pack": memories,
        "own memories": own,
        "queries": queries,
        "without": {"p50": without.p50, "p95": without.p95},
        "with packs": {"p50": with_packs.p50, "p95": with_packs.p95},
        "ratio": {"p50": round(with_packs.p50 / without.p50, 3), "p95": round(with_packs.p95 / without.p95, 3)},
        "found in packs": of_packs,
        "goal": GOAL,
    }


def packs_search_table(figures: dict[str, Any]) -> str:
    rows = [[name, figures[name]["p50"], figures[name]["p95"]] for name in ("without", "with packs")]
    rows.append(["ratio", figures["ratio"]["p50"], figures["ratio"]["p95"]])
    return markdown(["search", "p50 ms", "p95 ms"], rows)


def _member(actor: Actor) -> Actor:
    """Return the member that owns the actor's key, because a key may not publish or subscribe."""
    assert actor.member_id is not None
    return reload_actor(
        tenant_id=actor.tenant_id,
        kind=PrincipalKind.MEMBER,
        principal_id=actor.member_id,
        request_id=actor.request_id,
        context=CallContext(channel=Channel.WEB),
    )


def _publish(actor: Actor, packs: int, memories: int) -> list[UUID]:
    """Return the ids of the publications, made by the product's own services."""
    with acting(actor):
        found = list(Publication.objects.filter(tenant_id=actor.tenant_id).order_by("id").values_list("id", flat=True))
    for number in range(len(found), packs):
        ids = fill_tenant(actor, drafts_of(conversation(memories, SEED + number + 1), f"/pack-{number}"))
        pack = pack_create(actor=actor, draft=PackDraft(f"pack-{number}", f"Pack {number}"))
        version_build(actor=actor, pack_id=pack.id, draft=VersionDraft("1.0.0", ids=tuple(ids)))
        await_jobs(actor)
        with acting(actor):
            version = PackVersion.objects.get(tenant_id=actor.tenant_id, pack_id=pack.id)
        if version.state != PackState.READY:
            raise BenchmarkError(f"pack {number} is {version.state}: does the worker run?")
        offer = PublicationDraft(version.id, visibility=Visibility.INSTALLATION)
        found.append(publication_create(actor=actor, draft=offer).id)
    return found[:packs]


def _load_tenant(slug: str, own: int) -> Actor:
    owner = _member(owner_of(slug).actor)
    if cubes_in(owner) < own:
        fill_tenant(owner, drafts_of(conversation(own, SEED), OPEN))
    await_jobs(owner)
    return owner


def _conversation(actor: Actor) -> UUID:
    with acting(actor):
        found = Conversation.objects.filter(tenant_id=actor.tenant_id).order_by("id").first()
    return found.id if found else conversation_create(actor=actor, draft=ConversationDraft()).id


def _with_packs(actor: Actor, offers: list[UUID], memories: int) -> UUID:
    """Return a conversation for which the packs of all offers are installed and mounted."""
    asked_in = _conversation(actor)
    with acting(actor):
        known = set(Subscription.objects.filter(tenant_id=actor.tenant_id).values_list("publication_id", flat=True))
    for offer in offers:
        if offer in known:
            continue
        subscription_create(actor=actor, draft=SubscriptionDraft(offer))
        await_jobs(actor)
        with acting(actor):
            made = Subscription.objects.select_related("namespace").get(tenant_id=actor.tenant_id, publication_id=offer)
        mount_create(actor=actor, draft=MountDraft(namespace=made.namespace.path, conversation_id=asked_in))
    with acting(actor):
        installed = PackMemory.objects.filter(tenant_id=actor.tenant_id).count()
    if installed != len(offers) * memories:
        raise BenchmarkError(f"{installed} memories of packs are installed, and not {len(offers) * memories}")
    return asked_in
