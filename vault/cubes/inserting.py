"""Many rows of one table in one statement: `INSERT … SELECT FROM unnest(…)`, one array for each column.

For a thousand cubes the ORM composes a statement of tens of thousands of parameters, which takes longer than all the
rest of the call; COPY is no way out, because PostgreSQL refuses it under row-level security.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import Field, Model

from governance.prepared import prepared_cursor

PLAIN = ("uuid", "bigint", "integer", "smallint")  # types whose values need no quotes in an array
NOT_SENT = frozenset({"created_at", "updated_at"})  # the database's clock fills them in


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert unsaved rows of one model. Every column but those that the database fills in is sent."""
    if not rows:
        return
    fields = _fields(type(rows[0]))
    columns = [_column(field, [getattr(row, field.attname) for row in rows]) for field in fields]
    with prepared_cursor() as cursor:
        cursor.execute(_statement(type(rows[0])), columns)


@cache
def _fields(model: type[Model]) -> "tuple[Field[Any, Any], ...]":
    return tuple(field for field in model._meta.concrete_fields if field.attname not in NOT_SENT)


@cache
def _statement(model: type[Model]) -> str:
    fields = _fields(model)
    names = ", ".join(str(field.column) for field in fields)
    arrays = ", ".join(f"%s::{_sent_type(field)}[]" for field in fields)
    chosen = ", ".join(_chosen(field) for field in fields)
    return f"INSERT INTO {model._meta.db_table} ({names}) SELECT {chosen} FROM unnest({arrays}) AS sent ({names})"


def _sent_type(field: "Field[Any, Any]") -> str:
    """An array of arrays must be even in SQL, so arrays are sent as text."""
    return "text" if isinstance(field, ArrayField) else str(field.db_type(connection))


def _chosen(field: "Field[Any, Any]") -> str:
    if not isinstance(field, ArrayField):
        return f"sent.{field.column}"
    if field.base_field.get_internal_type() == "BigIntegerField":
        return f"sent.{field.column}::bigint[]"
    return f"ARRAY(SELECT jsonb_array_elements_text(sent.{field.column}::jsonb))"


def _column(field: "Field[Any, Any]", values: list[Any]) -> str | list[Any]:
    if isinstance(field, ArrayField):
        is_plain = field.base_field.get_internal_type() == "BigIntegerField"
        return [sql_array(value) if is_plain else json.dumps(value) for value in values]
    return sql_array(values) if _is_plain(field) else values


@cache
def _is_plain(field: "Field[Any, Any]") -> bool:
    return str(field.db_type(connection)).split()[0] in PLAIN


def sql_array(values: Iterable[Any]) -> str:
    """Numbers, ids and None as PostgreSQL writes an array; the driver would look into each for what to quote."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"
