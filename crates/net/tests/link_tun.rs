//! The emulator on real TUN devices, between namespaces of its own. Needs root and TUN.
use crate::common::bench::{Bench, owner};
use crate::common::machine::{best_of, kept, makes_links};
use ackademy::units::Span;
use ackademy_net::link::tun;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{Ipv4Tos, TcpCongestion};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// A UDP socket on a side, with a time limit for receiving.
fn udp(bench: &Bench, side: usize) -> UdpSocket {
    let address = SocketAddr::new(bench.addresses[side], 7000);
    let socket = bench.within(side, || UdpSocket::bind(address));
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a time limit");
    socket
}

/// The next datagram, however often a signal comes before it.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> std::io::Result<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            received => return received,
        }
    }
}

/// Round trips of small datagrams, one after the other, in ascending order.
fn round_trips(bench: &Bench, count: usize) -> Vec<Duration> {
    let (near, far) = (udp(bench, 0), udp(bench, 1));
    let mut buffer = [0; 100];
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let sent = ackademy_net::clock::now();
            near.send_to(&[1; 100], far.local_addr().expect("bound")).expect("sent");
            let (length, from) = receive(&far, &mut buffer).expect("there");
            far.send_to(&buffer[..length], from).expect("sent");
            receive(&near, &mut buffer).expect("back");
            Duration::from_nanos(ackademy_net::clock::now().since(sent).0)
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn a_round_trip_takes_the_delays_of_both_directions() {
    if !makes_links() {
        return;
    }
    best_of(|| {
        let bench = Bench::new("rtt", "rate_mbps = 100\ndelay_ms = 15");
        let times = round_trips(&bench, 30);
        assert!(times[0] >= Duration::from_millis(20), "{times:?}");
        let report = bench.finish();
        let flow = report.network.flows[0];
        assert_eq!((flow.received_packets, report.network.strays, report.missed), (30, 0, 0));
        let transmission = Span(128 * 80); // at 100 Mb/s; IP and UDP add 28 bytes
        let one_way = Span::from_millis(15) + transmission;
        assert_eq!(flow.owd_sum, u128::from(one_way.0) * 30);
        // The most that a machine with other work to do can promise: one of them was on time.
        kept(times[0] < Duration::from_millis(25), || format!("{times:?} {:?}", report.lateness))
    });
}

#[test]
fn ipv6_takes_the_same_way() {
    if !makes_links() {
        return;
    }
    let bench = Bench::between("v6", "rate_mbps = 100\ndelay_ms = 15", ["fd77::1", "fd77::2"]);
    let times = round_trips(&bench, 10);
    assert!(times[0] >= Duration::from_millis(20), "{times:?}");
    assert_eq!(bench.finish().network.flows[0].received_packets, 10);
}

#[test]
fn five_percent_of_datagrams_are_lost_and_no_other() {
    const SENT: u64 = 4000;
    if !makes_links() {
        return;
    }
    let loss = "rate_mbps = 100\ndelay_ms = 5\nloss = { kind = \"bernoulli\", ratio = 0.05 }";
    let bench = Bench::new("loss", loss);
    let (near, far) = (udp(&bench, 0), udp(&bench, 1));
    let to = far.local_addr().expect("bound");
    let receiver = thread::spawn(move || {
        let mut received = 0;
        while far.recv(&mut [0; 100]).is_ok() {
            received += 1;
        }
        received
    });
    for packet in 0..SENT {
        near.send_to(&[0; 100], to).expect("sent");
        if packet % 20 == 19 {
            thread::sleep(Duration::from_millis(1)); // within the buffers of device and socket
        }
    }
    let received: u64 = receiver.join().expect("no panic");
    let report = bench.finish();
    let flow = report.network.flows[0];
    let lost = flow.random_losses as f64;
    let (mean, sd) = (0.05 * SENT as f64, (SENT as f64 * 0.05 * 0.95).sqrt());
    assert!((lost - mean).abs() < 4.0 * sd, "{flow:?}");
    assert_eq!((flow.sent_packets, report.missed), (SENT, 0));
    assert_eq!(received, SENT - flow.random_losses, "{flow:?}");
}

#[test]
fn tcp_fills_the_rate_of_the_link_and_no_more() {
    const SECONDS: f64 = 4.0;
    if !makes_links() {
        return;
    }
    let queue = "queue = { kind = \"drop_tail\", packets = 50 }";
    let bench = Bench::new("rate", &format!("rate_mbps = 20\ndelay_ms = 5\n{queue}"));
    let address = SocketAddr::new(bench.addresses[1], 7001);
    let listener = bench.within(1, || TcpListener::bind(address));
    let stop = Arc::clone(&bench.stop);
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut buffer = vec![0; 1 << 16];
        let mut arrivals = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            match stream.read(&mut buffer).expect("data") {
                0 => break,
                length => arrivals.push((ackademy_net::clock::now(), length)),
            }
        }
        arrivals
    });
    let mut stream = bench.within(0, || TcpStream::connect(address));
    setsockopt(&stream, TcpCongestion, &"cubic".into()).expect("every Linux has it");
    let begun = ackademy_net::clock::now();
    while ackademy_net::clock::now().since(begun).as_secs_f64() < SECONDS + 0.5 {
        stream.write_all(&[0; 1 << 14]).expect("sent");
    }
    drop(stream);
    let arrivals = receiver.join().expect("no panic");
    // After the first half second slow start is over.
    let from = begun + Span::from_millis(500);
    let to = from + Span::from_secs_f64(SECONDS);
    let inside = arrivals.iter().filter(|(at, _)| (from..to).contains(at));
    let bytes: usize = inside.map(|(_, length)| length).sum();
    let mbps = bytes as f64 * 8.0 / SECONDS / 1e6;
    let max = 20.0 * 1448.0 / 1500.0; // headers with timestamps
    assert!(mbps < max * 1.01 && mbps > max * 0.97, "{mbps} Mb/s of {max}");
    let report = bench.finish();
    assert!(report.network.links[0].delivered_bytes <= report.network.links[0].capacity_bytes);
    assert!(report.network.flows[0].queue_drops > 0, "{:?}", report.network.flows[0]);
}

#[test]
fn marked_datagrams_pass_the_kernel_s_checks() {
    const SENT: u64 = 60;
    const ECT_0: i32 = 0b10;
    if !makes_links() {
        return;
    }
    let link = "rate_mbps = 2\nqueue = { kind = \"codel\", packets = 1000, ecn = true }";
    let bench = Bench::new("ecn", link);
    let (near, far) = (udp(&bench, 0), udp(&bench, 1));
    setsockopt(&near, Ipv4Tos, &ECT_0).expect("every Linux has it");
    for _ in 0..SENT {
        near.send_to(&[0; 1000], far.local_addr().expect("bound")).expect("sent");
    }
    for _ in 0..SENT {
        far.recv(&mut [0; 1000]).expect("none is lost");
    }
    let marked = bench.finish().network.links[0].marked_packets;
    assert!((1..SENT).contains(&marked), "{marked}");
}

#[test]
fn a_device_that_is_down_for_a_while_carries_packets_again() {
    if !makes_links() {
        return;
    }
    let bench = Bench::new("down", "rate_mbps = 100");
    assert_eq!(round_trips(&bench, 1).len(), 1);
    bench.ip(1, &["link", "set", "link0", "down"]);
    let near = udp(&bench, 0);
    near.send_to(&[0; 100], SocketAddr::new(bench.addresses[1], 7000)).expect("sent");
    thread::sleep(Duration::from_millis(100));
    drop(near);
    bench.ip(1, &["link", "set", "link0", "up"]);
    assert_eq!(round_trips(&bench, 1).len(), 1);
    assert_eq!(bench.finish().network.flows[0].received_packets, 3);
}

#[test]
fn what_the_emulator_does_not_read_in_time_is_counted() {
    if !makes_links() {
        return;
    }
    let owner = owner();
    let namespace = owner.create("missed").expect("root");
    let port = tun::open(&tun::Plan {
        namespace: namespace.path(),
        device: "link0".to_owned(),
        addresses: vec![(IpAddr::from([10, 77, 0, 1]), 24)],
        mtu: 1500,
    });
    let port = port.expect("TUN");
    let socket = namespace.inside(|| Ok(UdpSocket::bind("10.77.0.1:7000")));
    let socket = socket.expect("root").expect("an address");
    for _ in 0..1500 {
        socket.send_to(&[0; 100], "10.77.0.2:7000").expect("sent");
    }
    let mut buffer = [0; 1500];
    let mut read = 0;
    while port.read(&mut buffer).expect("a device").is_some() {
        read += 1;
    }
    assert!((500..1500).contains(&read), "{read}");
    assert_eq!(port.dropped().expect("a device"), 1500 - read);
}

#[test]
fn a_panic_leaves_no_namespace_and_no_device() {
    if !makes_links() {
        return;
    }
    let names = |bench: &Bench| [0, 1].map(|side| bench.sides[side].path());
    let (send, receive) = std::sync::mpsc::channel();
    let died = thread::spawn(move || {
        let bench = Bench::new("panic", "rate_mbps = 10");
        send.send(names(&bench)).expect("a listener");
        assert!(bench.sides.is_empty(), "on purpose");
    });
    let paths = receive.recv().expect("a bench");
    assert!(died.join().is_err());
    // The devices live in the namespaces: gone with them.
    assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
}
