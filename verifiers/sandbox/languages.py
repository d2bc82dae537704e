"""Languages of stdin-style programs: commands to build and start one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from verifiers.core import VerifierError


@dataclass(frozen=True, slots=True)
class Language:
    """Commands to run inside the sandbox; `{memory}` is the memory limit in MiB."""

    name: str
    tags: tuple[str, ...]  # of fenced blocks
    file: str = ""
    preamble: str = ""  # put before the submission in `file`
    build: tuple[str, ...] = ()  # builds `program` from `file`
    start: tuple[str, ...] = ()  # empty: the program itself is executed
    address_limit: bool = True  # False: the runtime reserves more addresses than it ever uses


# The stack may use up to the memory limit, for deep recursion, and libc would reserve as much for every thread: the
# second one would find no addresses left. So threads get the usual size. The names are ours: no header is included.
_THREAD_STACKS = """\
extern "C" int verifiers_init(void *) __asm__("pthread_attr_init");
extern "C" int verifiers_size(void *, unsigned long) __asm__("pthread_attr_setstacksize");
extern "C" int verifiers_default(const void *) __asm__("pthread_setattr_default_np");
__attribute__((constructor(101))) static void verifiers_thread_stacks() {
    long attributes[32];
    verifiers_init(attributes);
    verifiers_size(attributes, 8ul << 20);
    verifiers_default(attributes);
}
#line 1 "main.cpp"
"""

_ALL = (
    Language("python", ("python", "python3", "py", "py3", "pycon")),
    Language(
        "cpp",
        ("cpp", "c++", "cc", "cxx"),
        "main.cpp",
        _THREAD_STACKS,
        ("g++", "-std=c++17", "-O2", "-pipe", "-pthread", "-o", "program", "main.cpp"),
    ),
    Language(
        "javascript",
        ("javascript", "js", "node", "nodejs"),
        "main.js",
        # A configuration that exists but may not be read, as at level landlock, would end it at once.
        start=("node", "--openssl-config=/dev/null", "--max-old-space-size={memory}", "--stack-size=16000", "main.js"),
        address_limit=False,
    ),
)
LANGUAGES: dict[str, Language] = {language.name: language for language in _ALL}


def installed(command: str) -> str:
    """Returns the full path of a compiler or interpreter. Raises VerifierError if it is not installed."""
    found = shutil.which(command, path="/usr/local/bin:/usr/bin:/bin")
    if found is None:
        raise VerifierError(f"'{command}' is not installed (looked in /usr/local/bin, /usr/bin, /bin)")
    return found
