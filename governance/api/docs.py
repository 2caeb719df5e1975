"""The browsable documentation of the API, from files that this server hosts."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from governance.tenants.selectors import me_get
from governance.web.pages import recognise

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class ByAddress(DefaultContentNegotiation):
    """Chooses the renderer by `?format=json`, which asks for the document alone."""

    class settings:  # noqa: N801 – the name that REST framework reads
        URL_FORMAT_OVERRIDE = "format"


class ApiSchemaView(SpectacularAPIView):
    """The OpenAPI document. Its paths begin where the installation is mounted."""

    content_negotiation_class = ByAddress

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        if settings.FORCE_SCRIPT_NAME:
            self.custom_settings = {"SERVERS": [{"url": settings.FORCE_SCRIPT_NAME}]}


class ApiDocsView(SpectacularSwaggerSplitView):
    """Swagger UI with its script as a file. It sets styles inline, so this page alone allows inline styles."""

    url_name = "schema"
    template_name = "governance/api_docs.html"
    schema = None  # a page, not a part of the API

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.page_request = request  # `self.request` becomes REST framework's

    def get(self, request: Request, *args: object, **kwargs: object) -> HttpResponse:
        recognise(self.page_request)
        response: Any = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        actor = getattr(self.page_request, "actor", None)
        response.data["me"] = me_get(actor=actor) if actor else None
        response["Content-Security-Policy"] = POLICY
        page: HttpResponse = response
        return page
