"""The other installation of a sync: a real HTTP server whose answers are those of the product, or what a test says."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connections
from django.test import Client, override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

HERE, THERE = "/birds", "/herons"


@dataclass
class OtherSide:
    """status: answered in place of the product's own answer, while it is set, from behind `cut_after` calls."""

    address: str
    status: int | None = None
    cut_after: int | None = None
    calls: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        self.calls.append(request.path.rpartition("/memories/")[2] or "list")
        if self.cut_after is not None:
            self.cut_after -= 1
        if self.status is not None and (self.cut_after is None or self.cut_after < 0):
            return Response(status=self.status)
        try:
            client = Client(headers=dict(request.headers), raise_request_exception=False)
            path = request.full_path.removesuffix("?")
            reply = client.generic(request.method, path, request.get_data(), content_type="application/json")
            return Response(reply.content, reply.status_code, content_type=reply.headers["Content-Type"])
        finally:
            connections.close_all()


@contextmanager
def other_side(server: HTTPServer) -> Iterator[OtherSide]:
    found = OtherSide(server.url_for("").rstrip("/"))
    server.expect_request(re.compile(".*")).respond_with_handler(found.answer)
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        yield found


def peer_of(client: Contract, other: OtherSide, key: str, **fields: Any) -> str:
    """The id of a new peer."""
    body = {
        "name": "The other one",
        "address": other.address,
        "key": key,
        "namespace": HERE,
        "remote_namespace": THERE,
        **fields,
    }
    reply = client.post("sync/peers/", body)
    assert reply.status == 201, reply
    return str(reply.json["id"])


def sync_peer(client: Contract, peer: str) -> dict[str, Any]:
    """The counts of a sync that ran to its end, without those that are zero."""
    job = run_sync(client, peer)
    assert job["status"] == "succeeded", job
    return {name: count for name, count in job["result"]["counts"].items() if count}


def run_sync(client: Contract, peer: str) -> dict[str, Any]:
    """The job of a sync that ran as far as it could."""
    reply = client.post(f"sync/peers/{peer}/run/")
    assert reply.status == 202, reply
    run_jobs()
    job: dict[str, Any] = client.get(f"jobs/{reply.json['job']['id']}/").json
    return job
