"""The trusted side of assert style: runs the data set's test code against proxies of the submission.

It runs in its own process, from which no submission is ever forked, under the same restrictions as a submission,
because test code is somebody's program too. Values from the submission arrive as exact built-in types. Objects that are
not data stay in the submission's process, represented by a `Remote`, which never equals data.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import types
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from verifiers.sandbox import wire
from verifiers.sandbox.child import BINARY, Channel

_CANDIDATE = BINARY  # descriptor of the socket to the submission's process
_MAX_TEXT = 1000
_MOST_NESTED = 400  # nested calls into the submission
_RECURSION = 20_000  # recursion limit of this process: about ten frames for each nested call
_TOKEN_BYTES = 7


class RemoteStopError(BaseException):
    """The submission's process is gone or broken. No `except Exception` of a test may swallow this."""


class Candidate:
    """The submission's process, used through messages."""

    def __init__(self, channel: Channel, namespace: dict[str, Any]) -> None:
        self._channel = channel
        self._namespace = namespace
        self._lent: list[Any] = []
        self.stopped: list[str] = []  # set once: [verdict, text]; later results don't count
        self.calls = 0
        self.failed: list[str] = []  # assertions that failed inside functions passed to the submission
        self.raised: list[Any] = []  # the submission's last error, its class and line
        self._nested = 0

    def start(self) -> None:
        said = self._receive()
        match said:
            case ["load", "CE", str(text)]:
                self.stop("CE", text)
            case ["load", str(verdict), [str(name), *_], str(text)]:
                self.stop(verdict, f"while loading: {name}: {text}")
        if said[0] != "loaded":
            self.stop("SV", "a forged message")

    def stop(self, verdict: str, text: str) -> NoReturn:
        known = ("CE", "RTE", "EXIT", "MLE", "OLE", "SV")
        self.stopped = self.stopped or [verdict if verdict in known else "RTE", str(text)[:_MAX_TEXT]]
        raise RemoteStopError

    def do(self, operation: str, target: str | int, *args: Any, **kwargs: Any) -> Any:
        """Performs one operation on an object of the submission."""
        if self.stopped:
            raise RemoteStopError
        if self._nested >= _MOST_NESTED:
            raise _error(["RecursionError"], "the test and the submission call each other too deeply")
        self.calls += 1
        # A reply counts only for its own call: none can be sent before the call arrived.
        token = int.from_bytes(os.urandom(_TOKEN_BYTES), "little")
        self._nested += 1
        try:
            raw = [wire.encode(item, self._lend) for item in args]
            named = [[key, wire.encode(value, self._lend)] for key, value in kwargs.items()]
            self._send(["do", token, operation, target, raw, named])
            reply = self._receive()
            while reply[0] in ("ask", "out") and reply[1] == token:
                if reply[0] == "ask":
                    self._answer(reply)
                else:
                    _print(reply[2])
                reply = self._receive()
            if reply[1] != token or type(reply[1]) is not int:
                self.stop("SV", "a forged message: it answers no call")
            return self._take(reply, args, operation)
        except RemoteError:
            raise
        except wire.WireError as error:
            self.stop("OLE" if "limit is" in str(error) else "SV", str(error))
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            self.stop("SV", f"a forged message: {type(error).__name__}")
        finally:
            self._nested -= 1

    def _send(self, message: Any) -> None:
        try:
            self._channel.send(message)
        except OSError:
            self.stop("EXIT", "the process ended before its call returned")

    def _receive(self) -> list[Any]:
        try:
            said = self._channel.receive()
        except (OSError, EOFError):
            self.stop("EXIT", "the process ended before its call returned")
        except MemoryError:  # before a test runs, nothing else would tell it from a fault of this process
            self.stop("MLE", "a message that takes too much memory")
        except wire.WireError as error:
            self.stop("OLE" if "limit is" in str(error) else "SV", str(error))
        if type(said) is not list or not said or type(said[0]) is not str:
            self.stop("SV", "a forged message")
        return said

    def _take(self, reply: list[Any], args: tuple[Any, ...], operation: str) -> Any:
        kind, changed = reply[0], reply[-1]
        if kind == "bad":
            raise _error(["ValueError"], f"no value that can be sent: {reply[2]}")
        for index, raw in changed:
            _mirror(args[_small(index, len(args))], wire.decode(raw, self._reference))
        if kind == "ok":
            body = reply[2]
            if type(body) is dict and list(body) == ["@"]:
                return args[_small(body["@"], len(args))]
            return wire.decode(body, self._reference)
        if kind == "missing":
            raise _error(["NameError"], f"the submission defines no {str(reply[2])[:100]!r}")
        if kind == "raised":
            verdict, names, text, where, *held = reply[2:-1]
            text = str(text)[:_MAX_TEXT]
            if verdict in ("EXIT", "MLE"):
                self.stop(verdict, f"{names[0]}: {text}")
            error = _error(names, text, held, ends_iteration=operation == "next")
            self.raised = [error, str(names[0])[:100], str(where)[:50]]
            raise error
        self.stop("SV", "a forged message")

    def _answer(self, request: list[Any]) -> None:
        """Answers the submission's use of a lent object: a call, a step of an iterator, or an attribute."""
        _, _, action, number, raw_args, raw_kwargs = request
        lent = self._lent[_small(number, len(self._lent))]
        args = [wire.decode(item, self._reference) for item in raw_args]
        kwargs = {str(key): wire.decode(item, self._reference) for key, item in raw_kwargs}
        try:
            result = self._used(action, lent, args, kwargs)
        except RemoteStopError:
            raise
        except Exception as error:  # raised by trusted code; the submission sees its kind and text
            if isinstance(error, AssertionError):  # ... and may catch it, but the failure still counts
                self.failed.append(_said(error) or "a check inside a function passed to the submission")
            self._send(["raise", _nearest([kind.__name__ for kind in type(error).__mro__]).__name__, _said(error)])
        else:
            self._send(["answer", wire.encode(result, self._lend)])

    def _used(self, action: str, lent: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if action == "call" and callable(lent):
            return lent(*args, **kwargs)
        if action == "next" and hasattr(type(lent), "__next__"):
            return [item for item in [next(lent, _END)] if item is not _END]
        # Only attributes of plain objects whose class the test itself defines (a list node): a function's attributes
        # lead to everything.
        own_class = getattr(type(lent), "__module__", "") == self._namespace["__name__"]
        if action in ("get", "set") and own_class and type(args[0]) is str and not args[0].startswith("_"):
            return getattr(lent, args[0]) if action == "get" else setattr(lent, args[0], args[1])
        raise AttributeError(str(args[0]) if args else action)

    def _lend(self, value: Any) -> Any:
        if type(value) is Remote:
            return {"o": object.__getattribute__(value, "_number")}
        if isinstance(value, type) and vars(builtins).get(name := str(getattr(value, "__name__", ""))) is value:
            return {"y": name}
        kind = "iter" if hasattr(type(value), "__next__") else "call" if callable(value) else ""
        self._lent.append(value)
        return {"h": [len(self._lent) - 1, kind]}

    def _reference(self, tag: str, body: Any) -> Any:
        if tag == "o":
            number, name = body
            if type(number) is not int or type(name) is not str:
                raise wire.WireError("malformed reference")
            return Remote(self, number, name)
        if tag == "h":
            return self._lent[_small(body[0], len(self._lent))]
        if tag == "y":
            kind = getattr(builtins, str(body), None)
            if isinstance(kind, type):
                return kind
        raise wire.WireError("malformed reference")


def _print(text: Any) -> None:
    """Prints the submission's output during a call to the test's own standard output."""
    if type(text) is not str:
        raise wire.WireError("malformed output")
    with contextlib.suppress(OSError, ValueError):  # it is closed
        sys.stdout.write(text)


_END = object()
_T = TypeVar("_T")


class RemoteError(Exception):
    """Mixed into every exception that represents one of the submission's."""


def _nearest(names: list[Any]) -> type[Exception]:
    """Returns the first built-in class among an exception's classes. It can't make test code skip or exit."""
    for name in names:
        kind = vars(builtins).get(name) if type(name) is str else None
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind
    return Exception


def _from_library(classes: list[Any]) -> type[Exception] | None:
    """Returns the first of an exception's classes from the standard library, if the test itself has imported it."""
    for module, name in classes:
        library = str(module).partition(".")[0]
        # SkipTest would end a test without a failure.
        if library in sys.stdlib_module_names and library != "unittest" and module in sys.modules:
            kind = vars(sys.modules[module]).get(name)
            if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == module:
                return kind
    return None


def _error(names: list[Any], text: str, held: list[Any] | None = None, *, ends_iteration: bool = False) -> Exception:
    """Returns an exception of the nearest class known here, marked as the submission's own.

    StopIteration would silently end a loop of the test early, so only a real iterator may raise it.

    Args:
        names: of its class, then of its built-in bases; or of a built-in class.
        held: modules of its classes, its arguments and its attributes, as the other side sent them.
    """
    places, raw_args, attributes = held or [[], None, []]
    kind = _from_library(places) or _nearest(names[1:] or names)
    if issubclass(kind, StopAsyncIteration) or (issubclass(kind, StopIteration) and not ends_iteration):
        kind = RuntimeError
    args = wire.decode(raw_args, wire.no_reference) if raw_args is not None else (text,)
    if type(args) is not tuple:
        raise wire.WireError("malformed exception")
    body = {"__str__": lambda _: text, "__module__": kind.__module__}
    error = _made(kind, str(names[0])[:100], body, args)
    for name, raw in attributes:
        value = wire.decode(raw, wire.no_reference)
        if type(name) is str and not name.startswith("_"):
            with contextlib.suppress(AttributeError, TypeError, ValueError):
                setattr(error, name, value)
    return error


def _made(kind: type[Exception], name: str, body: dict[str, Any], args: tuple[Any, ...]) -> Exception:
    """Returns an instance of a subclass of `kind`, or of the nearest base that accepts these arguments."""
    bases: list[type[Any]] = [base for base in kind.__mro__ if issubclass(base, Exception) and base is not Exception]
    for base in bases:
        made = type(name if name.isidentifier() else base.__name__, (base, RemoteError), body)
        for make in (made, made.__new__):
            try:
                return make(*args) if make is made else make(made, *args)  # type: ignore[no-any-return]
            except Exception:  # the constructor takes arguments it does not store, as exception groups do
                continue
    return type(name if name.isidentifier() else "Exception", (RemoteError,), body)(*args)  # type: ignore[no-any-return]


def _small(value: Any, size: int) -> int:
    if type(value) is not int or not 0 <= value < size:
        raise wire.WireError("an index out of range")
    return value


def _mirror(mine: Any, theirs: Any) -> None:
    """Changes a mutable argument as the call did; the same objects are kept where they still fit."""
    if type(mine) is not type(theirs):
        raise wire.WireError("an argument changed its type")
    if type(mine) is list:
        mine[:] = [_merged(old, new) for old, new in zip(mine, theirs, strict=False)] + theirs[len(mine) :]
    elif type(mine) is dict:
        merged = {key: _merged(mine[key], new) if key in mine else new for key, new in theirs.items()}
        mine.clear()
        mine.update(merged)
    elif type(mine) is set:
        mine.clear()
        mine.update(theirs)
    elif type(mine) is bytearray:
        mine[:] = theirs


def _merged(old: Any, new: Any) -> Any:
    if type(old) is type(new) and type(old) in (list, dict, set, bytearray):
        _mirror(old, new)
        return old
    return new


class Remote:
    """An object that stays in the submission's process: a function, a class, an instance, a generator.

    It can be called, read, iterated, measured and printed. It equals only itself: the submission's `__eq__` is never
    called, and no value from here is passed to it for comparison.
    """

    __slots__ = ("_candidate", "_kind", "_number")
    __hash__ = object.__hash__

    def __init__(self, candidate: Candidate, number: int | str, kind: str) -> None:
        object.__setattr__(self, "_candidate", candidate)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", kind)

    def __eq__(self, other: object) -> bool:
        return type(other) is Remote and _number_of(self) == _number_of(other)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _do(self, "call", *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _do(self, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _do(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        _do(self, "del", name)

    def __contains__(self, item: Any) -> bool:
        return any(item is other or item == other for other in self)  # compared here: `item` may be the expected value

    def __iter__(self) -> Iterator[Any]:
        return _RemoteIterator(_do(self, "iter"))

    def __next__(self) -> Any:
        return _next(self)

    def __len__(self) -> int:
        return _typed(self, "len", int)

    def __bool__(self) -> bool:
        return _typed(self, "bool", bool)

    def __str__(self) -> str:
        return _typed(self, "str", str)

    def __repr__(self) -> str:
        return _typed(self, "repr", str)

    def __format__(self, spec: str) -> str:
        return _typed(self, "format", str, spec)

    def __int__(self) -> int:
        return _typed(self, "int", int)

    def __index__(self) -> int:
        return _typed(self, "index", int)

    def __float__(self) -> float:
        return _typed(self, "float", float)

    def __abs__(self) -> Any:
        return _do(self, "abs")

    def __neg__(self) -> Any:
        return _do(self, "neg")

    def __getitem__(self, key: Any) -> Any:
        return _do(self, "getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _do(self, "setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        _do(self, "delitem", key)

    def __enter__(self) -> Any:
        return _do(self, "enter")

    def __exit__(self, *_: object) -> None:
        _do(self, "exit")


def _do(remote: Remote, operation: str, *args: Any, **kwargs: Any) -> Any:
    candidate: Candidate = object.__getattribute__(remote, "_candidate")
    return candidate.do(operation, _number_of(remote), *args, **kwargs)


def _number_of(remote: Remote) -> int | str:
    number: int | str = object.__getattribute__(remote, "_number")
    return number


def _typed(remote: Remote, operation: str, kind: type[_T], *args: Any) -> _T:
    value = _do(remote, operation, *args)
    if type(value) is not kind:
        raise _error(["TypeError"], f"{operation} gave {type(value).__name__}")
    return value


def _next(remote: Remote) -> Any:
    candidate: Candidate = object.__getattribute__(remote, "_candidate")
    try:
        items = _do(remote, "next")
    except StopIteration as end:
        raise StopIteration(*end.args) from None
    if type(items) is not list or len(items) != 1:
        candidate.stop("SV", "a forged message")
    return items[0]


class _RemoteIterator:
    def __init__(self, source: Any) -> None:
        self._source = source

    def __iter__(self) -> _RemoteIterator:
        return self

    def __next__(self) -> Any:
        if type(self._source) is not Remote:
            raise _error(["TypeError"], "iter() gave no iterator")
        return _next(self._source)


def _joining(name: str) -> Any:
    """Returns arithmetic of two objects of the submission; with data from here it is refused, as comparison is."""

    def join(self: Remote, other: Any) -> Any:
        if type(other) is not Remote:
            return NotImplemented
        return _do(self, name, other)

    return join


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(Remote, f"__{_name}__", _joining(_name))


def main(channel: Channel, job: Any) -> None:
    """Runs every test of the job, and answers with one message.

    ["verdicts", [[verdict, text], ...], stopped, calls]: one verdict per test in order, fewer if it ends early;
        `stopped` is [verdict, text] if the submission's process ended it; `calls` counts the uses of the submission;
    ["gold", text]: the test code is at fault: its setup fails without the submission, or nobody defines a name.
    """
    name = "tests"
    module = types.ModuleType(name)
    sys.modules[name] = module
    namespace = module.__dict__
    candidate = Candidate(Channel(_CANDIDATE, job["limit"]), namespace)
    results: list[list[str]] = []
    failed = False
    sys.setrecursionlimit(_RECURSION)
    try:
        candidate.start()
        for remote in job["names"]:
            namespace[remote] = Remote(candidate, remote, "named")
        unknown = {name for name, _ in job["supplied"]}
        _supply(namespace, job["supplied"])
        for source in job["setup"]:
            try:
                exec(compile(source, "<setup>", "exec", dont_inherit=True), namespace)
            except RemoteError as error:
                candidate.stop("RTE", f"{type(error).__name__}: {_said(error)}")
            except Exception as error:  # the problem's own fault, unless the submission is involved
                if candidate.calls == 0 and "Remote" not in _said(error):
                    channel.send(["gold", f"their setup fails: {type(error).__name__}: {_said(error)}"])
                    return
                candidate.stop("RTE", f"{type(error).__name__}: {_said(error)}")
        # Checked before any test runs, because the submission's values decide which lines of a test are reached.
        missing = [name for name in unknown if name not in namespace]
        if missing:
            channel.send(["gold", f"they use a name that nobody defines: {sorted(missing)[0]}"])
            return
        # A setup that defines the same name must not replace the submission.
        namespace[job["entry"]] = Remote(candidate, job["entry"], "named")
        for index, source in enumerate(job["tests"]):
            channel.send(["at", index])
            verdict, text = _one(candidate, namespace, source)
            # Only one text is shown; with many, the message would grow too large.
            results.append([verdict, "" if failed else text])
            failed |= verdict != "AC"
            if failed and job["stop"]:
                break
    except RemoteStopError:
        pass
    channel.send(["verdicts", results, candidate.stopped, candidate.calls])


def _supply(namespace: dict[str, Any], supplied: list[list[Any]]) -> None:
    """Defines names of the standard library that the test code uses without importing them: [[name, modules], ...]."""
    for name, modules in supplied:
        for module in modules:
            with contextlib.suppress(ImportError):
                found = __import__(module, fromlist=["*"])
                if module == name or hasattr(found, name):
                    namespace[name] = found if module == name else getattr(found, name)
                    break


def _one(candidate: Candidate, namespace: dict[str, Any], source: str) -> list[str]:
    """Returns [verdict, text] of one test."""
    candidate.failed.clear()
    try:
        exec(compile(source, "<test>", "exec", dont_inherit=True), namespace)
    except RemoteError as error:
        known = candidate.raised and candidate.raised[0] is error
        kind, where = candidate.raised[1:] if known else (type(error).__name__, "")
        return ["RTE", f"{kind}: {_said(error)}"[:_MAX_TEXT] + where]
    except AssertionError as error:
        return ["WA", _said(error)]
    except MemoryError:
        return ["MLE", "while its value was processed"]
    except Exception as error:  # a value of the wrong kind made the test's own code fail
        return ["WA", f"{type(error).__name__}: {_said(error)}"[:_MAX_TEXT]]
    except SystemExit as error:  # unittest.main() and the like: a test that exits has passed if the status is 0
        if error.code not in (None, 0):
            return ["WA", f"the test ended with status {_said(error.code)[:100]}"]
    except RemoteStopError:
        raise
    except BaseException as error:  # KeyboardInterrupt and the like, which a test's own code may raise
        return ["WA", f"{type(error).__name__}: {_said(error)}"[:_MAX_TEXT]]
    if candidate.stopped:
        raise RemoteStopError
    if candidate.failed:
        return ["WA", candidate.failed.pop()]
    return ["AC", ""]


def _said(error: object) -> str:
    """Returns an exception's text. It may hold values of the submission of which none can be made: 10**5000."""
    try:
        return str(error)[:_MAX_TEXT]
    except RemoteStopError:
        raise
    except BaseException as other:  # of any class, as the value's own code may run
        return f"(its text can't be made: {type(other).__name__})"
