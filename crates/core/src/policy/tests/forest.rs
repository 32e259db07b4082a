use super::*;
use crate::policy::grown::Arrays;
use crate::rng::Rng;
use proptest::prelude::*;

const FEATURES: usize = 6;

fn grown(seed: u64, trees: usize, nodes: usize) -> Arrays {
    let mut rng = Rng::new(seed);
    Arrays::grow(trees, nodes, FEATURES, &mut || rng.uniform())
}

fn read(arrays: &Arrays) -> Result<Forest, String> {
    Forest::read(&Tensors::read(&arrays.to_bytes(&[])).unwrap(), FEATURES)
}

/// The mean by the words of the format.
fn mean(arrays: &Arrays, x: &[f32]) -> f64 {
    let output = |&root: &u32| {
        let mut node = root as usize;
        while arrays.feature[node] != 255 {
            let right = x[arrays.feature[node] as usize] > arrays.threshold[node];
            node = arrays.child[node] as usize + usize::from(right);
        }
        f64::from(arrays.value[node])
    };
    arrays.root.iter().map(output).sum::<f64>() / arrays.root.len() as f64
}

/// A root that splits number 1 at 0.5 into outputs 0.25 and 1.
fn stump() -> Arrays {
    Arrays {
        root: vec![0],
        feature: vec![1, 255, 255],
        threshold: vec![0.5, 0.0, 0.0],
        child: vec![1, 0, 0],
        value: vec![0.0, 0.25, 1.0],
    }
}

#[test]
fn a_number_equal_to_the_threshold_goes_left() {
    let forest = read(&stump()).unwrap();
    let at = |value: f32| forest.mean(&[9.0, value, 9.0, 9.0, 9.0, 9.0]);
    assert!((at(0.5) - 0.25).abs() < 1e-9);
    assert!((at(0.5_f32.next_up()) - 1.0).abs() < 1e-9);
}

#[test]
fn a_mean_equal_to_the_threshold_reaches_it() {
    let forest = read(&stump()).unwrap();
    let x = [0.0; FEATURES];
    assert!(forest.reaches(&x, forest.bar(0.25)));
    assert!(!forest.reaches(&x, forest.bar(0.25_f64.next_up())));
    assert!(forest.reaches(&x, forest.bar(0.0)));
    assert!(!forest.reaches(&x, forest.bar(1.0)));
}

proptest! {
    #[test]
    fn the_mean_is_that_of_the_format_s_words(seed: u64, trees in 1_usize..40, half in 0_usize..60) {
        let arrays = grown(seed, trees, 2 * half + 1);
        let forest = read(&arrays).unwrap();
        let mut rng = Rng::new(seed);
        for _ in 0..20 {
            let x: [f32; FEATURES] = std::array::from_fn(|_| rng.uniform() as f32);
            prop_assert!((forest.mean(&x) - mean(&arrays, &x)).abs() < 1e-9);
        }
    }

    #[test]
    fn to_reach_a_threshold_is_to_have_a_mean_at_least_as_large(
        seed: u64,
        trees in 1_usize..40,
        half in 0_usize..60,
        threshold in 0.0_f64..=1.0,
    ) {
        let forest = read(&grown(seed, trees, 2 * half + 1)).unwrap();
        let mut rng = Rng::new(seed);
        for _ in 0..20 {
            let x: [f32; FEATURES] = std::array::from_fn(|_| rng.uniform() as f32);
            let mean = forest.mean(&x);
            for threshold in [threshold, mean, mean.next_up(), mean.next_down()] {
                prop_assert_eq!(forest.reaches(&x, forest.bar(threshold)), mean >= threshold);
            }
        }
    }

    #[test]
    fn no_change_of_a_file_makes_it_panic_or_walk_for_ever(
        seed: u64,
        changes in prop::collection::vec((0.0_f64..1.0, any::<u8>()), 1..8),
        cut in 0.0_f64..=1.0,
    ) {
        let mut bytes = grown(seed, 3, 9).to_bytes(&[("features", "test")]);
        for (place, byte) in changes {
            let index = (place * bytes.len() as f64) as usize;
            bytes[index] = byte;
        }
        bytes.truncate((cut * 2.0 * bytes.len() as f64) as usize);
        let forest = Tensors::read(&bytes).and_then(|file| Forest::read(&file, FEATURES));
        match forest {
            Ok(forest) => prop_assert!((0.0..=1.0).contains(&forest.mean(&[0.5; FEATURES]))),
            Err(message) => prop_assert!(message.len() < 300 && !message.contains('\n')),
        }
    }
}

#[test]
fn what_is_wrong_with_a_node_is_said() {
    let refused = |change: fn(&mut Arrays)| {
        let mut arrays = stump();
        change(&mut arrays);
        read(&arrays).unwrap_err()
    };
    assert_eq!(
        refused(|arrays| arrays.feature[0] = 6),
        "feature[0] = 6: allowed is below 6, or 255 for a leaf"
    );
    assert_eq!(
        refused(|arrays| arrays.threshold[0] = f32::NAN),
        "threshold[0] = NaN: allowed is a finite number"
    );
    assert_eq!(
        refused(|arrays| arrays.child[0] = 0),
        "child[0] = 0: allowed is above 0 and below 2"
    );
    assert_eq!(
        refused(|arrays| arrays.child[0] = 2),
        "child[0] = 2: allowed is above 0 and below 2"
    );
    assert_eq!(
        refused(|arrays| arrays.value[2] = 1.5),
        "value[2] = 1.5: allowed is a number in [0, 1]"
    );
    assert_eq!(refused(|arrays| arrays.root[0] = 3), "root[0] = 3: allowed is below 3");
    assert_eq!(
        refused(|arrays| arrays.root.clear()),
        "length of `root` = 0: allowed is 1 to 1000 trees"
    );
    assert_eq!(
        refused(|arrays| arrays.value.truncate(2)),
        "length of `value` = 2: allowed is 3, as `feature`"
    );
}

#[test]
fn a_chain_that_is_too_deep_is_refused() {
    let mut chain = Arrays { root: vec![0], ..Arrays::default() };
    for index in 0..1500_u32 {
        let inner = index % 2 == 0 && index < 1400;
        chain.feature.push(if inner { 0 } else { 255 });
        chain.threshold.push(0.0);
        // Each right child splits again: nodes 0, 2, 4, ...
        chain.child.push(index + 1);
        chain.value.push(0.0);
    }
    assert_eq!(read(&chain).unwrap_err(), "depth = 513: allowed is at most 512");
}

/// A file whose tensors all lie over one another in `bytes` zeros, of the given lengths.
fn overlapping(bytes: usize, lengths: [(&str, &str, usize); 5]) -> Vec<u8> {
    let tensor = |(name, dtype, length): (&str, &str, usize)| {
        let end = length * if dtype == "U8" { 1 } else { 4 };
        format!(r#""{name}":{{"dtype":"{dtype}","shape":[{length}],"data_offsets":[0,{end}]}}"#)
    };
    let header = format!("{{{}}}", lengths.map(tensor).join(","));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; bytes]].concat()
}

/// Tensors may lie over one another, so the bounds come before all that grows with the lengths.
#[test]
fn too_many_nodes_or_trees_are_refused_whatever_the_other_lengths() {
    let refused = |nodes: usize, trees: usize| {
        let rest = [("threshold", "F32", 7), ("child", "U32", 8), ("value", "F32", 9)];
        let [threshold, child, value] = rest;
        let lengths = [("root", "U32", trees), ("feature", "U8", nodes), threshold, child, value];
        let bytes = overlapping(nodes.max(4 * trees).max(36), lengths);
        Forest::read(&Tensors::read(&bytes).unwrap(), FEATURES).unwrap_err()
    };
    let nodes = "length of `feature` = 16777217: allowed is at most 16777216";
    assert_eq!(refused((1 << 24) + 1, 4_000_000), nodes);
    assert_eq!(refused(7, 4_000_000), "length of `root` = 4000000: allowed is 1 to 1000 trees");
}
