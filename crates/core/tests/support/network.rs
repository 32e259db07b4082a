//! Networks to test with: files of tensors for layers, with weights drawn at random.
use std::fmt::Write as _;

/// A file of named 32-bit tensors, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct TensorFile {
    header: String,
    data: Vec<u8>,
}

impl TensorFile {
    /// Adds numbers.
    pub fn add(&mut self, name: &str, shape: &[usize], numbers: &[f32]) {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        self.add_bytes(name, ("F32", shape), &bytes);
    }

    /// Adds what may or may not be a tensor.
    pub fn add_bytes(&mut self, name: &str, (dtype, shape): (&str, &[usize]), bytes: &[u8]) {
        let comma = if self.header.is_empty() { "" } else { "," };
        let (start, end) = (self.data.len(), self.data.len() + bytes.len());
        let _ = write!(
            self.header,
            "{comma}\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\
             \"data_offsets\":[{start},{end}]}}"
        );
        self.data.extend_from_slice(bytes);
    }

    /// Adds numbers uniform in plus or minus `size`; `draw` is uniform in [0, 1).
    pub fn add_random(
        &mut self,
        name: &str,
        shape: &[usize],
        (size, draw): (f64, &mut dyn FnMut() -> f64),
    ) {
        let count = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|_| (size * (2.0 * draw() - 1.0)) as f32).collect();
        self.add(name, shape, &numbers);
    }

    /// The file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = format!("{{{}}}", self.header);
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &self.data[..]].concat()
    }
}

/// Random weights of about the size that training begins with: name of each tensor and its shape.
pub fn random(tensors: &[(&str, &[usize])], draw: &mut dyn FnMut() -> f64) -> Vec<u8> {
    let mut file = TensorFile::default();
    for (name, shape) in tensors {
        let inputs: usize = shape[..shape.len() - 1].iter().product();
        let size = (3.0 / inputs.max(1) as f64).sqrt().min(0.5);
        file.add_random(name, shape, (size, draw));
    }
    file.to_bytes()
}

/// Tensors of TCP-Drinc's network.
pub fn drinc() -> Vec<(&'static str, Vec<usize>)> {
    vec![
        ("layers.0.kernel", vec![5, 5, 32]),
        ("layers.0.bias", vec![32]),
        ("layers.2.kernel", vec![3, 32, 64]),
        ("layers.2.bias", vec![64]),
        ("layers.4.kernel", vec![64, 32]),
        ("layers.4.bias", vec![32]),
        ("layers.5.kernel", vec![32, 256]),
        ("layers.5.recurrent", vec![64, 256]),
        ("layers.5.bias", vec![256]),
        ("layers.6.kernel", vec![64, 5]),
        ("layers.6.bias", vec![5]),
    ]
}
