//! Connections of several subflows: what is accepted, and each kind of bad input with its message.
use super::*;
use crate::sim::plan::MptcpPlan;

const TWO: &str = "duration_s = 10
[two_path]
first = { rate_mbps = 8 }
second = { rate_mbps = 8 }
[[flow]]
multipath = true
";

fn plan(text: &str) -> (MptcpPlan, Vec<Vec<u32>>) {
    let scenario = Scenario::parse(text, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let connection = scenario.network.connections[0].clone();
    let routes = connection.subflows.into_iter().map(|route| route.forward).collect();
    (connection.mptcp.expect("several subflows"), routes)
}

/// The message for a flow with these lines, in a network of two paths.
fn refused_flow(flow: &str) -> String {
    error(&TWO.replace("multipath = true\n", flow))
}

#[test]
fn a_multipath_flow_has_the_defaults_of_the_reference() {
    let (plan, routes) = plan(TWO);
    assert_eq!(plan.scheduler.name, "min_rtt");
    assert_eq!((plan.receive_buffer, plan.send_buffer), (Bytes(64 << 20), Bytes(64 << 20)));
    assert!(!plan.opportunistic);
    assert_eq!(plan.times, [(Time(0), Time::NEVER); 2]);
    assert_eq!(routes, [[0], [2]]);
}

#[test]
fn a_connection_of_one_subflow_has_no_data_level() {
    let scenario = Scenario::parse(DUMBBELL, "s.toml").expect("a scenario");
    assert!(scenario.network.connections[0].mptcp.is_none());
}

#[test]
fn subflows_are_listed_in_every_topology() {
    let mptcp =
        "mptcp = { scheduler = \"redundant\", subflow = [{ PLACE }, { PLACE, stop_s = 6 }] }\n";
    let bare = mptcp.replace("PLACE, ", "").replace(" PLACE ", "");
    let (from_dumbbell, routes) =
        plan(&DUMBBELL.replace("controller", &format!("{bare}controller")));
    assert_eq!((from_dumbbell.scheduler.name, routes), ("redundant", vec![vec![0], vec![0]]));
    assert_eq!(from_dumbbell.times[1], (Time(0), Time::from_secs_f64(6.0)));
    let free = FREE.replace("path = [\"there\"]\n", "").replace("reverse = [\"back\"]\n", "");
    let own = mptcp.replace("PLACE", "path = [\"there\"]");
    assert_eq!(plan(&(free + &own)).1, [[0], [0]]);
    let two = TWO.replace(
        "multipath = true\n",
        "mptcp = { subflow = [{}, { route = [1], start_s = 2 }] }\n",
    );
    let (plan, routes) = plan(&two);
    assert_eq!(routes, [[0], [2]]);
    assert_eq!(plan.times[1], (Time::from_secs_f64(2.0), Time::NEVER));
}

#[test]
fn each_subflow_of_a_dumbbell_has_access_links_of_its_own() {
    let text = DUMBBELL
        .replace("rtt_ms = 100", "rtt_ms = 100\naccess_mbps = 100")
        .replace("controller", "mptcp = { subflow = [{}, {}] }\ncontroller");
    let scenario = Scenario::parse(&text, "s.toml").expect("a scenario");
    let links: Vec<&str> = scenario.network.links.iter().map(|link| &*link.name).collect();
    assert!(links.contains(&"flow0.0_out") && links.contains(&"flow0.1_out"), "{links:?}");
}

#[test]
fn settings_of_subflows_on_a_flow_of_one_are_refused() {
    assert_eq!(
        refused("controller", "mptcp = { scheduler = \"min_rtt\" }\ncontroller"),
        "s.toml:8: flow[0].mptcp = given: allowed is only for several subflows: with \
         mptcp.subflow, or multipath = true in [two_path]"
    );
    assert_eq!(
        refused_flow("mptcp = { subflow = [{}] }\n"),
        "s.toml:6: flow[0].mptcp.subflow = 1: allowed is 2 to 8 subflows"
    );
}

#[test]
fn an_unknown_scheduler_is_refused_with_the_names_of_those_there_are() {
    assert_eq!(
        refused_flow("multipath = true\nmptcp = { scheduler = \"blest\" }\n"),
        "s.toml:7: flow[0].mptcp.scheduler = \"blest\": allowed is min_rtt, redundant, round_robin"
    );
}

#[test]
fn a_subflow_over_a_missing_link_is_refused() {
    assert_eq!(
        refused_flow("mptcp = { subflow = [{ route = [0] }, { route = [2] }] }\n"),
        "s.toml:6: flow[0].mptcp.subflow[1].route = [2]: allowed is [0] or [1]"
    );
    let free = FREE.replace("path = [\"there\"]\nreverse = [\"back\"]\n", "");
    let subflows = "mptcp = { subflow = [{ path = [\"there\"] }, { path = [\"wifi\"] }] }\n";
    assert_eq!(
        error(&(free + subflows)),
        "s.toml:9: flow[0].mptcp.subflow[1].path[0] = \"wifi\": allowed is there, back"
    );
    assert_eq!(
        refused("controller", "mptcp = { subflow = [{}, { route = [1] }] }\ncontroller"),
        "s.toml:8: flow[0].mptcp.subflow[1].route = given: allowed is nothing here with [dumbbell]"
    );
}

#[test]
fn a_place_said_twice_is_refused() {
    assert_eq!(
        refused_flow("multipath = true\nroute = [1]\n"),
        "s.toml:7: flow[0].route = given: allowed is nothing beside multipath"
    );
    assert_eq!(
        refused_flow("route = [1]\nmptcp = { subflow = [{}, {}] }\n"),
        "s.toml:6: flow[0].route = given: allowed is nothing beside mptcp.subflow"
    );
    assert_eq!(
        refused_flow("multipath = true\nmptcp = { subflow = [{}, {}] }\n"),
        "s.toml:6: flow[0].multipath = true: allowed is false beside mptcp.subflow"
    );
}

#[test]
fn buffers_hold_a_packet_and_at_most_a_gibibyte() {
    assert_eq!(
        refused_flow("multipath = true\nmptcp = { receive_buffer_bytes = 1447 }\n"),
        "s.toml:7: flow[0].mptcp.receive_buffer_bytes = 1447: allowed is a whole number in [1448, \
         1073741824]"
    );
    assert_eq!(
        refused_flow("multipath = true\nmptcp = { send_buffer_bytes = 2000000000 }\n"),
        "s.toml:7: flow[0].mptcp.send_buffer_bytes = 2000000000: allowed is a whole number in [1448, \
         1073741824]"
    );
}

#[test]
fn a_subflow_closes_after_it_opens() {
    assert_eq!(
        refused_flow("mptcp = { subflow = [{}, { start_s = 5, stop_s = 4 }] }\n"),
        "s.toml:6: flow[0].mptcp.subflow[1].stop_s = 4: allowed is a number in [5, 100000000]"
    );
}

#[test]
fn datagrams_have_no_data_level() {
    let cbr = "traffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 500 }\n";
    assert_eq!(
        refused_flow(&format!("{cbr}mptcp = {{ subflow = [{{}}, {{}}] }}\n")),
        "s.toml:6: flow[0].traffic.kind = \"cbr\": allowed is a kind that is not cbr: datagrams have no \
         subflows"
    );
}
