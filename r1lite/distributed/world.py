"""The ranks of a run, and what they exchange. A process by itself is a world of size 1, with nothing to exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


class World(Protocol):
    """Each method but the properties is called by every rank, in the same order: it returns when all have called it."""

    @property
    def rank(self) -> int:
        """This process, from 0."""

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def is_main(self) -> bool:
        """True for the one that writes files and speaks to the user."""

    def sum(self, value: float) -> float:
        """The ranks' sum, the same on all of them."""

    def max(self, value: float) -> float:
        """The largest of the ranks' values."""

    def all_gather_object(self, value: T) -> list[T]:
        """Every rank's value, in the order of the ranks."""

    def broadcast_object(self, value: T) -> T:
        """The main rank's value."""

    def barrier(self) -> None:
        """Returns when every rank has come here."""

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor becomes the ranks' sum of it; they have the same shapes on every rank."""

    def copy_from_main(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor becomes the main rank's."""


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
        """All are here."""

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """They are the sums."""

    def copy_from_main(self, tensors: Sequence[Tensor]) -> None:
        """They are the main rank's."""


ALONE = SingleProcess()
