"""Signs of cheating in a submission's text. They are reported beside the verdict and never change it."""

from __future__ import annotations

import re

_SIGNS = {
    "always_equal": r"def __(?:eq|ne|bool|contains)__\b",
    "early_exit": r"\b(?:os\._exit|sys\.exit|quit|exit)\s*\(|\braise\s+SystemExit|\bos\.(?:abort|kill)\b",
    "introspection": r"_getframe|gc\.get_(?:objects|referrers)|inspect\.(?:stack|currentframe)|__subclasses__|f_back|"
    r"f_globals|tb_frame",
    "patching": r"\bbuiltins\.\w+\s*=|__builtins__|\bsetattr\s*\(\s*(?:builtins|sys)\b|"
    r"sys\.(?:modules|settrace|setprofile)",
    "low_level": r"\bctypes\b|/proc/|process_vm|\bptrace\b|\bmmap\b|io_uring",
    "network": r"\bsocket\.(?:socket|create_connection|getaddrinfo)\b|\burllib\.request|\bimport requests\b",
    "test_names": r"\bunittest\.\w+\s*=|\bpytest\b|\bdef check\s*\(|\bassertEqual\s*=",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _SIGNS.items()}


def signs(code: str) -> tuple[str, ...]:
    """Returns the names of the signs found; honest programs show some of them too."""
    return tuple(name for name, pattern in _COMPILED.items() if pattern.search(code))
