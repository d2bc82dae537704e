"""Runs jobs on the nodes of a Ray cluster: `verifiers.on_ray.Fleet` with UserError and RunError."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from r1lite.errors import RunError, UserError
from verifiers import VerifierError
from verifiers.on_ray import CallError, Fleet, Jobs, Resources, Worker, address_of


class Nodes:
    """Actors that do jobs.

    Args:
        make: makes the doer of jobs on a node; its errors become a UserError here.
        on: the cluster, as in `--on`.
        resources: resources of the actors.
        most: largest number of actors.

    Raises: UserError if Ray is not installed, or `make` can't be sent.
    """

    def __init__(self, make: Callable[[], Worker], on: str, resources: Resources, *, most: int = sys.maxsize) -> None:
        fewer, packages = "--workers, --engine-actors", ("verifiers", "r1lite")
        with _as_of_a_run():
            self._fleet = Fleet(
                make, address=address_of(on), resources=resources, most=most, fewer=fewer, packages=packages
            )

    def start(self) -> list[Any]:
        """Starts the actors. Returns each actor's description of its node.

        Raises:
            UserError: the cluster has no room for the actors, or they can't be set up.
            RunError: no cluster answers.
        """
        with _as_of_a_run():
            self._fleet.start()
        return [ready.told for ready in self._fleet.ready]

    def describe(self, more: Callable[[Any], list[str]] = lambda told: []) -> str:
        """The hosts with their numbers of actors; `more` returns additional text for an actor's description."""
        return self._fleet.describe(more)

    def each(self, jobs: Iterable[Any]) -> Generator[tuple[int, Any], None, None]:
        """Yields (number of the job, its result) as jobs finish; `jobs` is read lazily.

        Raises:
            UserError, RunError: raised by a job.
            RunError: the cluster is lost, or a job is lost with every actor that tries it.
        """
        work = Jobs(iter(jobs))
        with _as_of_a_run(), contextlib.closing(self._fleet.rounds(work)) as rounds:
            for _ in rounds:
                yield from work.taken()

    def close(self) -> None:
        """Ends the actors."""
        self._fleet.close()


@contextlib.contextmanager
def _as_of_a_run() -> Iterator[None]:
    try:
        yield
    except CallError as error:
        if isinstance(error.cause, UserError | RunError):
            raise error.cause from None
        raise RunError(f"--on: {error}") from error
    except VerifierError as error:
        raise RunError(f"--on: {error}") from error
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"--on: {error}") from error
