"""A controller with holes: `ackademy search --template rule.py --grammar rule.toml` fills them."""


class Rule:
    """A window that follows the queue: as it stands, Vegas with a slow start that ends early."""

    def __init__(self, flow):
        self.mss = flow.mss_bytes
        self.cwnd_bytes = float(flow.initial_cwnd_bytes)
        self.is_starting = True
        self.rate = 0.0  # largest delivery rate of late, packets per ms
        self.low = 0.0  # smallest round trip of late, ms

    def on_ack(self, ack):
        if not ack.rtt_ns:
            return
        rtt = ack.rtt_ns / 1e6
        base = ack.min_rtt_ns / 1e6
        cwnd = self.cwnd_bytes / self.mss
        acked = ack.acked_bytes / self.mss
        part = acked / cwnd  # of a round trip
        self.low = rtt if not self.low else min(rtt, self.low + part * (rtt - self.low) / 8)
        sample = ack.delivery_rate_bps / self.mss / 8e3
        self.rate = max(sample, self.rate * (1 - part / 8))
        bdp = self.rate * base
        queue = cwnd * (1 - base / rtt)  # packets
        smooth = cwnd * (1 - base / self.low)  # packets, without what jitter adds
        target = min(3.0, bdp)  # hole: target
        if self.is_starting and queue < target:
            self.cwnd_bytes += ack.acked_bytes
            return
        self.is_starting = False
        change = 1.0 if smooth < target else -1.0  # hole: change
        change = max(-cwnd, min(change, cwnd))  # packets per round trip
        self.cwnd_bytes = max(self.cwnd_bytes + change * part * self.mss, 2.0 * self.mss)

    def on_loss(self, loss):
        if loss.kind not in ("gap", "timeout"):
            return
        self.is_starting = False
        keep = 0.5  # hole: keep
        self.cwnd_bytes = max(self.cwnd_bytes * min(max(keep, 0.1), 1.0), 2.0 * self.mss)
