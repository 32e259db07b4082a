use super::*;

const TABLES: &str = "[observation]\nfeatures = [\"rtt_mean\"]\n[decision]\nevery = \"srtt\"\n\
                      [action]\nmap = \"cwnd_steps\"\n";

/// What is said of the tables with this text in place of another.
fn refused(old: &str, new: &str) -> String {
    assert!(TABLES.contains(old), "{old}");
    PolicySpec::parse(&TABLES.replace(old, new)).expect_err(new).to_string()
}

#[test]
fn what_is_left_out_is_tcp_drincs() {
    let spec = PolicySpec::parse(TABLES).expect("three tables suffice");
    assert_eq!(spec.shape(), (64, 1));
    assert_eq!((spec.choices(), spec.action_size()), (5, 0));
    let steps: Vec<_> =
        spec.action.steps().unwrap().iter().map(|s| (s.factor, s.packets)).collect();
    assert_eq!(steps, [(0.9, 0.0), (1.0, -1.0), (1.0, 0.0), (1.0, 1.0), (1.1, 0.0)]);
    assert_eq!((spec.bounds.cwnd_min_packets, spec.bounds.cwnd_max_packets), (2.0, 2000.0));
    assert!(spec.start.slow_start && spec.start.loss_guard && spec.start.guards_timeouts());
}

#[test]
fn written_tables_read_back() {
    let spec = PolicySpec::parse(TABLES).unwrap();
    let text = toml::to_string(&spec).unwrap();
    assert_eq!(PolicySpec::parse(&text).unwrap(), spec);
}

#[test]
fn an_unknown_feature_is_answered_with_the_known_ones() {
    let message = refused("rtt_mean", "rtt_meen");
    assert!(message.starts_with("line 2: observation.features[0] = \"rtt_meen\": "), "{message}");
    assert!(FEATURES.iter().all(|feature| message.contains(feature.name)), "{message}");
}

#[test]
fn a_value_of_any_length_leaves_room_for_what_is_allowed() {
    let message = refused("rtt_mean", &"y".repeat(50_000));
    let fits = message.chars().count() < crate::policy::ERROR_MAX;
    assert!(fits && FEATURES.iter().all(|feature| message.contains(feature.name)), "{message}");
    let many = ["\"rtt_mean\""; 65].join(", ");
    let message = refused("\"rtt_mean\"", &many);
    assert!(message.chars().count() < 200, "{message}");
    assert!(message.ends_with(": allowed is 1 to 64 names"), "{message}");
}

#[test]
fn what_is_out_of_range_is_named_with_its_line_and_range() {
    for (old, new, message) in [
        (
            "[decision]",
            "history = 257\n[decision]",
            "line 3: observation.history = 257: allowed is a whole number in [1, 256]",
        ),
        (
            "\"srtt\"",
            "\"srtt\"\ntimes = nan",
            "line 5: decision.times = NaN: allowed is a number in [0.01, 100]",
        ),
        (
            "\"srtt\"",
            "\"time\"\nmin_ms = 0.0",
            "line 5: decision.min_ms = 0: allowed is with every = \"time\", a number above 0",
        ),
        (
            "\"cwnd_steps\"",
            "\"cwnd_steps\"\nsteps = [\"+0\", \"*-1\"]",
            "line 7: action.steps[1] = \"*-1\": allowed is *F or /F with F in [0.01, 100], +P or -P \
          with P in [0, 1000] packets",
        ),
        (
            "\"cwnd_steps\"",
            "\"cwnd_factor\"\nscale = 0.0",
            "line 7: action.scale = 0: allowed is a number in [0.000001, 10]",
        ),
        (
            "[action]",
            "[bounds]\ncwnd_min_packets = 9.0\ncwnd_max_packets = 8.0\n[action]",
            "line 7: bounds.cwnd_max_packets = 8: allowed is a number in [9, 1000000]",
        ),
    ] {
        assert_eq!(refused(old, new), message);
    }
}

#[test]
fn an_error_carries_the_path_of_its_field() {
    let error = PolicySpec::parse(&TABLES.replace("\"rtt_mean\"", "\"rtt mean = 3\"")).unwrap_err();
    assert!(error.path.starts_with("observation.features["), "{error:?}");
    assert!(error.line > 0 && error.message().starts_with(&error.path), "{error:?}");
    assert_eq!(error.clone().below("policy").path, format!("policy.{}", error.path));
}

#[test]
fn unknown_fields_and_wrong_kinds_are_one_line() {
    for (old, new, part) in [
        ("[action]", "[action]\nmapp = 1", "mapp"),
        ("\"srtt\"", "\"rtt\"", "srtt"),
        ("[\"rtt_mean\"]", "7", "observation.features"),
        ("[action]", "[action", ""),
    ] {
        let message = refused(old, new);
        assert!(message.contains(part) && !message.contains('\n'), "{message:?}");
    }
}

#[test]
fn steps_are_factors_or_packets_and_nothing_else() {
    for text in ["", "*", "1", "*inf", "+nan", "--1", "+ 1", "*0", "/0", "+1001", "\u{00d7}2"] {
        assert_eq!(step(text), None, "{text:?}");
    }
    assert_eq!(step("/2"), Some(Step { factor: 0.5, packets: 0.0 }));
    assert_eq!(step("-1.5"), Some(Step { factor: 1.0, packets: -1.5 }));
}

#[test]
fn a_time_out_is_guarded_as_a_loss_unless_it_says_otherwise() {
    let start = |text: &str| PolicySpec::parse(&format!("{TABLES}[start]\n{text}")).unwrap().start;
    assert!(!start("loss_guard = false").guards_timeouts());
    assert!(start("loss_guard = false\ntimeout_guard = true").guards_timeouts());
}
