"""Filters of the pages of memories: names for ids, words for fields."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django import template
from django.utils import timezone
from django.utils.functional import Promise

from governance.naming import Name
from vault.web.labels import FIELD_NAMES

register = template.Library()


@register.filter
def named(names: Mapping[UUID, Name], principal_id: UUID) -> str:
    """What a principal is called; the system has no name."""
    found = names.get(principal_id)
    return found.text if found else "MemOS"


@register.filter
def field_name(name: str) -> str | Promise:
    return FIELD_NAMES.get(name, name)


@register.filter
def field_value(value: object) -> str:
    if value is None:
        return "—"
    return f"{timezone.localtime(value):%Y-%m-%d %H:%M %Z}" if isinstance(value, datetime) else str(value)
