"""Every address of the product: whether words of memories can stand in its answer.

A new address joins CONTENT, and then `readings` must read it, or WITHOUT_CONTENT with the reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from urllib.parse import quote

from django.test import Client

from tests.factories import ApiClient
from tests.governance.tenant_crossings import PARAMETER
from tests.vault.api.contract import Contract

CONTENT = frozenset(
    {
        "api/v1/conversations/",
        "api/v1/conversations/<uuid:conversation_id>/",
        "api/v1/conversations/<uuid:conversation_id>/turns/",
        "api/v1/conversations/<uuid:conversation_id>/summary/",
        "api/v1/jobs/",
        "api/v1/jobs/<uuid:job_id>/",
        "api/v1/memories/",
        "api/v1/memories/<uuid:memory_id>/",
        "api/v1/memories/<uuid:memory_id>/provenance/",
        "api/v1/memories/<uuid:memory_id>/context/",
        "api/v1/graph/",
        "api/v1/memories/<uuid:memory_id>/diff/",
        "api/v1/memories/<uuid:memory_id>/versions/",
        "api/v1/memories/<uuid:memory_id>/versions/<int:number>/",
        "api/v1/memories/context/",
        "api/v1/memories/search/",
        "api/v1/namespaces/<uuid:namespace_id>/summary/",
        "api/v1/personas/<uuid:persona_id>/profile/",
        "api/v1/personas/<uuid:persona_id>/segments/",
        "api/v1/personas/<uuid:persona_id>/stm/",
        "api/v1/reviews/",
        "chat/",
        "chat/<uuid:conversation_id>/",
        "chat/<uuid:conversation_id>/delete/",
        "chat/<uuid:conversation_id>/rename/",
        "chat/<uuid:conversation_id>/turns/",
        "chat/<uuid:conversation_id>/export/",
        "chat/<uuid:conversation_id>/goals/",
        "chat/<uuid:conversation_id>/turns/<uuid:turn_id>/",
        "chat/<uuid:conversation_id>/turns/<uuid:turn_id>/operation/",
        "chat/<uuid:conversation_id>/turns/<uuid:turn_id>/undo/",
        "chat/<uuid:conversation_id>/turns/<uuid:turn_id>/use/",
        "chat/<uuid:conversation_id>/turns/<uuid:turn_id>/why/",
        "jobs/",
        "jobs/<uuid:job_id>/",
        "memories/",
        "memories/<uuid:memory_id>/",
        "graph/",
        "memories/<uuid:memory_id>/edit/",
        "memories/<uuid:memory_id>/freeze/",
        "memories/<uuid:memory_id>/manifest/",
        "memories/<uuid:memory_id>/pane/",
        "memories/<uuid:memory_id>/provenance/",
        "namespaces/<uuid:namespace_id>/",
        "namespaces/<uuid:namespace_id>/past/",
        "memories/<uuid:memory_id>/split/",
        "layers/",
        "layers/<uuid:persona_id>/profile/",
        "layers/<uuid:persona_id>/working-set/",
        "layers/<uuid:persona_id>/segments/<uuid:segment_id>/",
        "overview/",
        "memories/playground/",
        "palette/",
        "reviews/",
        "reviews/<uuid:review_id>/accept/",
    }
)
WITHOUT_CONTENT: Mapping[str, str] = {
    **dict.fromkeys(("", "healthz", "readyz", "metrics", "api/docs/", "api/schema/", "language/"), "no tenant's rows"),
    **dict.fromkeys(
        ("account/", "connect/", "sign-in/", "sign-out/", "invitation/", "reset/", "you/"), "a person's own access"
    ),
    **dict.fromkeys(
        ("settings/", "api/v1/members/", "api/v1/invitations/", "api/v1/me/", "api/v1/api-keys/"), "members and keys"
    ),
    **dict.fromkeys(("access/", "api/v1/grants/", "presets/", "api/v1/role-templates/"), "rights, by ids and paths"),
    **dict.fromkeys(("audit/", "api/v1/audit/"), "the audit log holds ids, never words"),
    **dict.fromkeys(("integrations/", "api/v1/webhooks/", "api/v1/deliveries/"), "addresses, events and ids"),
    "api/v1/organisation/deletion/": "counts and ids of holds",
    **dict.fromkeys(("holds/", "api/v1/holds/"), "what a member wrote about a hold"),
    **dict.fromkeys(("subjects/", "api/v1/subjects/"), "references, counts and receipts; files read memories anew"),
    **dict.fromkeys(("api/v1/namespaces/", "api/v1/mounts/", "api/v1/schedules/"), "paths, times and counts"),
    **dict.fromkeys(
        (f"api/v1/namespaces/<uuid:namespace_id>/{tail}" for tail in ("", "move/", "restore/", "entries/<str:key>/")),
        "paths, ids, times and counts",
    ),
    **dict.fromkeys(
        ("namespaces/", "namespaces/new/", *(f"namespaces/<uuid:namespace_id>/{part}/" for part in ("move", "delete"))),
        "paths and counts",
    ),
    **dict.fromkeys(("personas/", "api/v1/personas/", "api/v1/personas/<uuid:persona_id>/"), "names of personas"),
    **dict.fromkeys(("api/v1/personas/<uuid:persona_id>/settings/", "api/v1/layers/settings/"), "numbers"),
    "layers/<uuid:persona_id>/tune/": "numbers",
    "layers/<uuid:persona_id>/traits/": "names of dimensions and numbers",
    "api/v1/personas/<uuid:persona_id>/working-set/": "ids and numbers",
    "api/v1/personas/<uuid:persona_id>/replay/": "numbers",
    "api/v1/personas/<uuid:persona_id>/traits/": "names of dimensions, numbers and ids of pages",
    **dict.fromkeys(
        (
            "namespaces/<uuid:namespace_id>/mounts/",
            "namespaces/<uuid:namespace_id>/mounts/<uuid:mount_id>/remove/",
        ),
        "POST alone; lead back to the namespace's page",
    ),
    **dict.fromkeys(("policies/", "api/v1/policies/", "purpose/", "quotas/", "api/v1/quotas/"), "rules and counts"),
    "api/v1/exports/key/": "a public key",
    **dict.fromkeys(("api/v1/provenance/key/", "api/v1/provenance/verify/"), "a verdict about what was sent"),
    "api/v1/memory-calls/": "shows what the caller sent, or finds as memories/search/ does",
    "api/v1/memories/tool-calls/": "shows what the caller sent, as memories/ does",
    "api/v1/memories/tool-calls/search/": "shows visible_to alone, as memories/search/ does: tests/vault/tools",
    "api/v1/memories/bulk/": "shows what the caller sent, as memories/ does",
    "admin/": "tables of operators, without columns of content",
    **dict.fromkeys(("persona/", "ui/"), "names of personas, and invented content"),
    **dict.fromkeys(
        (
            "api/v1/forms/",
            "api/v1/forms/<uuid:form_id>/",
            "api/v1/forms/<uuid:form_id>/approve/",
            "api/v1/forms/<uuid:form_id>/text/",
            "api/v1/forms/proposals/",
            "api/v1/forms/proposals/<uuid:form_proposal_id>/",
            "reviews/forms/<uuid:form_proposal_id>/",
            "forms/",
            "forms/<uuid:form_id>/change/",
        ),
        "titles that the caller wrote, ids and numbers; read as memories/ is: tests/vault/forms",
    ),
    **dict.fromkeys(
        ("api/v1/pipelines/", "api/v1/pipelines/run/", "pipelines/"),
        "what the caller wrote; its steps read as memories/ does: tests/vault/pipelines",
    ),
    **dict.fromkeys(("api/v1/memories/facets/", "api/v1/views/", "memories/views/"), "labels, counts and addresses"),
    **dict.fromkeys(("memories/bulk/", "memories/new/"), "show what the caller sent"),
    "api/v1/memories/actions/": "ids and counts",
    "api/v1/memories/actions/<uuid:job_id>/file/": "reads each memory anew, in tests/vault/listing/test_actions.py",
    "api/v1/exports/": "ids and counts; the files read each memory anew, in tests/vault/exchange",
    **dict.fromkeys(
        ("api/v1/imports/", "api/v1/imports/uploads/", "api/v1/imports/uploads/<uuid:upload_id>/"),
        "counts of what the caller sent",
    ),
    "exchange/": "counts and jobs; the files read each memory anew",
    "api/v1/sessions/<str:session_id>/end/": "POST alone; a job",
    "notices/": "counts, and the pages behind them",
    "memories/<uuid:memory_id>/readers/": "names of readers and times",
    "people/": "a redirection to the page of a speaker, subject or member",
    "memories/<uuid:memory_id>/rollback/": "POST alone; leads back to the memory's page",
    **dict.fromkeys(
        (f"api/v1/memories/<uuid:memory_id>/{verb}/" for verb in ("move", "rollback")), "as memories/ does"
    ),
    **dict.fromkeys(
        (f"api/v1/memories/<uuid:memory_id>/relations/{tail}" for tail in ("", "<uuid:relation_id>/")),
        "ids, kinds and times",
    ),
    "api/v1/memories/<uuid:memory_id>/freeze/": "shows a hold",
    "api/v1/memories/<uuid:memory_id>/unfreeze/": "shows a hold",
    "api/v1/memories/<uuid:memory_id>/transition/": "POST alone; shows what it changed",
    "api/v1/memories/<uuid:memory_id>/promote/": "POST alone; shows what it changed",
    "api/v1/memories/<uuid:memory_id>/copy/": "POST alone; shows what it changed",
    "api/v1/memories/<uuid:memory_id>/feedback/": "POST alone; a number and an id",
    "api/v1/memories/<uuid:memory_id>/split/": "POST alone; shows what it changed",
    "api/v1/memories/<uuid:memory_id>/unfuse/": "POST alone; shows what it changed",
    "api/v1/memories/fuse/": "POST alone; shows what it changed",
    **dict.fromkeys((f"memories/<uuid:memory_id>/{verb}/" for verb in ("copy", "promote")), "paths and layers"),
    "memories/<uuid:memory_id>/feedback/": "POST alone; shows what the caller sent",
    "memories/<uuid:memory_id>/recall/": "POST alone; leads back to the memory's page",
    "memories/<uuid:memory_id>/erase/": "POST alone; leads to the list of memories",
    "memories/<uuid:memory_id>/unfuse/": "POST alone; leads back to the memory's page",
    "memories/fuse/": "POST alone; reads what the caller chose",
    "memories/<uuid:memory_id>/unfreeze/": "POST alone; leads back to the memory's page",
    "api/v1/memories/<uuid:memory_id>/redact/": "shows the memory of the version that it blanked",
    "api/v1/memories/<uuid:memory_id>/restore/": "brings the memory back",
    "api/v1/jobs/cancel/": "a number",
    **dict.fromkeys((f"api/v1/jobs/<uuid:job_id>/{verb}/" for verb in ("cancel", "retry", "undo")), "as jobs/ does"),
    **dict.fromkeys(
        (
            "api/v1/reviews/<uuid:review_id>/accept/",
            "api/v1/reviews/<uuid:review_id>/reject/",
            "api/v1/reviews/<uuid:review_id>/reopen/",
        ),
        "ids alone",
    ),
    **dict.fromkeys(("api/v1/reviews/quarantine/", "reviews/quarantine/"), "ids, counts and names of keys alone"),
    **dict.fromkeys(("jobs/schedules/", "schedules/"), "kinds of jobs, times and counts"),
    **dict.fromkeys(
        ("api/v1/subscriptions/", "api/v1/contracts/"),
        "names of packs, terms and counts",
    ),
    "store/": "what was signed to leave, and what its member may read: tests/vault/web/test_store_publish.py",
    "docs/": "the product's documentation; no tenant's rows",
    "api/v1/proposals/": "what a subscriber sent, beside what was signed to leave: vault/store/test_proposals.py",
    "api/v1/sync/peers/": "addresses, paths and counts",
    "api/v1/sync/memories/": "shows what may leave of visible_to alone: tests/vault/exchange/test_sync.py",
    "api/v1/models/": "addresses, prices and counts of language models",
    **dict.fromkeys(
        ("api/v1/packs/", "api/v1/publications/"),
        "what was chosen to leave, as it was signed; an erasure takes it: tests/vault/store",
    ),
    "jobs/cancel/": "POST alone",
    **dict.fromkeys((f"jobs/<uuid:job_id>/{verb}/" for verb in ("cancel", "retry", "undo")), "POST alone"),
    **dict.fromkeys(
        (f"reviews/<uuid:review_id>/{verb}/" for verb in ("reject", "reopen")),
        "POST alone; shows the review as reviews/ does",
    ),
    "overview/setup/": "steps of the checklist",
    "agents/<uuid:key_id>/": "names, times and counts",
    "agents/<uuid:key_id>/calls/<uuid:entry_id>/": "reads each memory anew, in tests/vault/web/test_agents.py",
}
QUERIES: Mapping[str, Sequence[str]] = {
    "api/v1/memories/": ("", "?deleted=true", "?inactive=true", "?layer=long_term&provenance=true"),
    "api/v1/memories/<uuid:memory_id>/diff/": ("?from=1&to=1",),
    "api/v1/reviews/": ("", "?status=accepted", "?status=superseded"),
    "graph/": ("?around={question}",),
    "memories/": ("", "?q={question}", "?inactive=true"),
    "memories/playground/": ("?q={question}",),
    "palette/": ("?q={question}",),
}
TRASH = frozenset(  # what who may delete can restore
    {"api/v1/memories/?deleted=true", "api/v1/memories/?inactive=true", "memories/?inactive=true"}
)
DECIDING = frozenset({"api/v1/reviews/", "reviews/"})  # show who may decide the derived text that waits
WITHOUT_BELOW = frozenset(
    {"api/v1/memories/bulk/", "api/v1/namespaces/", "api/v1/personas/", "namespaces/"}
)  # what is below them is listed by itself
MODES = ("hybrid", "lexical", "dense", "tag", "graph", "memoryos")


@dataclass(frozen=True)
class Reading:
    """One request: `route` as the product knows it, and the words that came back, whatever the status."""

    route: str
    name: str
    words: Callable[[], str]


@dataclass(frozen=True)
class Reader:
    api: Contract
    browser: Client

    def readings(self, ids: Mapping[str, Sequence[str]], question: str) -> Iterator[Reading]:
        """All ways to read, with each of `ids` by parameter; and a new answer to `question`, streamed."""
        for route in sorted(CONTENT - {"api/v1/memories/search/", "api/v1/memories/context/"}):
            for address in _addresses(route, ids):
                for query in QUERIES.get(route, ("",)):
                    asked = address + query.format(question=quote(question))
                    yield Reading(route, asked, self._get(asked))
        for mode in MODES:
            yield self._search(f"{mode}", {"query": question, "mode": mode, "top_k": 100})
        yield self._context(question)
        for place in ids["place"]:
            yield self._search(place, {"query": question, "namespaces": [place], "top_k": 100, "provenance": True})
        for conversation in ids["conversation_id"]:
            yield self._search(conversation, {"query": question, "session_id": conversation, "top_k": 100})
            yield self._ask(conversation, question)

    def _get(self, address: str) -> Callable[[], str]:
        client = self.browser
        headers = {"authorization": f"Bearer {self.api.key}"} if address.startswith("api/") else {}

        def words() -> str:
            return client.get(f"/{address}", headers=headers).content.decode()

        return words

    def _search(self, name: str, body: Mapping[str, object]) -> Reading:
        def words() -> str:
            return self.api.post("memories/search/", body).body.decode()

        return Reading("api/v1/memories/search/", f"search {name}", words)

    def _context(self, question: str) -> Reading:
        def words() -> str:
            return self.api.post("memories/context/", {"query": question, "token_budget": 10_000}).body.decode()

        return Reading("api/v1/memories/context/", "context", words)

    def _ask(self, conversation: str, question: str) -> Reading:
        """The stream of a new answer: found, said and stored now."""
        route = "api/v1/conversations/<uuid:conversation_id>/turns/"
        client, address = ApiClient(self.api.key), f"conversations/{conversation}/turns/"

        def read_stream() -> str:
            return client.post(address, {"content": question}, accept="text/event-stream").body.decode()

        return Reading(route, f"stream {conversation}", read_stream)


def list_unknown_addresses(addresses: Iterable[str]) -> list[str]:
    """The addresses of which nobody has said whether words of memories can stand there, or two things were said."""
    return [address for address in set(addresses) if (address in CONTENT) == (_reason(address) != "")]


def _reason(route: str) -> str:
    if route in WITHOUT_CONTENT:
        return WITHOUT_CONTENT[route]
    roots = (root for root in WITHOUT_CONTENT if root.endswith("/") and "<" not in root and root not in WITHOUT_BELOW)
    return next((WITHOUT_CONTENT[root] for root in roots if route.startswith(root)), "")


def _addresses(route: str, ids: Mapping[str, Sequence[str]]) -> Iterator[str]:
    names = PARAMETER.findall(route)
    for values in product(*(ids[name] for name in names)):
        filled = iter(values)
        yield PARAMETER.sub(lambda _, filled=filled: next(filled), route)  # type: ignore[misc]
