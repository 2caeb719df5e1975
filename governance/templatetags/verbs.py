"""Template filters for verbs of the audit log and events of webhooks."""

from django import template

from governance.web.verb_words import verb_words

register = template.Library()
register.filter("verb_words", verb_words)
