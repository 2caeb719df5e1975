"""Lookups of the ORM that Django lacks."""

from typing import TYPE_CHECKING, Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Lookup
from django.db.models.fields.related import ForeignObject
from django.db.models.sql.compiler import SQLCompiler

if TYPE_CHECKING:
    _Lookup = Lookup[Any]
else:
    _Lookup = Lookup  # it takes no type when it runs


@ForeignObject.register_lookup
@Field.register_lookup
class AnyOf(_Lookup):
    """`column = ANY(array)` of ids, numbers or bytes: one parameter, while `in` composes one for each value."""

    lookup_name = "any_of"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        column, parameters = self.process_lhs(compiler, connection)
        values = "{" + ",".join(map(_element, self.rhs)) + "}"
        return f"{column} = ANY(%s::{self.lhs.output_field.db_type(connection)}[])", (*parameters, values)


def _element(value: Any) -> str:
    return f'"\\\\x{bytes(value).hex()}"' if isinstance(value, (bytes, memoryview)) else str(value)
