"""The browsable documentation of the API, from files of our own."""

from django.http import HttpResponse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class ApiSchemaView(SpectacularAPIView):
    """The OpenAPI document. There is one version of it: what an address says of versions is not heard."""

    def _get_version_parameter(self, request: Request) -> str | None:
        return None


class ApiDocsView(SpectacularSwaggerSplitView):
    """Swagger UI with its script as a file. It sets styles inline, so this page alone allows inline styles."""

    url_name = "schema"
    schema = None  # a page, not a part of the API

    def get(self, request: Request, *args: object, **kwargs: object) -> HttpResponse:
        response: HttpResponse = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        response["Content-Security-Policy"] = POLICY
        return response
