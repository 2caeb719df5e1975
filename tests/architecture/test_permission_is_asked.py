"""Permission is asked inside: every public service and selector with an actor asks, or is listed with the reason."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.asking import Module, module_read, silent_functions

ROOT = Path(__file__).resolve().parents[2]
DOORS = ("services", "selectors")

ASK_NOBODY = {
    ("governance.authz.services", "authorize"): "it is the question",
    ("governance.audit.services", "record"): "tells of what the caller was allowed",
    ("governance.audit.services", "record_denial"): "tells of what was refused",
    ("governance.outbox.services", "emit"): "leaves work for what the caller was allowed",
    ("governance.authz.services", "is_allowed"): "is the question itself",
    ("governance.personas.selectors", "personas_of"): "is the filter itself: the actor's own and the tenant's agents",
    ("governance.personas.selectors", "persona_get"): "finds among personas_of alone",
    ("governance.tenants.selectors", "me_get"): "everyone may know who they are",
    ("governance.tenants.services", "member_sign_out"): "everyone may end their own session",
    ("vault.cubes.selectors", "cubes_view"): "answers the write that was allowed, and what visible_to found",
    ("vault.jobs.services", "jobs_run"): "the worker's; asks as the one who wanted the job, in cubes_add",
}


def _modules() -> dict[str, Module]:
    """Every module of the law and the product, by its dotted name."""
    files = [path for house in ("governance", "vault") for path in (ROOT / house).rglob("*.py")]
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    return {name: module_read(name, path.read_text(encoding="utf-8")) for path, name in names.items()}


def _silent(modules: Mapping[str, Module]) -> set[tuple[str, str]]:
    return {one for one in silent_functions(modules) if one[0].rpartition(".")[2] in DOORS}


def test_every_public_service_and_selector_asks() -> None:
    assert _silent(_modules()) == set(ASK_NOBODY)


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        ("authorize(actor, 1)", True),
        ("with acting(actor):\n        authorize(actor, 1)", True),
        ("return Cube.objects.visible_to(actor)", True),
        ("return locate(actor)", True),
        ("return _own(actor)", True),
        ("return Cube.objects.all()", False),
        ("if actor.member_id:\n        authorize(actor, 1)", False),
        ("return [authorize for authorize in ()]", False),
        ("later(lambda: authorize(actor, 1))", False),
        ("actor.role or authorize(actor, 1)", False),
        ("authorise(actor, 1)", False),
        ("return careless(actor)", False),
    ],
)
def test_it_tells_who_asks_from_who_does_not(body: str, asks: bool) -> None:
    source = (
        "from a.locating import careless, locate\n"
        "def _own(actor):\n    return locate(actor)\n"
        f"def thing_get(*, actor):\n    {body}\n"
    )
    locating = "def locate(actor):\n    authorize(actor, 2)\ndef careless(actor):\n    pass\n"
    modules = {name: module_read(name, text) for name, text in (("a.services", source), ("a.locating", locating))}
    assert (("a.services", "thing_get") in _silent(modules)) is not asks


def test_a_service_that_stops_asking_shows() -> None:
    path = ROOT / "vault" / "cubes" / "services.py"
    careless = path.read_text(encoding="utf-8").replace("authorize(actor, permission)", "pass", 1)
    careless = careless.replace("build_all(", "build_nothing(")
    modules = _modules() | {"vault.cubes.services": module_read("vault.cubes.services", careless)}
    assert ("vault.cubes.services", "cubes_add") in _silent(modules)
