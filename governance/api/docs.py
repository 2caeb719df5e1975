"""The browsable documentation of the API, from files of our own."""

from typing import Any

from django.http import HttpResponse
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
    """`?format=json`, for the document alone."""

    class settings:  # noqa: N801 – the name that REST framework reads
        URL_FORMAT_OVERRIDE = "format"


class ApiSchemaView(SpectacularAPIView):
    """The OpenAPI document. There is one version of it: what an address says of versions is not heard."""

    content_negotiation_class = ByAddress

    def _get_version_parameter(self, request: Request) -> str | None:
        return None


class ApiDocsView(SpectacularSwaggerSplitView):
    """Swagger UI with its script as a file. It sets styles inline, so this page alone allows inline styles."""

    url_name = "schema"
    template_name = "governance/api_docs.html"
    schema = None  # a page, not a part of the API

    def get(self, request: Request, *args: object, **kwargs: object) -> HttpResponse:
        recognise(request._request)
        response: Any = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        actor = getattr(request._request, "actor", None)
        response.data["me"] = me_get(actor=actor) if actor else None
        response["Content-Security-Policy"] = POLICY
        page: HttpResponse = response
        return page
