"""Run a scenario with two controllers and print the results."""

import ackademy

for controller in ("new_reno", "rl_tcp"):
    run = ackademy.run("deep_buffer", cc=controller, seed=1)
    flow = run.metrics().flows.row(0, named=True)
    throughput, delay = flow["throughput_mbps"], flow["delay_ms"]
    print(f"{controller:>9}: {throughput:.2f} Mb/s, {delay:.1f} ms above the empty path")
