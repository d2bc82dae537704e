"""Addresses of Ray clusters, and connecting to one."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import threading
from typing import Any

from verifiers.core import VerifierError
from verifiers.on_ray.host import one_line

_ANSWER_S = 10.0  # time for a cluster's port to answer


def address_of(where: str) -> str | None:
    """Returns the address in `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`; None: the cluster of RAY_ADDRESS or of this
    machine, or one that is started here. Raises ValueError."""
    if where == "ray":
        return None
    if where.startswith("ray://") and len(where) > len("ray://"):
        return where
    if where.startswith("ray:") and where.rpartition(":")[2].isdecimal():
        return where.removeprefix("ray:")
    raise ValueError(f"{where}: expected ray, ray:HOST:PORT or ray://HOST:PORT")


def imported() -> Any:
    """Imports Ray. Raises ValueError if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ValueError("Ray is not installed: pip install 'r1lite[ray]'") from error


def connect(ray: Any, address: str | None) -> bool:
    """Connects to a cluster. Returns False if this process was connected before.

    Raises:
        VerifierError: no cluster answers.
        ValueError: Ray's client is not installed.
    """
    if ray.is_initialized():
        return False
    at = f" at {address}" if address else ""
    if at.startswith(" at ray://") and importlib.util.find_spec("grpc") is None:
        raise ValueError(f"{address}: Ray's client needs grpcio, here and on the head: pip install 'ray[client]'")
    if address:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:  # Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
        except (OSError, ValueError, OverflowError) as error:
            raise VerifierError(f"no Ray cluster answers{at}: {one_line(error)}") from error
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="warning", include_dashboard=None)
    except Exception as error:
        raise VerifierError(f"no Ray cluster answers{at}: {one_line(error)}") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Ray sets its own
                signal.signal(number, handler)
    return True
