use super::*;
use crate::policy::grown::Arrays;
use crate::policy::safetensors::Tensors;
use crate::policy::written::{self, TensorFile};
use crate::rng::Rng;

const LINEAR: Activation = Activation::Linear;

fn dense(units: u64, activation: Activation) -> LayerSpec {
    LayerSpec::Dense { units, activation }
}

fn file(tensors: &[(&str, &[usize], &[f32])]) -> TensorFile {
    let mut file = TensorFile::default();
    for (name, shape, numbers) in tensors {
        file.add(name, shape, numbers);
    }
    file
}

fn read(
    layers: &[LayerSpec],
    (steps, width): (usize, usize),
    file: &TensorFile,
) -> Result<Network, String> {
    let bytes = file.to_bytes();
    let tensors = Tensors::read(&bytes)?;
    Network::read(layers, Shape { steps, width }, &tensors).map_err(|fault| match fault {
        Fault::Layers(error) => error.message(),
        Fault::Tensors(text) => text,
    })
}

fn outputs(network: &Network, x: &[f32]) -> Vec<f32> {
    network.evaluate(x, &mut network.scratch()).to_vec()
}

#[track_caller]
fn close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
}

#[test]
fn a_dense_layer_is_an_affine_map_of_each_vector() {
    let file = file(&[("layers.0.kernel", &[2, 1], &[3.0, -1.0]), ("layers.0.bias", &[1], &[0.5])]);
    let relu = [dense(1, Activation::Relu), LayerSpec::Flatten {}];
    let network = read(&relu, (3, 2), &file).unwrap();
    close(&outputs(&network, &[1.0, 1.0, 0.0, 2.0, 2.0, 0.0]), &[2.5, 0.0, 6.5]);
}

/// Kernel [size, 1, 1] over 1, 2, 3, 4, 5.
fn convolved(size: usize, padding: Padding, kernel: &[f32]) -> Vec<f32> {
    let file = file(&[("layers.0.kernel", &[size, 1, 1], kernel), ("layers.0.bias", &[1], &[0.0])]);
    let conv = LayerSpec::Conv1d { filters: 1, kernel: size as u64, padding, activation: LINEAR };
    let network = read(&[conv, LayerSpec::Flatten {}], (5, 1), &file).unwrap();
    outputs(&network, &[1.0, 2.0, 3.0, 4.0, 5.0])
}

#[test]
fn a_convolution_slides_along_time() {
    close(&convolved(2, Padding::Valid, &[10.0, 1.0]), &[12.0, 23.0, 34.0, 45.0]);
    close(&convolved(3, Padding::Same, &[100.0, 10.0, 1.0]), &[12.0, 123.0, 234.0, 345.0, 450.0]);
}

#[test]
fn of_an_odd_number_of_zeros_the_greater_half_stands_behind() {
    close(&convolved(2, Padding::Same, &[10.0, 1.0]), &[12.0, 23.0, 34.0, 45.0, 50.0]);
}

#[test]
fn a_window_may_be_longer_than_the_series() {
    let mut kernel = [0.0; 12];
    kernel[5] = 1.0; // five before, six behind: the middle is the step itself
    close(&convolved(12, Padding::Same, &kernel), &[1.0, 2.0, 3.0, 4.0, 5.0]);
    kernel = [1.0; 12];
    close(&convolved(12, Padding::Same, &kernel), &[15.0; 5]);
}

#[test]
fn a_pool_takes_the_largest_of_its_neighbours_and_leaves_the_rest() {
    let layers = [LayerSpec::MaxPool { size: 2 }, LayerSpec::Flatten {}];
    let network = read(&layers, (5, 2), &TensorFile::default()).unwrap();
    let x = [1.0, 9.0, 2.0, 8.0, -3.0, -1.0, -4.0, -5.0, 99.0, 99.0];
    close(&outputs(&network, &x), &[2.0, 9.0, -3.0, -1.0]);
}

fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// Weights are told apart by their place: each gate has its own.
#[test]
fn an_lstm_has_the_gates_i_f_g_o() {
    let file = file(&[
        ("layers.0.kernel", &[1, 4], &[0.1, 0.2, 0.3, 0.4]),
        ("layers.0.recurrent", &[1, 4], &[0.5, 0.6, 0.7, 0.8]),
        ("layers.0.bias", &[4], &[0.01, 0.02, 0.03, 0.04]),
    ]);
    let (mut h, mut c) = (0.0_f32, 0.0_f32);
    let mut states = Vec::new();
    for x in [1.0_f32, -2.0, 3.0] {
        let [input, forget, new, output] = std::array::from_fn(|gate| {
            let step = gate as f32;
            x * (0.1 + 0.1 * step) + h * (0.5 + 0.1 * step) + 0.01 + 0.01 * step
        });
        c = logistic(forget) * c + logistic(input) * libm::tanhf(new);
        h = logistic(output) * libm::tanhf(c);
        states.push(h);
    }
    let last = LayerSpec::Lstm { units: 1, returns: Returns::Last };
    let all = LayerSpec::Lstm { units: 1, returns: Returns::All };
    close(&outputs(&read(&[last], (3, 1), &file).unwrap(), &[1.0, -2.0, 3.0]), &states[2..]);
    let network = read(&[all, LayerSpec::Flatten {}], (3, 1), &file).unwrap();
    close(&outputs(&network, &[1.0, -2.0, 3.0]), &states);
}

#[test]
fn a_gru_has_the_gates_r_z_n_with_a_bias_inside_the_reset() {
    let file = file(&[
        ("layers.0.kernel", &[1, 3], &[0.1, 0.2, 0.3]),
        ("layers.0.recurrent", &[1, 3], &[0.5, 0.6, 0.7]),
        ("layers.0.bias", &[3], &[0.01, 0.02, 0.03]),
        ("layers.0.recurrent_bias", &[1], &[0.9]),
    ]);
    let mut h = 0.0_f32;
    for x in [1.0_f32, -2.0, 3.0] {
        let r = logistic(0.1 * x + 0.5 * h + 0.01);
        let z = logistic(0.2 * x + 0.6 * h + 0.02);
        let n = libm::tanhf(0.3 * x + 0.03 + r * (0.7 * h + 0.9));
        h = (1.0 - z) * n + z * h;
    }
    let gru = LayerSpec::Gru { units: 1, returns: Returns::Last };
    close(&outputs(&read(&[gru], (3, 1), &file).unwrap(), &[1.0, -2.0, 3.0]), &[h]);
}

/// A forest that splits one of two numbers at 0.5 into outputs 0.25 and 1.
fn trees() -> (LayerSpec, Vec<u8>) {
    let stump = |feature| Arrays {
        root: vec![0],
        feature: vec![feature, 255, 255],
        threshold: vec![0.5, 0.0, 0.0],
        child: vec![1, 0, 0],
        value: vec![0.0, 0.25, 1.0],
    };
    let mut file = TensorFile::default();
    for (output, arrays) in [stump(0), stump(1)].iter().enumerate() {
        let name = |part: &str| format!("layers.0.{output}.{part}");
        let wide =
            |numbers: &[u32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
        file.add_bytes(&name("root"), ("U32", &[1]), &wide(&arrays.root));
        file.add_bytes(&name("child"), ("U32", &[3]), &wide(&arrays.child));
        file.add(&name("threshold"), &[3], &arrays.threshold);
        file.add(&name("value"), &[3], &arrays.value);
        file.add_bytes(&name("feature"), ("U8", &[3]), &arrays.feature);
    }
    (LayerSpec::Trees { outputs: 2, low: -1.0, high: 3.0 }, file.to_bytes())
}

#[test]
fn each_output_has_its_forest() {
    let (layer, bytes) = trees();
    let tensors = Tensors::read(&bytes).unwrap();
    let network = Network::read(&[layer], Shape { steps: 2, width: 1 }, &tensors).unwrap();
    close(&outputs(&network, &[0.0, 1.0]), &[0.0, 3.0]);
    close(&outputs(&network, &[1.0, 0.0]), &[3.0, 0.0]);
    assert!(outputs(&network, &[1.0, f32::NAN]).iter().all(|output| output.is_nan()));
}

fn drinc() -> Vec<LayerSpec> {
    let conv = |filters, kernel| LayerSpec::Conv1d {
        filters,
        kernel,
        padding: Padding::Same,
        activation: Activation::Relu,
    };
    vec![
        conv(32, 5),
        LayerSpec::MaxPool { size: 2 },
        conv(64, 3),
        LayerSpec::MaxPool { size: 2 },
        dense(32, Activation::Relu),
        LayerSpec::Lstm { units: 64, returns: Returns::Last },
        dense(5, LINEAR),
    ]
}

fn drinc_network() -> Network {
    let mut rng = Rng::new(7);
    let tensors = written::drinc();
    let tensors: Vec<(&str, &[usize])> =
        tensors.iter().map(|(name, shape)| (*name, &shape[..])).collect();
    let bytes = written::random(&tensors, &mut || rng.uniform());
    let tensors = Tensors::read(&bytes).unwrap();
    Network::read(&drinc(), Shape { steps: 64, width: 5 }, &tensors).unwrap()
}

fn observation(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..count).map(|_| rng.uniform_in(-1.0, 1.0) as f32).collect()
}

#[test]
fn an_evaluation_leaves_no_trace_in_the_next() {
    let network = drinc_network();
    let (first, second) = (observation(1, 320), observation(2, 320));
    let mut scratch = network.scratch();
    let fresh = network.evaluate(&first, &mut scratch).to_vec();
    assert_ne!(network.evaluate(&second, &mut scratch), fresh);
    network.evaluate(&[f32::NAN; 320], &mut scratch);
    assert_eq!(network.evaluate(&first, &mut scratch), fresh);
}

/// Products, sums and the functions between them are exact to the bit wherever they run; a change
/// here changes every result of every policy.
#[test]
fn the_bits_are_the_same_everywhere() {
    let network = drinc_network();
    let bits: Vec<u32> =
        outputs(&network, &observation(1, 320)).iter().map(|output| output.to_bits()).collect();
    assert_eq!(bits, GOLDEN_BITS);
}

const GOLDEN_BITS: [u32; 5] =
    [1_050_383_744, 3_172_336_938, 1_039_486_851, 3_206_486_917, 1_045_113_714];

#[test]
fn what_is_no_number_reaches_the_outputs() {
    let network = drinc_network();
    for place in [0, 100, 319] {
        for wrong in [f32::NAN, f32::INFINITY] {
            let mut x = observation(1, 320);
            x[place] = wrong;
            assert!(outputs(&network, &x).iter().any(|output| !output.is_finite()), "{place}");
        }
    }
}

/// One dense layer of two units over three numbers.
fn small() -> TensorFile {
    file(&[("layers.0.kernel", &[3, 2], &[0.0; 6]), ("layers.0.bias", &[2], &[0.0; 2])])
}

#[test]
fn a_layer_out_of_bounds_is_refused_before_its_tensors_are_looked_at() {
    let refused = |layer| read(&[layer], (4, 3), &TensorFile::default()).unwrap_err();
    let units = "allowed is a whole number in [1, 4096]";
    assert_eq!(refused(dense(0, LINEAR)), format!("layers[0].units = 0: {units}"));
    assert_eq!(
        refused(dense(1_000_000_000, LINEAR)),
        format!("layers[0].units = 1000000000: {units}")
    );
    let lstm = LayerSpec::Lstm { units: u64::MAX, returns: Returns::All };
    assert_eq!(refused(lstm), format!("layers[0].units = 18446744073709551615: {units}"));
    assert_eq!(
        refused(LayerSpec::MaxPool { size: 5 }),
        "layers[0].size = 5: allowed is a whole number in [1, 4]"
    );
    let conv =
        |kernel, padding| LayerSpec::Conv1d { filters: 1, kernel, padding, activation: LINEAR };
    assert_eq!(
        refused(conv(5, Padding::Valid)),
        "layers[0].kernel = 5: allowed is a whole number in [1, 4]"
    );
    assert_eq!(
        refused(conv(u64::MAX, Padding::Same)),
        "layers[0].kernel = 18446744073709551615: allowed is a whole number in [1, 262144]"
    );
    let trees = |low, high| LayerSpec::Trees { outputs: 1, low, high };
    assert_eq!(
        refused(trees(1.0, 1.0)),
        "layers[0].high = 1: allowed is a finite number above `low`"
    );
    assert_eq!(refused(trees(f32::NAN, 1.0)), "layers[0].low = NaN: allowed is a finite number");
    assert_eq!(
        read(&[trees(0.0, 1.0)], (64, 4), &TensorFile::default()).unwrap_err(),
        "layers[0].kind = trees over 256 numbers: allowed is at most 255"
    );
}

#[test]
fn a_network_out_of_bounds_is_refused() {
    let refused =
        |layers: &[LayerSpec], shape| read(layers, shape, &TensorFile::default()).unwrap_err();
    assert_eq!(refused(&[], (1, 3)), "layers = 0 of them: allowed is 1 to 64");
    let flatten = vec![LayerSpec::Flatten {}; 65];
    assert_eq!(refused(&flatten, (1, 3)), "layers = 65 of them: allowed is 1 to 64");
    assert_eq!(
        refused(&[dense(4096, LINEAR)], (256, 3)),
        "layers[0].outputs = 1048576 numbers: allowed is at most 262144"
    );
    assert_eq!(
        refused(&[LayerSpec::MaxPool { size: 1 }], (2, 3)),
        "layers give 2 vectors: allowed is one, as `flatten` or a recurrent layer that returns \
         `last` gives"
    );
}

#[test]
fn gates_that_need_too_much_room_are_refused() {
    let lstm = LayerSpec::Lstm { units: 512, returns: Returns::Last };
    let file = file(&[
        ("layers.0.kernel", &[1, 2048], &[0.0; 2048]),
        ("layers.0.recurrent", &[512, 2048], &vec![0.0; 512 * 2048]),
        ("layers.0.bias", &[2048], &[0.0; 2048]),
    ]);
    assert!(read(std::slice::from_ref(&lstm), (100, 1), &file).is_ok());
    assert_eq!(
        read(&[lstm], (200, 1), &file).unwrap_err(),
        "layers[0] needs 412672 numbers for its gates: allowed is at most 262144"
    );
}

#[test]
fn weights_that_are_many_only_in_memory_are_refused() {
    // A file of 16 MiB whose every weight would take the place of 16.
    let convs: Vec<LayerSpec> = (0..5)
        .map(|_| LayerSpec::Conv1d {
            filters: 1,
            kernel: 262_144,
            padding: Padding::Same,
            activation: LINEAR,
        })
        .collect();
    let mut file = TensorFile::default();
    for index in 0..5 {
        file.add(&format!("layers.{index}.kernel"), &[262_144, 1, 1], &vec![0.0; 262_144]);
        file.add(&format!("layers.{index}.bias"), &[1], &[0.0]);
    }
    assert!(read(&convs[..4], (1, 1), &file).unwrap_err().contains("left over"));
    assert_eq!(
        read(&convs, (1, 1), &file).unwrap_err(),
        "layers have 20971520 weights in memory: allowed is at most 16777216"
    );
}

#[test]
fn a_tensor_that_is_absent_or_of_another_shape_is_refused() {
    let refused = |layer, shape| read(&[layer], shape, &small()).unwrap_err();
    assert_eq!(
        refused(dense(2, LINEAR), (1, 4)),
        "shape of `layers.0.kernel` = [3, 2]: allowed is [4, 2]"
    );
    assert_eq!(
        refused(dense(3, LINEAR), (1, 3)),
        "shape of `layers.0.kernel` = [3, 2]: allowed is [3, 3]"
    );
    assert_eq!(
        refused(LayerSpec::Lstm { units: 2, returns: Returns::Last }, (1, 3)),
        "shape of `layers.0.kernel` = [3, 2]: allowed is [3, 8]"
    );
    let absent = read(&[LayerSpec::Flatten {}, dense(2, LINEAR)], (1, 3), &small()).unwrap_err();
    assert_eq!(absent, "`layers.1.kernel` = absent: allowed is an F32 tensor of shape [3, 2]");
}

#[test]
fn a_tensor_of_another_type_or_not_finite_is_refused() {
    let with = |dtype: &str, bytes: &[u8]| {
        let mut file = file(&[("layers.0.kernel", &[3, 2], &[0.0; 6])]);
        file.add_bytes("layers.0.bias", (dtype, &[2]), bytes);
        read(&[dense(2, LINEAR)], (1, 3), &file).unwrap_err()
    };
    assert_eq!(with("F16", &[0; 4]), "dtype of `layers.0.bias` = \"F16\": allowed is \"F32\"");
    let nan = [0.0_f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat();
    assert_eq!(with("F32", &nan), "`layers.0.bias`[1] = NaN: allowed is a finite number");
    let infinite = [f32::NEG_INFINITY.to_le_bytes(), [0; 4]].concat();
    assert_eq!(with("F32", &infinite), "`layers.0.bias`[0] = -inf: allowed is a finite number");
}

#[test]
fn a_tensor_that_no_layer_wants_is_refused() {
    let mut file = small();
    file.add("layers.1.bias", &[2], &[0.0; 2]);
    assert_eq!(
        read(&[dense(2, LINEAR)], (1, 3), &file).unwrap_err(),
        "tensor \"layers.1.bias\" is left over: allowed are those of the layers"
    );
}

#[test]
fn a_tensor_that_is_there_twice_is_refused() {
    let mut file = small();
    file.add("layers.0.bias", &[2], &[1.0; 2]);
    assert_eq!(
        read(&[dense(2, LINEAR)], (1, 3), &file).unwrap_err(),
        "name \"layers.0.bias\" = twice: allowed is once"
    );
}

/// Overlapping tensors would let a small file stand for a large network.
#[test]
fn tensors_that_overlap_or_leave_a_gap_are_refused() {
    let refused = |bias: &str, data: usize| {
        let header = format!(
            r#"{{"layers.0.kernel":{{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}},
                "layers.0.bias":{{"dtype":"F32","shape":[2],"data_offsets":{bias}}}}}"#
        );
        let bytes =
            [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; data]].concat();
        let tensors = Tensors::read(&bytes).unwrap();
        match Network::read(&[dense(2, LINEAR)], Shape { steps: 1, width: 3 }, &tensors) {
            Err(Fault::Tensors(fault)) => fault,
            other => panic!("{other:?}"),
        }
    };
    let at = "allowed is a start at 24, where the tensor before it ends";
    assert_eq!(refused("[16,24]", 24), format!("data_offsets of `layers.0.bias` = (16, 24): {at}"));
    assert_eq!(refused("[28,36]", 36), format!("data_offsets of `layers.0.bias` = (28, 36): {at}"));
    assert_eq!(refused("[24,32]", 33), "tensors end at 32: allowed is 33, where the file ends");
    assert_eq!(refused("[24,32]", 30), "tensors end at 32: allowed is 30, where the file ends");
}

#[test]
fn a_slope_or_an_epsilon_beyond_its_bounds_is_refused() {
    let tensors =
        file(&[("layers.0.kernel", &[2, 1], &[3.0, -1.0]), ("layers.0.bias", &[1], &[0.5])]);
    for (spec, told) in [
        (dense(1, Activation::LeakyRelu { slope: 1.5 }), "activation.slope = 1.5: allowed is"),
        (dense(1, Activation::LeakyRelu { slope: f32::NAN }), "activation.slope = NaN: allowed"),
        (LayerSpec::LayerNorm { epsilon: 0.0, activation: LINEAR }, "epsilon = 0: allowed is"),
    ] {
        let fault = read(&[spec], (1, 2), &tensors).unwrap_err();
        assert!(fault.contains(told), "{fault}");
    }
}
