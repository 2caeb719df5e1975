"""People who sign in, step by step, as a browser would."""

import re
import time
from collections.abc import Callable
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core import mail
from django.test import Client

from governance.accounts.passwords import password_reset_ask, password_reset_use
from tests.factories import REQUEST_ID, Person
from tests.governance.filled_tenants import drain

PASSWORD = "a heron by the mill"
ADDRESS = "192.0.2.7"
Superuser = Callable[[], psycopg.Connection]


def find_mailed_link(to: str = "") -> str:
    """The path of the link in the last mail (to this address)."""
    last = [message for message in mail.outbox if not to or message.to == [to]][-1]
    found = re.search(r"https?://\S+", str(last.body))
    assert found is not None
    return urlsplit(found[0]).path


def token_of(link: str) -> str:
    return link.rstrip("/").rpartition("/")[2]


def give_password(person: Person, password: str = PASSWORD) -> None:
    """By a mailed link, as anyone would: the password then opens every organisation of the person."""
    password_reset_ask(email=person.email, request_id=REQUEST_ID, address=ADDRESS)
    drain()
    password_reset_use(
        token=token_of(find_mailed_link(person.email)), new=password, request_id=REQUEST_ID, address=ADDRESS
    )


def browser(agent: str = "a browser") -> Client:
    return Client(raise_request_exception=False, REMOTE_ADDR=ADDRESS, headers={"User-Agent": agent})


def sign_in(email: str, password: str = PASSWORD, client: Client | None = None) -> Client:
    """A browser after the form of the sign-in page; whether that let it in is for the caller to see."""
    client = client or browser()
    client.post("/sign-in/", {"email": email, "password": password})
    return client


def is_in(client: Client) -> bool:
    return client.get("/chat/").status_code == 200


def code_of(secret: str, *, steps: int = 0) -> str:
    """The code that an app shows; `steps` of 30 seconds from now."""
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps)))


def set_up_factor(client: Client) -> tuple[str, list[str]]:
    """(secret, recovery codes) of one who sets it up in this browser."""
    page = client.get("/account/second-factor/").content.decode()
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page)
    assert secret is not None, page
    assert "Code that the app shows now" in page
    # The step before: the present one is left for what the test does next.
    done = client.post("/account/second-factor/", {"code": code_of(secret[1], steps=-1)})
    assert done.status_code == 200, done.content
    codes = re.findall(r"<code>(\d{8})</code>", done.content.decode())
    assert len(codes) == 10
    return secret[1], codes


def find_entries(superuser: Superuser, verb: str, member_id: UUID | None = None) -> list[dict[str, object]]:
    """The details of the rows with this verb."""
    condition = "" if member_id is None else f" AND member_id = '{member_id}'"
    rows = superuser().execute(
        f"SELECT detail FROM governance_auditentry WHERE verb = '{verb}'{condition} ORDER BY id".encode()
    )
    return [row[0] for row in rows]
