from django.urls import path

from vault.api.actions import ActionsView, ExportFileView
from vault.api.conversations import ConversationsView, ConversationView, TurnsView
from vault.api.feedback import FeedbackView
from vault.api.holds import FreezeView, HoldReleaseView, HoldsView, HoldView, UnfreezeView
from vault.api.layers import (
    ConstantsView,
    ProfileView,
    ReplayView,
    SegmentsView,
    StmView,
    TenantConstantsView,
    TraitsView,
    WorkingSetView,
)
from vault.api.lifecycle import CopyView, FuseView, PromoteView, SplitView, TransitionView, UnfuseView
from vault.api.listing_views import FacetsView, ViewsView, ViewView
from vault.api.me import MeView
from vault.api.memories import BulkView, ContextView, MemoriesView, MemoryView, RestoreView, SearchView, VersionsView
from vault.api.memory_calls import MemoryCallsView
from vault.api.mounts import EntryView, MountDetailView, MountsView, SessionEndView
from vault.api.namespaces import NamespaceMoveView, NamespaceRestoreView, NamespacesView, NamespaceView
from vault.api.packs import (
    PackPreviewView,
    PacksView,
    PackVerifyView,
    PackVersionDeprecateView,
    PackVersionFileView,
    PackVersionPreviewView,
    PackVersionsView,
    PackVersionView,
    PackVersionYankView,
    PackView,
)
from vault.api.policies import PoliciesView, PolicySimulateView, PolicyVersionsView, PolicyView
from vault.api.provenance import MemoryProvenanceView, SigningKeyView, VerifyView
from vault.api.quotas import QuotasView
from vault.api.reviews import QuarantineView, RedactView, ReviewAcceptView, ReviewRejectView, ReviewsView
from vault.api.store import (
    OwnPublicationsView,
    PublicationApproveView,
    PublicationRejectView,
    PublicationsView,
    PublicationView,
)
from vault.api.subjects import (
    SubjectAssignView,
    SubjectEraseView,
    SubjectExportHtmlView,
    SubjectExportJsonView,
    SubjectExportView,
    SubjectsView,
    SubjectView,
)
from vault.api.tools import ToolCallSearchView, ToolCallsView
from vault.api.versions import DifferenceView, MoveView, RollbackView, VersionView

urlpatterns = [
    path("policies/", PoliciesView.as_view()),
    path("policies/simulate/", PolicySimulateView.as_view()),
    path("policies/<uuid:policy_id>/", PolicyView.as_view()),
    path("policies/<uuid:policy_id>/versions/", PolicyVersionsView.as_view()),
    path("quotas/", QuotasView.as_view()),
    path("me/", MeView.as_view()),
    path("namespaces/", NamespacesView.as_view()),
    path("namespaces/<uuid:namespace_id>/", NamespaceView.as_view()),
    path("namespaces/<uuid:namespace_id>/move/", NamespaceMoveView.as_view()),
    path("namespaces/<uuid:namespace_id>/restore/", NamespaceRestoreView.as_view()),
    path("namespaces/<uuid:namespace_id>/entries/<str:key>/", EntryView.as_view()),
    path("mounts/", MountsView.as_view()),
    path("mounts/<uuid:mount_id>/", MountDetailView.as_view()),
    path("sessions/<str:session_id>/end/", SessionEndView.as_view()),
    path("memories/", MemoriesView.as_view()),
    path("memories/bulk/", BulkView.as_view()),
    path("memories/actions/", ActionsView.as_view()),
    path("memories/actions/<uuid:job_id>/file/", ExportFileView.as_view(), name="memories_export"),
    path("memories/search/", SearchView.as_view()),
    path("memories/context/", ContextView.as_view()),
    path("memory-calls/", MemoryCallsView.as_view()),
    path("memories/tool-calls/", ToolCallsView.as_view()),
    path("memories/tool-calls/search/", ToolCallSearchView.as_view()),
    path("memories/<uuid:memory_id>/", MemoryView.as_view(), name="api_memory"),
    path("memories/<uuid:memory_id>/restore/", RestoreView.as_view()),
    path("memories/<uuid:memory_id>/versions/", VersionsView.as_view()),
    path("memories/facets/", FacetsView.as_view()),
    path("memories/<uuid:memory_id>/versions/<int:number>/", VersionView.as_view()),
    path("memories/<uuid:memory_id>/diff/", DifferenceView.as_view()),
    path("memories/<uuid:memory_id>/rollback/", RollbackView.as_view()),
    path("memories/<uuid:memory_id>/move/", MoveView.as_view()),
    path("layers/settings/", TenantConstantsView.as_view()),
    path("personas/<uuid:persona_id>/stm/", StmView.as_view()),
    path("personas/<uuid:persona_id>/segments/", SegmentsView.as_view()),
    path("personas/<uuid:persona_id>/profile/", ProfileView.as_view()),
    path("personas/<uuid:persona_id>/traits/", TraitsView.as_view()),
    path("personas/<uuid:persona_id>/working-set/", WorkingSetView.as_view()),
    path("personas/<uuid:persona_id>/replay/", ReplayView.as_view()),
    path("personas/<uuid:persona_id>/settings/", ConstantsView.as_view()),
    path("views/", ViewsView.as_view()),
    path("views/<uuid:view_id>/", ViewView.as_view()),
    path("conversations/", ConversationsView.as_view()),
    path("conversations/<uuid:conversation_id>/", ConversationView.as_view()),
    path("conversations/<uuid:conversation_id>/turns/", TurnsView.as_view()),
    path("memories/<uuid:memory_id>/redact/", RedactView.as_view()),
    path("reviews/", ReviewsView.as_view()),
    path("reviews/quarantine/", QuarantineView.as_view()),
    path("reviews/<uuid:review_id>/accept/", ReviewAcceptView.as_view()),
    path("reviews/<uuid:review_id>/reject/", ReviewRejectView.as_view()),
    path("memories/<uuid:memory_id>/freeze/", FreezeView.as_view()),
    path("memories/<uuid:memory_id>/unfreeze/", UnfreezeView.as_view()),
    path("memories/<uuid:memory_id>/transition/", TransitionView.as_view()),
    path("memories/fuse/", FuseView.as_view()),
    path("memories/<uuid:memory_id>/promote/", PromoteView.as_view()),
    path("memories/<uuid:memory_id>/copy/", CopyView.as_view()),
    path("memories/<uuid:memory_id>/feedback/", FeedbackView.as_view()),
    path("memories/<uuid:memory_id>/split/", SplitView.as_view()),
    path("memories/<uuid:memory_id>/unfuse/", UnfuseView.as_view()),
    path("memories/<uuid:memory_id>/provenance/", MemoryProvenanceView.as_view()),
    path("provenance/verify/", VerifyView.as_view()),
    path("provenance/key/", SigningKeyView.as_view()),
    path("holds/", HoldsView.as_view()),
    path("holds/<uuid:hold_id>/", HoldView.as_view()),
    path("holds/<uuid:hold_id>/release/", HoldReleaseView.as_view()),
    path("packs/", PacksView.as_view()),
    path("packs/verify/", PackVerifyView.as_view()),
    path("packs/<uuid:pack_id>/", PackView.as_view()),
    path("packs/<uuid:pack_id>/preview/", PackPreviewView.as_view()),
    path("packs/<uuid:pack_id>/versions/", PackVersionsView.as_view()),
    path("packs/<uuid:pack_id>/versions/<str:number>/", PackVersionView.as_view()),
    path("packs/<uuid:pack_id>/versions/<str:number>/preview/", PackVersionPreviewView.as_view()),
    path("packs/<uuid:pack_id>/versions/<str:number>/file/", PackVersionFileView.as_view()),
    path("packs/<uuid:pack_id>/versions/<str:number>/deprecate/", PackVersionDeprecateView.as_view()),
    path("packs/<uuid:pack_id>/versions/<str:number>/yank/", PackVersionYankView.as_view()),
    path("publications/", PublicationsView.as_view()),
    path("publications/own/", OwnPublicationsView.as_view()),
    path("publications/<uuid:publication_id>/", PublicationView.as_view()),
    path("publications/<uuid:publication_id>/approve/", PublicationApproveView.as_view()),
    path("publications/<uuid:publication_id>/reject/", PublicationRejectView.as_view()),
    path("subjects/", SubjectsView.as_view()),
    path("subjects/<uuid:subject_id>/", SubjectView.as_view()),
    path("subjects/<uuid:subject_id>/assign/", SubjectAssignView.as_view()),
    path("subjects/<uuid:subject_id>/export/", SubjectExportView.as_view()),
    path("subjects/<uuid:subject_id>/exports/<uuid:job_id>/json/", SubjectExportJsonView.as_view()),
    path("subjects/<uuid:subject_id>/exports/<uuid:job_id>/html/", SubjectExportHtmlView.as_view()),
    path("subjects/<uuid:subject_id>/erase/", SubjectEraseView.as_view()),
]
