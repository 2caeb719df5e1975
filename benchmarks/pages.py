"""Measures each page: server time, queries and bytes, in tenants of two sizes, and the first load.

Pages are requested in this process, through all middleware, as the tenant owner's browser. Statements are counted in a
separate run, without BEGIN and COMMIT; timed runs do not count.
"""

import gzip
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles import finders
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pgvector import HalfVector

from benchmarks.client import BenchmarkError
from benchmarks.databases import vacuum_and_analyse
from benchmarks.report import timing
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import OWNER, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.actor import Actor, CallContext
from governance.database import acting
from governance.ids import uuid7
from governance.policies.services import PolicyDraft, policy_create
from governance.tenants.principals import reload_actor
from governance.tenants.selectors import member_by_email
from governance.tenants.services import command_line_actor, sign_in_link_create
from governance.vocabulary import Channel, PolicyKind, PrincipalKind
from vault.chat.services import ConversationDraft, conversation_create, turn_run
from vault.content.drafts import CubeChanges
from vault.cubes.services import cube_update
from vault.models import Conversation, Cube, Listing, Pack, PackVersion, Publication
from vault.providers.registry import embedder
from vault.store.listings import GROUPS, SIGNATURES, listing_write
from vault.store.rules import Terms, terms_json
from vault.vocabulary import EXTRACTIVE, PackState, PackTopic, PublicationState, Visibility

SEED = 20_261_123
OPEN = "/open"
PUBLISHER = "benchmark-publisher"
WARM_UP = 3  # requests of a page that are not counted
GOAL_MS, GOAL_QUERIES, GOAL_KB = 50.0, 20, 190.0
BOUNDS = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK")
LINKED = re.compile(r'(?:href|src)="(/static/[^"#?]+)')
IMPORTED = re.compile(r'(?:from|import)\s*\(?["\'](\./[^"\']+)["\']|url\(["\']?([^"\')]+)["\']?\)')
PAGES = {
    "overview": "/overview/",
    "memories": "/memories/",
    "memories, filtered": "/memories/?layer=long_term&namespace=%2Fopen",
    "memories, searched": "/memories/?q={word}",
    "memories, trash": "/memories/?deleted=true",
    "memories, next rows": "/memories/?after={memory}",
    "reading pane": "/memories/{memory}/pane/",
    "memory": "/memories/{memory}/",
    "memory, edit": "/memories/{memory}/edit/",
    "memory, readers": "/memories/{memory}/readers/",
    "provenance": "/memories/{memory}/provenance/",
    "add a memory": "/memories/new/",
    "chat": "/chat/",
    "conversation": "/chat/{conversation}/",
    "reviews": "/reviews/",
    "access": "/access/",
    "access to a memory": "/access/memory/{memory}/",
    "personas": "/personas/",
    "namespaces": "/namespaces/",
    "policies": "/policies/",
    "quotas": "/quotas/",
    "holds": "/holds/",
    "audit": "/audit/",
    "jobs": "/jobs/",
    "members": "/settings/members/",
    "keys": "/settings/keys/",
    "palette": "/palette/?q={word}",
}
CATALOGUE = {
    "catalogue": "/store/",
    "catalogue, by rating": "/store/?order=rated",
    "catalogue, page 100": "/store/?page=100",
    "catalogue, filtered": "/store/?topic=health&language=zh",
    "catalogue, searched": "/store/?q=heron+month&topic=health",
}


@dataclass(frozen=True)
class Measuring:
    """The parameters of a run. sizes: memories of each tenant; rounds: timed requests of each page."""

    sizes: tuple[int, ...]
    rounds: int


def pages(measuring: Measuring) -> dict[str, Any]:
    """Return the figures of one run. The tenants are kept, so that the next run need not load them. Raises
    BenchmarkError."""
    figures: dict[str, Any] = {
        "rounds": measuring.rounds,
        "seed": SEED,
        "goal ms": GOAL_MS,
        "goal queries": GOAL_QUERIES,
    }
    figures["sizes"] = {}
    for size in measuring.sizes:
        browser, known = _prepare(size)
        figures["sizes"][str(size)] = _measure(browser, PAGES, known, measuring.rounds)
    figures["first load"] = _first_load(browser)
    return figures


def catalogue(packs: int, rounds: int) -> dict[str, Any]:
    """Return the figures of the catalogue pages with `packs` publications, which are kept. Raises BenchmarkError."""
    publisher = owner_of(PUBLISHER).actor
    packs_stock(publisher, packs)
    await_jobs(publisher)
    _fill_contents(publisher)
    vacuum_and_analyse()
    browser = _sign_in(_member(owner_of("benchmark-catalogue").actor))
    sizes = {str(packs): _measure(browser, CATALOGUE, {}, rounds)}
    return {"rounds": rounds, "goal ms": GOAL_MS, "sizes": sizes}


def catalogue_table(figures: dict[str, Any]) -> str:
    return _table("page, packs", figures["sizes"])


def pages_table(figures: dict[str, Any]) -> str:
    load = figures["first load"]
    table = _table("page, memories", figures["sizes"])
    return f"{table}\n\n{markdown(['first load', 'KB gzip'], [[name, load[name]] for name in load])}"


def _table(title: str, sizes: dict[str, Any]) -> str:
    keys = ("p50", "p95", "processor p50", "queries", "bytes", "gzip")
    rows = [
        [f"{name}, {int(size):,}", *(figure[key] for key in keys)]
        for size, found in sizes.items()
        for name, figure in found.items()
    ]
    return markdown([title, "p50 ms", "p95 ms", "processor ms", "queries", "bytes", "gzip"], rows)


def _prepare(size: int) -> tuple[Client, dict[str, str]]:
    """Return a signed-in browser of a tenant with `size` memories, and the ids for its page addresses."""
    owner = _member(owner_of(f"benchmark-pages-{size}").actor)
    turns = conversation(size, SEED)
    if cubes_in(owner) < size:
        fill_tenant(owner, drafts_of(turns, OPEN))
    with acting(owner):
        opened = Conversation.objects.filter(tenant_id=owner.tenant_id).order_by("id").first()
    conversation_id = opened.id if opened else _add_objects(owner)
    await_jobs(owner)
    vacuum_and_analyse()
    with acting(owner):
        changed = Cube.objects.filter(tenant_id=owner.tenant_id, version__gt=1).order_by("id").first()
    if changed is None:
        raise BenchmarkError("the tenant was not loaded as a whole: remove it")
    word = max(turns[0].text.rstrip(".").split(), key=len)
    return _sign_in(owner), {"memory": str(changed.id), "conversation": str(conversation_id), "word": word}


def packs_stock(publisher: Actor, count: int) -> None:
    """Add publications without files, up to `count`, for every tenant. The catalogue reads no files."""
    system = command_line_actor(publisher.tenant_id)
    topics, birds = list(PackTopic), ("Heron", "Kestrel", "Swift", "Wren", "Dipper")
    with acting(publisher):
        present = Publication.objects.filter(tenant_id=publisher.tenant_id).count()
        packs = [
            Pack(
                id=uuid7(),
                tenant_id=publisher.tenant_id,
                name=f"pack-{number}",
                title=f"{birds[number % len(birds)]} notes {number}",
                description=f"Where to find them, by month and place, part {number}.",
                licence="CC-BY-4.0",
                topic=topics[number % len(topics)],
                keywords=["birds", birds[number % len(birds)].casefold()],
            )
            for number in range(present, count)
        ]
        versions = [
            PackVersion(
                id=uuid7(),
                tenant_id=publisher.tenant_id,
                pack=pack,
                number="1.0.0",
                parts=[1, 0, 0],
                state=PackState.READY,
                count=40,
                languages=["en"] if number % 3 else ["en", "zh"],
                published_at=Now(),
            )
            for number, pack in enumerate(packs)
        ]
        offers = [
            Publication(
                id=uuid7(),
                tenant_id=publisher.tenant_id,
                pack=version.pack,
                version=version,
                state=PublicationState.PUBLISHED,
                visibility=Visibility.INSTALLATION,
                terms=terms_json(Terms()),
                subscribers=number % 100,
                published_at=Now(),
            )
            for number, version in enumerate(versions)
        ]
        Pack.objects.bulk_create(packs)
        PackVersion.objects.bulk_create(versions)
        Publication.objects.bulk_create(offers)
        for offer in offers:
            offer.refresh_from_db(fields=["published_at"])
            listing_write(actor=system, publication=offer, is_approved=True)


def _fill_contents(publisher: Actor) -> None:
    """Give the rows of packs without files the vectors that their memories would have: a few of one pool in turn."""
    sentences = [f"The {bird} was at place {number}." for bird in ("heron", "swift", "wren") for number in range(32)]
    pool = [HalfVector(vector) for vector in embedder().embed(sentences)]
    with acting(publisher):
        empty = Q(contents=None) | Q(contents=[])
        rows = list(Listing.objects.filter(empty, tenant_id=publisher.tenant_id).only("id"))
        for place, row in enumerate(rows):
            row.contents = [pool[(place * GROUPS + step) % len(pool)] for step in range(GROUPS)]
        Listing.objects.bulk_update(rows, ["contents"], batch_size=100)
        Listing.objects.filter(tenant_id=publisher.tenant_id, signatures=None).update(signatures=SIGNATURES)


def _member(actor: Actor) -> Actor:
    """Return the member that owns the actor's key, as a browser session."""
    assert actor.member_id is not None
    return reload_actor(
        tenant_id=actor.tenant_id,
        kind=PrincipalKind.MEMBER,
        principal_id=actor.member_id,
        request_id=actor.request_id,
        context=CallContext(channel=Channel.WEB),
    )


def _add_objects(owner: Actor) -> Any:
    """Add a memory with three versions, a policy, and a conversation of two turns; return the conversation's id."""
    with acting(owner):
        cube = Cube.objects.filter(tenant_id=owner.tenant_id, version=1).order_by("-id")[0]
    for number in (1, 2):
        changes = CubeChanges(tags=(f"round-{number}",))
        cube_update(actor=owner, cube_id=cube.id, expected_versions={number}, changes=changes)
    system = command_line_actor(owner.tenant_id)
    document = {"where": {"tags": ["round-2"]}, "max_seconds": 10**9}
    policy_create(actor=system, draft=PolicyDraft(PolicyKind.RETENTION, f"benchmark {cube.id}", document))
    made = conversation_create(actor=owner, draft=ConversationDraft(model=EXTRACTIVE))
    for question in ("Who knows about it?", "When was that?"):
        turn_run(actor=owner, conversation_id=made.id, content=question)
    return made.id


def _sign_in(owner: Actor) -> Client:
    system = command_line_actor(owner.tenant_id)
    link = sign_in_link_create(actor=system, member=member_by_email(actor=system, email=OWNER))
    browser = Client(headers={"host": settings.ALLOWED_HOSTS[0], "accept-language": "en"})
    browser.post(urlsplit(link.url).path)
    browser.post(reverse("sign_in_organisation"), {"organisation": str(owner.member_id)})  # of several sizes
    return browser


def _measure(
    browser: Client, patterns: dict[str, str], known: dict[str, str], rounds: int
) -> dict[str, dict[str, Any]]:
    """Return the figures of each page that exists."""
    found = {}
    for name, pattern in patterns.items():
        address = pattern.format(**known)
        answer = browser.get(address)
        if answer.status_code == 404:
            continue
        for _ in range(WARM_UP - 1):
            _open(browser, address)
        taken = [_time(browser, address) for _ in range(rounds)]
        time_of = timing([wall for wall, _ in taken])
        found[name] = {
            "p50": time_of.p50,
            "p95": time_of.p95,
            "processor p50": timing([processor for _, processor in taken]).p50,
            "queries": min(_queries(browser, address) for _ in range(WARM_UP)),  # caches expire in between
            "bytes": len(answer.content),
            "gzip": len(gzip.compress(answer.content)),
        }
    return found


def _open(browser: Client, address: str) -> HttpResponse:
    """Return the page at an address. Raises BenchmarkError for any other response."""
    answer: Any = browser.get(address)
    if answer.status_code != 200:
        raise BenchmarkError(f"{address} answered {answer.status_code}")
    page: HttpResponse = answer
    return page


def _time(browser: Client, address: str) -> tuple[float, float]:
    """Return the wall-clock milliseconds and the processor milliseconds of this process; the rest is the database or
    waiting."""
    started, began = time.perf_counter(), time.process_time()
    _open(browser, address)
    return (time.perf_counter() - started) * 1000, (time.process_time() - began) * 1000


def _queries(browser: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        _open(browser, address)
    return sum(not query["sql"].startswith(BOUNDS) for query in captured.captured_queries)


def _first_load(browser: Client) -> dict[str, float]:
    """Return the compressed KB of the list of memories with all its files, by kind of file; `all` is the sum."""
    page = _open(browser, "/memories/").content
    sizes = {"page": len(gzip.compress(page))}
    for path in sorted(set(_files(page.decode()))):
        kind = path.suffix.removeprefix(".")
        data = path.read_bytes()
        sizes[kind] = sizes.get(kind, 0) + (len(data) if kind == "woff2" else len(gzip.compress(data)))
    kilobytes = {kind: round(size / 1000, 1) for kind, size in sizes.items()}
    return kilobytes | {"all": round(sum(sizes.values()) / 1000, 1), "goal": GOAL_KB}


def _files(page: str) -> Iterator[Path]:
    """Yield the static files that a page links to, and the files that those import."""
    waiting = [Path(found) for address in LINKED.findall(page) if (found := finders.find(_source(address)))]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path
        if path.suffix in {".js", ".css"}:
            names = [double or other for double, other in IMPORTED.findall(path.read_text(encoding="utf-8"))]
            files = [(path.parent / name.partition("#")[0].partition("?")[0]).resolve() for name in names]
            waiting += [file for file in files if file.is_file()]


def _source(address: str) -> str:
    """Return the name of a file without the hash in its address."""
    return re.sub(r"\.[0-9a-f]{12}(?=\.\w+$)", "", address.removeprefix("/static/"))
