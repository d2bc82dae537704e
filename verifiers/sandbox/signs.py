"""Signs of cheating in a submission's text. They are reported beside the verdict and never change it."""

from __future__ import annotations

import re

_SIGNS = {  # name -> (texts of which a match contains at least one, pattern)
    "always_equal": (("def __",), r"def __(?:eq|ne|bool|contains)__\b"),
    "early_exit": (
        ("exit", "quit", "SystemExit", "os.abort", "os.kill"),
        r"\b(?:os\._exit|sys\.exit|quit|exit)\s*\(|\braise\s+SystemExit|\bos\.(?:abort|kill)\b",
    ),
    "introspection": (
        ("_getframe", "gc.get_", "inspect.", "__subclasses__", "f_back", "f_globals", "tb_frame"),
        r"_getframe|gc\.get_(?:objects|referrers)|inspect\.(?:stack|currentframe)|__subclasses__|f_back|f_globals|"
        r"tb_frame",
    ),
    "patching": (
        ("builtins", "sys"),
        r"\bbuiltins\.\w+\s*=|__builtins__|\bsetattr\s*\(\s*(?:builtins|sys)\b|sys\.(?:modules|settrace|setprofile)",
    ),
    "low_level": (
        ("ctypes", "/proc/", "process_vm", "ptrace", "mmap", "io_uring"),
        r"\bctypes\b|/proc/|process_vm|\bptrace\b|\bmmap\b|io_uring",
    ),
    "network": (
        ("socket.", "urllib.request", "import requests"),
        r"\bsocket\.(?:socket|create_connection|getaddrinfo)\b|\burllib\.request|\bimport requests\b",
    ),
    "test_names": (
        ("unittest.", "pytest", "def check", "assertEqual"),
        r"\bunittest\.\w+\s*=|\bpytest\b|\bdef check\s*\(|\bassertEqual\s*=",
    ),
}
_COMPILED = [(name, texts, re.compile(pattern)) for name, (texts, pattern) in _SIGNS.items()]


def signs(code: str) -> tuple[str, ...]:
    """Returns the names of the signs found; honest programs show some of them too."""
    return tuple(
        name
        for name, texts, pattern in _COMPILED
        if any(text in code for text in texts) and pattern.search(code)  # most programs contain none of the texts
    )
