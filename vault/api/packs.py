"""packs/ of the REST API: a tenant's own packs and their versions, and the check of a file."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.jobs import JobPromiseSchema
from governance.api.pages import show_page
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.vocabulary import Permission
from vault.api.pack_schema import (
    ChoiceInput,
    ItemsSchema,
    PackChangesInput,
    PackInput,
    PackListSchema,
    PackPreviewSchema,
    PackSchema,
    PackVerdictSchema,
    PackVersionSchema,
    VersionInput,
    WhyInput,
)
from vault.store.files import LARGEST_FILE
from vault.store.publications import version_remove, version_yank
from vault.store.scan import LeavingRules, list_undecided
from vault.store.selectors import (
    file_verify,
    pack_get,
    packs_list,
    version_file,
    version_get,
    version_items,
    versions_list,
)
from vault.store.services import (
    PackDraft,
    VersionDraft,
    pack_create,
    pack_remove,
    pack_update,
    version_build,
    version_deprecate,
    version_preview,
)
from vault.vocabulary import FindingRule, SubjectRule

if TYPE_CHECKING:
    pass

PACK_TYPE = "application/vnd.memos.mempack+zip"
LISTED = ("authors", "keywords")


class PackParser(BaseParser):
    """Parses a body as the bytes of a file."""

    media_type = PACK_TYPE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> dict[str, bytes]:
        return {"file": stream.read(LARGEST_FILE + 1)}


class PacksView(ApiView):
    @describe("packs_list", PackListSchema, parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the organisation's own packs, newest first."""
        authorize(self.actor(), Permission.STORE_MANAGE)
        return show_page(self, packs_list)

    @describe("packs_create", PackSchema, status=201, request=PackInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Create a pack without memories."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        draft = PackDraft(**_read_changes(self.read_body()))
        return self.post_once(lambda: pack_create(actor=actor, draft=draft))


class PackView(ApiView):
    @describe("packs_read", PackSchema, may=[404])
    def get(self, request: Request, pack_id: UUID) -> object:
        """Read one of the organisation's own packs."""
        return pack_get(actor=self.actor(), pack_id=pack_id)

    @describe("packs_update", PackSchema, request=PackChangesInput, may=[404])
    def patch(self, request: Request, pack_id: UUID) -> object:
        """Change the texts of a pack. Existing versions keep the texts that they were signed with."""
        actor = self.actor()
        changes = self.read_body(lambda: pack_get(actor=actor, pack_id=pack_id), _read_changes)
        return pack_update(actor=actor, pack_id=pack_id, changes=changes)

    @describe("packs_delete", None, status=204, may=[404, 409])
    def delete(self, request: Request, pack_id: UUID) -> None:
        """Remove a pack that was never published."""
        actor = self.actor()
        self.read_body(lambda: pack_get(actor=actor, pack_id=pack_id))
        pack_remove(actor=actor, pack_id=pack_id)


class PackVersionsView(ApiView):
    @describe("packs_versions_list", page_of(PackVersionSchema), parameters=PAGE, may=[404])
    def get(self, request: Request, pack_id: UUID) -> object:
        """List the versions of a pack, newest first."""
        return show_page(self, versions_list, pack_id=pack_id)

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
        draft = self.read_body(lambda: pack_get(actor=actor, pack_id=pack_id), _version_draft)
        return self.post_once(lambda: version_build(actor=actor, pack_id=pack_id, draft=draft))


class PackPreviewView(ApiView):
    @describe("packs_preview", PackPreviewSchema, request=ChoiceInput, may=[404], memories=True)
    def post(self, request: Request, pack_id: UUID) -> object:
        """Preview the treatment of the first 200 chosen memories. Nothing is stored."""
        actor = self.actor()
        draft = _version_draft({"version": "0.0.0", **self.read_body(lambda: pack_get(actor=actor, pack_id=pack_id))})
        decided = version_preview(actor=actor, pack_id=pack_id, draft=draft)
        return {"results": decided, "undecided": list_undecided(decided)}


class PackVersionView(ApiView):
    @describe("packs_versions_read", PackVersionSchema, may=[404])
    def get(self, request: Request, pack_id: UUID, number: str) -> object:
        """Read one version of a pack, with the report of its scan."""
        return version_get(actor=self.actor(), pack_id=pack_id, number=number)

    @describe("packs_versions_delete", None, status=204, may=[404, 409])
    def delete(self, request: Request, pack_id: UUID, number: str) -> None:
        """Delete a version that no live subscriber has installed; otherwise 409."""
        actor = self.actor()
        row = version_get(actor=actor, pack_id=pack_id, number=number)
        self.read_body()
        version_remove(actor=actor, version_id=row.id)


class PackVersionPreviewView(ApiView):
    @describe("packs_versions_preview", ItemsSchema, may=[404, 409])
    def get(self, request: Request, pack_id: UUID, number: str) -> object:
        """List the memories of the version, as its readers get them."""
        actor = self.actor()
        row = version_get(actor=actor, pack_id=pack_id, number=number)
        refuse_unknown_parameters(request)
        return {"results": version_items(actor=actor, version_id=row.id).items}


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
        row = version_get(actor=actor, pack_id=pack_id, number=number)
        reason = self.read_body()["reason"]
        return self.post_once(lambda: version_deprecate(actor=actor, version_id=row.id, reason=reason))


class PackVersionYankView(ApiView):
    @describe("packs_versions_yank", PackVersionSchema, request=WhyInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, pack_id: UUID, number: str) -> Response:
        """Yank a version. Others can no longer find it."""
        actor = self.actor()
        row = version_get(actor=actor, pack_id=pack_id, number=number)
        reason = self.read_body()["reason"]
        return self.post_once(lambda: version_yank(actor=actor, version_id=row.id, reason=reason))


class PackVerifyView(ApiView):
    longest_body = LARGEST_FILE + 1
    parser_classes = (PackParser,)

    @describe("packs_verify", PackVerdictSchema, request={PACK_TYPE: OpenApiTypes.BINARY})
    def post(self, request: Request) -> object:
        """Check the shape, digests and signature of a `.mempack` file. Nothing is stored."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        self.read_body()
        return file_verify(actor=actor, content=dict(request.data).get("file", b""))


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
        adapter=body.get("adapter"),
    )
