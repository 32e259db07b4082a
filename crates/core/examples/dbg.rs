use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
fn main() {
    let mut a = std::env::args().skip(1);
    let f = a.next().unwrap();
    let s = Scenario::parse(&std::fs::read_to_string(&f).unwrap(), &f).unwrap();
    let s = s.with_controller(&a.next().unwrap(), &[]).unwrap();
    let o = ackademy::sim::run(&s.network, Seed(a.next().unwrap().parse().unwrap())).unwrap();
    let x = &o.flow_series;
    for i in 0..x.time_s.len() {
        println!("{} cwnd {:.1} ssth {:.1} infl {} srtt {:.1} del {} lost {}", x.time_s[i], x.cwnd_packets[i], x.ssthresh_packets[i], x.inflight_bytes[i]/1250, x.srtt_ms[i], x.delivered_bytes[i]/1250, x.lost_packets[i]);
    }
}
