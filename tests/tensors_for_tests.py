"""Rows of unequal length as tensors, and their comparison with plain numbers."""

import math

import pytest
import torch

NAN = math.nan
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def tensor(rows, fill=NAN):
    """Rows of unequal length -> [B, T] float64; None -> NaN."""
    width = max(map(len, rows))
    return torch.tensor(
        [[NAN if v is None else v for v in row] + [fill] * (width - len(row)) for row in rows], dtype=torch.float64
    )


def agree(found, rows):
    for line, row in zip(found.tolist(), rows, strict=True):
        assert line[: len(row)] == pytest.approx(row, rel=1e-10, abs=1e-10)
