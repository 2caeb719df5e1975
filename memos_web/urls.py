"""Every address of the product."""

from django.urls import include, path

from governance.admin import tables  # noqa: F401  each registers at its site
from governance.admin.site import site
from governance.api.docs import ApiDocsView, ApiSchemaView
from memos_web import health
from memos_web.metrics import metrics

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics),
    path("api/schema/", ApiSchemaView.as_view(), name="schema"),
    path("api/docs/", ApiDocsView.as_view(), name="api-docs"),
    path("api/v1/", include("vault.api.urls")),
    path("api/v1/", include("governance.api.audit_urls")),
    path("api/v1/", include("governance.api.jobs_urls")),
    path("api/v1/", include("governance.api.urls")),
    path("api/v1/", include("governance.api.access_urls")),
    path("admin/", site.urls),
    path("", include("memos_web.web_urls")),
]
handler400 = "governance.api.errors.bad_request"
handler404 = "governance.api.errors.not_found"
handler500 = "governance.api.errors.server_error"
