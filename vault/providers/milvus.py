"""The vector index in Milvus, by its own client: a cluster, or one file of `milvus-lite` for trials and tests.

Each model has a collection, partitioned by tenant. A row has a vector, and ids; no text and no name.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from threading import Lock
from typing import Any
from uuid import UUID

from vault.providers.ports import IndexedVector, VectorIndexUnavailable

PREFIX = "memos_"
MOST_ROWS = 500  # of one request: 1 MB of vectors with 512 numbers
LINKS, BUILD_WIDTH = 16, 200  # of HNSW: as pgvector's index has by default, and a wider search when it is built
LEAST_WIDTH = 200  # candidates of a search in the index
READ_SECONDS, WRITE_SECONDS = 2.0, 30.0
ID_LENGTH = 64


class MilvusIndex:
    """A vector index at the address of a Milvus server, or in the file of milvus-lite at a path."""

    def __init__(self, *, address: str, token: str) -> None:
        self._address, self._token = address, token
        self._connecting = Lock()
        self._client: Any = None
        self._collections: set[str] = set()

    @property
    def name(self) -> str:
        return f"milvus {sha256(self._address.encode()).hexdigest()[:12]}"

    def check(self) -> None:
        with self._call() as client:
            client.list_collections(timeout=READ_SECONDS)

    def replace(self, tenant_id: UUID, cube_ids: Sequence[UUID], vectors: Sequence[IndexedVector]) -> None:
        rows: dict[str, list[dict[str, Any]]] = {}
        with self._call() as client:
            for vector in vectors:
                name = collection_of(vector.model)
                self._create_collection(client, name, len(vector.vector))
                rows.setdefault(name, []).append(_row_of(tenant_id, vector))
            for name in self._list_collections(client):
                for ids in _cut([str(cube_id) for cube_id in cube_ids]):
                    among = f"{_of_tenant(tenant_id)} and cube in {_quote(ids)}"
                    client.delete(name, filter=among, timeout=WRITE_SECONDS)
                # No upsert: with a partition key, Milvus 2.3 loses most of its rows.
                for part in _cut(rows.get(name, [])):
                    client.insert(name, part, timeout=WRITE_SECONDS)

    def nearest(
        self, tenant_id: UUID, model: str, vector: Sequence[float], namespaces: Sequence[UUID], limit: int
    ) -> list[UUID]:
        among = f"{_of_tenant(tenant_id)} and namespace in {_quote([str(space) for space in namespaces])}"
        with self._call() as client:
            (found,) = client.search(
                collection_of(model),
                data=[list(vector)],
                filter=among,
                limit=limit,
                output_fields=["cube"],
                search_params={"metric_type": "COSINE", "params": {"ef": max(LEAST_WIDTH, 2 * limit)}},
                timeout=READ_SECONDS,
            )
            return list(dict.fromkeys(UUID(hit["entity"]["cube"]) for hit in found))

    def list_cubes(self, tenant_id: UUID, after: UUID, until: UUID) -> set[UUID]:
        among = f'{_of_tenant(tenant_id)} and cube > "{after}" and cube <= "{until}"'
        with self._call() as client:
            return {
                UUID(row["cube"]) for name in self._list_collections(client) for row in _read_rows(client, name, among)
            }

    def delete_tenant(self, tenant_id: UUID) -> None:
        with self._call() as client:
            for name in self._list_collections(client):
                client.delete(name, filter=_of_tenant(tenant_id), timeout=WRITE_SECONDS)

    @contextmanager
    def _call(self) -> Iterator[Any]:
        """Yield the client, connected at the first call. Raises VectorIndexUnavailable."""
        try:
            library = import_module("pymilvus")
        except ModuleNotFoundError as error:
            raise VectorIndexUnavailable(f"Milvus needs the extra `milvus`: {error.name} is not installed") from error
        # It logs each error with its statement, which has ids of tenants; ours names the kind of the error.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        try:
            with self._connecting:
                if self._client is None:
                    self._client = library.MilvusClient(self._address, token=self._token, timeout=READ_SECONDS)
            yield self._client
        except (library.MilvusException, import_module("grpc").RpcError) as error:
            self._collections = set()  # perhaps somebody has dropped one
            raise VectorIndexUnavailable(f"Milvus gave no usable answer ({type(error).__name__})") from error

    def _list_collections(self, client: Any) -> list[str]:
        return sorted(name for name in client.list_collections(timeout=READ_SECONDS) if name.startswith(PREFIX))

    def _create_collection(self, client: Any, name: str, dimension: int) -> None:
        if name in self._collections:
            return
        if not client.has_collection(name, timeout=READ_SECONDS):
            kinds = import_module("pymilvus").DataType
            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=ID_LENGTH)
            schema.add_field("tenant", kinds.VARCHAR, is_partition_key=True, max_length=ID_LENGTH)
            for field in ("namespace", "cube"):
                schema.add_field(field, kinds.VARCHAR, max_length=ID_LENGTH)
            schema.add_field("vector", kinds.FLOAT_VECTOR, dim=dimension)
            indexes = client.prepare_index_params()
            shape = {"M": LINKS, "efConstruction": BUILD_WIDTH}
            indexes.add_index("vector", index_type="HNSW", metric_type="COSINE", params=shape)
            _ignore_other_creator(
                client, name, lambda: client.create_collection(name, schema=schema, index_params=indexes)
            )
        self._collections.add(name)


def collection_of(model: str) -> str:
    """Return the name of the collection of a model: Milvus takes letters, digits and `_` alone."""
    return PREFIX + sha256(model.encode()).hexdigest()[:16]


def _ignore_other_creator(client: Any, name: str, create: Callable[[], None]) -> None:
    """Create a collection, unless another process has created it meanwhile."""
    try:
        create()
    except import_module("pymilvus").MilvusException:
        if not client.has_collection(name, timeout=READ_SECONDS):
            raise


def _row_of(tenant_id: UUID, vector: IndexedVector) -> dict[str, Any]:
    return {
        "id": f"{vector.cube_id}:{vector.part}",
        "tenant": str(tenant_id),
        "namespace": str(vector.namespace_id),
        "cube": str(vector.cube_id),
        "vector": vector.vector,
    }


def _read_rows(client: Any, name: str, among: str) -> Iterator[dict[str, Any]]:
    rows = client.query_iterator(
        name, batch_size=MOST_ROWS, filter=among, output_fields=["cube"], consistency_level="Strong"
    )
    while part := rows.next():
        yield from part
    rows.close()


def _of_tenant(tenant_id: UUID) -> str:
    return f'tenant == "{tenant_id}"'


def _quote(ids: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{one}"' for one in ids) + "]"


def _cut(rows: Sequence[Any]) -> Iterator[list[Any]]:
    return (list(rows[start : start + MOST_ROWS]) for start in range(0, len(rows), MOST_ROWS))
