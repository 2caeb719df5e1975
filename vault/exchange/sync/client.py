"""Calls to the API of another installation. No transaction is open while one is on its way."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

import requests

from governance.errors import Conflict, NotFound, Unavailable
from governance.outbound import Refused, refuse_plaintext
from governance.requests_adapter import OutgoingSession
from vault.exchange.sync.wire import (
    FOREIGN,
    KEY_UNKNOWN,
    MOST_AT_ONCE,
    MOST_BYTES,
    NAMESPACE_UNKNOWN,
    Applied,
    Change,
    Listing,
    Sent,
    applied_read,
    change_json,
    listing_read,
    measure_size,
    sent_read,
)

ROOT = "/api/v1/sync/memories/"
REFUSALS = {401: KEY_UNKNOWN}
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class PeerClient:
    """One namespace of another installation. Each call raises Unavailable where it cannot be reached, and Conflict
    where it refuses.
    """

    address: str
    namespace: str
    key: str = field(repr=False)

    def list_memories(self, after: UUID | None) -> Listing:
        """A page of its memories. Raises NotFound where the key reads no such namespace."""
        more = f"&after={after}" if after else ""
        return listing_read(self._call_peer("GET", f"{ROOT}?namespace={quote(self.namespace, safe='')}{more}"), after)

    def open_memories(self, known: Mapping[UUID, int]) -> list[Sent]:
        """These memories, each with the versions behind the `known` one."""
        found: list[Sent] = []
        waiting = dict(known)
        while waiting:
            some = dict(list(waiting.items())[:MOST_AT_ONCE])
            body = {
                "namespace": self.namespace,
                "memories": {str(memory_id): number for memory_id, number in some.items()},
            }
            sent = [
                sent_read(read_result) for read_result in _read_results(self._call_peer("POST", f"{ROOT}read/", body))
            ]
            if not sent or not {memory.id for memory in sent} <= waiting.keys():
                raise Conflict(FOREIGN)
            found += sent
            for memory in sent:
                waiting.pop(memory.id, None)
        return found

    def send_changes(self, changes: Sequence[Change]) -> list[Applied]:
        """The outcome of each change, in order."""
        applied: list[Applied] = []
        waiting = [change_json(change) for change in changes]
        while waiting:
            count = _count_changes_of_call(waiting)
            body = {"namespace": self.namespace, "changes": waiting[:count]}
            results = [
                applied_read(read_result)
                for read_result in _read_results(self._call_peer("POST", f"{ROOT}write/", body))
            ]
            if len(results) != count:
                raise Conflict(FOREIGN)
            applied += results
            waiting = waiting[count:]
        return applied

    def _call_peer(self, method: str, address: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            refuse_plaintext(tls=self.address.startswith("https:"))
            with OutgoingSession() as session:
                content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
                reply = session.request(method, self.address + address, data=content, headers=headers)
                return _check_reply(reply)
        except Refused as refusal:
            raise Conflict(f"The other installation is not called: {refusal}.") from refusal
        except requests.RequestException as failure:
            raise Unavailable("The other installation cannot be reached, may not be called, or broke off.") from failure


def _check_reply(reply: requests.Response) -> Any:
    """Check the reply. Raises Unavailable; NotFound; Conflict."""
    status = reply.status_code
    if status in LATER:
        raise Unavailable(f"The other installation answers {status}.")
    if status == 404:
        raise NotFound(NAMESPACE_UNKNOWN)
    if not 200 <= status < 300:
        raise Conflict(REFUSALS.get(status, f"The other installation refuses ({status}). Check the key's rights."))
    try:
        return json.loads(reply.content)
    except (ValueError, RecursionError) as error:
        raise Conflict(FOREIGN) from error


def _read_results(body: Any) -> list[Any]:
    """Read the results. Raises Conflict."""
    results = body.get("results") if isinstance(body, dict) else None
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise Conflict(FOREIGN)
    return results


def _count_changes_of_call(changes: Sequence[Any]) -> int:
    """The number of changes of one call, at least 1."""
    size = count = 0
    for change in changes[:MOST_AT_ONCE]:
        size += measure_size(change)
        if count and size > MOST_BYTES:
            break
        count += 1
    return count
