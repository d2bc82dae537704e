"""Scores on the nodes of a Ray cluster (`pip install 'r1lite[ray]'`), with the results and the order of one machine.

Each actor takes one CPU and judges as one machine does: with a worker process that is killed at a deadline, and the
sandbox. Only plain values travel. A call that is lost with its actor or node is made again elsewhere.
"""

from verifiers.on_ray.actors import Actors, RayScorer, address_of

__all__ = ["Actors", "RayScorer", "address_of"]
