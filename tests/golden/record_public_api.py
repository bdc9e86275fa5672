"""Record names and signatures of everything public: a change is to be seen in review.

Run ``python tests/golden/record_public_api.py``.
"""

import inspect
from pathlib import Path

import calibrant as cb

RECORD = Path(__file__).with_name("public_api.txt")


def surface():
    """Return one line per public name, and per public method of public classes."""
    lines = []
    for name in cb.__all__:
        thing = getattr(cb, name)
        if inspect.ismodule(thing):
            lines += [f"{name}.{inner}" for inner in _names(thing)]
        elif isinstance(thing, type):
            lines.append(f"{name}{_signature(thing)}")
            lines += [f"{name}.{line}" for line in _members(thing)]
        else:
            lines.append(f"{name}{_signature(thing)}")
    return lines


def _names(module):
    """Return the public names of a module, by its list or as it defines them."""
    own = (
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    )
    return sorted(getattr(module, "__all__", own))


def _members(class_):
    members = {
        name: member
        for name, member in inspect.getmembers(class_)
        if not name.startswith("_") and _home(member).startswith("calibrant")
    }
    return [f"{name}{_signature(member)}" for name, member in members.items()]


def _home(member):
    """Return the module that defines a member; a cached property is its function's."""
    return getattr(getattr(member, "func", member), "__module__", "calibrant")


def _signature(thing):
    if not callable(thing):
        return ""
    parameters = inspect.signature(thing).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(plain))


if __name__ == "__main__":
    RECORD.write_text("\n".join([*surface(), ""]), encoding="utf-8")
