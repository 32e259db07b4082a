use super::*;
use proptest::prelude::*;

const MS10: Layout =
    Layout { times: Times::Every(Span(10_000_000)), column: None, scale: 1.0, max: 1e6 };

const TABLE: Layout =
    Layout { times: Times::Column("t"), column: Some("rate"), scale: 1e-3, max: 1e6 };

fn rates(text: &[u8], layout: &Layout) -> Vec<(u64, f64)> {
    let steps = parse(text, "f", layout, Rate).unwrap();
    let pairs = steps.steps().iter().map(|(at, rate)| (at.0 / 1_000_000, rate.as_mbps()));
    pairs.collect()
}

fn refused(text: &[u8], layout: &Layout) -> String {
    parse(text, "f", layout, Rate).unwrap_err().to_string()
}

#[test]
fn a_line_is_a_value_for_an_interval_and_the_file_repeats() {
    let text = b"\xef\xbb\xbf1.5\r\n0\r\n2e1\r\n";
    assert_eq!(rates(text, &MS10), [(0, 1.5), (10, 0.0), (20, 20.0)]);
    let steps = parse(text, "f", &MS10, Rate).unwrap();
    assert_eq!(steps.period(), Some(Span::from_millis(30)));
}

#[test]
fn a_table_has_its_columns_by_name_or_number_in_any_separation() {
    for text in [
        "t,name,rate\n100,\"a, b\",3000\n102.5,,4000\n",
        "t;rate\n100;3000\n102.5;4000",
        "rate\tt\n3000\t100\n4000\t102.5\n",
        "\"t\" \"x\" \"rate\"\n100 7 3000\n102.5   8 4000\n",
    ] {
        let text = text.replace("\"t\" \"x\" \"rate\"", "t x rate");
        assert_eq!(rates(text.as_bytes(), &TABLE), [(0, 3.0), (2500, 4.0)], "{text}");
    }
    let numbered = Layout { times: Times::Column("1"), column: Some("2"), ..TABLE };
    assert_eq!(rates(b"100 3000\n102.5 4000\n", &numbered), [(0, 3.0), (2500, 4.0)]);
    let steps = parse(b"100 3000\n102.5 4000\n", "f", &numbered, Rate).unwrap();
    assert_eq!(
        steps.period(),
        Some(Span::from_millis(5000)),
        "the last holds as long as the one before"
    );
}

#[test]
fn every_kind_of_bad_line_is_named_with_what_is_allowed() {
    for (text, message) in [
        ("", "f:1: found \"\"; allowed: a number in [0, 1000000]"),
        ("1\n\n2\n", "f:2: found \"\"; allowed: a number in [0, 1000000]"),
        ("1\n-2\n", "f:2: found \"-2\"; allowed: a number in [0, 1000000]"),
        ("1\nNaN\n", "f:2: found \"NaN\"; allowed: a number in [0, 1000000]"),
        ("inf\n", "f:1: found \"inf\"; allowed: a number in [0, 1000000]"),
        ("1 2\n", "f:1: found \"1 2\"; allowed: a number in [0, 1000000]"),
    ] {
        assert_eq!(refused(text.as_bytes(), &MS10), message);
    }
    for (text, message) in [
        ("", "f:1: found \"\"; allowed: a first line that names the column rate"),
        ("t,rate\n", "f:1: found \"\"; allowed: at least one line"),
        (
            "t,rate\n1,2\n1,3\n",
            "f:3: found \"1\"; allowed: a second above that of the line before, at most 100000000 after the first",
        ),
        (
            "t,rate\n5,2\n4,3\n",
            "f:3: found \"4\"; allowed: a second above that of the line before, at most 100000000 after the first",
        ),
        (
            "t,rate\n0,2\n1e300,3\n",
            "f:3: found \"1e300\"; allowed: a second above that of the line before, at most 100000000 after the first",
        ),
        ("t,rate\nx,2\n", "f:2: found \"x\"; allowed: a number of seconds"),
        ("t,rate\n1\n", "f:2: found \"1\"; allowed: a line of 2 fields or more"),
        ("t,rate\n1,-4\n", "f:2: found \"-4\"; allowed: a number in [0, 1000000000]"),
    ] {
        assert_eq!(refused(text.as_bytes(), &TABLE), message);
    }
    let latin = refused(b"1\n\xff\xfe\n", &MS10);
    assert!(latin.ends_with("allowed: UTF-8 text"), "{latin}");
}

#[test]
fn a_file_of_too_many_values_is_refused() {
    let text = "1\n".repeat(MAX_VALUES + 1);
    let message = refused(text.as_bytes(), &MS10);
    assert_eq!(message, "f:4000001: found \"1\"; allowed: at most 4000000 values");
}

/// What parses survives its own text; what does not is refused in one short line.
fn check(text: &[u8], layout: &Layout) {
    match parse(text, "input", layout, Rate) {
        Ok(steps) => {
            let again = Recorded::Rates(steps).to_text();
            let own =
                Layout { times: Times::Column("1"), column: Some("2"), scale: 1.0, ..*layout };
            let read = parse(again.as_bytes(), "again", &own, Rate).unwrap();
            assert_eq!(Recorded::Rates(read).to_text(), again);
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("input:") && message.len() < 400, "{message}");
            assert!(!message.contains(|char: char| char.is_control()), "{message}");
        }
    }
}

proptest! {
    #[test]
    fn every_input_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes, &MS10);
        check(&bytes, &TABLE);
    }

    #[test]
    fn a_damaged_table_is_read_or_refused(
        rows in prop::collection::vec((0_u32..4, 0.0_f64..2e9), 1..30),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut second = 0;
        let lines = rows.iter().map(|(step, value)| {
            second += step;
            format!("{second},{value}\n")
        });
        let mut text = format!("t,rate\n{}", lines.collect::<String>()).into_bytes();
        for (place, byte) in damage {
            let place = place.index(text.len());
            text[place] = byte;
        }
        check(&text, &TABLE);
    }

    #[test]
    fn times_and_values_survive_the_text_to_the_bit(
        values in prop::collection::vec((1_u64..1 << 40, 0_u64..1_000_000_000_000), 2..20),
    ) {
        let mut at = 0;
        let steps = values.iter().enumerate().map(|(index, &(gap, value))| {
            at += if index == 0 { 0 } else { gap };
            (Time(at), Rate(value))
        });
        let steps: Vec<_> = steps.collect();
        let [.., before, last] = steps.as_slice() else { unreachable!() };
        let period = Span(2 * last.0.0 - before.0.0);
        let recorded = Recorded::Rates(Steps::repeating(steps, period).unwrap());
        let own = Layout { times: Times::Column("1"), column: Some("2"), ..MS10 };
        let read = parse(recorded.to_text().as_bytes(), "f", &own, Rate).unwrap();
        prop_assert_eq!(Recorded::Rates(read), recorded);
    }
}
