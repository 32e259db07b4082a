"""A distribution of two classes of short networks, for tests of trainings."""

from __future__ import annotations

LINKS = """\
about = "two classes"
learners = ["learner"]
[[scenario]]
name = "slow"
class = "A"
weight = 1
[scenario.inline]
duration_s = 2
[scenario.inline.dumbbell]
rtt_ms = 20
[scenario.inline.dumbbell.bottleneck]
rate_mbps = 4
queue = { kind = "drop_tail", packets = 20 }
[[scenario.inline.flow]]
name = "learner"
[scenario.draw]
"dumbbell.rtt_ms" = { uniform = [10, 40] }
[[scenario]]
name = "lossy"
class = "B"
weight = 1
[scenario.inline]
duration_s = 2
[scenario.inline.dumbbell]
rtt_ms = 20
[scenario.inline.dumbbell.bottleneck]
rate_mbps = 8
queue = { kind = "drop_tail", packets = 20 }
loss = { kind = "bernoulli", ratio = 0.01 }
[[scenario.inline.flow]]
name = "learner"
count = 2
[scenario.draw]
"dumbbell.rtt_ms" = { uniform = [10, 40] }
"""
