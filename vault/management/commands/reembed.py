"""Compute vectors with the configured embedding model. Until all are done, searches use the former vectors."""

from argparse import ArgumentParser
from typing import Any

from governance.actor import Actor
from governance.management.base import DomainCommand, actor_for
from governance.tenants.selectors import me_get, tenants_all
from governance.tenants.services import command_line_actor
from vault.cubes.embeddings.change_progress import Cancelled, reembedding_cancel
from vault.cubes.embeddings.model_change import Reembedding, reembedding_start, tenants_to_reembed
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
        one = reembedding_start(actor=actor)
        listings_refresh(actor=actor)
        tenant = _tenant_entry(actor)
        reply.append({"tenant": tenant, "from": one.active, "to": one.model, "started": one.started})
        lines.append(f"{tenant['slug']}  {_format_line(one)}")
    return {"tenants": reply}, lines or ["nothing to do: every tenant uses the configured model"]


def _cancel_changes(options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    if options["tenant"]:
        actors = [actor_for(options["tenant"])]
    else:
        actors = [command_line_actor(tenant_id) for _, tenant_id in tenants_all()]
    reply, lines = [], []
    for actor in actors:
        one = reembedding_cancel(actor=actor)
        if one.models or options["tenant"]:
            tenant = _tenant_entry(actor)
            reply.append({"tenant": tenant, "model": one.active, "cancelled": list(one.models)})
            lines.append(f"{tenant['slug']}  {_cancelled_line(one)}")
    return {"tenants": reply}, lines or ["nothing to cancel: no tenant changes its model"]


def _tenant_entry(actor: Actor) -> dict[str, str]:
    me = me_get(actor=actor)
    return {"id": str(me.tenant_id), "slug": me.tenant_slug}


def _format_line(one: Reembedding) -> str:
    if one.started:
        return f"{one.active} → {one.model}: started as a job"
    if one.needs_vectors:
        return f"{one.active} → {one.model}: already running"
    return f"{one.active or one.model}: nothing to do"


def _cancelled_line(one: Cancelled) -> str:
    if not one.models:
        return f"{one.active or 'no model yet'}: nothing to cancel"
    return f"{one.active} → {', '.join(one.models)}: cancelled; a job deletes the new vectors"
