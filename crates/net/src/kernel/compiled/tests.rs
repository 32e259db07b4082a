use super::*;
use ackademy::rng::Rng;
use std::fmt::Write as _;
use written::random;

#[path = "../../../../core/tests/support/network.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod written;

/// A layer as it is written, and the shape of its weights.
type Written<'a> = (&'a str, &'a [usize]);

/// A policy with these layers after a `flatten`, of 4 x 2 observed numbers; weights are drawn.
fn policy(layers: &[Written<'_>]) -> Policy {
    let mut text = "format = 1\nabout = \"drawn\"\n\
        observation = { features = [\"queue\", \"drain\"], history = 4 }\n\
        decision = { every = \"srtt\" }\naction = { map = \"rate_and_cwnd\" }\n\
        layers = [{ kind = \"flatten\" },"
        .to_owned();
    let mut shapes = Vec::new();
    for (index, (layer, shape)) in layers.iter().enumerate() {
        let _ = write!(text, " {layer},");
        shapes.push((format!("layers.{}.kernel", index + 1), shape.to_vec()));
        shapes.push((format!("layers.{}.bias", index + 1), vec![shape[shape.len() - 1]]));
    }
    text += "]\n";
    let mut rng = Rng::new(7);
    let tensors: Vec<(&str, &[usize])> =
        shapes.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
    let weights = random(&tensors, &mut || rng.uniform());
    Policy::read(&[text.into_bytes(), weights]).expect("a policy")
}

fn dense(units: usize, activation: &str) -> String {
    format!("{{ kind = \"dense\", units = {units}, activation = {activation:?} }}")
}

fn refused(layers: &[Written<'_>]) -> String {
    Compiled::network_of(&policy(layers)).expect_err("it cannot be compiled")
}

#[test]
fn weights_lie_two_to_a_word_behind_the_biases_of_their_group() {
    let layer = dense(2, "linear");
    let policy = policy(&[(&layer, &[8, 2])]);
    let compiled = Compiled::network_of(&policy).expect("dense");
    let layers = policy.network().dense_layers().expect("dense");
    let Layer { inputs, units, shift, first, .. } = compiled.head.layers[0];
    assert_eq!((compiled.head.count, inputs, units, first), (1, 8, 8, 0));
    let halves = |word: u64| [word as i32, ((word as i64 - i64::from(word as i32)) >> 32) as i32];
    let one = f64::from(1 << shift);
    for input in 0..8 {
        let [low, high] = halves(compiled.words[(input + 1) * GROUP_WORDS]);
        for (unit, own) in [low, high].into_iter().enumerate() {
            let exact = f64::from(layers[0].weight(input, unit)) * one;
            assert!((f64::from(own) - exact).abs() <= 0.5, "{input} {unit}: {own} {exact}");
        }
    }
    let bias = halves(compiled.words[0]);
    let exact = f64::from(layers[0].bias()[1]) * one * f64::from(1 << POINT);
    assert!((f64::from(bias[1]) - exact).abs() <= 0.5, "{bias:?} {exact}");
    assert!(compiled.words[9 * GROUP_WORDS..].iter().all(|word| *word == 0));
}

#[test]
fn what_the_kernel_cannot_evaluate_is_refused_in_one_line() {
    let (wide, two) = (dense(128, "relu"), dense(2, "linear"));
    let (sigmoid, wider) = (dense(2, "sigmoid"), dense(136, "tanh"));
    let leaky = "{ kind = \"leaky_relu\", slope = 0.2 }";
    let leaky = format!("{{ kind = \"dense\", units = 2, activation = {leaky} }}");
    let cases: [(Vec<Written<'_>>, &str); 5] = [
        (vec![(&leaky, &[8, 2])], "layer 0 has the activation `leaky_relu`"),
        (vec![(&sigmoid, &[8, 2])], "layer 0 has the activation `sigmoid`"),
        (vec![(&wider, &[8, 136]), (&two, &[136, 2])], "layer 0 is 8 x 136"),
        (
            vec![(&wide, &[8, 128]), (&wide, &[128, 128]), (&two, &[128, 2])],
            "layer 1 brings the weights to 17664",
        ),
        (
            vec![
                (&two, &[8, 2]),
                (&two, &[2, 2]),
                (&two, &[2, 2]),
                (&two, &[2, 2]),
                (&two, &[2, 2]),
            ],
            "5 dense layers: the kernel evaluates up to 4",
        ),
    ];
    for (layers, wanted) in cases {
        let said = refused(&layers);
        assert!(said.starts_with(wanted) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_policy_over_another_law_or_power_of_the_rate_is_refused_in_one_line() {
    let compiled = |action: &str| {
        let text = format!(
            "format = 1\nabout = \"drawn\"\nobservation = {{ features = [\"queue\"], history = 1 }}\n\
             decision = {{ every = \"srtt\" }}\naction = {{ {action} }}\n\
             start = {{ slow_start = false, loss_guard = false }}\n\
             layers = [{{ kind = \"flatten\" }}, {}]\n",
            dense(2, "tanh")
        );
        let shapes: [(&str, &[usize]); 2] = [("layers.1.kernel", &[1, 2]), ("layers.1.bias", &[2])];
        let mut rng = Rng::new(7);
        let weights = random(&shapes, &mut || rng.uniform());
        Compiled::policy(&Policy::read(&[text.into_bytes(), weights]).expect("a policy"))
    };
    assert!(compiled("map = \"own_queue\"").is_ok());
    assert!(compiled("map = \"own_queue\", exponent = 0.5").is_ok());
    let said = compiled("map = \"own_queue\", exponent = 0.0").expect_err("a constant target");
    assert_eq!(said, "exponent = 0: in the kernel it is 0.5");
    let said = compiled("map = \"own_queue_paced\"").expect_err("another map");
    assert_eq!(
        said,
        "action.map = \"own_queue_paced\": in the kernel there is \"own_queue\" alone"
    );
}

#[test]
fn a_layer_whose_sums_leave_their_half_of_a_word_is_refused() {
    let policy = policy(&[(&dense(2, "linear"), &[8, 2])]);
    let compiled = |size: f64| Compiled::of_network(policy.network(), &[size; 8]);
    assert!(compiled(10.0).is_ok());
    let said = compiled(1e4).expect_err("sums of more than 512");
    assert!(said.starts_with("layer 0 has sums up to"), "{said}");
}

#[test]
fn layers_that_are_not_dense_are_refused() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/policies/tcp_drinc/");
    let files = ackademy::policy::FILES.iter();
    let files = files.map(|name| std::fs::read(format!("{root}{name}")).expect("in the project"));
    let policy = Policy::read(&files.collect::<Vec<_>>()).expect("a policy");
    let said = Compiled::network_of(&policy).expect_err("a convolution");
    assert!(said.starts_with("layer 0 is not dense over one vector"), "{said}");
}
