"""Several processes that train one model: their ranks, their communication, and their common end."""
