"""Every handler is killed, hangs and raises once: the others go on, nothing is lost, nothing is done twice."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import connections
from pytest_django import Settings

from governance.actor import Actor
from governance.audit.reading.exports import export_create
from governance.audit.reading.queries import AuditQuery
from governance.database import acting, database_now
from governance.jobs.services import job_create, job_undo
from governance.members.services import invitation_create
from governance.models import AuditEntry, Job, OutboxEvent, Persona
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import Payload, Route, Task, Write, add_route, all_routes, remove_route
from governance.outbox.runner import task_run
from governance.outbox.services import emit
from governance.outbox.watchdog import task_watch
from governance.policies.services import PolicyDraft, policy_create
from governance.vocabulary import ExportFormat, JobStatus, PolicyKind, RoleName, Topic, Verb
from memos_web.config import EmbedderChoice
from tests.factories import World
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.selectors import cube_get
from vault.cubes.services import cubes_add
from vault.embeddings.model_change import reembedding_start
from vault.exchange.file_reading import ImportDraft
from vault.exchange.services import import_create
from vault.jobs.memory_additions import drafts_screen, memories_add_later
from vault.jobs.restoration import namespace_restore_later
from vault.jobs.sessions import session_end_later
from vault.layers.replay import replay_later
from vault.layers.services import memories_add
from vault.listing.actions import EXPORT, ActionDraft, action_create
from vault.listing.bulk import BulkAction, BulkArguments
from vault.models import Cube, CubeUse, Embedding, Subscription
from vault.namespaces.management import NamespaceDraft, namespace_create, namespace_move_later
from vault.pipelines.services import PipelineDraft, pipeline_create
from vault.reader.services import Message, messages_read
from vault.reviews.quarantine import writer_quarantine
from vault.store.services import PackDraft, VersionDraft, pack_create, version_build
from vault.store.subscriptions import install_ask
from vault.subjects.services import subject_create, subject_erase, subject_export
from vault.vocabulary import ContractState, Delivery, ImportFormat, MessageRole, NamespaceKind, QuotaPeriod

Superuser = Callable[[], psycopg.Connection]
FIRST_LIMIT, LIMIT = timedelta(seconds=1.5), timedelta(seconds=20)  # of the run that meets the fault, of the others
ROUNDS = 60
IMPORTED = b"The grebe builds a floating nest."
NEW = "universal-sentence-encoder/multilingual-3"
# Only asked for by a tenant of another size, or by what another test does.
EMITTED = (
    Topic.REEMBED_CANCELLED,
    Topic.PASSWORD_RESET_ASKED,
    Topic.COUNTS_DUE,
    Topic.DIGESTS_DUE,
)
OF_MISSING_ROWS: tuple[tuple[Topic, Payload], ...] = (
    (Topic.WEBHOOK_DELIVER, {"delivery": str(UUID(int=7))}),
    (Topic.STORE_READ, {"subscriptions": []}),
    (Topic.EXPORTS_DUE, {"event": "pack"}),
    (Topic.STORE_CHANGED, {"publication": str(UUID(int=7))}),
    (Topic.STORE_RATED, dict.fromkeys(("rating", "publication", "publisher"), str(UUID(int=7)))),
    (Topic.UPLOADS_DUE, {"upload": str(UUID(int=7))}),
    (Topic.LISTINGS_WRITTEN, {"listing": str(UUID(int=7))}),
    (Topic.STORE_PROPOSED, dict.fromkeys(("proposal", "publisher"), str(UUID(int=7)))),
    (Topic.STORE_ANSWERED, {"proposal": str(UUID(int=7))}),
    # of jobs that are not there: one would erase the tenant, the other calls a peer (vault/exchange/test_sync.py)
    (Topic.TENANT_ERASE, {"job": str(UUID(int=7))}),
    (Topic.MEMORIES_SYNC, {"job": str(UUID(int=7))}),
    (Topic.BLOBS_DUE, {"ids": []}),
    (Topic.VECTORS_MOVE, {"job": str(UUID(int=7))}),
    (Topic.VECTORS_CHANGED, {"ids": []}),
    (Topic.BLOBS_ORPHANED, {"cube": str(UUID(int=7)), "numbers": [1]}),
    (Topic.FORMS_DROPPED, {"form": str(UUID(int=7))}),
    (Topic.FORM_BUILD, {"job": str(UUID(int=7))}),  # needs an engine (vault/forms)
)
LAYERS = (Topic.SEGMENTS_HOT, Topic.SEGMENTS_EVICTED)


class Faults:
    """The first run of each topic meets a fault, after the work outside and before anything is written."""

    def __init__(self, fault: Callable[[], None]) -> None:
        self.met: set[str] = set()
        self._fault = fault
        self._lock = threading.Lock()

    def wrap(self, route: Route) -> Route:
        def handle(task: Task, actor: Actor, payloads: list[Payload]) -> Write:
            write = route.handler(task, actor, payloads)
            with self._lock:
                is_first = route.topic not in self.met
                self.met.add(route.topic)
            if is_first:
                _set_route(replace(wrapped, limit=LIMIT))
                self._fault()
            return write

        wrapped = replace(route, handler=handle, limit=FIRST_LIMIT)  # type: ignore[arg-type]
        return wrapped


def _set_route(route: Route) -> None:
    remove_route(route.topic)
    add_route(route)


@contextmanager
def faulty(fault: Callable[[], None]) -> Iterator[Faults]:
    routes, faults = all_routes(), Faults(fault)
    for route in routes:
        _set_route(faults.wrap(route))
    try:
        yield faults
    finally:
        for route in routes:
            _set_route(route)


@pytest.fixture
def work(world: World, settings: Settings) -> World:
    """A tenant whose outbox has something of each topic."""
    actor = world.olivia.actor
    (added,) = cubes_add(actor=actor, drafts=[CubeDraft(content="The heron nests by the mill.", namespace="/team")])
    imported = import_create(actor=actor, draft=ImportDraft(b"# Undone\n\nThe ibis left.", ImportFormat.MARKDOWN))
    run_jobs()
    tagged = action_create(actor=actor, draft=_tag(added.cube.id, "once"))
    run_jobs()
    job_undo(actor=actor, job_id=tagged.id)
    job_undo(actor=actor, job_id=imported.id)
    action_create(actor=actor, draft=_tag(added.cube.id, "twice"))
    action_create(actor=actor, draft=ActionDraft(EXPORT, ids=(added.cube.id,)))
    settings.MEMOS_EMBEDDER = EmbedderChoice(family="universal-sentence-encoder", model="", url="", key="")
    reembedding_start(actor=actor)
    cubes_add(actor=actor, drafts=[CubeDraft(content="The otter swims.", namespace="/team")])
    cube_get(actor=actor, cube_id=added.cube.id)
    drafts = [CubeDraft(content=f"Row {number}.", namespace="/team", allow_duplicates=True) for number in range(3)]
    memories_add_later(actor=actor, screened=drafts_screen(actor=actor, drafts=drafts))
    message = Message(role=MessageRole.USER, content="The otter swims at night.")
    common = CubeDraft(content="", session_id="otters", namespace="/team")
    memories_add(actor=actor, drafts=messages_read([message], infer=True, common=common))
    with acting(actor):
        persona_id = Persona.objects.get(member_id=world.olivia.member.id).id
    replay_later(actor=actor, persona_id=persona_id, values={"tau": 3.0})
    export_create(actor=actor, query=AuditQuery(), form=ExportFormat.JSONL)
    invitation_create(actor=actor, email="new@acme.example", role=RoleName.VIEWER)
    job_create(actor=actor, kind=Topic.TIERS_APPLY, settings={"namespace": "/nowhere"})
    pipeline = pipeline_create(
        actor=actor, draft=PipelineDraft("Look", [{"op": "list", "filters": {"namespace": "/nowhere"}}])
    )
    job_create(actor=actor, kind=Topic.PIPELINE_RUN, settings={"pipeline": str(pipeline.id)})
    empty = namespace_create(actor=actor, draft=NamespaceDraft("/empty")).id
    namespace_move_later(actor=actor, namespace_id=empty, path="/old/empty")
    namespace_restore_later(actor=actor, namespace_id=empty, as_of=database_now())
    namespace_create(actor=actor, draft=NamespaceDraft("/pool", NamespaceKind.CONTEXT_POOL, session_id="once"))
    session_end_later(actor=actor, session_id="once")
    writer_quarantine(actor=actor, writer_id=world.bob.member.id)
    retention = {"where": {"namespace": "/team"}, "max_seconds": 3600}
    policy_create(actor=actor, draft=PolicyDraft(PolicyKind.RETENTION, "an hour", retention))
    person = subject_create(actor=actor, reference="a person")
    subject_export(actor=actor, subject_id=person)
    subject_erase(actor=actor, subject_id=person)
    pack = pack_create(actor=actor, draft=PackDraft("herons", "Herons"))
    version_build(actor=actor, pack_id=pack.id, draft=VersionDraft("1.0.0", ids=(added.cube.id,)))
    _subscription_end(world)
    import_create(actor=actor, draft=ImportDraft(IMPORTED, ImportFormat.MARKDOWN, namespace="/team"))
    for kind in (
        Topic.LIFECYCLE_SWEEP,
        Topic.INDEX_CHECK,
        Topic.BEHAVIOUR_UPDATE,
        Topic.SUMMARIES_WRITE,
        Topic.FUSIONS_PROPOSE,
        Topic.CONFLICTS_PROPOSE,
        Topic.FORM_PROPOSE,
    ):
        job_create(actor=actor, kind=kind, settings={})
    with acting(actor):
        for topic in EMITTED:
            payload = {"user": str(world.olivia.member.user_id)} if topic == Topic.PASSWORD_RESET_ASKED else {}
            emit(actor=actor, topic=topic, payload=payload)
        for topic in LAYERS:
            emit(actor=actor, topic=topic, payload={"segments": []})
        for topic, named in OF_MISSING_ROWS:
            emit(actor=actor, topic=topic, payload=named)
        emit(actor=actor, topic=Topic.SIZES_DUE, payload={"namespaces": [str(added.cube.namespace_id)]})
    return world


def _subscription_end(world: World) -> None:
    """Ask for the removal of a pack of which nothing is installed, and for its comparison."""
    actor = world.olivia.actor
    place = namespace_create(actor=actor, draft=NamespaceDraft("/packs/acme/herons"))
    with acting(actor):
        row = Subscription.objects.create(
            tenant_id=actor.tenant_id,
            publication_id=place.id,
            publisher_id=actor.tenant_id,
            name="acme/herons",
            namespace=place,
            state=ContractState.ENDED,
            range="*",
            delivery=Delivery.PULL,
            period=QuotaPeriod.MONTH,
        )
    install_ask(actor=actor, subscription=row)
    job_create(actor=actor, kind=Topic.PACK_COMPARE, settings={"subscription": str(row.id)})


def _tag(cube_id: UUID, tag: str) -> ActionDraft:
    return ActionDraft(BulkAction.TAG, ids=(cube_id,), arguments=BulkArguments(tags=(tag,)))


def _kill() -> None:
    raise SystemExit


def _raise() -> None:
    raise KeyError("a fault")


def _run_all(world: World, superuser: Superuser, run: Callable[[Task], object]) -> None:
    """Rounds of claims, each after all leases and pauses have passed, until nothing is open.

    The rounds share one connection: each thread that hangs holds another, and the server has a limit.
    """
    watcher = superuser()
    for _ in range(ROUNDS):
        threads: list[threading.Thread] = []

        def send(task: Task, threads: list[threading.Thread] = threads) -> None:
            def work() -> None:
                with suppress(SystemExit):
                    run(task)
                connections.close_all()

            threads.append(threading.Thread(target=work))
            threads[-1].start()

        dispatch_once(send)
        for thread in threads:
            thread.join(timeout=60)
        watcher.execute("UPDATE governance_outboxevent SET available_at = now() WHERE done_at IS NULL")
        with acting(world.olivia.actor):
            if not OutboxEvent.objects.filter(done_at=None, parked_at=None).exists():
                return
    raise AssertionError("something is never done")


def _check_everything_is_there_once(world: World) -> None:
    with acting(world.olivia.actor):
        assert not OutboxEvent.objects.filter(done_at=None).exists()
        assert {*Job.objects.values_list("status", flat=True)} == {JobStatus.SUCCEEDED}
        assert Cube.objects.count() == 7
        assert CubeUse.objects.get().access_count == 1
        assert Embedding.objects.filter(model=NEW).count() == Embedding.objects.count() == 7
        assert Cube.objects.filter(expires_at=None).count() == 0
        assert AuditEntry.objects.filter(verb=Verb.AUDIT_EXPORT_FINISHED).count() == 1
        finished = AuditEntry.objects.filter(verb=Verb.JOB_FINISHED).values_list("object_ids", flat=True)
        assert len(finished) == len({ids[0] for ids in finished}) == Job.objects.count()


@pytest.mark.parametrize("fault", [_kill, _raise])
def test_a_handler_that_dies_or_raises_is_run_again_once(
    work: World, superuser: Superuser, fault: Callable[[], None]
) -> None:
    with faulty(fault) as faults:
        _run_all(work, superuser, task_run)
    assert faults.met == {*Topic}
    _check_everything_is_there_once(work)


def test_a_handler_that_hangs_is_left_and_what_it_writes_later_is_refused(work: World, superuser: Superuser) -> None:
    wake, hanging = threading.Event(), []

    def hang() -> None:
        hanging.append(threading.current_thread())
        wake.wait(timeout=120)

    with faulty(hang) as faults:
        try:
            _run_all(work, superuser, lambda task: task_watch(task, stop_worker=lambda: None))
            _check_everything_is_there_once(work)
        finally:
            wake.set()
            for thread in hanging:
                thread.join(timeout=30)
    assert faults.met == {*Topic}
    assert len(hanging) == len(Topic)
    _check_everything_is_there_once(work)


def test_a_worker_with_many_threads_that_hang_ends(work: World) -> None:
    """Fewer do not end it: the others' jobs go on."""
    from governance.outbox import watchdog

    ended: list[bool] = []
    wake = threading.Event()
    threads = [threading.Thread(target=wake.wait) for _ in range(watchdog.MOST_STUCK + 1)]
    try:
        for thread in threads:
            thread.start()
            watchdog._abandon_thread(thread, lambda: ended.append(True))
    finally:
        wake.set()
        for thread in threads:
            thread.join(timeout=10)
    assert ended == [True]
