"""Create the vector index of the configured embedding model, or move vectors to the index of MEMOS_VECTOR_INDEX.

Without `--to` it makes an index inside PostgreSQL: run it with MEMOS_DATABASE_ROLE=owner.
"""

from argparse import ArgumentParser
from typing import Any

from governance.management.base import DomainCommand, actor_for
from governance.tenants.selectors import me_get, tenants_all
from governance.tenants.services import command_line_actor
from vault.embeddings.index_copies import index_move
from vault.embeddings.vector_index import vector_index_create, vector_index_name
from vault.providers.registry import embedder

MILVUS, POSTGRESQL = "milvus", "postgresql"


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--to", choices=[MILVUS, POSTGRESQL], help="start jobs that move vectors to this index")
        parser.add_argument("--tenant", help="slug; without it, every tenant moves")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        return _move_tenants(options) if options["to"] else _create_index()


def _create_index() -> tuple[dict[str, Any], list[str]]:
    model = embedder()
    made = vector_index_create(model=model.name, dimension=model.dimension)
    name = vector_index_name(model.name)
    reply = {"index": name, "model": model.name, "dimension": model.dimension, "made": made}
    return reply, [f"{name} for {model.name}, {model.dimension} dimensions: {'created' if made else 'exists already'}"]


def _move_tenants(options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    if options["tenant"]:
        actors = [actor_for(options["tenant"])]
    else:
        actors = [command_line_actor(tenant_id) for _, tenant_id in tenants_all()]
    reply, lines = [], []
    for actor in actors:
        move = index_move(actor=actor, is_external=options["to"] == MILVUS)
        slug = me_get(actor=actor).tenant_slug
        reply.append({"tenant": slug, "index": move.index or POSTGRESQL, "started": move.started})
        lines.append(f"{slug}  {options['to']}: {'started as a job' if move.started else 'nothing to start'}")
    return {"tenants": reply}, lines
