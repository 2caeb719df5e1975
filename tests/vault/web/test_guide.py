"""/ui/ is for operators; the command line makes them, and tells the audit log."""

import io
from collections.abc import Callable

import psycopg
from django.core.management import call_command

from tests.factories import World
from tests.governance.web.visitors import signed_in


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("operator_set", "--email", "bob@acme.example", "--json", *words, stdout=out)
    return out.getvalue()


def test_components_are_shown_to_operators_and_to_nobody_else(
    world: World, superuser: Callable[[], psycopg.Connection]
) -> None:
    client = signed_in(world.bob)
    assert client.get("/ui/").status_code == signed_in(world.olivia).get("/ui/").status_code == 404
    assert '"changed": true' in run()
    assert '"changed": false' in run()
    page = client.get("/ui/")
    assert page.status_code == 200
    for part in (
        "tile",
        "meter",
        "plot",
        "heat heat-5",
        "diff-side",
        "timeline",
        "toast",
        "empty-title",
        "facet-option",
    ):
        assert f'class="{part}' in page.content.decode()
    assert signed_in(world.olivia).get("/ui/").status_code == 404
    run("--remove")
    assert client.get("/ui/").status_code == 404
    rows = superuser().execute("SELECT count(*) FROM governance_auditentry WHERE verb = 'operator.changed'").fetchone()
    assert rows == (2,)
