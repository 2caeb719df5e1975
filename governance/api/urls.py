from django.urls import path

from governance.api.keys import KeyRotateView, KeysView, KeyView
from governance.api.members import InvitationsView, InvitationView, MembersView, MemberView

urlpatterns = [
    path("members/", MembersView.as_view()),
    path("members/<uuid:member_id>/", MemberView.as_view()),
    path("members/invitations/", InvitationsView.as_view()),
    path("members/invitations/<uuid:invitation_id>/", InvitationView.as_view()),
    path("api-keys/", KeysView.as_view()),
    path("api-keys/<uuid:key_id>/", KeyView.as_view()),
    path("api-keys/<uuid:key_id>/rotate/", KeyRotateView.as_view()),
]
