from django.urls import path
from django.views.i18n import set_language

from governance.web import access, account, keys, members, personas, recovering, role_templates, sign_in_rules, views

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in/", views.sign_in_page, name="sign_in"),
    # No organisation and no token is called `~`.
    path("sign-in/~/code/", views.sign_in_code, name="sign_in_code"),
    path("sign-in/~/organisation/", views.sign_in_organisation, name="sign_in_organisation"),
    path("sign-in/~/forgotten/", recovering.forgotten, name="forgotten"),
    path("sign-in/<str:token>/", views.sign_in_link, name="sign_in_link"),
    path("sign-in/<slug:slug>/go/", sign_in_rules.oidc_go, name="oidc_go"),
    path("sign-in/<slug:slug>/callback/", sign_in_rules.oidc_back, name="oidc_back"),
    path("reset/<str:token>/", recovering.reset, name="reset"),
    path("invitation/<str:token>/", recovering.invitation, name="invitation"),
    path("you/", views.you, name="you"),
    path("sign-out/", views.sign_out, name="sign_out"),
    path("purpose/", views.purpose, name="purpose"),
    path("persona/", views.persona_choose, name="persona_choose"),
    path("language/", set_language, name="set_language"),
    # a person's own
    path("account/", account.account, name="account"),
    path("account/password/", account.password, name="password"),
    path("account/second-factor/", account.second_factor, name="second_factor"),
    path("account/second-factor/remove/", account.second_factor_end, name="second_factor_end"),
    path("account/second-factor/codes/", account.recovery_codes, name="recovery_codes"),
    path("account/sessions/end-others/", account.sessions_out, name="sessions_out"),
    path("account/sessions/<uuid:session_id>/end/", account.session_out, name="session_out"),
    path("account/organisations/", account.organisations, name="organisations"),
    # the tenant's
    path("settings/members/", members.members, name="members"),
    path("settings/members/<uuid:member_id>/role/", members.member_role, name="member_role"),
    path("settings/members/<uuid:member_id>/remove/", members.member_end, name="member_end"),
    path("settings/members/<uuid:member_id>/link/", members.member_link, name="member_link"),
    path("settings/invitations/<uuid:invitation_id>/revoke/", members.invitation_end, name="invitation_end"),
    path("settings/keys/", keys.keys, name="keys"),
    path("settings/keys/<uuid:key_id>/", keys.key_edit, name="key_edit"),
    path("settings/keys/<uuid:key_id>/rotate/", keys.key_rotate, name="key_rotate"),
    path("settings/keys/<uuid:key_id>/revoke/", keys.key_revoke, name="key_revoke"),
    path("settings/sign-in/", sign_in_rules.sign_in_rules, name="sign_in_rules"),
    path("settings/sign-in/second-factor/", sign_in_rules.second_factor_rule, name="second_factor_rule"),
    path("settings/sign-in/remove/", sign_in_rules.provider_end, name="provider_end"),
    # who may do what
    path("access/", access.access_list, name="access_list"),
    path("access/<slug:object_type>/<uuid:object_id>/", access.access_object, name="access_object"),
    path("access/grants/<uuid:grant_id>/revoke/", access.grant_remove, name="grant_revoke"),
    path("personas/", personas.personas, name="personas"),
    path("personas/<uuid:persona_id>/", personas.persona, name="persona"),
    path("personas/<uuid:persona_id>/delete/", personas.persona_delete, name="persona_delete"),
    path("presets/", role_templates.role_templates, name="role_templates"),
    path("presets/<uuid:template_id>/", role_templates.role_template, name="role_template"),
    path("presets/<uuid:template_id>/apply/", role_templates.role_template_apply, name="role_template_apply"),
    path("presets/<uuid:template_id>/remove/", role_templates.role_template_remove, name="role_template_remove"),
]
