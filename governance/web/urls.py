from django.urls import path
from django.views.i18n import set_language

from governance.web import views

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in/", views.sign_in_page, name="sign_in"),
    path("sign-in/<str:token>/", views.sign_in_link, name="sign_in_link"),
    path("you/", views.you, name="you"),
    path("sign-out/", views.sign_out, name="sign_out"),
    path("language/", set_language, name="set_language"),
]
