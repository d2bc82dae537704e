"""The directory of a run, its checkpoints, signal handling, the watchdog and the display."""
