//! Forests to test with, in the format of `docs/reference/policies.md`.
use std::fmt::Write as _;

/// The tensors of a forest.
#[derive(Clone, Debug, Default)]
pub struct Arrays {
    pub root: Vec<u32>,
    pub feature: Vec<u8>,
    pub threshold: Vec<f32>,
    pub child: Vec<u32>,
    pub value: Vec<f32>,
}

impl Arrays {
    /// Trees of `nodes` nodes each, an odd number, split at random; thresholds in [0, 1) on
    /// `features` numbers. `draw` is uniform in [0, 1).
    pub fn grow(
        trees: usize,
        nodes: usize,
        features: usize,
        draw: &mut dyn FnMut() -> f64,
    ) -> Self {
        let mut arrays = Self::default();
        for _ in 0..trees {
            arrays.root.push(arrays.feature.len() as u32);
            let mut leaves = vec![arrays.push(draw())];
            for _ in 0..nodes / 2 {
                let parent = leaves.swap_remove((draw() * leaves.len() as f64) as usize);
                let child = arrays.feature.len();
                arrays.feature[parent] = (draw() * features as f64) as u8;
                arrays.threshold[parent] = draw() as f32;
                arrays.child[parent] = child as u32;
                for _ in 0..2 {
                    let value = if draw() < 0.8 { draw().round() } else { draw() };
                    leaves.push(arrays.push(value));
                }
            }
        }
        arrays
    }

    fn push(&mut self, value: f64) -> usize {
        self.feature.push(255);
        self.threshold.push(0.0);
        self.child.push(0);
        self.value.push(value as f32);
        self.feature.len() - 1
    }

    /// As a file; `metadata` are pairs of key and value.
    pub fn to_bytes(&self, metadata: &[(&str, &str)]) -> Vec<u8> {
        self.to_bytes_of("", metadata)
    }

    /// As [`Self::to_bytes`], with `prefix` before the names of the tensors.
    pub fn to_bytes_of(&self, prefix: &str, metadata: &[(&str, &str)]) -> Vec<u8> {
        let mut header = String::from("{\"__metadata__\":{");
        for (index, (key, value)) in metadata.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(header, "{comma}\"{key}\":\"{value}\"");
        }
        header.push('}');
        let mut data = Vec::new();
        let mut add = |name: &str, dtype: &str, count: usize, bytes: Vec<u8>| {
            let (start, end) = (data.len(), data.len() + bytes.len());
            let _ = write!(
                header,
                ",\"{prefix}{name}\":{{\"dtype\":\"{dtype}\",\"shape\":[{count}],\
                 \"data_offsets\":[{start},{end}]}}"
            );
            data.extend(bytes);
        };
        let wide = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let real = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
        add("root", "U32", self.root.len(), wide(&self.root));
        add("child", "U32", self.child.len(), wide(&self.child));
        add("threshold", "F32", self.threshold.len(), real(&self.threshold));
        add("value", "F32", self.value.len(), real(&self.value));
        add("feature", "U8", self.feature.len(), self.feature.clone());
        header.push('}');
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data[..]].concat()
    }
}
