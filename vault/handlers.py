"""Registers all event and job handlers of the vault. Imported at start, so that each topic has its route.

Light events follow nearly every write or read: many become one task, and nobody looks at a single one. Requested and
long work is a job with its own row (docs/decisions/0030).
"""

import threading
from collections.abc import Sequence
from uuid import UUID
from weakref import WeakValueDictionary

from governance.actor import Actor
from governance.outbox.routes import EventHandler, Payload, Write, event_handler
from governance.vocabulary import Topic, Weight
from vault.content.blobs import with_blobs
from vault.conversion import jobs as conversion
from vault.conversion import proposal_job
from vault.conversion.unlearning import forms_drop
from vault.cubes.jobs import cubes_count_reads, cubes_index
from vault.deletion import deletion_job
from vault.embeddings import index_copies, model_change
from vault.embeddings.change_progress import vectors_clear
from vault.embeddings.index_copies import vectors_copy
from vault.exchange import services as exchange
from vault.exchange.event_exports import exports_start
from vault.exchange.sync import sync_job as sync
from vault.exchange.uploads import uploads_expire
from vault.graph.jobs import cubes_link
from vault.index.statistics import statistics_count
from vault.jobs import memory_additions, namespace_move, restoration, sessions
from vault.layers import replay
from vault.layers.distillation import segments_distil
from vault.layers.eviction import segments_archive
from vault.layers.placement import pages_place, pages_reread
from vault.layers.visits import segments_count_visits
from vault.lifecycle import archive, behaviour, contradictions, duplicates, index_check, summaries, sweep, tiers
from vault.listing import actions
from vault.namespaces import webhooks
from vault.overview.counts import counts_write
from vault.overview.digests import digests_send
from vault.pipelines import jobs as pipelines
from vault.policies import jobs as retention
from vault.reviews import quarantine
from vault.scheduler.services import working_sets_preload
from vault.store import comparison, installation
from vault.store import services as packs
from vault.store.contract_messages import reads_report, subscribers_inform
from vault.store.listings import listings_embed
from vault.store.proposals import answers_deliver, proposals_deliver
from vault.store.ratings import ratings_report
from vault.subjects import erasure, exports

FILTERS = (webhooks,)  # of webhooks, registered when they are imported
# `@handler` in another module registers a kind of job.
JOBS = (
    actions,
    memory_additions,
    behaviour,
    comparison,
    conversion,
    proposal_job,
    contradictions,
    duplicates,
    erasure,
    exchange,
    exports,
    index_check,
    index_copies,
    installation,
    model_change,
    namespace_move,
    quarantine,
    packs,
    pipelines,
    replay,
    restoration,
    retention,
    deletion_job,
    sessions,
    summaries,
    sweep,
    sync,
    tiers,
)
_WRITING: WeakValueDictionary[UUID, threading.Lock] = WeakValueDictionary()  # of each tenant, while it is used


def combine_handlers(*handlers: EventHandler) -> EventHandler:
    """Return one handler that runs several for the same events: each reads in turn, then all write in one transaction.

    Per tenant and process, only one such handler writes at a time, so that follow-up work does not take the cores from
    the writes themselves. Other tenants do not wait.
    """

    def handle(actor: Actor, payloads: Sequence[Payload]) -> Write:
        writes = [with_blobs(handler)(actor, payloads) for handler in handlers]

        def write() -> None:
            with _WRITING.setdefault(actor.tenant_id, threading.Lock()):
                for each in writes:
                    each()

        return write

    return handle


# One event names up to 80 memories, whose words and vectors the task holds in memory together.
event_handler(Topic.CUBES_WRITTEN, weight=Weight.INTERACTIVE, batch=25)(
    combine_handlers(cubes_index, cubes_link, contradictions.linked_conflicts_propose, statistics_count, pages_reread)
)
event_handler(Topic.CUBES_READ)(combine_handlers(cubes_count_reads, segments_count_visits))
event_handler(Topic.REEMBED_CANCELLED)(vectors_clear)
event_handler(Topic.VECTORS_CHANGED, batch=10)(vectors_copy)
event_handler(Topic.SIZES_DUE)(statistics_count)
event_handler(Topic.RETENTION_CHANGED)(retention.retention_start)
event_handler(Topic.PAGES_WRITTEN)(pages_place)
event_handler(Topic.WORKING_SETS_DUE)(working_sets_preload)
event_handler(Topic.SEGMENTS_HOT)(segments_distil)
event_handler(Topic.SEGMENTS_EVICTED)(segments_archive)
event_handler(Topic.COUNTS_DUE)(counts_write)
event_handler(Topic.EXPORTS_DUE)(exports_start)
event_handler(Topic.UPLOADS_DUE)(uploads_expire)
event_handler(Topic.DIGESTS_DUE)(digests_send)
event_handler(Topic.BLOBS_DUE, batch=1)(archive.blobs_move)  # each round looks at all memories of a task
event_handler(Topic.BLOBS_ORPHANED)(archive.blobs_delete)
event_handler(Topic.FORMS_DROPPED)(forms_drop)
event_handler(Topic.STORE_CHANGED, weight=Weight.INTERACTIVE)(subscribers_inform)
event_handler(Topic.STORE_READ)(reads_report)
event_handler(Topic.STORE_RATED)(ratings_report)
event_handler(Topic.LISTINGS_WRITTEN)(listings_embed)
event_handler(Topic.STORE_PROPOSED)(proposals_deliver)
event_handler(Topic.STORE_ANSWERED)(answers_deliver)
