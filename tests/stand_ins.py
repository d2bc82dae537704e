"""Modules that stand for a package that is not installed, for the length of a test."""

import importlib
import sys
import types


def put(monkeypatch, names):
    """Modules of these names and contents, parents included."""
    for name, contents in names.items():
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            if ".".join(parts[:i]) not in sys.modules:
                monkeypatch.setitem(sys.modules, ".".join(parts[:i]), types.ModuleType(parts[i - 1]))
        for key, value in contents.items():
            monkeypatch.setattr(sys.modules[name], key, value, raising=False)


def adapter(monkeypatch, name):
    monkeypatch.delitem(sys.modules, f"verifiers.adapters.{name}", raising=False)
    module = importlib.import_module(f"verifiers.adapters.{name}")
    monkeypatch.setitem(sys.modules, f"verifiers.adapters.{name}", module)  # gone again after the test
    return module
