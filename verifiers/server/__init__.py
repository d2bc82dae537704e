"""The HTTP server of `python -m verifiers serve` (extra `serve`)."""
