"""Create the vector index of the configured embedding model. Run it with MEMOS_DATABASE_ROLE=owner."""

from typing import Any

from governance.management.base import DomainCommand
from vault.embeddings.vector_index import vector_index_create, vector_index_name
from vault.providers.registry import embedder


class Command(DomainCommand):
    help = __doc__ or ""

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        model = embedder()
        made = vector_index_create(model=model.name, dimension=model.dimension)
        name = vector_index_name(model.name)
        reply = {"index": name, "model": model.name, "dimension": model.dimension, "made": made}
        return reply, [
            f"{name} for {model.name}, {model.dimension} dimensions: {'created' if made else 'exists already'}"
        ]
