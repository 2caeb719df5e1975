from django.urls import path

from vault.web import chat, memories, reviews

urlpatterns = [
    path("chat/", chat.chat, name="chat"),
    path("chat/<uuid:conversation_id>/", chat.conversation, name="conversation"),
    path("chat/<uuid:conversation_id>/turns/", chat.turns, name="turns"),
    path("chat/<uuid:conversation_id>/turns/<uuid:turn_id>/", chat.turn, name="turn"),
    path("chat/<uuid:conversation_id>/rename/", chat.rename, name="conversation_rename"),
    path("chat/<uuid:conversation_id>/delete/", chat.delete, name="conversation_delete"),
    path("memories/<uuid:memory_id>/", memories.memory, name="memory"),
    path("reviews/", reviews.reviews, name="reviews"),
    path("reviews/<uuid:review_id>/accept/", reviews.accept, name="review_accept"),
    path("reviews/<uuid:review_id>/reject/", reviews.reject, name="review_reject"),
]
