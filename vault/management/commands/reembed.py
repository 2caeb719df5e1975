"""Move memories to the configured embedder; until it is done, the vectors of the former one answer."""

from argparse import ArgumentParser
from typing import Any

from governance.actor import Actor
from governance.management.base import LawCommand, actor_for
from governance.tenants.selectors import me_get
from governance.tenants.services import command_line_actor
from vault.cubes.reembedding import Reembedding, reembedding_start, tenants_to_reembed


class Command(LawCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--tenant", help="slug")
        whose.add_argument("--all", action="store_true", help="every tenant that another model answers for")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        found = [(actor, reembedding_start(actor=actor)) for actor in _actors(options)]
        named = [(me_get(actor=actor), one) for actor, one in found]
        reply = [
            {
                "tenant": {"id": str(me.tenant_id), "slug": me.tenant_slug},
                "from": one.active,
                "to": one.model,
                "started": one.started,
            }
            for me, one in named
        ]
        lines = [f"{me.tenant_slug}  {_line(one)}" for me, one in named]
        return {"tenants": reply}, lines or ["nothing to do: every tenant has the configured model"]


def _actors(options: dict[str, Any]) -> list[Actor]:
    if options["tenant"]:
        return [actor_for(options["tenant"])]
    return [command_line_actor(tenant_id) for tenant_id in tenants_to_reembed()]


def _line(one: Reembedding) -> str:
    if one.started:
        return f"{one.active} → {one.model}: started; the worker does it"
    if one.lacking:
        return f"{one.active} → {one.model}: under way already"
    return f"{one.active or one.model}: nothing to do"
