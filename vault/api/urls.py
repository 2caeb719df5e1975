from django.urls import path

from vault.api.conversations import ConversationsView, ConversationView, TurnsView
from vault.api.jobs import JobRetryView, JobsView, JobView
from vault.api.me import MeView
from vault.api.memories import BulkView, MemoriesView, MemoryView, RestoreView, SearchView, VersionsView
from vault.api.policies import PoliciesView, PolicySimulateView, PolicyVersionsView, PolicyView
from vault.api.quotas import QuotasView

urlpatterns = [
    path("policies/", PoliciesView.as_view()),
    path("policies/simulate/", PolicySimulateView.as_view()),
    path("policies/<uuid:policy_id>/", PolicyView.as_view()),
    path("policies/<uuid:policy_id>/versions/", PolicyVersionsView.as_view()),
    path("quotas/", QuotasView.as_view()),
    path("me/", MeView.as_view()),
    path("memories/", MemoriesView.as_view()),
    path("memories/bulk/", BulkView.as_view()),
    path("memories/search/", SearchView.as_view()),
    path("memories/<uuid:memory_id>/", MemoryView.as_view()),
    path("memories/<uuid:memory_id>/restore/", RestoreView.as_view()),
    path("memories/<uuid:memory_id>/versions/", VersionsView.as_view()),
    path("conversations/", ConversationsView.as_view()),
    path("conversations/<uuid:conversation_id>/", ConversationView.as_view()),
    path("conversations/<uuid:conversation_id>/turns/", TurnsView.as_view()),
    path("jobs/", JobsView.as_view()),
    path("jobs/<uuid:job_id>/", JobView.as_view()),
    path("jobs/<uuid:job_id>/retry/", JobRetryView.as_view()),
]
