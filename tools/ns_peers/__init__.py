"""The same scenarios in ns-2, ns-3 and here: `PYTHONPATH=tools python -m ns_peers`."""
