"""People in front of a browser, without one: Django's test client."""

from urllib.parse import urlsplit

from django.test import Client

from governance.tenants.services import command_line_actor, sign_in_link_create
from tests.factories import Person


def link_for(person: Person) -> str:
    """The path of a fresh sign-in link."""
    actor = command_line_actor(person.member.tenant_id)
    return urlsplit(sign_in_link_create(actor=actor, member=person.member).url).path


def signed_in(person: Person) -> Client:
    """A browser in which `person` has opened their link."""
    client = Client(raise_request_exception=False)
    response = client.post(link_for(person))
    assert response.status_code == 303, response.content
    return client
