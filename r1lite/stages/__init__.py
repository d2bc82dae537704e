"""One file per stage, each with `run(config)`. Stages don't import one another; they meet in files."""
