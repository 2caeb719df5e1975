"""A module of ours with one deliberate break: what holds for the module must not hold for its mutant."""

import sys
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType


def mutant(module: ModuleType, old: str, new: str) -> ModuleType:
    """`module`, compiled anew from its source with `old` replaced by `new`; the real one stays as it is."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert old in source, f"{module.__name__} has no {old!r} to break"
    spec = spec_from_loader(f"{module.__name__}_mutant", loader=None)
    assert spec is not None
    made = module_from_spec(spec)
    sys.modules[made.__name__] = made  # dataclasses look their own module up
    try:
        exec(compile(source.replace(old, new, 1), str(module.__file__), "exec"), made.__dict__)
    finally:
        del sys.modules[made.__name__]
    return made
