//! Random forests (Ho, "Random decision forests", ICDAR 1995) for use, not for growing: the mean of
//! the trees' outputs, and whether it reaches a threshold. `docs/reference/policies.md` describes the file.
use crate::policy::safetensors::Tensors;

/// Maximum number of trees.
const TREES_MAX: usize = 1000;
/// Maximum number of nodes of all trees together: the index of a node has three bytes.
const NODES_MAX: usize = 1 << 24;
/// Maximum depth of a tree: it bounds the time of an evaluation.
const DEPTH_MAX: u16 = 512;
/// The feature number of a leaf.
const LEAF: u8 = 255;
/// Trees evaluated in parallel, so that others proceed while one waits for memory.
const ABREAST: usize = 8;
/// An output of 1. Outputs are whole numbers of such parts, so that their sum is exact in any order.
const ONE: f64 = (1_u64 << 31) as f64;

/// A node: left if the feature is at most `threshold`. A leaf leads to itself.
#[derive(Clone, Copy, Debug)]
struct Node {
    threshold: f32,
    /// The left child times 256, plus the feature; the right child is the next.
    link: u32,
}

/// Trees that map numbers to a probability.
#[derive(Clone, Debug)]
pub struct Forest {
    roots: Vec<u32>,
    nodes: Vec<Node>,
    /// Output at each node, in parts of [`ONE`].
    values: Vec<u32>,
    /// For each group of trees, the minimum and maximum that it and the groups after it can add.
    rest: Vec<(u64, u64)>,
}

/// The sum of outputs that reaches a threshold: [`Forest::bar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar(u64);

impl Forest {
    /// Tensors of a forest.
    pub const TENSORS: [&str; 5] = ["root", "feature", "threshold", "child", "value"];

    /// A forest over `features` numbers, at most 255.
    ///
    /// # Errors
    ///
    /// If a tensor is absent, or not as the format defines it.
    pub fn read(tensors: &Tensors, features: usize) -> Result<Self, String> {
        Self::read_named(tensors, "", features)
    }

    /// As [`Self::read`], of several in one file: `prefix` stands before the names of its tensors.
    ///
    /// # Errors
    ///
    /// See [`Self::read`].
    pub fn read_named(tensors: &Tensors, prefix: &str, features: usize) -> Result<Self, String> {
        let [root, feature, threshold, child, value] =
            Self::TENSORS.map(|part| format!("{prefix}{part}"));
        let roots = tensors.u32s(&root)?;
        let feature = tensors.u8s(&feature)?;
        let branches = Branches {
            threshold: tensors.f32s(&threshold)?,
            child: tensors.u32s(&child)?,
            value: tensors.f32s(&value)?,
        };
        Self::build(roots, feature, branches, features).map_err(|fault| format!("{prefix}{fault}"))
    }

    fn build(
        roots: impl ExactSizeIterator<Item = u32>,
        feature: &[u8],
        branches: Branches<
            impl ExactSizeIterator<Item = f32>,
            impl ExactSizeIterator<Item = u32>,
            impl ExactSizeIterator<Item = f32>,
        >,
        features: usize,
    ) -> Result<Self, String> {
        let Branches { threshold, child, value } = branches;
        let count = feature.len();
        if count > NODES_MAX {
            return Err(format!("length of `feature` = {count}: allowed is at most {NODES_MAX}"));
        }
        if !(1..=TREES_MAX).contains(&roots.len()) {
            let allowed = format!("1 to {TREES_MAX} trees");
            return Err(format!("length of `root` = {}: allowed is {allowed}", roots.len()));
        }
        for (name, length) in
            [("threshold", threshold.len()), ("child", child.len()), ("value", value.len())]
        {
            if length != count {
                return Err(format!(
                    "length of `{name}` = {length}: allowed is {count}, as `feature`"
                ));
            }
        }
        // Nothing was copied before: tensors may overlap.
        let roots: Vec<u32> = roots.collect();
        if let Some(wrong) = roots.iter().position(|&root| root as usize >= count) {
            return Err(format!("root[{wrong}] = {}: allowed is below {count}", roots[wrong]));
        }
        let mut nodes = Vec::with_capacity(count);
        let mut values = Vec::with_capacity(count);
        let branches = feature.iter().zip(threshold).zip(child).zip(value);
        for (index, (((&feature, threshold), child), value)) in branches.enumerate() {
            let branch = Branch { feature, threshold, child };
            let (node, value) = match feature {
                LEAF => (leaf(index), output(index, value)?),
                _ => (inner(index, branch, features, count)?, 0),
            };
            nodes.push(node);
            values.push(value);
        }
        check_depth(&nodes)?;
        let rest = rest(&roots, &nodes, &values);
        Ok(Self { roots, nodes, values, rest })
    }

    /// Mean output of the trees, in [0, 1].
    ///
    /// # Panics
    ///
    /// If `x` has fewer numbers than the forest was read for.
    pub fn mean(&self, x: &[f32]) -> f64 {
        self.mean_of(self.roots.chunks(ABREAST).map(|roots| self.walk(x, roots)).sum())
    }

    /// The sum of the trees' outputs for a mean of `threshold`.
    pub fn bar(&self, threshold: f64) -> Bar {
        let max = self.roots.len() as f64 * ONE;
        let mut sum = (threshold * max).clamp(0.0, max) as u64;
        while sum > 0 && self.mean_of(sum - 1) >= threshold {
            sum -= 1;
        }
        while sum as f64 <= max && self.mean_of(sum) < threshold {
            sum += 1;
        }
        Bar(sum)
    }

    /// Whether the mean output reaches the threshold of `bar`; stops evaluating trees once the answer is certain.
    ///
    /// # Panics
    ///
    /// If `x` has fewer numbers than the forest was read for.
    pub fn reaches(&self, x: &[f32], Bar(bar): Bar) -> bool {
        let mut sum = 0;
        for (roots, (min, max)) in self.roots.chunks(ABREAST).zip(&self.rest) {
            if sum + min >= bar {
                return true;
            }
            if sum + max < bar {
                return false;
            }
            sum += self.walk(x, roots);
        }
        sum >= bar
    }

    fn mean_of(&self, sum: u64) -> f64 {
        sum as f64 / (self.roots.len() as f64 * ONE)
    }

    /// Sum of the outputs of at most [`ABREAST`] trees.
    #[inline]
    fn walk(&self, x: &[f32], roots: &[u32]) -> u64 {
        let mut places = [roots[0]; ABREAST];
        places[..roots.len()].copy_from_slice(roots);
        loop {
            let mut moved = 0;
            for place in &mut places {
                let Node { threshold, link } = self.nodes[*place as usize];
                let right = x[(link & 0xff) as usize] > threshold;
                let next = (link >> 8) + u32::from(right);
                moved |= next ^ *place;
                *place = next;
            }
            if moved == 0 {
                break;
            }
        }
        places[..roots.len()].iter().map(|&place| u64::from(self.values[place as usize])).sum()
    }
}

/// What a file says of each node beside its feature.
struct Branches<T, C, V> {
    threshold: T,
    child: C,
    value: V,
}

fn leaf(index: usize) -> Node {
    Node { threshold: f32::INFINITY, link: (index as u32) << 8 }
}

/// A node that is not a leaf, as its file has it.
#[derive(Clone, Copy)]
struct Branch {
    feature: u8,
    threshold: f32,
    child: u32,
}

/// The node at `index` of `count`, in a forest over this many features.
fn inner(index: usize, branch: Branch, features: usize, count: usize) -> Result<Node, String> {
    let Branch { feature, threshold, child } = branch;
    if usize::from(feature) >= features {
        let allowed = format!("below {features}, or {LEAF} for a leaf");
        return Err(format!("feature[{index}] = {feature}: allowed is {allowed}"));
    }
    if !threshold.is_finite() {
        return Err(format!("threshold[{index}] = {threshold}: allowed is a finite number"));
    }
    // Children lie behind their parent, so that no walk goes in a circle.
    let child = child as usize;
    if child <= index || child + 1 >= count {
        let allowed = format!("above {index} and below {}", count.saturating_sub(1));
        return Err(format!("child[{index}] = {child}: allowed is {allowed}"));
    }
    Ok(Node { threshold, link: (child as u32) << 8 | u32::from(feature) })
}

fn output(index: usize, value: f32) -> Result<u32, String> {
    if (0.0..=1.0).contains(&value) {
        return Ok(libm::round(f64::from(value) * ONE) as u32);
    }
    Err(format!("value[{index}] = {value}: allowed is a number in [0, 1]"))
}

impl Node {
    /// Both children of a node that is not a leaf.
    fn children(self, index: usize) -> Option<[usize; 2]> {
        let child = (self.link >> 8) as usize;
        (child != index).then_some([child, child + 1])
    }
}

fn check_depth(nodes: &[Node]) -> Result<(), String> {
    let mut depth = vec![0_u16; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        for child in node.children(index).into_iter().flatten() {
            depth[child] = depth[child].max(depth[index] + 1);
            if depth[child] > DEPTH_MAX {
                return Err(format!("depth = {}: allowed is at most {DEPTH_MAX}", depth[child]));
            }
        }
    }
    Ok(())
}

fn rest(roots: &[u32], nodes: &[Node], values: &[u32]) -> Vec<(u64, u64)> {
    let mut ends: Vec<(u32, u32)> = values.iter().map(|&value| (value, value)).collect();
    for index in (0..nodes.len()).rev() {
        if let Some([left, right]) = nodes[index].children(index) {
            let (left, right) = (ends[left], ends[right]);
            ends[index] = (left.0.min(right.0), left.1.max(right.1));
        }
    }
    let mut rest = Vec::new();
    let (mut min, mut max) = (0, 0);
    for group in roots.chunks(ABREAST).rev() {
        for &root in group {
            min += u64::from(ends[root as usize].0);
            max += u64::from(ends[root as usize].1);
        }
        rest.push((min, max));
    }
    rest.reverse();
    rest
}

#[cfg(test)]
#[path = "tests/forest.rs"]
mod tests;
