"""The documentation at `/docs/`, open to everybody; signed-in readers also get the side bar."""

from functools import cache

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from governance.errors import NotFound
from governance.web.pages import answer_errors, draw, recognise
from vault.web.docs_markdown import Document, document_read
from vault.web.docs_pages import SECTIONS, find_title, neighbours, page_addresses, page_files


@require_http_methods(["GET", "HEAD"])
@answer_errors
def docs(request: HttpRequest) -> HttpResponseBase:
    """List the guides with their first sentences, and the other pages."""
    recognise(request)
    guides = [(entry, open_document(entry.address).lead) for entry in SECTIONS[0].entries]
    return draw(request, "vault/docs/index.html", {"guides": guides, "sections": SECTIONS})


@require_http_methods(["GET", "HEAD"])
@answer_errors
def docs_page(request: HttpRequest, address: str) -> HttpResponseBase:
    """Show one page. Raises NotFound."""
    recognise(request)
    before, after = neighbours(address)
    context = {
        "address": address,
        "document": open_document(address),
        "title": find_title(address),
        "sections": SECTIONS,
    }
    return draw(request, "vault/docs/page.html", {**context, "before": before, "after": after})


@cache
def open_document(address: str) -> Document:
    """Return the page at `address`, rendered once per process. Raises NotFound."""
    path = page_files().get(address)
    if path is None:
        raise NotFound

    def resolve_link(target: str) -> str | None:
        if "://" in target or target.startswith(("#", "mailto:")):
            return target
        file, mark, anchor = target.partition("#")
        linked = page_addresses().get((path.parent / file).resolve())
        return f"{reverse('docs_page', args=[linked])}{mark}{anchor}" if linked else None

    return document_read(path, resolve_link)
