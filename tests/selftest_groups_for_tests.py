"""Groups of checks that end badly, for test_selftest.py; imported by the process of a group."""

import os
import sys
import time

from r1lite.errors import UserError
from r1lite.selftest import Result


def dies(options):
    yield Result("first", "ok", "said before the end")
    print("something broke", file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9)


def hangs(options):
    yield Result("first", "ok", "said before the wait")
    time.sleep(600)


def chatters(options):
    print("a library's own words on standard output")
    os.write(1, b"and those of one in C\n")
    yield Result("first", "ok", options.model)


def refuses(options):
    yield Result("first", "ok", "")
    raise UserError("no such model")
