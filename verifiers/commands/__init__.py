"""What `python -m verifiers` can do: one file a command, each with `arguments(parser)` and `run(options)`."""
