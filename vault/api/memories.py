"""memories/ of the REST API."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, IF_MATCH, ONCE, PAGE, page_of, read
from governance.api.idempotency import Once
from governance.api.jobs import JobSchema
from governance.api.pages import CursorPages, show_page
from governance.api.views import ApiView, expected_versions, flag, heavy, refuse_unknown_parameters
from governance.database import acting
from governance.errors import DomainError, FieldError, Invalid, NotFound
from governance.idempotency.services import Reply
from governance.personas.selectors import persona_get
from governance.policies.heavy import heavy_call, large_write
from governance.vocabulary import Permission
from vault.api.changes import MEMORY_OR_DRY_RUN, change_and_answer
from vault.api.descriptions import of_memories
from vault.api.inputs import (
    BulkInput,
    ChangesInput,
    ContextInput,
    MemoryInput,
    RestoreInput,
    SearchInput,
    drafts_of_bulk,
    make_changes,
    make_drafts,
    make_search,
    skipped_json,
)
from vault.api.list_filters import FILTERS, LIST_PARAMETERS, list_condition
from vault.api.representations import (
    MemoryJson,
    changes_json,
    dry_run_json,
    duplicate_json,
    hit_json,
    memory_json,
)
from vault.api.schema import (
    BULK_OR_DRY_RUN,
    PROVENANCE,
    AddedLaterSchema,
    AddedSchema,
    BulkSchema,
    ContextSchema,
    DryRunSchema,
    MemoryAnswerSchema,
    MemoryListSchema,
    SearchSchema,
    VersionSchema,
)
from vault.content.drafts import CubeDraft, InvalidDraft
from vault.cubes.filters import asks_for_state
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.persona_references import refuse_unknown_personas
from vault.cubes.selectors import CubeView, cube_get, cube_view, cubes_list, cubes_view, versions_list
from vault.cubes.services import (
    AddedCube,
    cube_delete,
    cube_purge,
    cube_restore,
    cube_update,
    cube_update_ask,
    prepare_changed_texts,
)
from vault.cubes.writer.builder import texts_index
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.jobs.memory_additions import drafts_screen, memories_add_later
from vault.layers.search import DEFAULT_TOKENS, ContextOrder, context_assemble, layers_search
from vault.layers.services import memories_add
from vault.lifecycle.renewal import cube_renew, cube_renew_ask, refuse_expired
from vault.provenance.rules import manifest_json
from vault.provenance.services import manifest_of_memories
from vault.reconciliation.services import Change, Reconciled, relations_store, statements_relate
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import ENDED, Refusal, SearchMode, State

LEFT_OUT = {
    Refusal.QUOTA: "The contract of the pack in {} allows no more reads in this period.",
    Refusal.PURPOSE: "The contract of the pack in {} is for other purposes: X-Memory-Purpose names the purpose.",
    Refusal.EXPIRED: "The contract of the pack in {} has expired.",
    Refusal.REVOKED: "The publisher has revoked the contract of the pack in {}.",
    Refusal.ENDED: "The contract of the pack in {} has ended.",
}
NO_EXPIRED = "A search finds no expired memories. GET memories/?state=expired lists those that can be restored."
PURGE = OpenApiParameter("purge", OpenApiTypes.BOOL, description="Erase for good.")
LARGE_WRITE = 100  # memories of one conversation; more are a heavy call
ASYNC = OpenApiParameter("async", OpenApiTypes.BOOL, description="Answer 202 with a job.")


class MemoriesView(ApiView):
    longest_body = settings.BODY_BYTES_BULK

    @of_memories("memories_list", MemoryListSchema, parameters=[*LIST_PARAMETERS, PROVENANCE])
    def get(self, request: Request) -> object:
        """List memories, newest first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        pages = CursorPages(request, also_known=[*FILTERS, "provenance"])
        with acting(actor):
            views = cubes_list(
                actor=actor,
                matching=list_condition(actor, request.query_params),
                deleted=flag(request, "deleted"),
                inactive=flag(request, "inactive"),
                ended=ENDED & {*request.query_params.getlist("state")},
                pages=pages,
            )
            manifest = _make_manifest(actor, views) if flag(request, "provenance") else {}
        return pages.envelope(views) | manifest

    @of_memories(
        "memories_add",
        AddedSchema,
        status=201,
        request=MemoryInput,
        parameters=[ONCE, ASYNC],
        also={200: AddedSchema, 202: AddedLaterSchema},
    )
    def post(self, request: Request) -> Response:
        """Add one memory (`content`) or the messages of a conversation (`messages`).

        Messages that cannot be stored are named in `skipped`, and the others are stored.
        """
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        refuse_unknown_parameters(request, "async")
        later = flag(request, "async")
        body = read(MemoryInput, request)
        with self.once() as once:
            if once.reply is None and later:
                _add_later(actor, make_drafts(body), skipped_json(body), once)
            elif once.reply is None:
                _add_memories(actor, make_drafts(body, actor), skipped_json(body), once)
        return once.response()


class BulkView(ApiView):
    longest_body = settings.BODY_BYTES_BULK

    @of_memories(
        "memories_add_bulk",
        BulkSchema,
        status=201,
        request=BulkInput,
        parameters=[ONCE, DRY_RUN],
        also={200: BULK_OR_DRY_RUN},
    )
    @heavy
    def post(self, request: Request) -> Response:
        """Add up to 1,000 memories, all or none. A dry run counts the new ones."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        refuse_unknown_parameters(request, "dry_run")
        dry_run = flag(request, "dry_run")
        drafts, origins = drafts_of_bulk(read(BulkInput, request))
        if dry_run:
            return _rehearse_bulk(actor, drafts, origins)
        with self.once() as once:
            if once.reply is None:
                _add_bulk(actor, drafts, origins, once)
        return once.response()


class SearchView(ApiView):
    @of_memories(
        "memories_search",
        SearchSchema,
        request=SearchInput,
        parameters=[PROVENANCE],
    )
    def post(self, request: Request) -> Response:
        """Find the best memories for a question. The number of results is `min(top_k, visible)`."""
        started = time.perf_counter()
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request, "provenance")
        proven = flag(request, "provenance")
        body = read(SearchInput, request)
        search = make_search(body)
        refuse_unknown_personas(actor=actor, references=search.personas, field="personas")
        manifest: MemoryJson = {}

        def add_manifest(hits: Sequence[Hit]) -> None:
            if proven or body.get("provenance", False):
                manifest.update(_make_manifest(actor, [hit.view for hit in hits]))

        refused: list[tuple[str, Refusal]] = []
        if search.mode is SearchMode.MEMORYOS:
            hits = layers_search(actor=actor, search=search, within=add_manifest)
        else:
            hits = memories_search(actor=actor, search=search, within=add_manifest, refused=refused.extend)
        shown = [hit_json(hit, explain=body.get("explain", False)) for hit in hits]
        took = round((time.perf_counter() - started) * 1000, 2)
        notices = [LEFT_OUT[reason].format(path) for path, reason in refused]
        notices += [NO_EXPIRED] if asks_for_state(search.filters, State.EXPIRED) else []
        return Response({"results": shown, "took_ms": took, "mode": search.mode, "notices": notices, **manifest})


class ContextView(ApiView):
    @of_memories("memories_context", ContextSchema, request=ContextInput)
    def post(self, request: Request) -> object:
        """Assemble the memories that a model may get for a question, within a budget of tokens."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        body = self.read_body()
        budget = body.pop("token_budget", DEFAULT_TOKENS)
        order = ContextOrder(body.pop("order", ContextOrder.RELEVANCE))
        persona = body.pop("persona", None)
        named = {"personas": [str(persona_get(actor=actor, reference=persona).id)]} if persona else {}
        return context_assemble(actor=actor, search=make_search(body | named), token_budget=budget, order=order)


class MemoryView(ApiView):
    @of_memories("memories_get", MemoryAnswerSchema, parameters=[PROVENANCE], may=[404])
    def get(self, request: Request, memory_id: UUID) -> Response:
        """Read one memory."""
        actor = self.actor()
        with acting(actor):
            view = cube_get(actor=actor, cube_id=memory_id)
            refuse_unknown_parameters(request, "provenance")
            manifest = _make_manifest(actor, [view]) if flag(request, "provenance") else {}
        return _memory_response(memory_json(view) | manifest)

    @of_memories(
        "memories_update",
        MEMORY_OR_DRY_RUN,
        request=ChangesInput,
        parameters=[IF_MATCH, DRY_RUN],
        may=[404, 409, 423, 428],
    )
    def patch(self, request: Request, memory_id: UUID) -> Response:
        """Change a memory by adding a version. If-Match names the version that was read."""
        actor = self.actor()
        versions = expected_versions(request)
        changes = self.read_body(
            lambda: cube_update_ask(actor=actor, cube_id=memory_id, expected_versions=versions), make_changes
        )
        with prepare_changed_texts(actor=actor, cube_id=memory_id, changes=changes), acting(actor):
            cube_update(actor=actor, cube_id=memory_id, expected_versions=versions, changes=changes)
            view = cube_view(actor=actor, cube_id=memory_id)
            transaction.set_rollback(self.dry_run)
        return Response(dry_run_json([memory_id])) if self.dry_run else _memory_response(memory_json(view))

    @of_memories(
        "memories_delete",
        None,
        status=204,
        parameters=[IF_MATCH, DRY_RUN, PURGE],
        also={200: DryRunSchema},
        may=[404, 409, 423],
    )
    def delete(self, request: Request, memory_id: UUID) -> Response:
        """Delete a memory (restorable), or erase it with `?purge=true`."""
        actor, versions = self.actor(), expected_versions(request)
        service = cube_purge if request.query_params.get("purge") == "true" else cube_delete
        with acting(actor):
            service(actor=actor, cube_id=memory_id, expected_versions=versions, dry_run=True)  # 404 to 412; then 400
            refuse_unknown_parameters(request, "purge", "dry_run")
            flag(request, "purge")
            if flag(request, "dry_run"):
                return Response(dry_run_json([memory_id]))
            service(actor=actor, cube_id=memory_id, expected_versions=versions)
        return Response(status=204)


class RestoreView(ApiView):
    @of_memories(
        "memories_restore",
        MEMORY_OR_DRY_RUN,
        parameters=[IF_MATCH, ONCE, DRY_RUN],
        request=RestoreInput,
        may=[404, 412, 423],
    )
    def post(self, request: Request, memory_id: UUID) -> object:
        """Restore a deleted memory within the grace period. A memory that was not deleted is returned unchanged.

        With `expires_at`: bring an expired memory back to its state before expiry. Without, it is refused.
        """
        actor, versions = self.actor(), expected_versions(request)
        expires_at = _read_expiry(request)

        def restore() -> None:
            if expires_at is not None:
                cube_renew(actor=actor, cube_id=memory_id, expires_at=expires_at, expected_versions=versions)
            else:
                refuse_expired(actor=actor, cube_id=memory_id)
                cube_restore(actor=actor, cube_id=memory_id, expected_versions=versions)

        def ask() -> None:
            if expires_at is None:
                refuse_expired(actor=actor, cube_id=memory_id)
                cube_restore(actor=actor, cube_id=memory_id)
                return
            try:
                cube_renew_ask(actor=actor, cube_id=memory_id)
            except NotFound:  # an earlier call may have restored it
                cube_change_ask(actor=actor, cube_id=memory_id)

        self.read_body(lambda: self.rehearse(restore))
        with prepare_stored_texts(actor=actor, cube_ids=[memory_id]):
            return change_and_answer(self, memory_id, restore, ask=ask)


class VersionsView(ApiView):
    @of_memories("memories_versions", page_of(VersionSchema), parameters=PAGE, may=[404])
    def get(self, request: Request, memory_id: UUID) -> object:
        """List the versions of a memory, newest first."""
        return show_page(self, versions_list, ordering="-number", cube_id=memory_id)


def _read_expiry(request: Request) -> datetime | None:
    """Return the expiry if the body is valid, else None. Errors in the body are reported later, after 404 and 403."""
    try:
        found: datetime | None = read(RestoreInput, request).get("expires_at")
    except (APIException, DomainError):
        return None
    return found


def _make_manifest(actor: Actor, views: Sequence[CubeView]) -> MemoryJson:
    return {"manifest": manifest_json(manifest_of_memories(actor=actor, views=views))}


def _add_memories(actor: Actor, drafts: Sequence[CubeDraft], skipped: list[MemoryJson], once: Once) -> None:
    if len(drafts) > LARGE_WRITE:
        with heavy_call(actor), large_write(actor):
            _add_in_transaction(actor, drafts, skipped, once)
    else:
        _add_in_transaction(actor, drafts, skipped, once)


def _add_in_transaction(actor: Actor, drafts: Sequence[CubeDraft], skipped: list[MemoryJson], once: Once) -> None:
    reconciled = statements_relate(actor=actor, drafts=drafts)
    texts = texts_index(actor.tenant_id, reconciled.drafts)
    with acting(actor):
        added = memories_add(actor=actor, drafts=reconciled.drafts, texts=texts)
        changes = relations_store(actor=actor, added=added, relations=reconciled.relations)
        added = _show_repeated(_reload_changed(added, changes))
        kept = [memory for memory in added if not memory.cube.is_dialogue_only]
        body = {"results": _added_json(actor, kept), **changes_json(changes), "skipped": skipped}
        once.store(Reply(_response_status(added), body, shows=_list_ids(kept)))


def _add_later(actor: Actor, drafts: Sequence[CubeDraft], skipped: list[MemoryJson], once: Once) -> None:
    screened = drafts_screen(actor=actor, drafts=drafts)
    with acting(actor):
        job = memories_add_later(actor=actor, screened=screened)
        once.store(Reply(202, {"job": JobSchema.json(job), "skipped": skipped}))


def _add_bulk(actor: Actor, drafts: Sequence[CubeDraft], origins: Sequence[int], once: Once) -> None:
    reconciled = statements_relate(actor=actor, drafts=drafts)
    drafts, origins = _complete_bulk(drafts, origins, reconciled)
    texts = texts_index(actor.tenant_id, drafts)
    with large_write(actor), acting(actor), _name_items_in_errors(origins):
        added = memories_add(actor=actor, drafts=drafts, texts=texts)
        changes = relations_store(actor=actor, added=added, relations=reconciled.relations)
        placed = zip(origins, _show_repeated(_reload_changed(added, changes)), strict=True)
        kept = [(index, memory) for index, memory in placed if not memory.cube.is_dialogue_only]
        shown = _added_json(actor, [memory for _, memory in kept])
        results = [{"index": index, "memory": memory} for (index, _), memory in zip(kept, shown, strict=True)]
        body = {"results": results, **changes_json(changes)}
        once.store(Reply(_response_status(added), body, shows=_list_ids([memory for _, memory in kept])))


def _complete_bulk(
    drafts: Sequence[CubeDraft], origins: Sequence[int], reconciled: Reconciled
) -> tuple[Sequence[CubeDraft], list[int]]:
    """Return the drafts with what replies and corrections among them state, and the item of each."""
    stated = reconciled.drafts[len(drafts) :]
    return reconciled.drafts, [*origins, *(origins[draft.parent or 0] for draft in stated)]


def _reload_changed(added: Sequence[AddedCube], changes: Sequence[Change]) -> list[AddedCube]:
    """Return the additions; those that others of the same call ended are shown as they are stored."""
    changed = {change.earlier for change in changes}
    return [replace(each, alone=each.alone and each.cube.id not in changed) for each in added]


def _rehearse_bulk(actor: Actor, drafts: Sequence[CubeDraft], origins: Sequence[int]) -> Response:
    """Check and write everything, then roll back. New memories have no ids, so only their number is returned."""
    drafts, origins = _complete_bulk(drafts, origins, statements_relate(actor=actor, drafts=drafts))
    texts = texts_index(actor.tenant_id, drafts)
    with large_write(actor), acting(actor), _name_items_in_errors(origins):
        added = memories_add(actor=actor, drafts=drafts, texts=texts)
        transaction.set_rollback(True)
    return Response(dry_run_json([], count=sum(not memory.duplicate for memory in added)))


@contextmanager
def _name_items_in_errors(origins: Sequence[int]) -> Iterator[None]:
    """Put the number of the item into errors of a draft in this block."""
    try:
        yield
    except InvalidDraft as fault:
        item = f"items.{origins[fault.index]}"
        named = [FieldError(f"{item}.{error.field}", error.message) for error in fault.errors]
        told = Invalid(fault.detail, errors=named)
        told.code, told.title = fault.code, fault.title
        raise told from fault


def _added_json(actor: Actor, added: Sequence[AddedCube]) -> list[MemoryJson]:
    """Return the added memories: new ones as written, existing ones as stored.

    A writer who may not read an existing memory gets little more than the sent text.
    """
    stored = [memory.cube.id for memory in added if not memory.alone]
    views = {view.cube.id: view for view in cubes_view(actor=actor, cube_ids=stored)} if stored else {}
    may_read = is_allowed(actor, Permission.MEMORY_READ)
    return [
        memory_json(_new_view(memory) if memory.alone else replace(views[memory.cube.id], duplicate=memory.duplicate))
        if may_read or not memory.duplicate
        else duplicate_json(views[memory.cube.id], content=memory.content)
        for memory in added
    ]


def _show_repeated(added: Sequence[AddedCube]) -> list[AddedCube]:
    """Return the additions with the stored statement in the place of each occasion of it."""
    return [
        replace(memory, cube=memory.repeats, duplicate=True, alone=False, repeats=None) if memory.repeats else memory
        for memory in added
    ]


def _new_view(memory: AddedCube) -> CubeView:
    """Return the view of a memory that was just written, equal to the result of `cubes_view`."""
    return CubeView(
        cube=memory.cube,
        words=memory.words,
        subject=None,
        parents=(),
        heat=0.0,
        access_count=0,
        last_accessed_at=None,
        questions=0,
        pending_embedding=True,
        held=False,
    )


def _list_ids(added: Sequence[AddedCube]) -> tuple[UUID, ...]:
    return tuple(memory.cube.id for memory in added)


def _response_status(added: Sequence[AddedCube]) -> int:
    """Return 200 if all memories existed already, else 201."""
    return 200 if all(memory.duplicate for memory in added) else 201


def _memory_response(memory: MemoryJson) -> Response:
    return Response(memory, headers={"ETag": f'"{memory["version"]}"'})
