"""The ranks of a run and their collectives. A single process is a world of size 1, whose collectives do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


class World(Protocol):
    """The ranks of a run. Every rank must call the methods (not the properties) in the same order; a call returns when
    all ranks have made it."""

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    @property
    def is_main(self) -> bool:
        """True for the rank that writes files and prints messages."""

    def sum(self, value: float) -> float:
        """The sum of the ranks' values, the same on all ranks."""

    def max(self, value: float) -> float:
        """The largest of the ranks' values."""

    def all_gather_object(self, value: T) -> list[T]:
        """The values of all ranks, in the order of the ranks."""

    def broadcast_object(self, value: T) -> T:
        """The main rank's value."""

    def barrier(self) -> None:
        """Returns when every rank has called it."""

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor with its sum over the ranks, in place; shapes must be the same on every rank."""

    def copy_from_main(self, tensors: Sequence[Tensor]) -> None:
        """Overwrites each tensor with the main rank's."""


class SingleProcess:
    """A world of one."""

    rank, size, is_main = 0, 1, True

    def sum(self, value: float) -> float:
        return value

    def max(self, value: float) -> float:
        return value

    def all_gather_object(self, value: T) -> list[T]:
        return [value]

    def broadcast_object(self, value: T) -> T:
        return value

    def barrier(self) -> None:
        """Returns at once."""

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Does nothing: the tensors are already the sums."""

    def copy_from_main(self, tensors: Sequence[Tensor]) -> None:
        """Does nothing: the tensors are already the main rank's."""


ALONE = SingleProcess()
