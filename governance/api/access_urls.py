"""URL patterns of grants, personas and role templates."""

from django.urls import path

from governance.api.grants import CheckView, GrantsView, GrantView
from governance.api.personas import PersonasView, PersonaView
from governance.api.role_templates import ApplyView, TemplatesView, TemplateView

urlpatterns = [
    path("grants/", GrantsView.as_view()),
    path("grants/check/", CheckView.as_view()),
    path("grants/<uuid:grant_id>/", GrantView.as_view()),
    path("personas/", PersonasView.as_view()),
    path("personas/<uuid:persona_id>/", PersonaView.as_view()),
    path("role-templates/", TemplatesView.as_view()),
    path("role-templates/<uuid:template_id>/", TemplateView.as_view()),
    path("role-templates/<uuid:template_id>/apply/", ApplyView.as_view()),
]
