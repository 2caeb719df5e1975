from django.urls import path

from vault.web import chat, holds, memories, policies, provenance, reviews

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
    path("reviews/", reviews.reviews, name="reviews"),
    path("reviews/<uuid:review_id>/accept/", reviews.accept, name="review_accept"),
    path("reviews/<uuid:review_id>/reject/", reviews.reject, name="review_reject"),
    path("memories/<uuid:memory_id>/provenance/", provenance.provenance, name="memory_provenance"),
    path("memories/<uuid:memory_id>/manifest/", provenance.manifest, name="memory_manifest"),
    path("memories/<uuid:memory_id>/freeze/", holds.freeze, name="memory_freeze"),
    path("memories/<uuid:memory_id>/unfreeze/", holds.unfreeze, name="memory_unfreeze"),
    path("holds/", holds.holds, name="holds"),
    path("holds/<uuid:hold_id>/", holds.hold, name="hold"),
    path("holds/<uuid:hold_id>/release/", holds.release, name="hold_release"),
]
