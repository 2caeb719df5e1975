"""The trial of a pack before a subscription: answers to questions without and with the pack."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Invalid
from governance.vocabulary import Permission
from governance.web.pages import draw, form_page
from vault.store.catalogue import listing_get_by_name
from vault.store.trials import Trial, publication_try
from vault.web.store_forms import QuestionsForm
from vault.web.store_words import make_shown_listing


@form_page
def trial(request: HttpRequest, actor: Actor, publisher: str, name: str) -> HttpResponseBase:
    """Show the answers: GET takes the reader's last questions in the chat, POST those of the form."""
    authorize(actor, Permission.STORE_MANAGE)
    listing = listing_get_by_name(actor=actor, publisher=publisher, name=name)
    form = QuestionsForm(request.POST if request.method == "POST" else None)
    tried = Trial((), 0, 0)
    if not form.is_bound or form.is_valid():
        try:
            questions = form.lines() if form.is_bound else ()
            tried = publication_try(actor=actor, publication_id=listing.id, questions=questions)
        except Invalid as failure:
            form.blame(failure)
    context = {
        "shown": make_shown_listing(actor, listing),
        "form": form,
        "trial": tried,
        "tried": tried.questions,
        "added": sum(question.pack_count for question in tried.questions),
    }
    status = form.status
    return draw(request, "vault/store/try.html", context, status=status)
