"""Runs work on the nodes of a Ray cluster (`pip install 'r1lite[ray]'`), with the results and order of one machine.

`Fleet` holds actors and replaces lost ones; a call that is lost with its actor or node is repeated elsewhere. `Actors`
score in such a fleet: each takes one CPU and judges as one machine does, with the sandbox and a worker process that is
killed at a deadline. Only plain values are sent.
"""

from verifiers.on_ray.actors import Actors, RayScorer
from verifiers.on_ray.connecting import address_of
from verifiers.on_ray.fleet import CallError, Fleet, Resources
from verifiers.on_ray.host import Worker
from verifiers.on_ray.work import Jobs

__all__ = ["Actors", "CallError", "Fleet", "Jobs", "RayScorer", "Resources", "Worker", "address_of"]
