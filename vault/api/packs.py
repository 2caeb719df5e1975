"""packs/ of the REST API: a tenant's own packs and their versions, and the check of a file."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe
from governance.api.jobs import JobPromiseSchema, job_json
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.inputs import read
from vault.api.pack_schema import (
    ChoiceInput,
    ItemsSchema,
    PackChangesInput,
    PackInput,
    PackListSchema,
    PackPreviewSchema,
    PackSchema,
    PackVerdictSchema,
    PackVersionListSchema,
    PackVersionSchema,
    VersionInput,
    WhyInput,
)
from vault.packs.files import LARGEST_FILE, Item
from vault.packs.scan import Leaving, LeavingRules, list_undecided
from vault.packs.selectors import (
    file_verify,
    pack_get,
    packs_list,
    version_file,
    version_get,
    version_items,
    versions_list,
)
from vault.packs.services import (
    PackDraft,
    VersionDraft,
    pack_create,
    pack_remove,
    pack_update,
    version_build,
    version_deprecate,
    version_preview,
)
from vault.store.publications import version_remove, version_yank
from vault.vocabulary import FindingRule, SubjectRule

if TYPE_CHECKING:
    from vault.models import Pack, PackVersion

PACK_TYPE = "application/vnd.memos.mempack+zip"
LISTED = ("authors", "keywords")


class PackParser(BaseParser):
    """Parses a body as the bytes of a file."""

    media_type = PACK_TYPE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> dict[str, bytes]:
        return {"file": stream.read(LARGEST_FILE + 1)}


class PacksView(ApiView):
    @describe("packs_list", PackListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """List the organisation's own packs, newest first."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        pages = CursorPages(request)
        found = packs_list(actor=actor, pages=pages)
        return pages.envelope(
            [{**pack_json(pack), "newest": pack_version_json(newest) if newest else None} for pack, newest in found]
        )

    @describe("packs_create", PackSchema, status=201, request=PackInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Create a pack without memories."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        refuse_unknown_parameters(request)
        draft = PackDraft(**_read_changes(read(PackInput, request)))
        return self.post_once(lambda: Reply(201, pack_json(pack_create(actor=actor, draft=draft))))


class PackView(ApiView):
    @describe("packs_read", PackSchema, may=[404])
    def get(self, request: Request, pack_id: UUID) -> Response:
        """Read one of the organisation's own packs."""
        pack = pack_get(actor=self.actor(), pack_id=pack_id)
        refuse_unknown_parameters(request)
        return Response(pack_json(pack))

    @describe("packs_update", PackSchema, request=PackChangesInput, may=[404])
    def patch(self, request: Request, pack_id: UUID) -> Response:
        """Change the texts of a pack. Existing versions keep the texts that they were signed with."""
        actor = self.actor()
        with self.after(lambda: pack_get(actor=actor, pack_id=pack_id)):
            refuse_unknown_parameters(request)
            changes = _read_changes(read(PackChangesInput, request))
        return Response(pack_json(pack_update(actor=actor, pack_id=pack_id, changes=changes)))

    @describe("packs_delete", None, status=204, may=[404, 409])
    def delete(self, request: Request, pack_id: UUID) -> Response:
        """Remove a pack that was never published."""
        actor = self.actor()
        with self.after(lambda: pack_get(actor=actor, pack_id=pack_id)):
            refuse_unknown_parameters(request)
        pack_remove(actor=actor, pack_id=pack_id)
        return Response(status=204)


class PackVersionsView(ApiView):
    @describe("packs_versions_list", PackVersionListSchema, parameters=PAGE, may=[404])
    def get(self, request: Request, pack_id: UUID) -> Response:
        """List the versions of a pack, newest first."""
        pages = CursorPages(request)
        rows = versions_list(actor=self.actor(), pack_id=pack_id, pages=pages)
        return pages.envelope([pack_version_json(row) for row in rows])

    @describe(
        "packs_versions_create",
        JobPromiseSchema,
        status=202,
        request=VersionInput,
        parameters=[ONCE],
        may=[404, 409],
        memories=True,
    )
    def post(self, request: Request, pack_id: UUID) -> Response:
        """Build the next version, as a job that scans, signs and freezes the chosen memories."""
        actor = self.actor()

        def ask() -> None:
            pack_get(actor=actor, pack_id=pack_id)

        with self.after(ask):
            refuse_unknown_parameters(request)
            draft = _version_draft(read(VersionInput, request))

        def call() -> Reply:
            return Reply(202, {"job": job_json(version_build(actor=actor, pack_id=pack_id, draft=draft))})

        return self.post_once(call, ask=ask)


class PackPreviewView(ApiView):
    @describe("packs_preview", PackPreviewSchema, request=ChoiceInput, may=[404], memories=True)
    def post(self, request: Request, pack_id: UUID) -> Response:
        """Preview the treatment of the first 200 chosen memories. Nothing is stored."""
        actor = self.actor()
        with self.after(lambda: pack_get(actor=actor, pack_id=pack_id)):
            refuse_unknown_parameters(request)
            draft = _version_draft({"version": "0.0.0", **read(ChoiceInput, request)})
        decided = version_preview(actor=actor, pack_id=pack_id, draft=draft)
        return Response(
            {"results": [leaving_json(leaving) for leaving in decided], "undecided": list_undecided(decided)}
        )


class PackVersionView(ApiView):
    @describe("packs_versions_read", PackVersionSchema, may=[404])
    def get(self, request: Request, pack_id: UUID, number: str) -> Response:
        """Read one version of a pack, with the report of its scan."""
        row = version_get(actor=self.actor(), pack_id=pack_id, number=number)
        refuse_unknown_parameters(request)
        return Response(pack_version_json(row))

    @describe("packs_versions_delete", None, status=204, may=[404, 409])
    def delete(self, request: Request, pack_id: UUID, number: str) -> Response:
        """Delete a version that no live subscriber has installed; otherwise 409."""
        actor = self.actor()
        row = version_get(actor=actor, pack_id=pack_id, number=number)
        refuse_unknown_parameters(request)
        version_remove(actor=actor, version_id=row.id)
        return Response(status=204)


class PackVersionPreviewView(ApiView):
    @describe("packs_versions_preview", ItemsSchema, may=[404, 409])
    def get(self, request: Request, pack_id: UUID, number: str) -> Response:
        """List the memories of the version, as its readers get them."""
        actor = self.actor()
        row = version_get(actor=actor, pack_id=pack_id, number=number)
        refuse_unknown_parameters(request)
        items = version_items(actor=actor, version_id=row.id).items
        return Response({"results": [item_json(item) for item in items]})


class PackVersionFileView(ApiView):
    @describe("packs_versions_file", OpenApiTypes.BINARY, status=(200, PACK_TYPE), may=[404, 409])
    def get(self, request: Request, pack_id: UUID, number: str) -> HttpResponse:
        """Download the signed file of a version."""
        actor = self.actor()
        row = version_get(actor=actor, pack_id=pack_id, number=number)
        refuse_unknown_parameters(request)
        content = version_file(actor=actor, version_id=row.id)
        name = f"{row.pack.name}-{row.number}.mempack"
        disposition = f'attachment; filename="{name}"'
        return HttpResponse(content, content_type=PACK_TYPE, headers={"Content-Disposition": disposition})


class PackVersionDeprecateView(ApiView):
    @describe("packs_versions_deprecate", PackVersionSchema, request=WhyInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, pack_id: UUID, number: str) -> Response:
        """Deprecate a version. Subscribers who installed it keep it."""
        actor = self.actor()
        row, reason = _read_reason(self, request, pack_id, number)
        return self.post_once(
            lambda: Reply(200, pack_version_json(version_deprecate(actor=actor, version_id=row.id, reason=reason)))
        )


class PackVersionYankView(ApiView):
    @describe("packs_versions_yank", PackVersionSchema, request=WhyInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, pack_id: UUID, number: str) -> Response:
        """Yank a version. Others can no longer find it."""
        actor = self.actor()
        row, reason = _read_reason(self, request, pack_id, number)
        return self.post_once(
            lambda: Reply(200, pack_version_json(version_yank(actor=actor, version_id=row.id, reason=reason)))
        )


class PackVerifyView(ApiView):
    longest_body = LARGEST_FILE + 1
    parser_classes = (PackParser,)

    @describe("packs_verify", PackVerdictSchema, request={PACK_TYPE: OpenApiTypes.BINARY})
    def post(self, request: Request) -> Response:
        """Check the shape, digests and signature of a `.mempack` file. Nothing is stored."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request)
        found = file_verify(actor=actor, content=dict(request.data).get("file", b""))
        manifest = found.manifest
        names = ("name", "version", "title", "count", "digest", "key_id")
        done = manifest.de_identification
        return Response(
            {
                **{name: getattr(manifest, name) for name in names},
                "data_subjects": manifest.proved_statement,
                "de_identification": asdict(done) if done else None,
                "signed_here": found.is_own,
            }
        )


def _read_reason(view: ApiView, request: Request, pack_id: UUID, number: str) -> "tuple[PackVersion, str]":
    row = version_get(actor=view.actor(), pack_id=pack_id, number=number)
    refuse_unknown_parameters(request)
    return row, read(WhyInput, request)["reason"]


def _read_changes(body: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if name in LISTED else value for name, value in body.items()}


def _version_draft(body: dict[str, Any]) -> VersionDraft:
    rules = LeavingRules(
        FindingRule(body.get("findings", FindingRule.BLOCK)),
        SubjectRule(body.get("subjects", SubjectRule.DROP)),
        tuple(body.get("names", ())),
        frozenset(body.get("accepted", ())),
        body.get("preview_read", False),
    )
    return VersionDraft(
        number=body["version"],
        ids=tuple(body.get("ids", ())),
        filters=body.get("filters"),
        changelog=body.get("changelog", ""),
        rules=rules,
    )


def pack_json(row: "Pack") -> dict[str, Any]:
    names = ("name", "title", "description", "readme", "licence", "topic", "authors", "keywords")
    return {
        "id": str(row.id),
        **{name: getattr(row, name) for name in names},
        "created_at": time_json(row.created_at),
    }


def pack_version_json(row: "PackVersion") -> dict[str, Any]:
    names = ("state", "changelog", "reason", "count", "size", "digest", "key_id", "languages", "report")
    return {
        "id": str(row.id),
        "version": row.number,
        **{name: getattr(row, name) for name in names},
        "created_at": time_json(row.created_at),
        "published_at": time_json(row.published_at),
    }


def item_json(item: Item) -> dict[str, Any]:
    return {
        "id": str(item.id),
        "content": item.content,
        "title": item.title,
        "tags": list(item.tags),
        "semantic_type": str(item.semantic_type),
        "language": item.language,
    }


def leaving_json(leaving: Leaving) -> dict[str, Any]:
    return {
        "memory_id": str(leaving.cube_id),
        "treatment": str(leaving.treatment),
        "reasons": list(leaving.reasons),
        "item": item_json(leaving.item) if leaving.item else None,
        "replaced": [{"field": name, **asdict(mark)} for name, marks in leaving.marks.items() for mark in marks],
        "undecided": [{"field": name, **asdict(each)} for name, found in leaving.undecided.items() for each in found],
    }
