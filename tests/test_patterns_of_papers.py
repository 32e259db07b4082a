"""Patterns of flows in the papers' files name flows of their scenarios."""

from __future__ import annotations

from ackademy.backends import entries
from ackademy.lookup import names
from ackademy.studies.reproduce import files as experiment_files


def test_a_pattern_may_be_several() -> None:
    flows = ["flow_1", "flow_2", "flow_3"]
    assert [name for name in flows if entries.fits(["flow_1|flow_3"], name)] == ["flow_1", "flow_3"]
    assert entries.fits(["a[1]"], "a[1]")


def test_every_row_of_every_table_names_flows() -> None:
    for name in names("paper"):
        if "kind =" in experiment_files.find(name).read_text(encoding="utf-8"):
            continue
        for row in experiment_files.load(name).rows:
            assert "[" not in row.flows, (name, row.flows)
            for assignment in row.assignments:
                assert "[" not in assignment.flows, (name, assignment.flows)
