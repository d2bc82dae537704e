"""The commands of `python -m verifiers`: one module each, with `arguments(parser)` and `run(options)`."""
