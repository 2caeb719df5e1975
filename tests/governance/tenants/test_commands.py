"""Tests of governance's commands: one JSON line, or one line with the error and exit code 1."""

import base64
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from governance.jobs.schedules import schedules_list
from governance.pages import First
from governance.tenants.services import sign_in_link_use
from memos_web.config import read_config
from memos_web.installation import secrets_make
from tests.factories import World, client_for
from tests.harness.databases import Clone
from tests.harness.servers import ROOT, clean_environ

Superuser = Callable[[], psycopg.Connection]
BOB = "bob@acme.example"


def _run(*words: str) -> dict[str, Any]:
    """The JSON reply of a command: one line on standard output, nothing on the other."""
    out, err = io.StringIO(), io.StringIO()
    call_command(*words, "--json", stdout=out, stderr=err)
    assert err.getvalue() == ""
    assert out.getvalue().count("\n") == 1
    reply: dict[str, Any] = json.loads(out.getvalue())
    return reply


def test_tenant_create_answers_with_a_key_and_a_link_that_work(database: Clone) -> None:
    reply = _run("tenant_create", "acme", "--owner", "olivia@acme.example", "--name", "Acme & Co")
    assert set(reply) == {"tenant", "owner", "api_key", "sign_in_link"}
    assert (reply["tenant"]["slug"], reply["owner"]["email"]) == ("acme", "olivia@acme.example")
    actor = sign_in_link_use(token=reply["sign_in_link"].rsplit("/", 2)[1], request_id="request-of-a-test", address="")
    assert (str(actor.tenant_id), str(actor.member_id)) == (reply["tenant"]["id"], reply["owner"]["id"])
    schedules = schedules_list(actor=actor, pages=First(10))
    assert {row.kind for row in schedules} == {
        "behaviour.update",
        "conflicts.propose",
        "form.propose",
        "fusions.propose",
        "index.check",
        "lifecycle.sweep",
        "summaries.write",
    }
    assert {(row.principal_id, row.enabled) for row in schedules} == {(actor.member_id, True)}


def test_member_add_answers_with_the_member_and_a_link(world: World) -> None:
    reply = _run("member_add", "--tenant", "acme", "--email", "vera@acme.example", "--role", "viewer")
    assert set(reply) == {"member", "sign_in_link"}
    assert reply["member"] | {"id": ""} == {"id": "", "email": "vera@acme.example", "role": "viewer"}


def test_sign_in_link_answers_with_a_link_and_its_end(world: World) -> None:
    reply = _run("sign_in_link", "--tenant", "acme", "--email", "bob@acme.example")
    assert set(reply) == {"sign_in_link", "expires_at"}


def test_apikey_create_answers_with_a_key_of_those_scopes(world: World) -> None:
    reply = _run(
        "apikey_create",
        *("--tenant", "acme", "--member", "ALICE@acme.example"),
        *("--scopes", "memories:read chat", "--expires", "2999-01-31"),
    )
    assert set(reply) == {"id", "prefix", "api_key"}
    me = client_for(reply["api_key"]).get("me/").json
    assert me["scopes"] == ["chat", "memories:read"]
    assert me["principal"]["key_prefix"] == reply["prefix"]
    assert me["principal"]["id"] == reply["id"]
    assert me["principal"]["expires_at"] == "2999-01-31T00:00:00Z"


def test_without_json_standard_output_is_empty_and_a_person_reads_the_rest(world: World) -> None:
    out, err = io.StringIO(), io.StringIO()
    call_command("sign_in_link", "--tenant", "acme", "--email", "bob@acme.example", stdout=out, stderr=err)
    assert out.getvalue() == ""
    assert "http://testserver/sign-in/" in err.getvalue()


LONG = "x" * 300
ERRORS = {
    "a taken slug": ("tenant_create", "acme", "--owner", "new@acme.example"),
    "no slug": ("tenant_create", "a b", "--owner", "new@acme.example"),
    "no address": ("tenant_create", "new", "--owner", "nobody"),
    "an unknown tenant": ("member_add", "--tenant", "no", "--email", "a@b.example", "--role", "viewer"),
    "a member already": ("member_add", "--tenant", "acme", "--email", "bob@acme.example", "--role", "viewer"),
    "an unknown role": ("member_add", "--tenant", "acme", "--email", "a@b.example", "--role", "king"),
    "another tenant's member": ("apikey_create", "--tenant", "acme", "--member", "charlie@other.example"),
    "an unknown scope": ("apikey_create", "--tenant", "acme", "--member", "bob@acme.example", "--scopes", "all"),
    "no scope": ("apikey_create", "--tenant", "acme", "--member", "bob@acme.example", "--scopes", ""),
    "no date": ("apikey_create", "--tenant", "acme", "--member", "bob@acme.example", "--expires", "soon"),
    "a past date": ("apikey_create", "--tenant", "acme", "--member", "bob@acme.example", "--expires", "2020-01-01"),
    "a slug that is too long": ("tenant_create", LONG, "--owner", "new@acme.example"),
    "a tenant's name that is too long": ("tenant_create", "new", "--owner", "new@acme.example", "--name", LONG),
    "an empty slug": ("tenant_create", "", "--owner", "new@acme.example"),
    "a slug that differs by its case": ("tenant_create", "ACME", "--owner", "new@acme.example"),
    "an address that is too long": (
        *("member_add", "--tenant", "acme", "--email", f"{LONG}@acme.example", "--role", "viewer"),
    ),
    "a key's name that is too long": ("apikey_create", "--tenant", "acme", "--member", BOB, "--name", LONG),
    "nobody to sign in": ("sign_in_link", "--tenant", "acme", "--email", "charlie@other.example"),
}


def test_what_is_wrong_is_one_line(world: World) -> None:
    for fault, words in ERRORS.items():
        with pytest.raises(CommandError) as refusal:
            _run(*words)
        assert str(refusal.value), fault
        assert "\n" not in str(refusal.value), fault
        assert "database" not in str(refusal.value), fault


WORDS = {
    "a slug that is too long": "slug: Ensure this value has at most 63 characters (it has 300).",
    "a slug that differs by its case": "slug: use lower-case letters",
    "a key's name that is too long": "name: Ensure this value has at most 100 characters (it has 300).",
    "a past date": "expires_at: must be in the future",
}


def test_what_is_wrong_names_the_field(world: World) -> None:
    for fault, message in WORDS.items():
        with pytest.raises(CommandError) as refusal:
            _run(*ERRORS[fault])
        assert str(refusal.value) == message


def test_a_member_whose_address_has_a_long_name_is_shown_by_its_beginning(world: World) -> None:
    email = f"{'y' * 230}@acme.example"
    assert _run("member_add", "--tenant", "acme", "--email", email, "--role", "viewer")["member"]["email"] == email


def test_it_works_beside_the_product_as_a_program_of_its_own(world: World, database: Clone, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(exist_ok=True)
    (tmp_path / "keys" / "master.key").write_text(base64.b64encode(settings.MASTER_KEY).decode())
    secrets_make(read_config({"MEMOS_DATA_DIR": str(tmp_path)}))
    made = _program(database, tmp_path, "tenant_create", "third", "--owner", "tess@third.example", "--json")
    assert (made.returncode, made.stderr) == (0, "")
    assert set(json.loads(made.stdout)) == {"tenant", "owner", "api_key", "sign_in_link"}
    again = _program(database, tmp_path, "tenant_create", "third", "--owner", "tess@third.example", "--json")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr.count("\n") == 1
    assert "third" in again.stderr


def test_a_database_that_is_not_there_is_one_line(database: Clone) -> None:
    connection.close()
    connection.settings_dict["NAME"] = "no_such_database"
    with pytest.raises(CommandError, match=r"^the database does not answer [^\n]*$"):
        _run("tenant_create", "third", "--owner", "tess@third.example")


def test_a_database_without_tables_is_one_line_that_says_so(world: World, superuser: Superuser) -> None:
    superuser().execute("ALTER TABLE governance_apikey RENAME TO gone")
    with pytest.raises(CommandError, match=r"^the database refused this \(.*governance_apikey.*\): is it migrated\?$"):
        _run("apikey_create", "--tenant", "acme", "--member", BOB)


def _program(database: Clone, data_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    place = f"{quote(str(database.server.socket_dir), safe='')}:{database.server.port}"
    environ = {
        **clean_environ(),
        "MEMOS_DATA_DIR": str(data_dir),
        "DATABASE_URL": f"postgresql://memos_app@{place}/{database.name}",
        "REDIS_URL": "redis://127.0.0.1:1",
    }
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
