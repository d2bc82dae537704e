"""`r1lite reject`: rejection sampling, from existing rollouts or from new samples."""

from __future__ import annotations

from typing import Any

from r1lite.config import RejectConfig
from r1lite.curation.finish import resumed, run_on_rollouts


def run(config: RejectConfig) -> dict[str, Any]:
    """Makes the set and returns its manifest. See `curating.run_on_rollouts`, which does not load torch."""
    asked = resumed(config) if config.resume else config
    if asked.rollouts is not None:
        return run_on_rollouts(config)
    from r1lite.curation.generate import run_on_samples

    return run_on_samples(config)
