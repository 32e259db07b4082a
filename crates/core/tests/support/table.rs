//! What the tables of plain and of coupled controllers must hold alike, and the records that both are tried with.
use super::files::files_of;
use ackademy::control::{Ack, FlowInfo, Loss, LossKind, Recovery};
use ackademy::params::{Param, ParamKind, ParamValue, Params};
use ackademy::units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

/// Size of a packet in these tests.
pub const MSS: u64 = 1250;

/// An ordinary flow: full packets of Ethernet, an initial window of ten.
pub fn ordinary_flow() -> FlowInfo {
    FlowInfo {
        mss: Bytes(1500),
        initial_cwnd: Bytes(15_000),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 1,
    }
}

/// Every setting at its default, beside the files.
pub fn defaults(name: &str, params: &'static [Param]) -> Params {
    Params::resolve(params, &files_of(name, params)).expect("defaults are in range")
}

/// The entries of the table of this folder of `src` are its files.
pub fn check_names(folder: &str, names: impl Iterator<Item = &'static str>) {
    let folder = format!("{}/src/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder of sources")
        .filter_map(|entry| entry.expect("a file of it").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| name != "mod")
        .collect();
    files.sort();
    assert_eq!(files, names.collect::<Vec<_>>());
}

/// An entry and each of its settings says what it is, once, and its defaults are in range.
pub fn check_texts(name: &str, [about, source]: [&str; 2], params: &'static [Param]) {
    assert!(!about.is_empty() && !source.is_empty(), "{name}");
    for (index, param) in params.iter().enumerate() {
        assert!(!param.about.is_empty(), "{name}: {}", param.name);
        let repeated = params[..index].iter().any(|other| other.name == param.name);
        assert!(!repeated, "{name}: {} is listed twice", param.name);
    }
    let default = |param: &Param| Some((param.name.to_owned(), param.kind.default()?));
    let mut defaults: Vec<_> = params.iter().filter_map(default).collect();
    defaults.extend(files_of(name, params));
    Params::resolve(params, &defaults).expect("defaults are in range");
}

/// Each setting at each of its ends, the others at their defaults.
pub fn at_every_end(name: &str, params: &'static [Param]) -> Vec<Params> {
    let ends = |param: &Param| match param.kind {
        ParamKind::Number { min, max, .. } => {
            vec![ParamValue::Number(min), ParamValue::Number(max)]
        }
        ParamKind::Choice(words) => {
            words.iter().map(|word| ParamValue::Word((*word).to_owned())).collect()
        }
        ParamKind::File { .. } | ParamKind::Files { .. } => Vec::new(),
    };
    let with = |param: &Param, value| {
        let mut given = files_of(name, params);
        given.push((param.name.to_owned(), value));
        Params::resolve(params, &given).expect("the ends are in range")
    };
    let at_ends = |param| ends(param).into_iter().map(move |value| with(param, value));
    params.iter().flat_map(at_ends).collect()
}

/// Ordinary numbers and the borders of the type.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0_u64..2_000_000_000,
        1 => prop_oneof![Just(0), Just(1), Just(MSS), Just(u64::MAX), Just(u64::MAX / 2)],
        1 => any::<u64>(),
    ]
}

/// Any acknowledgement.
pub fn ack() -> impl Strategy<Value = Ack> {
    let times = (number(), number(), number(), number(), number(), number(), number());
    let amounts = (number(), number(), number(), number(), number());
    let since = (number(), number(), number());
    (times, amounts, since, any::<[bool; 3]>()).prop_map(|(times, amounts, since, flags)| {
        let flags = flags.map(u64::from);
        Ack {
            now: Time(times.0),
            sent_at: Time(times.1),
            rtt: Span(times.2),
            srtt: Span(times.3),
            min_rtt: Span(times.4),
            rtt_max: Span(times.5),
            batch_rtt_min: Span(times.6),
            acked: Bytes(amounts.0),
            ce_marked: Bytes(amounts.1),
            inflight: Bytes(amounts.2),
            prior_inflight: Bytes(amounts.2.saturating_add(amounts.0)),
            delivered: Bytes(amounts.3),
            delivery_rate: Rate(amounts.4),
            tx_inflight: Bytes(since.0),
            delivered_since: Bytes(since.1),
            lost_since: Bytes(since.2),
            app_limited: flags[0],
            recovering: flags[1],
            cwnd_limited: flags[2],
        }
    })
}

/// Any loss.
pub fn loss() -> impl Strategy<Value = Loss> {
    let kind = prop_oneof![
        Just(LossKind::Gap),
        Just(LossKind::More),
        Just(LossKind::Timeout),
        Just(LossKind::Deflate),
        Just(LossKind::Idle),
        Just(LossKind::Spurious),
        Just(LossKind::TimeoutAgain)
    ];
    let times = (number(), number());
    let amounts = (number(), number(), number(), number());
    (times, amounts, any::<bool>(), kind).prop_map(|(times, amounts, limited, kind)| Loss {
        now: Time(times.0),
        sent_at: Time(times.1),
        lost: Bytes(amounts.0),
        inflight: Bytes(amounts.1),
        tx_inflight: Bytes(amounts.2),
        lost_since: Bytes(amounts.3),
        app_limited: u64::from(limited),
        kind,
    })
}
