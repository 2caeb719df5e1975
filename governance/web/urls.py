from django.urls import path
from django.views.i18n import set_language

from governance.web import access, personas, presets, views

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in/", views.sign_in_page, name="sign_in"),
    path("sign-in/<str:token>/", views.sign_in_link, name="sign_in_link"),
    path("sign-out/", views.sign_out, name="sign_out"),
    path("language/", set_language, name="set_language"),
    path("access/", access.access_list, name="access_list"),
    path("access/<slug:object_type>/<uuid:object_id>/", access.access_object, name="access_object"),
    path("access/grants/<uuid:grant_id>/revoke/", access.grant_remove, name="grant_revoke"),
    path("personas/", personas.personas, name="personas"),
    path("personas/<uuid:persona_id>/", personas.persona, name="persona"),
    path("personas/<uuid:persona_id>/delete/", personas.persona_delete, name="persona_delete"),
    path("presets/", presets.presets, name="presets"),
    path("presets/<uuid:template_id>/", presets.preset, name="preset"),
    path("presets/<uuid:template_id>/apply/", presets.preset_apply, name="preset_apply"),
    path("presets/<uuid:template_id>/remove/", presets.preset_remove, name="preset_remove"),
]
