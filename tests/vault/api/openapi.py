"""Replies held against the OpenAPI document that the server itself gives out."""

import json
from datetime import datetime
from functools import cache
from typing import Any

from django.test import Client
from jsonschema import Draft202012Validator, FormatChecker

from tests.factories import API, ApiReply

SCHEMA_ADDRESS = "/api/schema/?format=json"
Schema = dict[str, Any]
FORMATS = FormatChecker(["uuid"])


@FORMATS.checks("date-time", raises=ValueError)
def is_moment(value: object) -> bool:
    """RFC 3339 with its offset."""
    return not isinstance(value, str) or datetime.fromisoformat(value).utcoffset() is not None


@cache
def document() -> Schema:
    """The document, as any client may fetch it; it asks nothing of a database."""
    schema: Schema = Client().get(SCHEMA_ADDRESS).json()
    return schema


def faults_of(method: str, address: str, reply: ApiReply) -> list[str]:
    """Return the differences of `reply` from the document: status, content type or body. None: empty."""
    path = _template(address)
    if path is None:
        return []  # no address of the API: the server's own 404
    operation = document()["paths"][path].get(method.lower())
    if operation is None:
        return [] if reply.status == 405 else [f"{method} {path} is not described, yet it answered {reply.status}"]
    described = operation["responses"].get(str(reply.status))
    if described is None:
        return [f"{method} {path} does not describe the status {reply.status}"]
    return _body_faults(described.get("content", {}), reply)


def _body_faults(content: Schema, reply: ApiReply) -> list[str]:
    kind = reply.headers.get("Content-Type", "").partition(";")[0]
    if not content:
        return [] if not reply.body else ["a body where none is described"]
    if kind not in content:
        return [f"{kind} is not among {sorted(content)}"]
    if reply.json is None:
        return []  # an event stream: its events are no one document
    validator = _validator(json.dumps(content[kind]["schema"]))
    return [f"{fault.json_path}: {fault.message[:200]}" for fault in validator.iter_errors(reply.json)]


@cache
def _validator(schema: str) -> Draft202012Validator:
    whole = {**_close_schema(json.loads(schema)), "components": _closed_components()}
    return Draft202012Validator(whole, format_checker=FORMATS)


@cache
def _closed_components() -> Schema:
    return {"schemas": {name: _close_schema(part) for name, part in document()["components"]["schemas"].items()}}


def _close_schema(part: Any) -> Any:
    """OpenAPI 3.0 as JSON Schema: `nullable` is a type, and an object has no properties but those that it names."""
    if isinstance(part, list):
        return [_close_schema(item) for item in part]
    if not isinstance(part, dict):
        return part
    made = {name: _close_schema(value) for name, value in part.items() if name not in {"nullable", "readOnly"}}
    if "properties" in made and isinstance(made.get("type"), str):
        made.setdefault("additionalProperties", False)
    return {"anyOf": [made, {"type": "null"}]} if part.get("nullable") is True else made


def _template(address: str) -> str | None:
    """The path of the document that an address belongs to: the one with the fewest placeholders."""
    given = (address if address.startswith("/") else API + address).partition("?")[0].strip("/").split("/")
    fitting = [path for path in document()["paths"] if _fits(path.strip("/").split("/"), given)]
    return min(fitting, key=lambda path: path.count("{"), default=None)


def _fits(path: list[str], given: list[str]) -> bool:
    if len(path) != len(given):
        return False
    return all(part == found or part.startswith("{") for part, found in zip(path, given, strict=True))
