"""The process of a run after it is locked in: loads the submission and serves calls, or becomes the program.

Everything here shares a process with hostile code and may be rewritten by it. Nothing here knows a test or an
expected value, and everything it sends is treated as data only.
"""

from __future__ import annotations

import _socket
import _thread
import atexit
import builtins
import contextlib
import gc
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from verifiers.sandbox import linux, wire

CHANNEL = 3  # descriptor of the socket to the trusted side
_WARM = 20  # more calls than the interpreter needs to specialise code
BINARY = 4  # descriptor of the compiled program, if there is one
_FILE = "solution.py"
_MAX_REASON = 2000
_OF_ERRORS = ("errno", "strerror", "filename", "filename2")  # attributes of OSError that are not in `args`
_FRAMES_OF_OURS = 8  # maximum between a call out of the submission and the call back into it

# Names that submissions use without importing them, for the option `common_names`. Only functions get them, they never
# count as the entry point, and a submission's own name takes precedence.
_COMMON = {
    "typing": ("Any", "Callable", "Dict", "FrozenSet", "Generator", "Iterable", "Iterator", "List", "Optional",
               "Sequence", "Set", "Tuple", "Type", "TypeVar", "Union"),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"),
    "functools": ("cache", "cmp_to_key", "lru_cache", "reduce"),
    "itertools": ("accumulate", "chain", "combinations", "permutations", "product"),
    "heapq": ("heapify", "heappop", "heappush"),
    "bisect": ("bisect_left", "bisect_right"),
    "math": ("gcd", "inf", "sqrt"),
}  # fmt: skip
_COMMON_TEXT = " ".join(name for wanted in _COMMON.values() for name in wanted)
_MODULES_TEXT = "bisect. collections. copy. functools. heapq. itertools. math. operator. random. re. string."


def common_names() -> dict[str, Any]:
    """Returns the names; called once in the fork-server."""
    names: dict[str, Any] = {}
    for module, wanted in _COMMON.items():
        loaded = __import__(module)
        names.update({name: getattr(loaded, name) for name in wanted})
    return names


_TRIAL = """
class Solution:
    def trial(self, xs: list[int], text: str = "") -> tuple[int, str]:
        seen = {x: i for i, x in enumerate(sorted(xs))}
        return sum(seen), "-".join([text, *map(str, xs)])
"""
_TRIAL_CALLS = [[[[3, 1, 2], "ab"], []], [[[1.5]], [["text", "c"]]], [[{"t": [1]}, None], []]]


_TRIAL_PROGRAM = """
import sys
for line in sys.stdin: pass
try: input()
except EOFError: pass
print(sum(map(int, "1 2".split())))
"""


def warm_up(common: dict[str, Any]) -> None:
    """Runs small jobs in the fork-server, so that runs start with specialised code and filled caches.

    Otherwise every run would repeat the interpreter's writes at first calls, in its own copies of the pages.
    """
    ours, theirs = _socket.socketpair()
    job = {"mode": "function", "code": _TRIAL, "entry": "trial", "calls": _TRIAL_CALLS, "prefix": ""}
    for _ in range(_WARM):
        ours.sendall(wire.pack(job))
        channel = Channel(theirs.fileno())
        _serve(channel, channel.receive(), common)
        ours.recv(1 << 16)
        del sys.modules["solution"]
    main_module = sys.modules["__main__"]
    for _ in range(_WARM):
        _Program(channel).run(_TRIAL_PROGRAM)
        _flush()
    sys.modules["__main__"] = main_module
    ours.close()
    theirs.close()


def main(channel: Channel, job: Any, common: dict[str, Any]) -> None:
    """Runs one job and never returns."""
    mode = job["mode"]
    if mode == "function":
        _serve(channel, job, common)
    elif mode == "program":
        _be_program(channel, job)
    elif mode == "oracle":
        sys.modules["verifiers.sandbox.oracle"].main(channel, job)  # loaded in the trusted servers only
    elif mode == "score":
        sys.modules["verifiers.sandbox.scoring"].main(channel, job)  # loaded in a scorer's servers only
    os._exit(0)


class Channel:
    """Frames over a socket."""

    def __init__(self, descriptor: int, limit: int = 1 << 31) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._rest = b""  # bytes already read of a later message

    def receive(self) -> Any:
        """Returns the next message. Raises EOFError at the end, WireError for one that is too large."""
        data = self._rest or os.read(self._descriptor, 1 << 12)
        if len(data) < wire.HEADER_SIZE:
            data = self._more(data, wire.HEADER_SIZE)
        size = int.from_bytes(data[:4], "little")
        if size > self._limit:
            raise wire.WireError(f"a message of {size} bytes; the limit is {self._limit}")
        end = wire.HEADER_SIZE + size
        if len(data) < end:
            data = self._more(data, end)
        self._rest = data[end:]
        return wire.unpack(data[4:end])

    def _more(self, data: bytes, size: int) -> bytes:
        parts, missing = [data], size - len(data)
        while missing > 0:
            parts.append(os.read(self._descriptor, min(missing, 1 << 20)))
            if not parts[-1]:
                raise EOFError
            missing -= len(parts[-1])
        return b"".join(parts)

    def send(self, message: Any) -> None:
        self.send_bytes(wire.pack(message))

    def send_bytes(self, data: bytes) -> None:
        sent = os.write(self._descriptor, data)
        while sent < len(data):
            sent += os.write(self._descriptor, memoryview(data)[sent:])


def _load(code: str, name: str, seed: dict[str, Any]) -> tuple[types.ModuleType | None, list[Any] | None]:
    """Returns (the submission as a module, None), or (None, the message that says why it can't be loaded)."""
    try:
        compiled = compile(code, _FILE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return None, ["load", "CE", f"{type(error).__name__}: {error}"[:_MAX_REASON]]
    module = types.ModuleType(name)
    sys.modules[name] = module
    module.__dict__.update(seed)
    module.__dict__["__builtins__"] = builtins
    module.__file__ = _FILE
    gc.enable()
    try:
        exec(compiled, module.__dict__)
    except BaseException as error:  # every failure of the submission is reported, including SystemExit
        return module, ["load", *_described(error)]
    return module, None


def _described(error: BaseException) -> list[Any]:
    """Returns [verdict, names of its class and bases, text and line]."""
    verdict, names, text = _raised(error)
    return [verdict, names, text + _where(error)]


def _raised(error: BaseException) -> list[Any]:
    """Returns [verdict, names of its class and of its built-in bases, text]."""
    verdict = "EXIT" if isinstance(error, SystemExit) else "MLE" if isinstance(error, MemoryError) else "RTE"
    if not isinstance(error, Exception):
        verdict = "EXIT"
    try:
        text = str(error)[:_MAX_REASON]
    except Exception:  # a hostile __str__
        text = ""
    kind = type(error)
    bases = [base.__name__ for base in kind.__mro__ if vars(builtins).get(base.__name__) is base]
    return [verdict, [kind.__name__[:100], *bases], text]


def _where(error: BaseException) -> str:
    where = ""
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == _FILE:
            where = f" (line {step.tb_lineno})"
        step = step.tb_next
    return where


def _holds(error: BaseException) -> list[Any]:
    """Returns the parts of an exception that tests may read, if they are data: [modules, arguments, attributes]."""
    places = [[base.__module__, base.__qualname__] for base in type(error).__mro__ if base.__module__ != "builtins"]
    attributes = []
    for name in (*getattr(error, "__dict__", ()), *_OF_ERRORS):
        try:
            attributes.append([name, wire.encode(getattr(error, name), _refuse)])
        except Exception:  # it is missing, or not data
            continue
    try:
        return [places, wire.encode(tuple(error.args), _refuse), attributes]
    except Exception:  # it is not data, or hostile
        return [places, None, attributes]


def _refuse(value: Any) -> Any:
    raise wire.WireError("not data")


class _MissingError(Exception):
    """The submission does not define the requested name."""


class _Server:
    """Serves calls into the submission; `stub`s stand for objects of the trusted side."""

    def __init__(
        self, channel: Channel, module: types.ModuleType, seed: dict[str, Any], printed: _Printed | None = None
    ) -> None:
        self.channel = channel
        self.printed = printed
        self.module = module
        self.seed = seed
        self.objects: list[Any] = []
        self.token = 0  # identifies the call being answered

    def named(self, name: str) -> Any:
        """Returns what the submission itself defines under this name, or a method of its class Solution; supplied and
        built-in names do not count."""
        names = self.module.__dict__
        if name in names and not (name in self.seed and names[name] is self.seed[name]):
            return names[name]
        solution = names.get("Solution")
        if isinstance(solution, type) and callable(getattr(solution, name, None)):
            return lambda *args, **kwargs: getattr(solution(), name)(*args, **kwargs)
        raise _MissingError(name)

    def opaque(self, value: Any) -> Any:
        if type(value) is _Stub:
            return {"h": [object.__getattribute__(value, "_id"), ""]}
        if isinstance(value, type) and vars(builtins).get(name := str(getattr(value, "__name__", ""))) is value:
            return {"y": name}
        self.objects.append(value)
        return {"o": [len(self.objects) - 1, type(value).__name__[:100]]}

    def reference(self, tag: str, body: Any) -> Any:
        if tag == "o":
            return self.named(body) if isinstance(body, str) else self.objects[body]
        if tag == "y":
            return getattr(builtins, body)
        if tag == "h":
            number, kind = body
            if kind == "call":
                return lambda *args, **kwargs: self.ask("call", number, args, kwargs)
            if kind == "iter":
                return self._stream(number)
            return _Stub(self, number)
        raise wire.WireError(f"unknown kind {tag!r}")

    def _stream(self, number: int) -> Iterator[Any]:
        while True:
            more = self.ask("next", number, (), {})
            if not more:
                return
            yield more[0]

    def ask(self, action: str, number: int, args: Any, kwargs: Any) -> Any:
        """Uses an object of the trusted side; serves calls that arrive meanwhile."""
        # The frames between the submission and itself are ours, and must not count as its recursion.
        depth = sys.getrecursionlimit()
        sys.setrecursionlimit(depth + _FRAMES_OF_OURS)
        try:
            self._show_printed()
            encoded = [wire.encode(list(args), self.opaque)]
            encoded.append([[k, wire.encode(v, self.opaque)] for k, v in kwargs.items()])
            self.channel.send(["ask", self.token, action, number, *encoded])
            while True:
                request = self.channel.receive()
                if request[0] == "answer":
                    return wire.decode(request[1], self.reference)
                if request[0] == "raise":
                    kind = getattr(builtins, request[1], RuntimeError)
                    raise kind(request[2])
                self.answer(request)
        finally:
            sys.setrecursionlimit(depth)

    def answer(self, request: list[Any]) -> None:
        """Executes one request: ["do", token, operation, target, args, kwargs]; the reply carries the same token."""
        _, token, operation, target, raw_args, raw_kwargs = request
        before, self.token = self.token, token
        args: list[Any] = []
        try:
            args = [wire.decode(item, self.reference) for item in raw_args]
            kwargs = {key: wire.decode(item, self.reference) for key, item in raw_kwargs}
            if operation == "name":
                result = self.named(args[0])
            else:
                value = self.named(target) if isinstance(target, str) else self.objects[target]
                result = OPERATIONS[operation](value, *args, **kwargs)
            same = [i for i, item in enumerate(args) if item is result and type(item) in _MUTABLE]
            reply = ["ok", token, {"@": same[0]} if same else wire.encode(result, self.opaque)]
        except _MissingError as error:
            reply = ["missing", token, str(error)]
        except wire.WireError as error:
            reply = ["bad", token, str(error)]
        except BaseException as error:  # a failure of the submission, reported as such
            reply = ["raised", token, *_raised(error), _where(error), *_holds(error)]
        self.token = before
        changed = []
        for index, (item, raw) in enumerate(zip(args, raw_args, strict=False)):
            if type(item) in _MUTABLE:
                after = wire.encode(item, self.opaque)
                if after != raw:
                    changed.append([index, after])
        reply.append(changed)
        self.token = token
        self._show_printed()
        self.token = before
        self.channel.send(reply)

    def _show_printed(self) -> None:
        if self.printed is not None and (text := self.printed.take()):
            self.channel.send(["out", self.token, text])


class _Printed:
    """Collects the submission's output, for tests that capture standard output on their side."""

    def __init__(self) -> None:
        import io

        self._bytes = io.BytesIO()
        self._stream = sys.stdout = io.TextIOWrapper(
            self._bytes, "utf-8", errors="surrogatepass", newline="", write_through=True
        )

    def take(self) -> str:
        try:
            self._stream.flush()
            data = self._bytes.getvalue()
            self._bytes.seek(0)
            self._bytes.truncate()
        except ValueError:  # the submission has closed it
            return ""
        return data.decode("utf-8", "replace")


class _Stub:
    """An object of the trusted side. It has public attributes only, and the trusted side decides which."""

    __slots__ = ("_id", "_server")

    def __init__(self, server: _Server, number: int) -> None:
        object.__setattr__(self, "_server", server)
        object.__setattr__(self, "_id", number)

    def __getattr__(self, name: str) -> Any:
        return self._server.ask("get", self._id, (name,), {})

    def __setattr__(self, name: str, value: Any) -> None:
        self._server.ask("set", self._id, (name, value), {})


_MUTABLE = {list, dict, set, bytearray}


def _enter(value: Any) -> Any:
    return value.__enter__()


def _exit(value: Any) -> Any:
    return value.__exit__(None, None, None)


def _own(operation: str) -> Callable[..., Any]:
    import operator

    return getattr(operator, operation)  # type: ignore[no-any-return]


# Operations of the trusted side on an object that stays here. Comparison with data is not among them, because the data
# might be the expected value.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda value, *args, **kwargs: value(*args, **kwargs),
    "get": getattr, "set": setattr, "del": delattr, "len": len, "iter": iter, "str": str, "repr": repr, "bool": bool,
    "int": int, "float": float, "abs": abs, "next": lambda value: [next(value)], "enter": _enter, "exit": _exit,
    "round": round, "reversed": reversed, "format": format,
    **{name: _own(name) for name in ("getitem", "setitem", "delitem", "index", "neg", "add", "sub", "mul", "truediv",
                                     "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor")},
}  # fmt: skip


def _serve(channel: Channel, job: Any, common: dict[str, Any]) -> None:
    """Runs function and assert style: calls come in the job (`calls`), or one by one until the other side hangs up."""
    code = job["code"]
    seed: dict[str, Any] = {}
    if job.get("common"):
        # The names are copied freshly, because touching the unused values would copy their pages.
        for name in _COMMON_TEXT.split():
            if name in code:
                seed[name] = common[name]
        for name in _MODULES_TEXT.split():
            if name in code:
                seed[name[:-1]] = __import__(name[:-1])
    printed = _Printed() if job.get("prints") else None
    if job.get("prefix"):
        prefix, failure = _load(job["prefix"], "prefix", {})
        if failure or prefix is None:
            channel.send(failure)
            os._exit(0)
        seed.update({name: value for name, value in prefix.__dict__.items() if not name.startswith("__")})
    module, failure = _load(code, "solution", seed)
    if failure or module is None:
        channel.send(failure)
        os._exit(0)
    server = _Server(channel, module, seed, printed)
    calls = job.get("calls")
    try:
        entry = server.named(job["entry"])
    except _MissingError:
        channel.send(["load", "RTE", ["NameError"], f"the submission defines no {job['entry']!r}"])
        os._exit(0)
    except BaseException as error:  # a hostile module attribute
        channel.send(["load", *_described(error)])
        os._exit(0)
    if calls is None:
        if printed is not None:
            printed.take()  # dropped: a test would have seen output of loading when it imported the submission
        channel.send(["loaded"])
        while True:
            server.answer(channel.receive())
    decode, encode, reference = wire.decode, wire.encode, server.reference
    for raw_args, raw_kwargs in calls:
        try:
            args = decode(raw_args, reference)
            kwargs = dict(decode(raw_kwargs, reference)) if raw_kwargs else {}
            reply = ["ok", encode(entry(*args, **kwargs), _type_only)]
        except wire.WireError as error:
            reply = ["bad", str(error)]
        except BaseException as error:  # a failure of the submission, reported as such
            reply = ["raised", *_described(error)]
        channel.send(reply)


def _type_only(value: Any) -> Any:
    return {"o": type(value).__name__[:100]}


def _be_program(channel: Channel, job: Any) -> None:
    """Runs standard input style: the process becomes the program, including its exit status."""
    sys.argv = ["main.py", *job.get("argv", ())]
    _open_streams()
    code = _Program(channel).run(job["code"]) or 0
    try:  # as the interpreter does before it ends
        if threading.active_count() > 1:
            threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        _flush()
        gc.collect()  # leaves each object before what it holds: the next call closes a file before its descriptor
        sys.modules.pop("__main__", None)
        gc.collect()
        with contextlib.suppress(Exception):  # it is closed or detached
            sys.__stdout__.flush()  # type: ignore[union-attr]
    except BaseException:  # a closed or replaced stream: the interpreter has its own exit status for it
        code = code or 120
    os._exit(code)


def _open_streams() -> None:
    """Opens the standard streams again: those of the fork-server take a pipe for its /dev/null, which can be sought."""
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        old = getattr(sys, name)
        stream = open(number, mode, 1 if name == "stderr" else -1, old.encoding, old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def stack_size(size: int = 0) -> int:
    """`threading.stack_size`, at most a quarter of the address limit: programs request far more than they use."""
    return _thread.stack_size(min(size, linux.hard_limit(linux.RLIMIT_AS) // 4))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()


class _Program:
    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    def run(self, code: str) -> int | None:
        """Runs the program; returns its exit status, None if it ran to the end of its text."""
        try:
            compiled = compile(code, "main.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            self.channel.send(["load", "CE", f"{type(error).__name__}: {error}"[:_MAX_REASON]])
            os._exit(1)
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        module.__dict__["__builtins__"] = builtins
        module.__file__ = "main.py"
        gc.enable()
        try:
            exec(compiled, module.__dict__)
        except SystemExit as stop:
            if stop.code is None:
                return 0
            if isinstance(stop.code, int):
                return stop.code & 0xFF
            print(stop.code, file=sys.stderr)
            return 1
        except BaseException as error:  # the interpreter would print it and exit with status 1
            if isinstance(error, MemoryError):
                self.channel.send(["load", "MLE", ["MemoryError"], ""])
            import traceback

            traceback.print_exception(error)
            return 1
        return None


def _build(channel: Channel, job: Any, trouble: int) -> None:
    """Runs a compiler and sends its result back as one raw frame. Raises OSError if it can't be started."""
    import subprocess

    _write_source(channel, job["file"], job["code"])
    os.set_inheritable(trouble, False)
    pipe = subprocess.PIPE
    with subprocess.Popen(job["command"], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as compiler:
        os.close(trouble)  # from here on, failures depend on the source
        _, errors = compiler.communicate()
    if compiler.returncode != 0:
        channel.send(["load", "CE", errors.decode("utf-8", "replace")[:_MAX_REASON]])
        os._exit(0)
    with open(job["output"], "rb") as output:
        binary = output.read()
    channel.send(["built", len(binary)])
    channel.send_bytes(wire.frame(binary))
    os._exit(0)


def _execute(channel: Channel, job: Any, trouble: int) -> None:
    """Executes a compiled program or an interpreter of another language. Raises OSError if it is missing."""
    for name, text in job["files"].items():
        _write_source(channel, name, text)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": os.getcwd(),
        "LANG": "C.UTF-8",
        "MALLOC_ARENA_MAX": os.environ["MALLOC_ARENA_MAX"],
    }
    os.set_inheritable(CHANNEL, False)
    os.set_inheritable(trouble, False)
    if not job["binary"]:
        os.execve(job["argv"][0], job["argv"], environment)
    os.set_inheritable(BINARY, False)
    try:
        linux.exec_descriptor(BINARY, job["argv"], environment)
    except OSError as error:  # caused by the program, for example because it needs more memory than is allowed
        os.write(2, f"the program can't be started: {error.strerror}\n".encode())
        os._exit(126)


def _write_source(channel: Channel, name: str, text: str) -> None:
    try:
        with open(name, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
    except OSError as error:
        channel.send(["load", "CE", f"the source can't be written: {error.strerror}"])
        os._exit(1)


# Jobs that start outside Python. Each gets the number of the trouble pipe, raises before the submission has any
# influence, and closes the pipe with the first step that the submission influences.
STARTS: dict[str, Callable[[Channel, Any, int], None]] = {"compile": _build, "execute": _execute}
