"""Compute vectors with the configured embedding model. Until all are done, searches use the former vectors."""

from argparse import ArgumentParser
from typing import Any

from governance.actor import Actor
from governance.management.base import DomainCommand, actor_for
from governance.tenants.selectors import me_get, tenants_all
from governance.tenants.services import command_line_actor
from vault.embeddings.change_progress import CancelledMove, reembedding_cancel
from vault.embeddings.model_change import Reembedding, reembedding_start, tenants_to_reembed
from vault.lifecycle.catalogue import listings_refresh


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--tenant", help="slug")
        whose.add_argument("--all", action="store_true", help="every tenant whose searches use another model")
        parser.add_argument("--cancel", action="store_true", help="stop; searches continue to use the former model")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        return _cancel_changes(options) if options["cancel"] else _start_changes(options)


def _start_changes(options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    if options["tenant"]:
        actors = [actor_for(options["tenant"])]
    else:
        actors = [command_line_actor(tenant_id) for tenant_id in tenants_to_reembed()]
    reply, lines = [], []
    for actor in actors:
        reembedding = reembedding_start(actor=actor)
        listings_refresh(actor=actor)
        tenant = _tenant_entry(actor)
        reply.append(
            {"tenant": tenant, "from": reembedding.active, "to": reembedding.model, "started": reembedding.started}
        )
        lines.append(f"{tenant['slug']}  {_format_line(reembedding)}")
    return {"tenants": reply}, lines or ["nothing to do: every tenant uses the configured model"]


def _cancel_changes(options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    if options["tenant"]:
        actors = [actor_for(options["tenant"])]
    else:
        actors = [command_line_actor(tenant_id) for _, tenant_id in tenants_all()]
    reply, lines = [], []
    for actor in actors:
        cancelled = reembedding_cancel(actor=actor)
        if cancelled.models or options["tenant"]:
            tenant = _tenant_entry(actor)
            reply.append({"tenant": tenant, "model": cancelled.active, "cancelled": list(cancelled.models)})
            lines.append(f"{tenant['slug']}  {_cancelled_line(cancelled)}")
    return {"tenants": reply}, lines or ["nothing to cancel: no tenant changes its model"]


def _tenant_entry(actor: Actor) -> dict[str, str]:
    me = me_get(actor=actor)
    return {"id": str(me.tenant_id), "slug": me.tenant_slug}


def _format_line(reembedding: Reembedding) -> str:
    if reembedding.started:
        return f"{reembedding.active} → {reembedding.model}: started as a job"
    if reembedding.needs_vectors:
        return f"{reembedding.active} → {reembedding.model}: already running"
    return f"{reembedding.active or reembedding.model}: nothing to do"


def _cancelled_line(cancelled: CancelledMove) -> str:
    if not cancelled.models:
        return f"{cancelled.active or 'no model yet'}: nothing to cancel"
    return f"{cancelled.active} → {', '.join(cancelled.models)}: cancelled; a job deletes the new vectors"
