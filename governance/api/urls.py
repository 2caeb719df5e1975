from django.urls import path

from governance.api.views import MeView

urlpatterns = [path("me/", MeView.as_view())]
