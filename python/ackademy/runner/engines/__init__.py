"""Where cells run: on this machine, or on a Ray cluster. Same cells, same bytes."""

from ackademy.runner.engines.engine import Engine, kernel_last
from ackademy.runner.engines.processes import Local, call_each, core_count, jobs_of, kept, local
from ackademy.runner.engines.ray_tasks import ray_cluster, ray_session

__all__ = [
    "Engine",
    "Local",
    "call_each",
    "core_count",
    "jobs_of",
    "kept",
    "kernel_last",
    "local",
    "ray_cluster",
    "ray_session",
]
