"""One file per stage, each with `run(config)`. Stages don't import each other; they exchange data through files."""
