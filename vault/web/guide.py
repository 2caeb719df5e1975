"""A page of all components, for operators who build pages."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from governance.accounts.rules import SignedIn
from governance.errors import NotFound
from governance.web.charts import chart_of, spark_of
from governance.web.pages import draw, person_page
from vault.cubes.differences import text_difference
from vault.web.memory_rows import hits_mark, make_heat

BEFORE = "Leo is allergic to peanuts. His pen is in the red pouch."
AFTER = "Leo is allergic to peanuts and cashews. The nurse keeps his pen in the red pouch."
WEEK = (3.0, 5.0, 4.0, 8.0, 6.0, 9.0, 11.0)


@require_http_methods(["GET", "HEAD"])
@person_page
def guide(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    """Show the components. Raises NotFound unless the reader is an operator."""
    if not person.is_operator:
        raise NotFound
    context = {
        "heats": [make_heat(value) for value in (0.5, 2.0, 4.0, 6.0, 9.0)],
        "pieces": list(hits_mark(AFTER, "nurse pen")),
        "difference": text_difference(BEFORE, AFTER),
        "spark": spark_of(WEEK),
        "chart": chart_of([("fill-long", WEEK), ("fill-mid", WEEK[::-1]), ("fill-short", WEEK)]),
        "now": timezone.now(),
    }
    return draw(request, "vault/guide.html", context)
