"""The worker process of `verifiers.pool`: scores the items it receives, and notes which item it is working on."""

from __future__ import annotations

import contextlib
import gc
import marshal
import mmap
import operator
import os
import pickle
import struct
import sys
import time
from typing import Any

from verifiers.core import Completion, Problem
from verifiers.pool import CLOSED, PAGE_SIZE, PLACE, SINCE
from verifiers.registry import REGISTERED
from verifiers.reward import Reward, Score, score_one

_HEADER = struct.Struct("<Q")
_PR_SET_PDEATHSIG = 1
_FIELDS = operator.attrgetter("score", "reason", "detail", "answer", "span", "gold_type", "rung", "flags")


def main(page_fd: int, die_with_parent: bool) -> None:
    """Serves until the pipe ends."""
    pipes = [os.dup(0), os.dup(1)]
    inbox, outbox = pipes
    os.register_at_fork(after_in_child=lambda: _close(pipes))  # a verifier's fork must not receive or answer anything
    # A verifier that prints must not write to our pipe, and one that reads must not read from it.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    page = mmap.mmap(page_fd, PAGE_SIZE)
    if die_with_parent:
        end_with_parent()
    setup = _read(inbox)
    if setup is None:
        return
    try:
        sys.path[:], registered, formula, options, ready, memory_mib = pickle.loads(setup)
        REGISTERED.update(registered)
        reward = Reward(formula, verifiers=ready, options=options)
        _limit_memory(memory_mib)
        reward.prepare()
    except Exception as error:  # importing a user's verifier may fail in any way
        _write(outbox, f"{type(error).__name__}: {error}")
        return
    known = _identities(inbox, outbox)
    gc.freeze()  # loaded objects stay, so the garbage collector need not scan them again and again
    _write(outbox, "ready")
    while (body := _read(inbox)) is not None:
        results, began = [], time.monotonic()
        rows = marshal.loads(body[1:]) if body[:1] == b"m" else pickle.loads(body[1:])
        for place, row in enumerate(rows):
            SINCE.pack_into(page, PLACE.size, time.monotonic())  # before the index: see PLACE
            PLACE.pack_into(page, 0, place)
            results.append(_scored(reward, Problem(*row[:6]), Completion(*row[6:])))
            if _identities(inbox, outbox) != known:  # checked at once, while the note in the page names this item
                os._exit(CLOSED)
        PLACE.pack_into(page, 0, -1)
        seconds = time.monotonic() - began
        try:
            _write(outbox, (seconds, results))
        except BrokenPipeError:  # the caller was killed
            return


Result = tuple[float | None, list[tuple[Any, ...]], str]  # reward, the fields of its verdicts, error


def _scored(reward: Reward, problem: Problem, completion: Completion) -> Result:
    try:
        return plain_result(score_one(reward, problem, completion))
    except BaseException as error:  # a verifier may raise SystemExit, KeyboardInterrupt and the like
        return None, [], f"{type(error).__name__}: {error}"


def plain_result(score: Score) -> Result:
    """Returns a score in a form that can be sent anywhere, whatever a user's verifier put in its verdicts."""
    return _in_plain_types((score.reward, [_FIELDS(verdict) for verdict in score.verdicts.values()], score.error))


def _close(descriptors: list[int]) -> None:
    """Closes descriptors, and forgets them: their numbers may be other files' when a fork makes a fork of its own."""
    while descriptors:
        os.close(descriptors.pop())


def _identities(*descriptors: int) -> list[tuple[int, int]] | None:
    """Returns which files the descriptors refer to; None if one of them is closed."""
    try:
        return [(found.st_dev, found.st_ino) for found in map(os.fstat, descriptors)]
    except OSError:
        return None


def _in_plain_types(result: Result) -> Result:
    """Converts a result to plain types, whatever a user's verifier put in its verdict."""
    reward, verdicts, error = result
    try:
        plain = [
            (
                None if score is None else float(score),
                str(reason),
                str(detail),
                None if answer is None else str(answer),
                None if span is None else (int(span[0]), int(span[1])),
                str(gold_type),
                str(rung),
                tuple(map(str, flags)),
            )
            for score, reason, detail, answer, span, gold_type, rung, flags in verdicts
        ]
        return None if reward is None else float(reward), plain, str(error)
    except BaseException as trouble:  # a user's own types may raise anything
        return None, [], f"{type(trouble).__name__}: {trouble}"


def _read(pipe: int) -> bytes | None:
    head = _exactly(pipe, _HEADER.size)
    return None if head is None else _exactly(pipe, _HEADER.unpack(head)[0])


def _exactly(pipe: int, size: int) -> bytes | None:
    parts, left = [], size
    while left:
        piece = os.read(pipe, min(left, 1 << 20))
        if not piece:
            return None
        parts.append(piece)
        left -= len(piece)
    return b"".join(parts)


def _write(pipe: int, message: Any) -> None:
    body = marshal.dumps(message)
    data = memoryview(_HEADER.pack(len(body)) + body)
    while data:
        data = data[os.write(pipe, data) :]


def end_with_parent() -> None:
    """On Linux, ends this process with its parent, so that a killed caller leaves no hung worker behind.

    (Elsewhere an idle worker ends with its pipe.)
    """
    if sys.platform == "linux":
        import ctypes
        import signal

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _limit_memory(memory_mib: int | None) -> None:
    if memory_mib is not None:
        import resource

        limit = memory_mib << 20
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        with contextlib.suppress(ValueError, OSError):  # a stricter limit is already set
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit if hard == resource.RLIM_INFINITY else hard))
