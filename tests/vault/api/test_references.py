"""References to personas, namespaces, tags and sessions: named, typed and refused alike by every route."""

from typing import Any

from governance.vocabulary import Scope
from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, contract
from tests.vault.api.openapi import document

NAMED_BY_COUNTS = {"FacetsSchema", "ImportCheckSchema", "NamespaceMoveSchema"}  # counts, or moves, by name
PATHS_TO_BE_MADE = {"SampleSchema", "SyncPeerSchema"}  # of namespaces that need not exist
FORMER = {"tag", "session", "persona_id", "persona_name", "namespace_id", "namespace_path", "agent_persona_id"}


def _is_text(part: dict[str, Any]) -> bool:
    return part.get("type") == "string" and not {"format", "enum"} & part.keys()


def _is_text_list(part: dict[str, Any]) -> bool:
    return part.get("type") == "array" and _is_text(part["items"])


def _is_object(part: dict[str, Any], *fields: str) -> bool:
    reference = part.get("$ref") or next((each["$ref"] for each in part.get("allOf", ())), "")
    schema = document()["components"]["schemas"].get(reference.rpartition("/")[2], {})
    return {*fields} <= set(schema.get("properties", {}))


def _is_as_named(schema: str, name: str, part: dict[str, Any]) -> bool:
    """Return whether a field has the one type of its name: texts in requests, ids with names in responses."""
    is_request = schema.endswith("Input")
    if name in {"persona", "agent_persona"}:
        return _is_text(part) if is_request else _is_object(part, "id", "name")
    if name == "namespace" and not is_request and schema not in PATHS_TO_BE_MADE:
        return _is_object(part, "id", "path")
    if name in {"namespace", "session_id"}:
        return _is_text(part)
    return _is_text_list(part) if name in {"namespaces", "tags"} or is_request else part.get("type") == "array"


def _is_fit_parameter(parameter: dict[str, Any], named: set[str]) -> bool:
    """Return whether a query parameter is a text, which may be repeated, under a name in use."""
    name, part = parameter["name"], parameter["schema"]
    return name not in FORMER and (name not in named or _is_text(part) or _is_text_list(part))


def _list_deviations(schemas: dict[str, Any], paths: dict[str, Any]) -> list[str]:
    named = {"persona", "agent_persona", "personas", "namespace", "namespaces", "tags", "session_id"}
    fields = [
        f"{schema}.{name}"
        for schema, body in schemas.items()
        for name, part in body.get("properties", {}).items()
        if name in FORMER or (name in named and schema not in NAMED_BY_COUNTS and not _is_as_named(schema, name, part))
    ]
    parameters = [
        f"{method} {path}?{parameter['name']}"
        for path, methods in paths.items()
        for method, operation in methods.items()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and not _is_fit_parameter(parameter, named)
    ]
    return fields + parameters


def test_persona_namespace_tags_and_session_have_one_name_and_type() -> None:
    schemas, paths = document()["components"]["schemas"], document()["paths"]
    assert _list_deviations(schemas, paths) == []
    by_id = {"type": "string", "format": "uuid"}
    wrong = {"properties": {"persona": by_id, "tag": {"type": "string"}, "session_id": by_id, "tags": by_id}}
    listed = {"/": {"get": {"parameters": [{"name": "tag", "in": "query", "schema": {"type": "string"}}]}}}
    assert len(_list_deviations({"WrongInput": wrong}, listed)) == 5, "the check itself finds deviations"
    assert _list_deviations({"WrongSchema": {"properties": {"namespace": {"type": "string"}}}}, {})


def _naming(persona: str) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Return one call of each kind that names a persona."""
    query: dict[str, Any] = {"query": "tea"}
    modes = ("hybrid", "tag", "memoryos")
    return [
        *(("POST", "memories/search/", {**query, "personas": [persona], "mode": mode}) for mode in modes),
        ("POST", "memories/context/", {**query, "persona": persona}),
        ("GET", f"memories/?persona={persona}", None),
        ("GET", f"memories/facets/?persona={persona}", None),
        ("POST", "memories/", {"content": "Tea.", "persona": persona}),
        ("POST", "memories/bulk/", {"items": [{"content": "Tea.", "persona": persona}]}),
        ("POST", "memories/tool-calls/", {"name": "brew", "outcome": "succeeded", "persona": persona}),
        ("POST", "memory-calls/", {"text": "Where is the tea?", "persona": persona, "execute": True}),
        ("POST", "conversations/", {"persona": persona}),
        ("POST", "conversations/", {"agent_persona": persona}),
        ("POST", "mounts/", {"namespace": "/team", "persona": persona}),
    ]


def test_unknown_persona_is_refused_alike_by_every_route(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    own = alice.post("personas/", {"name": "Gardener"}).json
    alice.add("Tea.", namespace="/team")
    asked = {"member": str(world.alice.member.id), "scopes": list(Scope), "persona": own["id"]}
    bound = Contract(key=contract(world, "olivia").post("api-keys/", asked).json["api_key"])
    cases = [(alice, "newcomer"), (alice, str(MISSING)), (bob, own["name"]), (charlie, own["id"])]
    for who, persona in [*cases, (bound, "alice")]:
        calls = _naming(persona)
        for method, address, body in calls if persona == "newcomer" else calls[1:8:2]:
            reply = who.send(method, address, body)
            if reply.status == 403 and who is bob:
                continue  # a viewer may not write at all
            told = reply.json["errors"][0]["message"]
            expected = (400, "urn:memos:problem:unknown_persona", "no persona of yours has this id or name")
            assert (reply.status, reply.json["type"], told) == expected, (address, persona, reply)
            assert "persona" in reply.json["errors"][0]["field"]
    for method, address, body in _naming(own["name"]):
        if body is None or "agent_persona" not in body:
            assert alice.send(method, address, body).status in {200, 201}, (address, body)


def test_persona_of_another_member_can_be_named_by_readers_of_its_memories(alice: Contract, bob: Contract) -> None:
    persona = alice.post("personas/", {"name": "Gardener"}).json
    asked = {"query": "tea", "personas": ["Gardener"]}
    assert bob.post("memories/search/", asked).status == bob.get("memories/?persona=Gardener").status == 400
    alice.add("Tea.", namespace="/team", persona="Gardener")
    assert bob.search_contents("tea", personas=["Gardener"]) == bob.list_contents("persona=Gardener") == ["Tea."]
    assert alice.delete(f"personas/{persona['id']}/").status == 204
    assert alice.list_contents("persona=Gardener") == ["Tea."], "its memories keep its name"


def test_namespace_that_does_not_exist_is_empty_and_made_by_a_write(world: World, alice: Contract) -> None:
    for who in (alice, contract(world, "bob"), contract(world, "charlie")):
        assert who.search("tea", namespaces=["/nowhere"]) == []
        assert who.post("memories/context/", {"query": "tea", "namespaces": ["/nowhere"]}).json["items"] == []
        assert who.list_contents("namespace=/nowhere") == []
        assert who.get("memories/facets/?namespace=/nowhere").json["tags"] == []
    assert alice.add("Tea.", namespace="/nowhere")["namespace"]["path"] == "/nowhere"


def test_session_of_a_memory_call_is_any_name_of_the_caller(alice: Contract) -> None:
    asked = {"text": "Remember that the tea is green.", "session_id": "monday", "execute": True}
    stored = alice.post("memory-calls/", asked).json["result"]["memories"][0]
    assert stored["session_id"] == "monday"
    assert alice.post("memory-calls/", asked | {"session_id": str(MISSING)}).status == 404


def test_repeated_filter_of_a_list_means_any_of_its_values(alice: Contract) -> None:
    for name in ("a", "b", "c"):
        alice.add(f"{name}.", tags=[name], namespace=f"/{name}")
    assert alice.list_contents("tags=a&tags=b") == ["b.", "a."]
    assert alice.list_contents("namespace=/a&namespace=/c") == ["c.", "a."]
    page = alice.get("memories/?tags=a&tags=b&page_size=1").json
    assert page["count"] == 2
    assert page["next"].count("tags=") == 2
