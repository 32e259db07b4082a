"""Write a run's tables as Parquet and read them with Polars alone."""

import tempfile
from pathlib import Path

import polars as pl

import ackademy

with tempfile.TemporaryDirectory() as folder:
    ackademy.run("fair_share", seed=1, sample_interval_ms=100).write_parquet(Path(folder))
    series = pl.read_parquet(Path(folder) / "flow_series.parquet")
    late = series.filter(pl.col("time_s") > 60)
    print(late.group_by("flow").agg(pl.col("cwnd_packets").mean()).sort("flow"))
