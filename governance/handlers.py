"""Imports of all job and event handlers of governance, so that each topic has its handler at start."""

from governance.accounts.mail import invitations_send, resets_send
from governance.audit.reading import exports
from governance.outbox.routes import Route, add_route, event_handler
from governance.vocabulary import Topic, Weight
from governance.webhooks.delivery import delivery_run

JOBS = (exports,)  # `@handler` in a room registers a kind of job

event_handler(Topic.PASSWORD_RESET_ASKED, weight=Weight.INTERACTIVE)(resets_send)
event_handler(Topic.INVITATION_CREATED, weight=Weight.INTERACTIVE)(invitations_send)
add_route(Route(topic=Topic.WEBHOOK_DELIVER, handler=delivery_run, weight=Weight.BACKGROUND, batch=1))
