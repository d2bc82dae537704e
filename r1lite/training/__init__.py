"""Shared by all stages that train: setup, lifecycle of a run, memory estimates."""
