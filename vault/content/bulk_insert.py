"""Many rows in one statement: `INSERT … SELECT FROM unnest(…)`, or `UPDATE`, with an array for each column in which
the rows differ.

For a thousand cubes the ORM composes a statement of tens of thousands of parameters, which takes longer than all the
rest of the call; COPY is no way out, because PostgreSQL refuses it under row-level security. What all rows have in
common is sent once, so that a single row is a single parameter; a statement is kept for each set of such columns.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import BinaryField, Field, Model
from django.db.models.base import ModelState
from django.db.models.expressions import DatabaseDefault

from governance.prepared import prepared_cursor, sql_array

PLAIN = ("uuid", "bigint", "integer", "smallint")  # types whose values need no quotes in an array
STATEMENTS = 256  # that are kept: what rows have in common is nearly always the same
AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True)
class Sent:
    """Rows on their way into one table: the columns that they have in common and those in which they differ, by name.

    `arrays`: the former as one array of texts, and one for each of the latter, as PostgreSQL writes them.
    """

    model: type[Model]
    same: tuple[str, ...]
    differing: tuple[str, ...]
    arrays: list[str]


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert unsaved rows of one model. Every column but those that the database fills in is sent."""
    if rows:
        insert_together([sent(rows)])


def update_rows(rows: Sequence[Model]) -> None:
    """Write all columns of stored rows of one model, which are loaded whole, by their ids."""
    if rows:
        one = sent(rows)
        with prepared_cursor() as cursor:
            cursor.execute(_update_statement(one.model, one.same, one.differing), one.arrays)


def insert_together(tables: Sequence[Sent], last: str = "", parameters: Sequence[Any] = ()) -> None:
    """One statement for rows of several tables, and for `last`, a statement of the caller with `parameters`."""
    shape = tuple((table.model, table.same, table.differing) for table in tables)
    with prepared_cursor() as cursor:
        cursor.execute(_statement(shape, last), [*(part for table in tables for part in table.arrays), *parameters])


def sent(rows: Sequence[Model]) -> Sent:
    """The columns of unsaved rows of one model, at least one."""
    model, values = type(rows[0]), [row.__dict__ for row in rows]
    same: dict[str, str | None] = {}
    differing: dict[str, str] = {}
    for name, field in _fields(model).items():
        column = [value[name] for value in values]
        if column.count(column[0]) < len(column):
            differing[name] = _array(field, column)
        elif not isinstance(column[0], DatabaseDefault):
            (same[name],) = _texts(field, column[:1])
    return Sent(model, tuple(same), tuple(differing), [quoted_array(same.values()), *differing.values()])


def row_made(model: type[AnyModel], values: Mapping[str, Any], attached: Mapping[str, Model | None]) -> AnyModel:
    """An unsaved row with these columns, all of them; `attached`: what its foreign keys name.

    As the ORM would make it, which for each row looks at every field anew.
    """
    made = model.__new__(model)
    made._state = ModelState()
    made._state.fields_cache.update(attached)
    made.__dict__.update(values)
    return made


@cache
def defaults_of(model: type[Model]) -> Mapping[str, Any]:
    """The columns of a new row that says nothing. Lists among them are no row's own."""
    return {field.attname: field.get_default() for field in model._meta.concrete_fields}


@cache
def _fields(model: type[Model]) -> "Mapping[str, Field[Any, Any]]":
    return {field.attname: field for field in model._meta.concrete_fields if not field.generated}


@lru_cache(STATEMENTS)
def _statement(shape: Sequence[tuple[type[Model], Sequence[str], Sequence[str]]], last: str) -> str:
    parts: list[str] = []
    insert = ""
    for number, (model, same, differing) in enumerate(shape, 1):
        fields = _fields(model)
        common, insert = _insert(model, [fields[name] for name in same], [fields[name] for name in differing])
        parts.append(common)
        if last or number < len(shape):
            parts.append(f"{model._meta.db_table}_rows AS ({insert})")
    return f"WITH {', '.join(parts)} {last or insert}"


@lru_cache(STATEMENTS)
def _update_statement(model: type[Model], same: Sequence[str], differing: Sequence[str]) -> str:
    fields, table = _fields(model), model._meta.db_table
    common, chosen, rows = _columns(model, [fields[name] for name in same], [fields[name] for name in differing])
    changed = ", ".join(f"{column} = {value}" for column, value in chosen.items() if column != "id")
    return f"WITH {common} UPDATE {table} AS row SET {changed} FROM {rows} WHERE row.id = {chosen['id']}"


def _insert(
    model: type[Model], same: "Sequence[Field[Any, Any]]", differing: "Sequence[Field[Any, Any]]"
) -> tuple[str, str]:
    """Return the insert statement, and before it the columns with one value for all rows."""
    common, chosen, rows = _columns(model, same, differing)
    names, values = ", ".join(chosen), ", ".join(chosen.values())
    return common, f"INSERT INTO {model._meta.db_table} ({names}) SELECT {values} FROM {rows}"


def _columns(
    model: type[Model], same: "Sequence[Field[Any, Any]]", differing: "Sequence[Field[Any, Any]]"
) -> tuple[str, dict[str, str], str]:
    """Return the part that names the columns with one value, the value of each column, and what to select them from."""
    table = model._meta.db_table
    common = ", ".join(
        f"{_chosen(field, f'(given.texts)[{place}]::{_sent_type(field)}')} AS {field.column}"
        for place, field in enumerate(same, 1)
    )
    chosen = {str(field.column): f"same.{field.column}" for field in same}
    rows = f"{table}_same AS same"
    if differing:
        chosen |= {str(field.column): _chosen(field, f"sent.{field.column}") for field in differing}
        arrays = ", ".join(f"%s::{_sent_type(field)}[]" for field in differing)
        rows += f", unnest({arrays}) AS sent ({', '.join(str(field.column) for field in differing)})"
    first = f"{table}_same AS MATERIALIZED (SELECT {common} FROM (SELECT %s::text[] AS texts) AS given)"
    return first, chosen, rows


def _sent_type(field: "Field[Any, Any]") -> str:
    """An array of arrays must be even in SQL, so arrays are sent as text."""
    return "text" if isinstance(field, ArrayField) else str(field.db_type(connection))


def _chosen(field: "Field[Any, Any]", value: str) -> str:
    if not isinstance(field, ArrayField):
        return value
    if _is_of_numbers(field):
        return f"({value})::bigint[]"
    return f"ARRAY(SELECT jsonb_array_elements_text(({value})::jsonb))"


def _array(field: "Field[Any, Any]", values: Sequence[Any]) -> str:
    return sql_array(values) if _is_plain(field) else quoted_array(_texts(field, values))


def _texts(field: "Field[Any, Any]", values: Sequence[Any]) -> list[str | None]:
    """Values as PostgreSQL reads their type."""
    if isinstance(field, ArrayField):
        write = sql_array if _is_of_numbers(field) else json.dumps
        return [write(value) for value in values]
    if isinstance(field, BinaryField):
        return [None if value is None else f"\\x{value.hex()}" for value in values]
    return [None if value is None else str(value) for value in values]


@cache
def _is_of_numbers(field: "ArrayField[Any, Any]") -> bool:
    return field.base_field.get_internal_type() == "BigIntegerField"


@cache
def _is_plain(field: "Field[Any, Any]") -> bool:
    return str(field.db_type(connection)).split()[0] in PLAIN


def quoted_array(texts: Iterable[str | None]) -> str:
    """Any texts and None as PostgreSQL writes an array."""
    return "{" + ",".join(["NULL" if text is None else f'"{_escaped(text)}"' for text in texts]) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
