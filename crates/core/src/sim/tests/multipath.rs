//! What connections of several subflows promise.
use super::*;
use crate::control::{Ack, Control, FlowInfo, Loss};
use crate::sim::record::ConnectionRow;
use std::sync::{Arc, Mutex};

const SCHEDULERS: [&str; 3] = ["min_rtt", "round_robin", "redundant"];

/// Two paths of 8 Mb/s, 10 and 40 ms one way, with a flow of these lines.
fn two_paths(flow: &str) -> String {
    format!(
        "duration_s = 20\n[two_path.first]\nrate_mbps = 8\ndelay_ms = 10\n\
         queue = {{ kind = \"drop_tail\", packets = 60 }}\n[two_path.second]\nrate_mbps = 8\n\
         delay_ms = 40\nqueue = {{ kind = \"drop_tail\", packets = 60 }}\n\
         [[flow]]\nname = \"both\"\ncontroller = \"new_reno\"\n{flow}\n"
    )
}

fn connection(text: &str) -> ConnectionRow {
    outcome(text).connections[0].clone()
}

fn mbps(row: &ConnectionRow) -> f64 {
    row.goodput_bytes as f64 * 8e-6 / row.active_s
}

#[test]
fn two_paths_carry_one_connection_at_their_rates_together() {
    for scheduler in ["min_rtt", "round_robin"] {
        let row = connection(&two_paths(&format!(
            "multipath = true\nmptcp = {{ scheduler = \"{scheduler}\" }}"
        )));
        assert!(mbps(&row) > 13.5, "{scheduler}: {}", mbps(&row));
        assert_eq!((row.subflows, &*row.connection), (2, "both"));
    }
}

#[test]
fn redundant_subflows_carry_no_more_than_the_better_path() {
    let outcome = outcome(&two_paths("multipath = true\nmptcp = { scheduler = \"redundant\" }"));
    let row = &outcome.connections[0];
    assert!(mbps(row) > 6.5 && mbps(row) < 8.5, "{}", mbps(row));
    let both: u64 = outcome.flows.iter().map(|flow| flow.goodput_bytes).sum();
    assert!(both > row.goodput_bytes * 3 / 2 && row.duplicate_bytes > row.goodput_bytes / 2);
}

#[test]
fn a_transfer_ends_when_all_of_it_was_read_in_order_under_every_scheduler_and_sender() {
    for scheduler in SCHEDULERS {
        for sender in ["", "recovery = \"ns2\"", "handshake = true", "send_hook = \"ack\""] {
            let flow = format!(
                "multipath = true\ntraffic = {{ kind = \"fixed\", bytes = 1234567 }}\n\
                 sender = {{ {sender} }}\nmptcp = {{ scheduler = \"{scheduler}\" }}"
            );
            let row = connection(&two_paths(&flow));
            let told = (row.transfers, row.goodput_bytes);
            assert_eq!(told, (1, 1_234_567), "{scheduler}, {sender}: {row:?}");
        }
    }
}

#[test]
fn a_small_receive_buffer_blocks_the_fast_subflow_behind_the_slow_one() {
    let with = |bytes: u64| {
        connection(&two_paths(&format!(
            "multipath = true\nmptcp = {{ scheduler = \"round_robin\", receive_buffer_bytes = {bytes} }}"
        )))
    };
    let (small, large) = (with(30_000), with(64 << 20));
    assert!(mbps(&small) < 0.5 * mbps(&large), "{} of {}", mbps(&small), mbps(&large));
    assert!(small.reorder_peak_bytes <= 30_000 && large.reorder_peak_bytes > 30_000);
}

#[test]
fn a_fast_subflow_that_is_blocked_sends_what_the_window_waits_for_if_opportunistic() {
    let with = |opportunistic: bool| {
        let flow = format!(
            "multipath = true\ntraffic = {{ kind = \"fixed\", bytes = 100000 }}\n\
             mptcp = {{ receive_buffer_bytes = 30000, opportunistic = {opportunistic} }}"
        );
        connection(&two_paths(&flow).replace("delay_ms = 40", "delay_ms = 300"))
    };
    let (blocked, helped) = (with(false), with(true));
    assert_eq!((blocked.transfers, helped.transfers), (1, 1));
    assert!(blocked.fct_mean_ms > 600.0, "a round trip of the slow path: {blocked:?}");
    assert!(helped.fct_mean_ms < 0.7 * blocked.fct_mean_ms, "{helped:?}");
    assert!(helped.reinjected_bytes > 0 && blocked.reinjected_bytes == 0);
}

#[test]
fn a_send_buffer_limits_as_the_receive_buffer_does() {
    let with = |name: &str| {
        let row =
            connection(&two_paths(&format!("multipath = true\nmptcp = {{ {name} = 30000 }}")));
        (row.goodput_bytes, row.reorder_peak_bytes)
    };
    assert_eq!(with("send_buffer_bytes"), with("receive_buffer_bytes"));
}

#[test]
fn what_fits_into_the_fast_subflow_leaves_by_it_alone_under_min_rtt() {
    let sent = |scheduler: &str| {
        let outcome = outcome(&two_paths(&format!(
            "multipath = true\nmptcp = {{ scheduler = \"{scheduler}\" }}\n\
             traffic = {{ kind = \"app_limited\", rate_mbps = 1, write_bytes = 1448 }}"
        )));
        let [fast, slow] = [0, 1].map(|index| outcome.flows[index].sent_packets);
        assert!(outcome.connections[0].goodput_bytes > 2_450_000, "{scheduler}");
        (fast, slow)
    };
    // Before its first sample a subflow is tried.
    let (fast, slow) = sent("min_rtt");
    assert!(slow < 20 && fast > 1600, "{fast}, {slow}");
    let (fast, slow) = sent("round_robin");
    assert!(fast.abs_diff(slow) <= 2, "{fast}, {slow}");
    let (fast, slow) = sent("redundant");
    assert!(fast > 1600 && slow > 1600, "{fast}, {slow}");
}

#[test]
fn data_in_flight_on_a_link_that_goes_down_is_sent_on_the_other() {
    for scheduler in SCHEDULERS {
        let text = two_paths(&format!(
            "multipath = true\ntraffic = {{ kind = \"fixed\", bytes = 4000000 }}\n\
             mptcp = {{ scheduler = \"{scheduler}\" }}"
        ))
        .replace("[two_path.second]", "outages = [[1, 19]]\n[two_path.second]");
        let row = connection(&text);
        assert_eq!((row.transfers, row.goodput_bytes), (1, 4_000_000), "{scheduler}");
        assert!(row.fct_mean_ms < 8000.0, "{scheduler}: {} ms", row.fct_mean_ms);
        assert_eq!(row.reinjected_bytes > 0, scheduler != "redundant", "{scheduler}");
    }
}

#[test]
fn a_subflow_that_closes_loses_nothing_and_sends_nothing_more() {
    for scheduler in SCHEDULERS {
        let open = "multipath = true\ntraffic = { kind = \"fixed\", bytes = 10000000 }";
        let closing = format!(
            "traffic = {{ kind = \"fixed\", bytes = 10000000 }}\nmptcp = {{ scheduler = \"{scheduler}\", \
             subflow = [{{ route = [0] }}, {{ route = [1], stop_s = 2 }}] }}"
        );
        let closed = outcome(&two_paths(&closing));
        let row = &closed.connections[0];
        assert_eq!((row.transfers, row.goodput_bytes), (1, 10_000_000), "{scheduler}");
        assert!(closed.flows[1].sent_bytes < 2_100_000, "8 Mb/s for 2 s");
        let both = connection(&two_paths(open));
        assert!(row.fct_mean_ms > 1.3 * both.fct_mean_ms, "{scheduler}");
    }
}

#[test]
fn acknowledgements_on_their_way_to_subflows_that_have_closed_are_no_fault_among_many_flows() {
    // From 200 flows on, what acknowledgements will touch is asked for before they arrive.
    let flow = "count = 101\nmptcp = { subflow = [{ route = [0] }, { route = [1], stop_s = 1 }] }";
    let outcome = outcome(&two_paths(flow).replace("duration_s = 20", "duration_s = 2"));
    assert_eq!(outcome.flows.len(), 202);
    assert!(outcome.connections.iter().map(|row| row.goodput_bytes).sum::<u64>() > 2_000_000);
}

#[test]
fn a_subflow_that_opens_late_sends_from_then_on() {
    let flow = "sender = { handshake = true }\nmptcp = { subflow = [{ route = [0] }, \
                { route = [1], start_s = 5 }] }";
    let text =
        two_paths(flow).replace("duration_s = 20", "duration_s = 20\nsample_interval_ms = 100");
    let outcome = outcome(&text);
    let series = &outcome.flow_series;
    let rows = series.time_s.iter().zip(&series.flow).zip(&series.delivered_bytes);
    let second: Vec<_> = rows.filter(|((_, flow), _)| **flow == 1).collect();
    assert!((*second[0].0.0 - 5.0).abs() < 0.11, "sampled while open: {}", second[0].0.0);
    assert!(outcome.flows[1].start_s > 4.999 && outcome.flows[0].start_s < 0.001);
    let mbps = outcome.flows[1].goodput_bytes as f64 * 8e-6 / 15.0;
    assert!(mbps > 6.0 && mbps < 8.0, "{mbps}");
}

#[test]
fn behind_a_handshake_a_subflow_joins_a_connection_that_has_data_acknowledged() {
    let first_delivery_ms = |handshake: bool, more: &str| {
        let flow = format!(
            "sender = {{ handshake = {handshake} }}\nmptcp = {{ subflow = [{{ route = [0] }}, \
             {{ route = [1]{more} }}] }}"
        );
        let text = two_paths(&flow).replace("delay_ms = 40", "delay_ms = 10");
        let text = text.replace("duration_s = 20", "duration_s = 6\nsample_interval_ms = 1");
        let series = outcome(&text).flow_series;
        let rows = || series.time_s.iter().zip(&series.flow).zip(&series.delivered_bytes);
        let first = |of| rows().find(|((_, flow), bytes)| **flow == of && **bytes > 0);
        [0, 1].map(|of| *first(of).expect("it delivers").0.0 * 1e3)
    };
    let way = first_delivery_ms(false, "")[0];
    let close =
        |found: f64, wanted: f64| assert!((found - wanted).abs() < 1.5, "{found}: {wanted}");
    let [first, second] = first_delivery_ms(true, "");
    close(first, 20.0 + way);
    // Data of the first are acknowledged, then SYN, ACK, and the acknowledgement of that.
    close(second, 40.0 + 40.0 + way);
    close(first_delivery_ms(true, ", start_s = 5")[1], 5000.0 + 40.0 + way);
}

#[test]
fn data_waits_from_the_close_of_the_last_subflow_to_the_opening_of_the_next() {
    for scheduler in SCHEDULERS {
        let with = |second: &str| {
            connection(&two_paths(&format!(
                "traffic = {{ kind = \"fixed\", bytes = 3000000 }}\n\
                 mptcp = {{ scheduler = \"{scheduler}\", subflow = [{{ route = [0], stop_s = 1 }}, \
                 {{ route = [1], {second} }}] }}"
            )))
        };
        let row = with("start_s = 3");
        assert_eq!((row.transfers, row.goodput_bytes), (1, 3_000_000), "{scheduler}");
        assert!(row.fct_mean_ms > 5000.0, "{scheduler}: {}", row.fct_mean_ms);
        let never = with("start_s = 19.9999");
        assert!(never.transfers == 0 && never.goodput_bytes < 1_100_000, "{scheduler}: {never:?}");
    }
}

#[test]
fn an_application_that_waits_for_its_answer_goes_on_when_the_data_level_acknowledges() {
    let row = connection(&two_paths(
        "multipath = true\ntraffic = { kind = \"request_response\", response_bytes = 50000, \
         mean_think_s = 0.01 }\nstop_s = 15",
    ));
    assert!(row.transfers > 50 && row.goodput_bytes == row.transfers * 50_000, "{row:?}");
}

#[test]
fn a_connection_of_one_flow_has_the_numbers_of_its_flow() {
    let outcome = outcome(&dumbbell("rate_mbps = 5", "count = 2\nstart_step_s = 0.5"));
    for (row, flow) in outcome.connections.iter().zip(&outcome.flows) {
        assert_eq!((&row.connection, row.subflows), (&flow.flow, 1));
        assert_eq!((row.goodput_bytes, row.active_s), (flow.goodput_bytes, flow.active_s));
        assert_eq!((row.reinjected_bytes, row.reorder_peak_bytes), (0, 0));
    }
}

#[test]
fn two_reno_subflows_take_two_shares_of_a_shared_bottleneck() {
    let text = include_str!("../../../../../data/scenarios/shared_bottleneck.toml");
    let outcome = outcome(text);
    let [both, one] = [0, 1].map(|index| mbps(&outcome.connections[index]));
    assert!((1.5..2.6).contains(&(both / one)), "{both} and {one}");
}

/// Notes when subflows come and go, and that no call names another.
struct Watching(Arc<Mutex<Vec<String>>>, Vec<SubflowId>);

impl Watching {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Coupled for Watching {
    fn subflow_added(&mut self, id: SubflowId, info: &FlowInfo) {
        self.note(format!("{} added at {}", id.0, info.start.as_secs_f64()));
        self.1.push(id);
    }
    fn subflow_of(&mut self, id: SubflowId, connection: u32) {
        self.note(format!("{} of {connection}", id.0));
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.note(format!("{} removed", id.0));
        self.1.retain(|known| *known != id);
    }
    fn on_ack(&mut self, id: SubflowId, _: &Ack) {
        assert!(self.1.contains(&id));
    }
    fn on_loss(&mut self, id: SubflowId, _: &Loss) {
        assert!(self.1.contains(&id));
    }
    fn control(&self, id: SubflowId) -> Control {
        assert!(self.1.contains(&id));
        Control::window(crate::units::Bytes(60_000))
    }
    fn counters(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        assert!(self.1.contains(&id));
        vec![("id", f64::from(id.0))]
    }
}

#[test]
fn a_controller_governs_a_subflow_from_its_opening_to_its_close() {
    let text = two_paths(
        "mptcp = { subflow = [{ route = [0], stop_s = 4 }, { route = [1], start_s = 2 }, \
         { route = [1], start_s = 30 }] }",
    );
    let notes = Arc::new(Mutex::new(Vec::new()));
    let mut build = |_: &ConnectionPlan| -> Result<Box<dyn Coupled>, ParamError> {
        Ok(Box::new(Watching(Arc::clone(&notes), Vec::new())))
    };
    let mut sim = Sim::new(&network(&text), Seed(1), &mut build).unwrap();
    sim.run_until(Time::NEVER);
    sim.tell_end();
    let outcome = sim.finish();
    let expected = ["0 added at 0", "0 of 0", "1 added at 2", "1 of 0", "0 removed"];
    assert_eq!(*notes.lock().unwrap(), expected);
    let counters: Vec<_> = outcome.flows.iter().map(|flow| flow.counters.clone()).collect();
    assert_eq!(counters, [vec![("id", 0.0)], vec![("id", 1.0)], vec![]]);
}
