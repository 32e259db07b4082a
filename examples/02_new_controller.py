"""Write a controller in Python and compare it with CUBIC on a lossy link.

The file also works on the command line:
`ackademy compare random_loss --cc cubic,examples/02_new_controller.py:Patient`.
"""

import ackademy


class Patient:
    """Grows by a packet per round trip and gives up an eighth, not half, of its window per loss."""

    def __init__(self, flow):
        self.mss_bytes = flow.mss_bytes
        self.cwnd_bytes = float(flow.initial_cwnd_bytes)

    def on_ack(self, ack):
        if not ack.recovering:
            self.cwnd_bytes += self.mss_bytes * ack.acked_bytes / self.cwnd_bytes

    def on_loss(self, loss):
        if loss.kind == "gap":
            self.cwnd_bytes = max(self.cwnd_bytes * 7 / 8, 2 * self.mss_bytes)
        elif loss.kind == "timeout":
            self.cwnd_bytes = float(self.mss_bytes)


if __name__ == "__main__":
    for controller in ("cubic", f"{__file__}:Patient"):
        run = ackademy.run("random_loss", cc=controller, seed=1)
        flow = run.metrics().flows.row(0, named=True)
        print(f"{controller.rsplit(':')[-1]:>8}: {flow['throughput_mbps']:.2f} Mb/s")
