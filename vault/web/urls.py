from django.urls import path

from vault.web import chat, memories, policies

urlpatterns = [
    path("chat/", chat.chat, name="chat"),
    path("chat/<uuid:conversation_id>/", chat.conversation, name="conversation"),
    path("chat/<uuid:conversation_id>/turns/", chat.turns, name="turns"),
    path("chat/<uuid:conversation_id>/turns/<uuid:turn_id>/", chat.turn, name="turn"),
    path("chat/<uuid:conversation_id>/rename/", chat.rename, name="conversation_rename"),
    path("chat/<uuid:conversation_id>/delete/", chat.delete, name="conversation_delete"),
    path("policies/", policies.policies, name="policies"),
    path("policies/new/<str:kind>/", policies.policy_new, name="policy_new"),
    path("policies/<uuid:policy_id>/", policies.policy, name="policy"),
    path("policies/<uuid:policy_id>/versions/", policies.versions, name="policy_versions"),
    path("quotas/", policies.quotas, name="quotas"),
    path("memories/<uuid:memory_id>/", memories.memory, name="memory"),
]
