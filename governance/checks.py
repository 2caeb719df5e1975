"""Django's system checks of this package, run by each command of manage.py and by the worker before it starts."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, register

from governance.outbox.routes import all_routes
from governance.vocabulary import Topic


@register()
def each_topic_has_a_handler(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Return an error for each event topic without a handler: such an event would become a dead letter."""
    missing = sorted({*Topic} - {route.topic for route in all_routes()})
    hint = "Register one in governance/handlers.py or vault/handlers.py."
    return [Error(f"The topic {topic} has no handler.", hint=hint, id="governance.E001") for topic in missing]
