"""The HTML pages, and nothing else."""

from governance.web.audit_urls import urlpatterns as audit
from governance.web.urls import urlpatterns as governance
from vault.web.urls import urlpatterns as product

urlpatterns = [*governance, *audit, *product]
