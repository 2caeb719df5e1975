"""A module of ours with one deliberate break: what holds for the module must not hold for its mutant."""

import sys
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType


def mutant(module: ModuleType, old: str, new: str, *others: tuple[str, str]) -> ModuleType:
    """`module`, compiled anew from its source with `old` replaced by `new`, and so in `others`; the real one stays as
    it is.
    """
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    for before, after in ((old, new), *others):
        assert before in source, f"{module.__name__} has no {before!r} to break"
        source = source.replace(before, after, 1)
    spec = spec_from_loader(f"{module.__name__}_mutant", loader=None)
    assert spec is not None
    made = module_from_spec(spec)
    sys.modules[made.__name__] = made  # dataclasses look their own module up
    try:
        exec(compile(source, str(module.__file__), "exec"), made.__dict__)
    finally:
        del sys.modules[made.__name__]
    return made
