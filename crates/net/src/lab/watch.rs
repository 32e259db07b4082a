//! What is measured of a sender: readings of its `TCP_INFO`, added up as `docs/guide/lab.md` says.
use super::tcp_info::{RECOVERY, TcpInfo};
use ackademy::histogram::SpanHistogram;
use ackademy::sim::record::{FlowRow, FlowSeries, mean_ms, quantile_ms};
use ackademy::units::{Bytes, Rate, Span, Time};

/// Longest time between readings of a sender that has something to send.
pub const READING: Span = Span::from_millis(10);

/// Scale from payload, as the kernel counts, to the wire, as records count.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Full packet.
    pub bytes: Bytes,
    /// Headers in it.
    pub header: Bytes,
}

impl Packet {
    /// Bytes on the wire of full packets with this much payload.
    pub fn wire(self, payload: u64) -> u64 {
        let full = u128::from(self.bytes.0 - self.header.0);
        (u128::from(payload) * u128::from(self.bytes.0) / full) as u64
    }
}

/// Sums over the readings of one sender.
#[derive(Clone, Debug)]
pub struct Watch {
    packet: Packet,
    paced: bool,
    latest: TcpInfo,
    in_order: u64,
    readings: u64,
    srtt_max: Span,
    /// Smoothed round trips, each as often as packets were delivered since the reading before.
    srtt_histogram: SpanHistogram,
    /// Sum of smoothed round trips in nanoseconds, each as often as packets were delivered since the
    /// reading before, and how often in all.
    by_packet: (u128, u64),
    /// The same by payload bytes that arrived in order.
    by_arrival: (u128, u64),
    recoveries: u64,
}

impl Watch {
    /// Nothing read yet. `paced`: the kernel obeys the pacing rate that it reports.
    pub fn new(packet: Packet, paced: bool) -> Self {
        Self {
            packet,
            paced,
            latest: TcpInfo::default(),
            in_order: 0,
            readings: 0,
            srtt_max: Span::ZERO,
            srtt_histogram: SpanHistogram::default(),
            by_packet: (0, 0),
            by_arrival: (0, 0),
            recoveries: 0,
        }
    }

    /// Adds a reading; `in_order` is the payload that the receiver has read so far.
    pub fn read(&mut self, info: TcpInfo, in_order: u64) {
        let srtt = info.srtt();
        if srtt > Span::ZERO {
            self.readings += 1;
            self.srtt_max = self.srtt_max.max(srtt);
            let packets = u64::from(info.delivered.wrapping_sub(self.latest.delivered));
            self.srtt_histogram.add(srtt, packets as u32);
            let arrived = in_order - self.in_order;
            for ((sum, count), weight) in
                [(&mut self.by_packet, packets), (&mut self.by_arrival, arrived)]
                    .map(|(sums, weight)| ((&mut sums.0, &mut sums.1), weight))
            {
                *sum += u128::from(srtt.0) * u128::from(weight);
                *count += weight;
            }
        }
        if info.ca_state == RECOVERY && self.latest.ca_state != RECOVERY {
            self.recoveries += 1;
        }
        self.in_order = in_order;
        self.latest = info;
    }

    /// Whether there was ever a round trip to read.
    pub fn was_read(&self) -> bool {
        self.readings > 0
    }

    /// The latest reading as a row of the time series, but for `lost_packets`, which the network knows.
    pub fn sample(&self, time: Time, flow: u32, series: &mut FlowSeries) {
        let info = &self.latest;
        let known = |value: f64| if value > 0.0 { value } else { f64::NAN };
        let mbps = |bytes_per_s: u64| Rate(bytes_per_s.saturating_mul(8)).as_mbps();
        series.time_s.push(time.as_secs_f64());
        series.flow.push(flow);
        series.cwnd_packets.push(known(f64::from(info.snd_cwnd)));
        let unset = info.snd_ssthresh >= NO_SSTHRESH || info.snd_ssthresh == 0;
        series.ssthresh_packets.push(if unset { f64::NAN } else { f64::from(info.snd_ssthresh) });
        series.inflight_bytes.push(info.inflight_packets() * self.packet.bytes.0);
        series.srtt_ms.push(known(info.srtt().as_millis_f64()));
        series.rtt_ms.push(f64::NAN);
        series.delivered_bytes.push(self.packet.wire(self.in_order));
        series.arrived_bytes.push(self.packet.wire(self.in_order));
        series.delivery_rate_mbps.push(known(mbps(self.packet.wire(info.delivery_rate))));
        let pacing = mbps(self.packet.wire(info.pacing_rate));
        let paced = self.paced && info.pacing_rate < NO_PACING;
        series.pacing_mbps.push(if paced { known(pacing) } else { f64::NAN });
    }

    /// Fills in what the sender's end knows.
    pub fn complete(&self, row: &mut FlowRow) {
        let info = &self.latest;
        row.mss_bytes = self.packet.bytes.0;
        row.sent_packets = u64::from(info.data_segs_out);
        row.sent_bytes = self.packet.wire(info.bytes_sent);
        row.retransmitted_packets = u64::from(info.total_retrans);
        row.delivered_bytes = self.packet.wire(self.in_order);
        row.goodput_bytes = self.in_order;
        row.ce_marked_bytes = u64::from(info.delivered_ce) * self.packet.bytes.0;
        row.declared_lost_bytes = self.packet.wire(info.bytes_retrans);
        row.rtt_samples = self.readings;
        row.rtt_mean_ms = mean_ms(self.by_packet.0, self.by_packet.1);
        row.rtt_at_delivery_ms = mean_ms(self.by_arrival.0, self.by_arrival.1);
        let known = self.readings > 0;
        let min = Span::from_micros(u64::from(info.min_rtt)).as_millis_f64();
        row.rtt_min_ms = if known { min } else { f64::NAN };
        row.rtt_max_ms = if known { self.srtt_max.as_millis_f64() } else { f64::NAN };
        row.rtt_p50_ms = quantile_ms(&self.srtt_histogram, 500);
        row.rtt_p95_ms = quantile_ms(&self.srtt_histogram, 950);
        row.timeouts = u64::from(info.total_rto);
        row.recoveries = self.recoveries;
    }
}

/// `TCP_INFINITE_SSTHRESH`.
const NO_SSTHRESH: u32 = 0x7fff_ffff;
/// Bytes per second beyond every link: pacing is off.
const NO_PACING: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Packet = Packet { bytes: Bytes(1500), header: Bytes(52) };

    fn reading(srtt_ms: u32, delivered: u32) -> TcpInfo {
        TcpInfo { rtt: srtt_ms * 1000, delivered, ..TcpInfo::default() }
    }

    #[test]
    fn round_trips_weigh_as_much_as_was_delivered_at_them() {
        let mut watch = Watch::new(PACKET, false);
        watch.read(reading(20, 10), 14_480);
        watch.read(reading(50, 40), 14_480);
        watch.read(reading(900, 40), 14_480);
        let mut row = FlowRow::default();
        watch.complete(&mut row);
        assert!((row.rtt_mean_ms - (20.0 * 10.0 + 50.0 * 30.0) / 40.0).abs() < 1e-9);
        assert!((row.rtt_at_delivery_ms - 20.0).abs() < 1e-9, "all arrived at 20 ms");
    }

    #[test]
    fn a_full_payload_counts_as_a_full_packet() {
        let mut watch = Watch::new(PACKET, false);
        watch.read(reading(20, 1), 1448 * 3);
        let mut row = FlowRow::default();
        watch.complete(&mut row);
        assert_eq!((row.delivered_bytes, row.goodput_bytes), (4500, 4344));
    }

    #[test]
    fn a_sender_without_a_sample_has_no_round_trip() {
        let mut row = FlowRow::default();
        Watch::new(PACKET, false).complete(&mut row);
        assert!(row.rtt_mean_ms.is_nan() && row.rtt_min_ms.is_nan());
    }
}
