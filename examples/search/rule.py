"""A controller with holes: `ackademy search --template rule.py --grammar rule.toml` fills them."""


class Rule:
    """A window that follows the queue: as it stands, Vegas with a slow start that ends early."""

    def __init__(self, flow):
        self.mss = flow.mss_bytes
        self.cwnd_bytes = float(flow.initial_cwnd_bytes)
        self.is_starting = True
        self.rate = 0.0  # of delivery, mean of about a round trip, packets per ms
        self.low = 0.0  # smallest round trip of late, ms
        self.slow = 0.0  # its mean over several round trips, ms

    def on_ack(self, ack):
        if not ack.rtt_ns:
            return
        rtt = ack.rtt_ns / 1e6
        base = ack.min_rtt_ns / 1e6
        cwnd = self.cwnd_bytes / self.mss
        part = min(ack.acked_bytes / self.cwnd_bytes, 1.0)  # of a round trip
        sample = ack.delivery_rate_bps / self.mss / 8e3
        if not self.low:
            self.rate, self.low, self.slow = sample, rtt, rtt
        forget = 0.125  # hole: forget
        self.low = min(rtt, self.low + part * min(max(forget, 0.01), 1.0) * (rtt - self.low))
        self.slow += part * (self.low - self.slow) / 4
        self.rate += part * (sample - self.rate)
        rate, low, slow = self.rate, self.low, self.slow
        queue = cwnd * (1 - base / low)  # packets
        target = 3.0  # hole: target
        if self.is_starting and queue < target:
            self.cwnd_bytes += ack.acked_bytes
            return
        self.is_starting = False
        change = 1.0 if queue < target else -1.0  # hole: change
        change = max(-cwnd / 2, min(change, cwnd / 2))  # packets per round trip
        self.cwnd_bytes = max(self.cwnd_bytes + change * part * self.mss, 2.0 * self.mss)

    def on_loss(self, loss):
        if loss.kind not in ("gap", "timeout"):
            return
        self.is_starting = False
        keep = 0.5  # hole: keep
        self.cwnd_bytes = max(self.cwnd_bytes * min(max(keep, 0.3), 0.9), 2.0 * self.mss)
