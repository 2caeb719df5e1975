"""Cases of a test that are gone through in one world, one after the other, instead of each in a world of its own."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
Axis = list[dict[str, Any]]  # for each case of a decorator: argument → value


def each_case(names: str | Sequence[str], cases: Iterable[Any], ids: Any = None) -> Callable[[Test], Test]:
    """`pytest.mark.parametrize` within one test: all fixtures are made once, and every case is tried.

    A failed test names each case that failed, by its values: `ids` is taken only to be written like parametrize.
    Several of these multiply, as with parametrize.
    """
    fields = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    axis = [dict(zip(fields, _values(case, len(fields)), strict=True)) for case in cases]
    assert axis, f"no cases of {names}"

    def decorate(test: Test) -> Test:
        taken = inspect.signature(test).parameters
        fixtures = [parameter for name, parameter in taken.items() if name not in fields]

        def run(**given: Any) -> None:
            _run_all(test, axis, given)

        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(run, attribute, getattr(test, attribute))
        run.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        run.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]
        return run

    return decorate


def _values(case: Any, fields: int) -> Sequence[Any]:
    if isinstance(case, type(pytest.param())):
        assert not case.marks, "a case with a mark is a test of its own"
        return tuple(case.values)
    return case if fields > 1 else (case,)


def _run_all(test: Test, axis: Axis, given: dict[str, Any]) -> None:
    failures: list[BaseException] = []
    for case in axis:
        try:
            test(**given, **case)
        except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - raised below
            failure.add_note(f"in the case {case!r}"[:300])
            failures.append(failure)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {len(axis)} cases failed", failures)
