"""Watermarks of packs: a sentence in two wordings, and the search for the subscriber whose copy was leaked."""

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Invalid
from governance.vocabulary import Permission
from governance.web.page_forms import PageForm
from governance.web.pages import draw, form_page, see_other
from vault.cubes.selectors import cube_get
from vault.store.marks import sentence_mark, sentence_unmark, split_sentences
from vault.store.selectors import pack_get
from vault.store.traces import LONGEST_LEAK, leak_trace
from vault.store.wordings import LONGEST_SENTENCE, read_wordings

SHOWN_CANDIDATES = 20


class WordingsForm(PageForm):
    """A sentence of a memory, and its second wording."""

    sentence = forms.ChoiceField(label=_("Sentence"), widget=forms.Select(attrs={"dir": "auto"}))
    second = forms.CharField(
        label=_("Second wording"),
        max_length=LONGEST_SENTENCE,
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
        help_text=_("The same in other words. About half of the subscribers get this one."),
    )

    def __init__(self, *args: Any, sentences: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["sentence"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(sentence, sentence) for sentence in sentences]


class TraceForm(PageForm):
    text = forms.CharField(
        label=_("The leaked text, or a part of it"),
        max_length=LONGEST_LEAK,
        widget=forms.Textarea(attrs={"rows": 10, "dir": "auto"}),
    )


@form_page
def wordings(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Add a second wording to a sentence of a memory, or with `remove` remove it."""
    authorize(actor, Permission.STORE_MANAGE)
    if "remove" in request.POST:
        sentence_unmark(actor=actor, cube_id=memory_id)
        return see_other(reverse("memory", args=[memory_id]))
    view = cube_get(actor=actor, cube_id=memory_id)
    stated = read_wordings(view.words.metadata)
    initial = {"sentence": stated.sentence, "second": stated.second} if stated else {}
    form = WordingsForm(request.POST or None, sentences=split_sentences(view.words.content), initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            sentence_mark(actor=actor, cube_id=memory_id, **form.cleaned_data)
        except Invalid as failure:
            form.blame(failure)
        else:
            return see_other(reverse("memory", args=[memory_id]))
    context = {"memory": view, "form": form, "is_marked": stated is not None}
    return draw(request, "vault/store/wordings.html", context, status=form.status)


@form_page
def trace(request: HttpRequest, actor: Actor, pack_id: UUID) -> HttpResponseBase:
    """Find the subscriber whose copy of a pack a leaked text comes from."""
    pack = pack_get(actor=actor, pack_id=pack_id)
    form = TraceForm(request.POST or None)
    found = None
    if request.method == "POST" and form.is_valid():
        found = leak_trace(actor=actor, pack_id=pack_id, text=form.cleaned_data["text"])
    shown = (
        [(candidate, round(100 * candidate.match.probability, 1)) for candidate in found.candidates[:SHOWN_CANDIDATES]]
        if found
        else []
    )
    context = {"pack": pack, "form": form, "found": found, "candidates": shown}
    return draw(request, "vault/store/trace.html", context, status=form.status)
