#![allow(clippy::float_cmp)] // exact: whole numbers and halves of them
use super::shares::{Active, max_min};
use super::waits::Waits;
use super::*;

const NO_LIMIT: f64 = f64::INFINITY;

/// The fair shares of flows with these paths and demands.
fn shares(flows: &[(&[u32], f64)], capacity: &[f64]) -> Vec<f64> {
    let active = |(flow, &(_, demand_mbps)): (usize, &(&[u32], f64))| Active {
        flow: flow as u32,
        demand_mbps,
    };
    let active: Vec<Active> = flows.iter().enumerate().map(active).collect();
    let found = max_min(&active, |flow| flows[flow as usize].0, capacity);
    found.iter().map(|share| share.fair_mbps).collect()
}

#[test]
fn flows_of_one_link_have_equal_shares_of_what_those_that_want_less_leave() {
    assert_eq!(shares(&[(&[0][..], NO_LIMIT); 4], &[10.0]), [2.5; 4]);
    let some = [(&[0][..], NO_LIMIT), (&[0], 1.0), (&[0], NO_LIMIT), (&[0], 4.0)];
    // 1 is wanted by one; of the other 9 each could have 3, which is less than 4.
    assert_eq!(shares(&some, &[10.0]), [3.0, 1.0, 3.0, 3.0]);
    assert_eq!(shares(&[(&[0], 2.0), (&[0], 3.0)], &[10.0]), [2.0, 3.0]);
}

#[test]
fn a_flow_of_several_links_has_what_its_fullest_link_leaves_it() {
    // The long flow shares the first link with two, the second with one, which takes the rest of it.
    let lot = [(&[0, 1][..], NO_LIMIT), (&[0], NO_LIMIT), (&[0], NO_LIMIT), (&[1], NO_LIMIT)];
    assert_eq!(shares(&lot, &[12.0, 10.0]), [4.0, 4.0, 4.0, 6.0]);
    // A slow last link leaves more of the first to the other.
    assert_eq!(shares(&[(&[0, 1], NO_LIMIT), (&[0], NO_LIMIT)], &[12.0, 2.0]), [2.0, 10.0]);
}

#[test]
fn the_bottleneck_is_the_link_that_bounds_the_share() {
    let path: [&[u32]; 2] = [&[0, 1], &[0]];
    let active = [0, 1].map(|flow| Active { flow, demand_mbps: NO_LIMIT });
    let found = max_min(&active, |flow| path[flow as usize], &[12.0, 2.0]);
    assert_eq!((found[0].bottleneck, found[0].capacity_mbps), (1, 2.0));
    assert_eq!((found[1].bottleneck, found[1].capacity_mbps), (0, 12.0));
}

#[test]
fn waits_count_for_the_interval_in_which_packets_were_sent() {
    let ms = |ms: u64| Time(Span::from_millis(ms).0);
    let mut waits = Waits::default();
    // Two links: the second wait of the first packet becomes known after those of later packets.
    waits.waited(ms(1), Span::from_millis(10), true);
    waits.waited(ms(5), Span::from_millis(20), true);
    waits.dropped(ms(7), true);
    waits.waited(ms(1), Span::from_millis(4), false);
    waits.dropped(ms(5), false);
    let recent = waits.take_recent();
    assert_eq!((recent.packets, recent.dropped), (3, 2));
    let first = waits.take(ms(0), ms(5));
    assert_eq!((first.packets, first.dropped, first.mean_ms()), (1, 0, 14.0));
    let second = waits.take(ms(5), ms(10));
    assert_eq!((second.packets, second.dropped), (2, 2));
    assert_eq!(second.dropped_ratio(), 1.0);
    assert_eq!(waits.take(ms(0), ms(10)), Sums::default());
}

#[test]
fn controllers_are_told_apart_by_what_they_do_to_buffers() {
    for (name, kind) in [
        ("cubic", Kind::LossBased),
        ("quic_reno", Kind::LossBased),
        ("new_reno", Kind::LossBased),
        ("illinois", Kind::LossBased),
        ("bbr1", Kind::Bbr),
        ("bbr3", Kind::Bbr),
        ("vegas", Kind::Other),
        ("copa", Kind::Other),
    ] {
        assert_eq!(Kind::of(name), kind, "{name}");
    }
    for name in LOSS_BASED {
        let known =
            crate::controllers::find(name).is_some() || crate::coupled::find(name).is_some();
        assert!(known, "no controller is called {name}");
    }
}

#[test]
fn what_was_served_is_known_between_samples() {
    let samples = [(Time(100), 10.0), (Time(200), 30.0)];
    for (at, bytes) in [(0, 0.0), (50, 5.0), (100, 10.0), (150, 20.0), (200, 30.0), (900, 30.0)] {
        assert_eq!(served_by(&samples, Time(at)), bytes);
    }
    assert_eq!(served_by(&[], Time(5)), 0.0);
}
