"""People in front of a browser, without one: Django's test client."""

import re
from urllib.parse import urlsplit

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from governance.actor import Actor
from governance.tenants.services import command_line_actor, sign_in_link_create
from tests.factories import Person


def link_for(person: Person, by: Actor | None = None) -> str:
    """The path of a fresh sign-in link, made by the operator or by a member."""
    actor = by or command_line_actor(person.member.tenant_id)
    return urlsplit(sign_in_link_create(actor=actor, member=person.member).url).path


def signed_in(person: Person) -> Client:
    """A browser in which `person` has opened their link."""
    client = Client(raise_request_exception=False)
    response = client.post(link_for(person))
    assert response.status_code == 303, response.content
    return client


def without_marks(page: str) -> str:
    """The page without the marks of what differs between two texts."""
    return re.sub(r"</?(?:ins|del)>", "", page)


def statements(client: Client, address: str) -> list[str]:
    """The SQL of one page, without what begins, sets up and ends its transactions."""
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    around = ("BEGIN", "COMMIT", "SELECT set_config(", "SELECT governance_enter(")
    return [sql for query in queries if not (sql := query["sql"].strip()).startswith(around)]
