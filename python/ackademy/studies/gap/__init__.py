"""The same scenarios in the simulator and on the kernel."""
