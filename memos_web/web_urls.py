"""The HTML pages, and nothing else."""

from governance.web.trail_urls import urlpatterns as trail
from governance.web.urls import urlpatterns as law
from vault.web.urls import urlpatterns as product

urlpatterns = [*law, *trail, *product]
