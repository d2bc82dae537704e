"""One file per stage, each with `run(config)`; `ppo` shares that of `grpo`. They exchange data only through files."""
