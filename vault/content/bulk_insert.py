"""Writes of many rows in one statement: `INSERT … SELECT FROM unnest(…)` or `UPDATE`, with one array per varying
column.

For a thousand cubes the ORM composes a statement with tens of thousands of parameters, which takes longer than the rest
of the call, and PostgreSQL refuses COPY under row-level security. A value that all rows share is sent once, so that a
single row is a single parameter. Statements are cached by their sets of columns.
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
STATEMENTS = 256  # cached: rows nearly always share the same columns
AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True)
class RowBatch:
    """Rows to write into one table. same: columns with one value for all rows; differing: the other columns.

    arrays: one array of texts for the columns of `same`, then one array for each column of `differing`, in PostgreSQL's
    notation.
    """

    model: type[Model]
    same: tuple[str, ...]
    differing: tuple[str, ...]
    arrays: list[str]


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert unsaved rows of one model, with all columns except generated ones."""
    if rows:
        insert_batches([make_batch(rows)])


def update_rows(rows: Sequence[Model]) -> None:
    """Update all columns of stored rows of one model, found by id. All fields of the rows must be loaded."""
    if rows:
        batch = make_batch(rows)
        with prepared_cursor() as cursor:
            cursor.execute(_update_statement(batch.model, batch.same, batch.differing), batch.arrays)


def insert_batches(tables: Sequence[RowBatch], last: str = "", parameters: Sequence[Any] = ()) -> None:
    """Insert rows of several tables and run `last`, a further SQL part with `parameters`, in one statement."""
    shape = tuple((table.model, table.same, table.differing) for table in tables)
    with prepared_cursor() as cursor:
        cursor.execute(_statement(shape, last), [*(part for table in tables for part in table.arrays), *parameters])


def make_batch(rows: Sequence[Model]) -> RowBatch:
    """Return the rows of one model as a batch, with columns split into equal and differing ones. rows: at least one."""
    model, values = type(rows[0]), [row.__dict__ for row in rows]
    same: dict[str, str | None] = {}
    differing: dict[str, str] = {}
    for name, field in _stored_fields(model).items():
        column = [value[name] for value in values]
        if column.count(column[0]) < len(column):
            differing[name] = _write_column(field, column)
        elif not isinstance(column[0], DatabaseDefault):
            (same[name],) = _write_values(field, column[:1])
    return RowBatch(model, tuple(same), tuple(differing), [write_array(same.values()), *differing.values()])


def make_row(model: type[AnyModel], values: Mapping[str, Any], attached: Mapping[str, Model | None]) -> AnyModel:
    """Make an unsaved row as the ORM would, without its checks of every field.

    values: all columns; attached: the objects of the foreign keys by name.
    """
    made = model.__new__(model)
    made._state = ModelState()
    made._state.fields_cache.update(attached)
    made.__dict__.update(values)
    return made


@cache
def defaults_of(model: type[Model]) -> Mapping[str, Any]:
    """Return the default of each column. Rows share its lists: replace them, never change them."""
    return {field.attname: field.get_default() for field in model._meta.concrete_fields}


@cache
def _stored_fields(model: type[Model]) -> "Mapping[str, Field[Any, Any]]":
    return {field.attname: field for field in model._meta.concrete_fields if not field.generated}


@lru_cache(STATEMENTS)
def _statement(shape: Sequence[tuple[type[Model], Sequence[str], Sequence[str]]], last: str) -> str:
    parts: list[str] = []
    insert = ""
    for number, (model, same, differing) in enumerate(shape, 1):
        fields = _stored_fields(model)
        common, insert = _insert_statement(model, [fields[name] for name in same], [fields[name] for name in differing])
        parts.append(common)
        if last or number < len(shape):
            parts.append(f"{model._meta.db_table}_rows AS ({insert})")
    return f"WITH {', '.join(parts)} {last or insert}"


@lru_cache(STATEMENTS)
def _update_statement(model: type[Model], same: Sequence[str], differing: Sequence[str]) -> str:
    fields, table = _stored_fields(model), model._meta.db_table
    common, chosen, rows = _columns(model, [fields[name] for name in same], [fields[name] for name in differing])
    changed = ", ".join(f"{column} = {value}" for column, value in chosen.items() if column != "id")
    return f"WITH {common} UPDATE {table} AS row SET {changed} FROM {rows} WHERE row.id = {chosen['id']}"


def _insert_statement(
    model: type[Model], same: "Sequence[Field[Any, Any]]", differing: "Sequence[Field[Any, Any]]"
) -> tuple[str, str]:
    """Return the common table expression of the columns with one value, and the INSERT statement that uses it."""
    common, chosen, rows = _columns(model, same, differing)
    names, values = ", ".join(chosen), ", ".join(chosen.values())
    return common, f"INSERT INTO {model._meta.db_table} ({names}) SELECT {values} FROM {rows}"


def _columns(
    model: type[Model], same: "Sequence[Field[Any, Any]]", differing: "Sequence[Field[Any, Any]]"
) -> tuple[str, dict[str, str], str]:
    """Return three parts of a statement: the SQL of shared values, column → SQL of its value, and the FROM clause."""
    table = model._meta.db_table
    common = ", ".join(
        f"{_column_expression(field, f'(given.texts)[{place}]::{_array_type(field)}')} AS {field.column}"
        for place, field in enumerate(same, 1)
    )
    chosen = {str(field.column): f"same.{field.column}" for field in same}
    rows = f"{table}_same AS same"
    if differing:
        chosen |= {str(field.column): _column_expression(field, f"sent.{field.column}") for field in differing}
        arrays = ", ".join(f"%s::{_array_type(field)}[]" for field in differing)
        rows += f", unnest({arrays}) AS sent ({', '.join(str(field.column) for field in differing)})"
    first = f"{table}_same AS MATERIALIZED (SELECT {common} FROM (SELECT %s::text[] AS texts) AS given)"
    return first, chosen, rows


def _array_type(field: "Field[Any, Any]") -> str:
    """Return the array element type of a column; list columns are sent as text, since SQL arrays cannot be ragged."""
    return "text" if isinstance(field, ArrayField) else str(field.db_type(connection))


def _column_expression(field: "Field[Any, Any]", value: str) -> str:
    if not isinstance(field, ArrayField):
        return value
    if _has_integers(field):
        return f"({value})::bigint[]"
    return f"ARRAY(SELECT jsonb_array_elements_text(({value})::jsonb))"


def _write_column(field: "Field[Any, Any]", values: Sequence[Any]) -> str:
    return sql_array(values) if _is_plain(field) else write_array(_write_values(field, values))


def _write_values(field: "Field[Any, Any]", values: Sequence[Any]) -> list[str | None]:
    """Return the values as texts in PostgreSQL's notation for the type of the column."""
    if isinstance(field, ArrayField):
        write = sql_array if _has_integers(field) else json.dumps
        return [write(value) for value in values]
    if isinstance(field, BinaryField):
        return [None if value is None else f"\\x{value.hex()}" for value in values]
    return [None if value is None else str(value) for value in values]


@cache
def _has_integers(field: "ArrayField[Any, Any]") -> bool:
    return field.base_field.get_internal_type() == "BigIntegerField"


@cache
def _is_plain(field: "Field[Any, Any]") -> bool:
    return str(field.db_type(connection)).split()[0] in PLAIN


def write_array(texts: Iterable[str | None]) -> str:
    """Return texts and None as a PostgreSQL array literal."""
    return "{" + ",".join(["NULL" if text is None else f'"{_escape(text)}"' for text in texts]) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
