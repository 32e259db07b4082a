//! What a distribution draws, and every way of refusing one.
#![allow(clippy::float_cmp)] // exact: ends, and values that are computed alike
use super::super::{Distribution, Scenario, fits};
use crate::rng::Seed;
use crate::scenario::TraceSpec;
use crate::sim::plan::QueueSpec;
use crate::sim::plan::{LinkPlan, RatePlan};
use crate::units::Rate;

const BASE: &str = "learners = [\"learner*\"]
draw.\"dumbbell.bottleneck.rate_mbps\" = { uniform = [5, 15] }
draw.\"dumbbell.rtt_ms\" = { log_uniform = [10, 300] }

[[scenario]]
name = \"one\"
weight = [[0, 1], [1, 0]]
[scenario.inline]
duration_s = 10
[scenario.inline.dumbbell.bottleneck]
queue = { kind = \"drop_tail\", bdp = 1 }
[[scenario.inline.flow]]
name = \"learner\"
[scenario.draw]
\"flow.0.count\" = { integer = [1, 5] }
\"flow.0.controller\" = { choice = [\"cubic\", \"new_reno\"] }

[[scenario]]
name = \"two\"
weight = [[0, 0], [1, 3]]
[scenario.inline]
duration_s = 20
[scenario.inline.dumbbell.bottleneck]
queue = { kind = \"drop_tail\", packets = 9 }
[[scenario.inline.flow]]
name = \"learner\"
[scenario.draw]
\"dumbbell.rtt_ms\" = { constant = 77 }
";

fn parse(text: &str) -> Distribution {
    Distribution::parse(text, "d.toml", &mut |_, _| Err("no file".to_owned())).unwrap()
}

/// The message for [`BASE`] with `old` replaced by `new`.
fn refused(old: &str, new: &str) -> String {
    assert!(BASE.contains(old), "{old}");
    let text = BASE.replacen(old, new, 1);
    let parsed =
        Distribution::parse(&text, "d.toml", &mut |_, _| Err("a file there is".to_owned()));
    parsed.map(|_| ()).expect_err("bad input").to_string()
}

fn bottleneck(scenario: &Scenario) -> &LinkPlan {
    &scenario.network.links[0]
}

fn rate(scenario: &Scenario) -> f64 {
    match bottleneck(scenario).rate {
        RatePlan::Constant(rate) => rate.as_mbps(),
        _ => panic!("a constant rate was drawn"),
    }
}

#[test]
fn a_seed_draws_the_same_text_again_and_another_seed_another() {
    let distribution = parse(BASE);
    let text = |seed| distribution.draw(Seed(seed), 0.5).unwrap().canonical();
    for seed in 0..50 {
        assert_eq!(text(seed), parse(BASE).draw(Seed(seed), 0.5).unwrap().canonical());
        assert_ne!(text(seed), text(seed + 1));
    }
}

#[test]
fn a_drawn_scenario_is_what_its_own_text_says() {
    let distribution = parse(BASE);
    for seed in 0..50 {
        let drawn = distribution.draw(Seed(seed), 0.5).unwrap();
        let read = Scenario::parse(&drawn.resolved(), "s.toml").unwrap();
        assert_eq!(read.spec, drawn.spec);
        assert_eq!(read.canonical(), drawn.canonical());
    }
}

#[test]
fn values_lie_between_the_ends_and_fill_them() {
    let distribution = parse(BASE);
    let drawn: Vec<Scenario> =
        (0..2000).map(|seed| distribution.draw(Seed(seed), 0.0).unwrap()).collect();
    let rates: Vec<f64> = drawn.iter().map(rate).collect();
    assert!(rates.iter().all(|rate| (5.0..=15.0).contains(rate)));
    let mean = rates.iter().sum::<f64>() / 2000.0;
    // Three standard errors of a uniform mean.
    assert!((mean - 10.0).abs() < 3.0 * 10.0 / 12_f64.sqrt() / 2000_f64.sqrt(), "{mean}");
    let mut counts = [0; 6];
    let mut cubic = 0;
    for scenario in &drawn {
        counts[scenario.spec.flow[0].count as usize] += 1;
        cubic += u32::from(scenario.spec.flow[0].controller == "cubic");
    }
    assert!(counts[0] == 0 && counts[1..].iter().all(|&count| count > 300), "{counts:?}");
    assert!((900..1100).contains(&cubic), "{cubic}");
    let rtt = |scenario: &Scenario| scenario.spec.dumbbell.as_ref().unwrap().rtt_ms.unwrap();
    let below = drawn.iter().filter(|scenario| rtt(scenario) < 3000_f64.sqrt()).count();
    assert!((900..1100).contains(&below), "half of log-uniform draws lie below the geometric mean");
}

#[test]
fn whole_numbers_that_spread_evenly_by_factors_reach_both_ends() {
    let distribution = parse(&BASE.replacen("integer = [1, 5]", "log_integer = [1, 8]", 1));
    let mut counts = [0_u32; 9];
    for seed in 0..3000 {
        let drawn = distribution.draw(Seed(seed), 0.0).unwrap();
        counts[drawn.spec.flow[0].count as usize] += 1;
    }
    assert!(counts[0] == 0 && counts[8] > 50, "{counts:?}");
    // log 2 / log 9 of them are ones.
    assert!((850..1050).contains(&counts[1]), "{counts:?}");
}

#[test]
fn a_draw_does_not_shift_when_another_is_added() {
    let more = BASE.replacen(
        "[scenario.draw]",
        "[scenario.draw]\n\"dumbbell.bottleneck.queue.bdp\" = { uniform = [1, 2] }",
        1,
    );
    let (few, many) = (parse(BASE), parse(&more));
    for seed in 0..20 {
        let rate_of = |distribution: &Distribution| {
            rate(&distribution.draw(Seed(seed), 0.0).unwrap()).to_bits()
        };
        assert_eq!(rate_of(&few), rate_of(&many));
    }
}

#[test]
fn weights_follow_training_progress() {
    let distribution = parse(BASE);
    assert_eq!(distribution.weights(0.0), [1.0, 0.0]);
    assert_eq!(distribution.weights(0.5), [0.5, 1.5]);
    assert_eq!(distribution.weights(7.0), [0.0, 3.0]);
    let twos = |progress| {
        let drawn = (0..1000).map(|seed| distribution.draw(Seed(seed), progress).unwrap());
        drawn.filter(|scenario| scenario.name().starts_with("two")).count()
    };
    assert_eq!((twos(0.0), twos(1.0)), (0, 1000));
    assert!((700..800).contains(&twos(0.5)), "three of four at equal parts");
    assert_eq!(twos(f64::NAN), twos(0.0));
}

#[test]
fn a_draw_of_a_scenario_stands_for_the_common_one() {
    let drawn = parse(BASE).draw(Seed(1), 1.0).unwrap();
    assert_eq!(drawn.spec.dumbbell.unwrap().rtt_ms, Some(77.0));
}

#[test]
fn the_most_learning_flows_are_counted_at_the_ends() {
    assert_eq!(parse(BASE).agents(), 5);
}

#[test]
fn learning_flows_of_scenarios_that_are_not_drawn_yet_do_not_count() {
    let of = |name: &str, count: u32, weight: &str| {
        format!(
            "[[scenario]]\nname = \"{name}\"\nweight = {weight}\n[scenario.inline]\nduration_s = 1\n\
             dumbbell = {{ rtt_ms = 10, bottleneck = {{ rate_mbps = 1, queue = {{ kind = \"drop_tail\", packets = 9 }} }} }}\n\
             flow = [{{ count = {count} }}]\n"
        )
    };
    let text = of("alone", 1, "[[0, 1], [1, 0]]") + &of("shared", 3, "[[0, 0], [0.5, 1], [1, 1]]");
    let distribution = parse(&text);
    assert_eq!(distribution.agents(), 3);
    assert_eq!([0.0, 0.1, 1.0].map(|progress| distribution.agents_at(progress)), [1, 3, 3]);
}

#[test]
fn every_subflow_of_a_flow_that_learns_is_counted() {
    let text = "[[scenario]]
[scenario.inline]
duration_s = 1
two_path = { first = { rate_mbps = 1 }, second = { rate_mbps = 1 } }
flow = [{ multipath = true }, { count = 2 }]
[scenario.draw]
\"flow.0.count\" = { integer = [1, 3] }
";
    assert_eq!(parse(text).agents(), 8, "three flows of two paths, and two of one");
}

#[test]
fn a_value_goes_to_every_field_that_is_named() {
    let text = "[[scenario]]
[scenario.inline]
duration_s = 1
link = [{ name = \"there\", rate_mbps = 1 }, { name = \"back\", rate_mbps = 1 }]
flow = [{ path = [\"there\"], reverse = [\"back\"] }]
[scenario.draw]
\"link.0.delay_ms\" = { uniform = [1, 9], also = [\"link.1.delay_ms\"] }
";
    let drawn = parse(text).draw(Seed(3), 0.0).unwrap();
    assert!(drawn.spec.link[0].delay_ms > 1.0);
    assert_eq!(drawn.spec.link[0].delay_ms.to_bits(), drawn.spec.link[1].delay_ms.to_bits());
}

const TRACE: &str = "[[scenario]]
[scenario.inline]
duration_s = 10
dumbbell = { rtt_ms = 50, bottleneck = { queue = { kind = \"drop_tail\", packets = 100 } } }
flow = [{ controller = \"cubic\" }]
[scenario.draw]
\"dumbbell.bottleneck.trace\" = { trace = { mean_mbps = { log_uniform = [2, 20] }, volatility = [0.1, 1], seconds = 30 } }
";

#[test]
fn a_drawn_trace_is_one_of_its_own_and_travels_with_the_scenario() {
    let distribution = parse(TRACE);
    for seed in 0..5 {
        let drawn = distribution.draw(Seed(seed), 0.0).unwrap();
        let RatePlan::Trace(trace) = &bottleneck(&drawn).rate else { panic!("a trace was drawn") };
        assert!((1.9..21.0).contains(&trace.mean_rate().as_mbps()), "{}", trace.mean_rate());
        assert_eq!(drawn.recordings.len(), 1, "the stand-in for the ends is not among them");
        let (text, traces) = drawn.portable(&str::to_owned);
        let mut load = |name: &str, _| {
            let found = traces.iter().find(|(known, _)| known == name);
            Ok(found.expect("a trace of this name").1.to_text().into_bytes())
        };
        let read = Scenario::parse_with(&text, "s.toml", &[], &mut load).unwrap();
        let RatePlan::Trace(reread) = &bottleneck(&read).rate else { panic!("a trace is named") };
        assert_eq!(reread, trace);
    }
}

#[test]
fn files_are_relative_to_the_distribution_and_read_once() {
    let scenario = "duration_s = 1
dumbbell = { rtt_ms = 50, bottleneck = { trace = \"a.trace\" } }
flow = [{}]
";
    let text = "[[scenario]]\nfile = \"../nets/s.toml\"\ndraw.\"dumbbell.rtt_ms\" = { uniform = [1, 2] }\n";
    let mut asked = Vec::new();
    let distribution = Distribution::parse(text, "dir/d.toml", &mut |name, _| {
        asked.push(name.to_owned());
        Ok(if name.contains(".trace") { "0\n5\n" } else { scenario }.into())
    });
    let drawn = distribution.unwrap().draw(Seed(1), 0.0).unwrap();
    assert_eq!(asked, ["../nets/s.toml", "../nets/a.trace"]);
    let trace = drawn.spec.dumbbell.unwrap().bottleneck.trace.unwrap();
    assert_eq!(trace, TraceSpec::File("../nets/a.trace".to_owned()));
    assert_eq!(drawn.spec.name.unwrap(), "s-1");
}

#[test]
fn a_fault_in_a_scenario_file_is_told_with_that_files_line() {
    let text = "[[scenario]]\nfile = \"nets/s.toml\"\n";
    let mut load = |_: &str, _| {
        Ok(b"duration_s = 1\nflow = [{}]\n[dumbbell]\nrtt_ms = -5\nbottleneck.rate_mbps = 1\n"
            .to_vec())
    };
    let error = Distribution::parse(text, "dir/d.toml", &mut load).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dir/nets/s.toml:4: dumbbell.rtt_ms = -5: allowed is a number in [0, 10000000] \
         (a scenario of dir/d.toml)"
    );
}

#[test]
fn an_end_that_no_scenario_may_have_is_refused_where_the_draw_stands() {
    assert_eq!(
        refused("[5, 15]", "[-5, 15]"),
        "d.toml:2: draw.\"dumbbell.bottleneck.rate_mbps\" = -5: allowed is a number in [0.000001, 1000000]"
    );
    assert_eq!(
        refused("integer = [1, 5]", "integer = [0, 5]"),
        "d.toml:15: scenario[0].draw.\"flow.0.count\" = 0: allowed is 1 to 100000 flows in all"
    );
    assert_eq!(
        refused("integer = [1, 5]", "uniform = [1, 5]"),
        "d.toml:15: scenario[0].draw.\"flow.0.count\" = 1.0: allowed is \
         a whole number in [0, 9223372036854775807]"
    );
    assert_eq!(
        refused("\"new_reno\"]", "\"new_rino\"]").split(": allowed").next().unwrap(),
        "d.toml:16: scenario[0].draw.\"flow.0.controller\" = \"new_rino\""
    );
    assert_eq!(
        refused(
            "\"dumbbell.rtt_ms\" = { constant = 77 }",
            "\"dumbbell.rt_ms\" = { constant = 77 }"
        ),
        "d.toml:28: scenario[1].draw.\"dumbbell.rt_ms\" = 77: allowed is a field named \
         rtt_ms, bottleneck, reverse, reverse_delay_ms, reverse_varies, access_mbps, access_delay_ms"
    );
}

/// What is wrong with a distribution of one link with a trace, by its draws; nothing may be tried.
fn refused_untried(draws: &str) -> String {
    let text = format!(
        "[[scenario]]\n[scenario.inline]\nduration_s = 1\nflow = [{{}}]\n[scenario.inline.dumbbell]\n\
         bottleneck.trace = \"a.trace\"\nrtt_ms = 10\n[scenario.draw]\n{draws}\n"
    );
    let mut load = |name: &str, _| -> Result<Vec<u8>, String> {
        panic!("{name} is read, so a combination was tried")
    };
    Distribution::parse(&text, "d.toml", &mut load).unwrap_err().to_string()
}

#[test]
fn an_end_of_too_many_flows_is_refused_before_any_combination_is_tried() {
    assert_eq!(
        refused_untried("\"flow.0.count\" = { integer = [1, 100001] }"),
        "d.toml:9: scenario[0].draw.\"flow.0.count\" = 100001: allowed is 1 to 100000 flows in all"
    );
    let widths = "\"flow.0.count\" = { integer = [90000, 100000] }\n\
                  \"dumbbell.rtt_ms\" = { choice = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }";
    assert_eq!(
        refused_untried(widths),
        "d.toml:8: scenario[0].draw = 1100000 flows or more: allowed is draws whose 20 combinations of \
         ends have at most 1000000 flows in all"
    );
}

#[test]
fn combinations_of_few_flows_are_tried_first() {
    // The first combination has more rows of a time series than are allowed, the third has few.
    let text = "[[scenario]]\n[scenario.inline]\nduration_s = 1e4\nflow = [{}]\nsample_interval_ms = 10\n\
                dumbbell = { bottleneck = { rate_mbps = 1 } }\n[scenario.draw]\n\
                \"dumbbell.rtt_ms\" = { choice = [10, -1] }\n\
                \"flow.0.count\" = { choice = [100000, 1] }\n";
    let mut load = |_: &str, _| Err("no file".to_owned());
    assert_eq!(
        Distribution::parse(text, "d.toml", &mut load).unwrap_err().to_string(),
        "d.toml:8: scenario[0].draw.\"dumbbell.rtt_ms\" = -1: allowed is a number in [0, 10000000]"
    );
}

#[test]
fn a_bound_that_two_draws_break_together_is_found() {
    // Each alone would do: 5 Mb/s times 10 ms times a thousandth is more than a byte.
    let error = refused("bdp = 1 }", "bdp = 0.0001 }");
    assert_eq!(
        error,
        "d.toml:11: scenario[0].inline.dumbbell.bottleneck.queue.bdp = 0.0001: allowed is \
         a multiple of rate_mbps times round trip that is a byte or more"
    );
}

/// What is replaced, by what, and the message.
const WRONG_FILES: &[(&str, &str, &str)] = &[
    (
        "uniform = [5, 15]",
        "uniform = [15, 5]",
        "d.toml:2: draw.\"dumbbell.bottleneck.rate_mbps\".uniform = [15, 5]: allowed is [low, high], finite, with low at most high",
    ),
    (
        "[10, 300]",
        "[0, 300]",
        "d.toml:3: draw.\"dumbbell.rtt_ms\".log_uniform = [0, 300]: allowed is [low, high], finite and above 0, with low at most high",
    ),
    (
        "{ constant = 77 }",
        "{ constant = 77, uniform = [1, 2] }",
        "d.toml:28: scenario[1].draw.\"dumbbell.rtt_ms\" = 2 of them: allowed is exactly one of uniform, log_uniform, integer, log_integer, choice, constant, trace, product, steps",
    ),
    (
        "choice = [\"cubic\", \"new_reno\"]",
        "choice = []",
        "d.toml:16: scenario[0].draw.\"flow.0.controller\".choice = []: allowed is one value or more",
    ),
    (
        "weight = [[0, 1], [1, 0]]",
        "weight = [[1, 1], [0, 0]]",
        "d.toml:7: scenario[0].weight = [[1, 1], [0, 0]]: allowed is a number, or pairs [progress, weight] with progress rising in [0, 1]",
    ),
    (
        "weight = [[0, 1], [1, 0]]",
        "weight = -1",
        "d.toml:7: scenario[0].weight = -1: allowed is a number in [0, 1000000000]",
    ),
    (
        "weight = [[0, 1], [1, 0]]",
        "weight = 0",
        "d.toml:7: scenario[0].weight = 0 in all at progress 0: allowed is weights of which one at least is above 0 at any progress",
    ),
    (
        "weight = [[0, 1], [1, 0]]",
        "weight = [[0, 1, 2], [1, 0]]",
        "d.toml:7: scenario[0].weight = [[0, 1, 2], [1, 0]]: allowed is a number, or pairs [progress, weight] with progress rising in [0, 1]",
    ),
    (
        "\"learner*\"",
        "\"teacher\"",
        "d.toml:1: learners = [\"teacher\"]: allowed is patterns one of which fits a flow of scenario[0]: learner",
    ),
    (
        "name = \"two\"",
        "name = \"one\"",
        "d.toml:19: scenario[1].name = \"one\": allowed is a name of its own for every scenario",
    ),
    (
        "name = \"two\"",
        "name = \"two\"\nfile = \"x.toml\"",
        "d.toml:20: scenario[1].file = file and inline: allowed is exactly one of file, inline",
    ),
    (
        "\"dumbbell.rtt_ms\" = { constant",
        "\"dumbbell..rtt_ms\" = { constant",
        "d.toml:28: scenario[1].draw.dumbbell..rtt_ms = \"dumbbell..rtt_ms\": allowed is a path like dumbbell.bottleneck.rate_mbps or flow.0.controller",
    ),
    (
        "\"flow.0.count\"",
        "\"flow.7.count\"",
        "d.toml:15: scenario[0].draw.\"flow.7.count\" = 1: allowed is flow.N.FIELD with N below 1",
    ),
    (
        "name = \"one\"",
        "nome = \"one\"",
        "d.toml:6: scenario[0].nome = \"one\": allowed is a field named name, class, weight, file, inline, draw, limit",
    ),
];

#[test]
fn what_is_wrong_with_the_file_itself_is_one_line() {
    for &(old, new, message) in WRONG_FILES {
        let found = refused(old, new).replace("draw.\"dumbbell..rtt_ms\"", "draw.dumbbell..rtt_ms");
        assert_eq!(found, message);
    }
}

#[test]
fn two_draws_of_one_field_are_refused() {
    assert_eq!(
        refused("[10, 300] }", "[10, 300], also = [\"flow.0.count\"] }"),
        "d.toml:15: scenario[0].draw.\"flow.0.count\" = flow.0.count: allowed is a field that \
         nothing else draws"
    );
}

#[test]
fn a_trace_without_bounds_or_end_is_refused() {
    for (old, new, message) in [
        (
            "[2, 20] }",
            "[2, 20000] }",
            "d.toml:7: scenario[0].draw.\"dumbbell.bottleneck.trace\".trace.mean_mbps = 20000: allowed is so much that a trace of 30 s has at most 4000000 packets",
        ),
        (
            "seconds = 30",
            "seconds = 1e9",
            "d.toml:7: scenario[0].draw.\"dumbbell.bottleneck.trace\".trace.seconds = 1000000000: allowed is a number in [1, 3600]",
        ),
        (
            "[0.1, 1]",
            "[0.1, 1, 2]",
            "d.toml:7: scenario[0].draw.\"dumbbell.bottleneck.trace\".trace.volatility = [0.1, 1, 2]: allowed is a number, a pair [low, high], or { log_uniform = [low, high] }",
        ),
        (
            "bottleneck.trace\"",
            "bottleneck.rate_mbps\"",
            "d.toml:7: scenario[0].draw.\"dumbbell.bottleneck.rate_mbps\" = \"dumbbell.bottleneck.rate_mbps\": allowed is a path that ends in the field `trace` of a link",
        ),
    ] {
        let text = TRACE.replacen(old, new, 1);
        assert_ne!(text, TRACE);
        let error =
            Distribution::parse(&text, "d.toml", &mut |_, _| Err(String::new())).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn too_many_combinations_of_ends_are_refused() {
    let more =
        (0..10).map(|index| format!("\"flow.0.params.p{index}\" = {{ uniform = [0, 1] }}\n"));
    let mut text = BASE.to_owned() + &more.collect::<Vec<_>>().concat();
    // The list of the second scenario, with one common range: 2 to the 11.
    text += "\"duration_s\" = { uniform = [1, 2] }\n\"flow.0.start_s\" = { uniform = [0, 1] }\n";
    let error = Distribution::parse(&text, "d.toml", &mut |_, _| Err(String::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "d.toml:27: scenario[1].draw = 14 draws: allowed is so few that the ends of ranges and the \
         choices have at most 4096 combinations"
    );
}

#[test]
fn ends_with_very_many_flows_are_refused_before_they_take_minutes() {
    let draws: Vec<String> =
        (0..11).map(|at| format!("\"flow.{at}.start_s\" = {{ uniform = [0, 1] }}\n")).collect();
    let draws = draws.concat();
    let flows = "[[scenario.inline.flow]]\n".repeat(11);
    let text = format!(
        "learners = [\"flow0\"]\n[[scenario]]\nname = \"one\"\n[scenario.draw]\n{draws}\"flow.11.count\" = {{ integer = [1, 9000] }}\n\
         [scenario.inline]\nduration_s = 2\ndumbbell = {{ rtt_ms = 20, bottleneck = {{ rate_mbps = 4 }} }}\n{flows}[[scenario.inline.flow]]\n"
    );
    let mut none = |name: &str, _| Err(format!("no file here: {name}"));
    let error = Distribution::parse(&text, "d.toml", &mut none).expect_err("too many").to_string();
    assert!(error.contains("scenario[0].draw = "), "{error}");
    assert!(error.ends_with("combinations of ends have at most 1000000 flows in all"), "{error}");
}

#[test]
fn a_pattern_fits_as_in_a_shell() {
    for (pattern, name, fit) in [
        ("*", "", true),
        ("*", "any", true),
        ("learner*", "learner", true),
        ("learner*", "learner_3", true),
        ("learner*", "a_learner", false),
        ("*a*b?", "xaybz", true),
        ("*a*b?", "xayb", false),
        ("", "", true),
        ("", "a", false),
        ("a.c", "abc", false),
    ] {
        assert_eq!(fits(pattern, name), fit, "{pattern:?} {name:?}");
    }
}

#[test]
fn limits_in_bdp_follow_the_drawn_rate_and_delay() {
    let drawn = parse(BASE).draw(Seed(4), 0.0).unwrap();
    let rtt_ms = drawn.spec.dumbbell.as_ref().unwrap().rtt_ms.unwrap();
    let QueueSpec::DropTail { bytes: Some(bytes), .. } = bottleneck(&drawn).queue else {
        panic!("a limit in bytes")
    };
    let bdp = Rate::from_mbps(rate(&drawn)).0 as f64 * rtt_ms / 8e3;
    assert!((bytes as f64 - bdp).abs() < 2.0, "{bytes} {bdp}");
}

#[test]
fn a_share_of_a_small_product_still_holds_packets() {
    let text = BASE.replacen("bdp = 1 }", "bdp = 0.01, min_bytes = 6000 }", 1);
    let drawn = parse(&text).draw(Seed(4), 0.0).unwrap();
    let QueueSpec::DropTail { bytes, .. } = bottleneck(&drawn).queue else { panic!("a limit") };
    assert_eq!(bytes, Some(6000));
    let text = BASE.replacen("bdp = 1 }", "packets = 5, min_bytes = 6000 }", 1);
    let error = Distribution::parse(&text, "d.toml", &mut |_, _| Err(String::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "d.toml:11: scenario[0].inline.dumbbell.bottleneck.queue.min_bytes = 6000: allowed is \
         absent without bdp"
    );
}

/// A distribution whose round trip and duration follow from other draws, with these lines before the scenario.
fn dependent(lines: &str) -> String {
    format!(
        "learners = [\"learner\"]\n[draw]\n\"let.rate\" = {{ log_uniform = [1, 200] }}\n\
         \"let.rtt\" = {{ log_uniform = [5, 300], also = [\"dumbbell.rtt_ms\"] }}\n\
         \"dumbbell.bottleneck.rate_mbps\" = {{ product = {{ of = [\"let.rate\"] }} }}\n\
         \"duration_s\" = {{ product = {{ of = [\"let.rtt\"], by = 0.4, within = [6, 60] }} }}\n\
         \"flow.0.start_s\" = {{ product = {{ of = [\"duration_s\"], by = [0, 0.5] }} }}\n{lines}\n\
         [[scenario]]\nname = \"one\"\n[scenario.inline]\nflow = [{{ name = \"learner\" }}]\n\
         dumbbell = {{ bottleneck = {{ queue = {{ kind = \"drop_tail\", packets = 50 }} }} }}\n"
    )
}

const LIMIT: &str = "[[limit]]\nproduct = [\"let.rate\", \"let.rtt\"]\nat_most = 12000";

#[test]
fn a_draw_may_be_the_product_of_others() {
    let distribution = parse(&dependent(""));
    let mut clipped = 0;
    for seed in 0..200 {
        let drawn = distribution.draw(Seed(seed), 0.0).unwrap();
        let rtt_ms = drawn.spec.dumbbell.as_ref().unwrap().rtt_ms.unwrap();
        assert_eq!(drawn.spec.duration_s, (0.4 * rtt_ms).clamp(6.0, 60.0));
        assert!((0.0..=0.5 * drawn.spec.duration_s).contains(&drawn.spec.flow[0].start_s));
        clipped += u32::from(drawn.spec.duration_s == 6.0);
    }
    assert!((20..180).contains(&clipped), "{clipped} of 200 last 6 s");
}

#[test]
fn what_exceeds_a_limit_is_drawn_again_and_nothing_else_is() {
    let (free, limited) = (parse(&dependent("")), parse(&dependent(LIMIT)));
    let product =
        |drawn: &Scenario| rate(drawn) * drawn.spec.dumbbell.as_ref().unwrap().rtt_ms.unwrap();
    let mut kept = 0;
    for seed in 0..300 {
        let one = free.draw(Seed(seed), 0.0).unwrap();
        let other = limited.draw(Seed(seed), 0.0).unwrap();
        assert!(product(&other) <= 12_000.1);
        if product(&one) <= 12_000.0 {
            assert_eq!(one.spec, other.spec);
            kept += 1;
        }
    }
    assert!((150..300).contains(&kept), "{kept} of 300 are within the limit");
}

#[test]
fn steps_are_a_schedule_around_other_draws() {
    let steps = "\"dumbbell.bottleneck.rate_schedule\" = { steps = { of = [\"let.rate\"], \
                 by = { log_uniform = [0.125, 8] }, every_s = [2, 10], seconds = 60, within = [0.5, 400] } }";
    let text = dependent("").replace(
        "\"dumbbell.bottleneck.rate_mbps\" = { product = { of = [\"let.rate\"] } }",
        steps,
    );
    let distribution = parse(&text);
    for seed in 0..50 {
        let drawn = distribution.draw(Seed(seed), 0.0).unwrap();
        let link = &drawn.spec.dumbbell.as_ref().unwrap().bottleneck;
        let steps = link.rate_schedule.as_ref().unwrap();
        assert_eq!(steps[0].0, 0.0);
        assert!((6..=30).contains(&steps.len()), "{} steps in a minute", steps.len());
        for pair in steps.windows(2) {
            assert!((2.0..=10.0).contains(&(pair[1].0 - pair[0].0)));
            let ratio = pair[1].1 / steps[0].1;
            assert!((0.124..=8.01).contains(&ratio) || [0.5, 400.0].contains(&pair[1].1));
        }
    }
    assert!(
        distribution.draw(Seed(1), 0.0).unwrap().spec
            != distribution.draw(Seed(2), 0.0).unwrap().spec
    );
}

#[test]
fn scenarios_share_a_class_or_are_one_each() {
    let text = BASE.replacen("name = \"one\"", "name = \"one\"\nclass = \"easy\"", 1);
    let distribution = parse(&text);
    assert_eq!(distribution.classes(), ["easy", "two"]);
    for (progress, class) in [(0.0, 0), (1.0, 1)] {
        let (drawn, found) = distribution.draw_of_class(Seed(4), progress).unwrap();
        assert_eq!(found, class);
        assert_eq!(drawn.spec, distribution.draw(Seed(4), progress).unwrap().spec);
    }
    let both = text.replacen("name = \"two\"", "name = \"two\"\nclass = \"easy\"", 1);
    assert_eq!(parse(&both).class_of_each(), [0, 0]);
}

#[test]
fn dependent_draws_that_cannot_be_made_are_refused_in_one_line() {
    let told = |old: &str, new: &str| {
        let text = dependent(LIMIT);
        assert!(text.contains(old), "{old}");
        let parsed = Distribution::parse(&text.replacen(old, new, 1), "d.toml", &mut |_, _| {
            Err("no file".to_owned())
        });
        let message = parsed.map(|_| ()).expect_err("bad input").to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    };
    for (old, new, part) in [
        (
            "of = [\"let.rate\"]",
            "of = [\"let.rat\"]",
            "of = let.rat: allowed is paths of other draws",
        ),
        ("of = [\"let.rtt\"]", "of = [\"flow.0.start_s\"]", "that do not depend on this one"),
        ("of = [\"let.rate\"]", "of = []", "allowed is paths of other draws, one or more"),
        ("within = [6, 60]", "within = [60, 6]", "with low at most high"),
        ("at_most = 12000", "at_most = 5", "limit = of 512 draws they keep 0"),
        (
            "product = [\"let.rate\", \"let.rtt\"]",
            "product = [\"let.hop\"]",
            "paths of draws of one number each",
        ),
        ("by = [0, 0.5]", "by = { choice = [] }", "by.choice = []: allowed is one number or more"),
    ] {
        let message = told(old, new);
        assert!(message.contains(part), "{message}");
    }
}
