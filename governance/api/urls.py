from django.urls import path

from governance.api.keys import KeyRequestsView, KeyRotateView, KeysView, KeyView
from governance.api.members import InvitationsView, InvitationView, MembersView, MemberView
from governance.api.webhooks import (
    DeliveriesView,
    DeliveryReplayView,
    WebhookRotateView,
    WebhooksView,
    WebhookTestView,
    WebhookView,
)

urlpatterns = [
    path("members/", MembersView.as_view()),
    path("members/<uuid:member_id>/", MemberView.as_view()),
    path("invitations/", InvitationsView.as_view()),
    path("invitations/<uuid:invitation_id>/", InvitationView.as_view()),
    path("api-keys/", KeysView.as_view()),
    path("api-keys/<uuid:key_id>/", KeyView.as_view()),
    path("api-keys/<uuid:key_id>/rotate/", KeyRotateView.as_view()),
    path("api-keys/<uuid:key_id>/requests/", KeyRequestsView.as_view()),
    path("webhooks/", WebhooksView.as_view()),
    path("webhooks/<uuid:webhook_id>/", WebhookView.as_view()),
    path("webhooks/<uuid:webhook_id>/test/", WebhookTestView.as_view()),
    path("webhooks/<uuid:webhook_id>/rotate/", WebhookRotateView.as_view()),
    path("webhooks/<uuid:webhook_id>/deliveries/", DeliveriesView.as_view()),
    path("deliveries/<uuid:delivery_id>/replay/", DeliveryReplayView.as_view()),
]
