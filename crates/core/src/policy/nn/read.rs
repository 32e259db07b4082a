//! Makes a network from the layers of `policy.toml` and a file of tensors. Untrusted input: an error
//! is one line, and memory is bounded by the file: a weight takes a tile of 16 at most, and all
//! weights together take [`WEIGHTS_MAX`].
use super::layers::{Conv1d, Dense, LayerNorm};
use super::matrix::Matrix;
use super::recurrent::{Cell, Recurrent, Returns};
use super::spec::{LAYERS_MAX, LayerSpec, Padding, VALUES_MAX, WEIGHTS_MAX};
use super::{Layer, Network, Shape, Stage};
use crate::policy::SpecError;
use crate::policy::forest::Forest;
use crate::policy::safetensors::Tensors;
use std::collections::BTreeSet;

/// What is wrong with a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// With its layers.
    Layers(SpecError),
    /// With its tensors.
    Tensors(String),
}

impl Network {
    /// Reads a network for observations of the given shape.
    ///
    /// # Errors
    ///
    /// If a layer is out of bounds, a tensor absent, of another shape, not finite, or left over.
    pub fn read(specs: &[LayerSpec], input: Shape, tensors: &Tensors) -> Result<Self, Fault> {
        let [network] = Self::read_all([("layers", specs, input)], tensors)?;
        Ok(network)
    }

    /// Reads networks that share a file: the tensors of layer `i` of the network called `name` are
    /// `name.i.…`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_all<const N: usize>(
        networks: [(&str, &[LayerSpec], Shape); N],
        tensors: &Tensors,
    ) -> Result<[Self; N], Fault> {
        tensors.check_tiled().map_err(Fault::Tensors)?;
        let mut reader = Reader { tensors, name: "", used: BTreeSet::new(), weights: 0 };
        let mut read = Vec::with_capacity(N);
        for (name, specs, input) in networks {
            reader.name = name;
            read.push(Self::read_named(specs, input, &mut reader)?);
        }
        reader.nothing_left()?;
        Ok(read.try_into().expect("one network for each"))
    }

    fn read_named(specs: &[LayerSpec], input: Shape, reader: &mut Reader) -> Result<Self, Fault> {
        let name = reader.name;
        if !(1..=LAYERS_MAX).contains(&specs.len()) {
            let count = specs.len();
            let problem = format!("= {count} of them: allowed is 1 to {LAYERS_MAX}");
            return Err(Fault::Layers(SpecError::at(name, problem)));
        }
        if input.size() == 0 || input.size() > VALUES_MAX {
            let problem = format!("= {} numbers: allowed is 1 to {VALUES_MAX}", input.size());
            return Err(Fault::Layers(SpecError::at("inputs", problem)));
        }
        let mut network =
            Self { stages: Vec::new(), input, outputs: 0, values: input.size(), work: 0 };
        let mut from = input;
        for (index, spec) in specs.iter().enumerate() {
            let path = format!("{name}[{index}]");
            let to = spec.output(from).map_err(|error| Fault::Layers(error.below(&path)))?;
            if let Some(layer) = reader.layer(index, spec, from)? {
                let work = layer.work(from);
                if work > VALUES_MAX {
                    let needs = format!("needs {work} numbers for its gates");
                    let problem = format!("{needs}: allowed is at most {VALUES_MAX}");
                    return Err(Fault::Layers(SpecError::at(path, problem)));
                }
                network.work = network.work.max(work);
                network.stages.push(Stage { layer, from, to });
            }
            network.values = network.values.max(to.size());
            from = to;
        }
        if from.steps != 1 {
            let problem = format!(
                "give {} vectors: allowed is one, as `flatten` or a recurrent layer that \
                 returns `last` gives",
                from.steps
            );
            return Err(Fault::Layers(SpecError::at(name, problem)));
        }
        network.outputs = from.width;
        Ok(network)
    }
}

impl Layer {
    /// Numbers that it needs beside input and output.
    fn work(&self, from: Shape) -> usize {
        match self {
            Self::Recurrent(layer) => layer.work(from.steps),
            _ => 0,
        }
    }
}

/// A recurrent layer without its weights.
#[derive(Clone, Copy)]
struct RecurrentSpec {
    cell: Cell,
    units: usize,
    returns: Returns,
}

struct Reader<'a, 'b> {
    tensors: &'a Tensors<'b>,
    /// Of the network.
    name: &'a str,
    used: BTreeSet<String>,
    /// Weights so far, padded to tiles.
    weights: usize,
}

impl Reader<'_, '_> {
    /// The layer of this number; `None` for one that only changes the shape. `spec` is within its
    /// bounds.
    fn layer(
        &mut self,
        index: usize,
        spec: &LayerSpec,
        from: Shape,
    ) -> Result<Option<Layer>, Fault> {
        let network = self.name;
        let name = |part: &str| format!("{network}.{index}.{part}");
        Ok(Some(match *spec {
            LayerSpec::Dense { units, activation } => {
                let kernel = self.matrix(name("kernel"), &[from.width], units as usize)?;
                let bias = self.vector(name("bias"), units as usize)?;
                Layer::Dense(Dense { kernel, bias, activation })
            }
            LayerSpec::Conv1d { filters, kernel: size, padding, activation } => {
                let (size, filters) = (size as usize, filters as usize);
                let before = if padding == Padding::Same { (size - 1) / 2 } else { 0 };
                let kernel = self.matrix(name("kernel"), &[size, from.width], filters)?;
                let bias = self.vector(name("bias"), filters)?;
                Layer::Conv1d(Conv1d { kernel, size, before, bias, activation })
            }
            LayerSpec::MaxPool { size } => Layer::MaxPool { size: size as usize },
            LayerSpec::LayerNorm { epsilon, activation } => {
                let scale = self.vector(name("scale"), from.width)?;
                let bias = self.vector(name("bias"), from.width)?;
                Layer::LayerNorm(LayerNorm { scale, bias, epsilon, activation })
            }
            LayerSpec::Flatten {} => return Ok(None),
            LayerSpec::Lstm { units, returns } => {
                let spec = RecurrentSpec { cell: Cell::Lstm, units: units as usize, returns };
                Layer::Recurrent(self.recurrent(index, spec, from)?)
            }
            LayerSpec::Gru { units, returns } => {
                let spec = RecurrentSpec { cell: Cell::Gru, units: units as usize, returns };
                Layer::Recurrent(self.recurrent(index, spec, from)?)
            }
            LayerSpec::Trees { outputs, low, high } => {
                let forest = |output| self.forest(&name(&format!("{output}.")), from.size());
                let forests = (0..outputs).map(forest).collect::<Result<_, _>>()?;
                Layer::Trees { forests, low, high }
            }
        }))
    }

    fn recurrent(
        &mut self,
        index: usize,
        layer: RecurrentSpec,
        from: Shape,
    ) -> Result<Recurrent, Fault> {
        let RecurrentSpec { cell, units, returns } = layer;
        let network = self.name;
        let name = |part: &str| format!("{network}.{index}.{part}");
        let gates = cell.gates() * units;
        let kernel = self.matrix(name("kernel"), &[from.width], gates)?;
        let own_kernel = self.matrix(name("recurrent"), &[units], gates)?;
        let bias = self.vector(name("bias"), gates)?;
        let mut own_bias = Vec::new();
        if cell == Cell::Gru {
            own_bias.resize(2 * units, 0.0);
            own_bias.extend(self.vector(name("recurrent_bias"), units)?);
        }
        Ok(Recurrent { cell, units, kernel, own_kernel, bias, own_bias, returns })
    }

    /// A tensor [..inputs, outputs].
    fn matrix(&mut self, name: String, inputs: &[usize], outputs: usize) -> Result<Matrix, Fault> {
        let shape = [inputs, &[outputs]].concat();
        let weights = self.finite(name, &shape)?;
        let inputs = inputs.iter().product();
        self.weights += Matrix::size(inputs, outputs);
        if self.weights > WEIGHTS_MAX {
            let problem = format!(
                "have {} weights in memory: allowed is at most {WEIGHTS_MAX}",
                self.weights
            );
            return Err(Fault::Layers(SpecError::at(self.name, problem)));
        }
        Ok(Matrix::new(inputs, outputs, &weights))
    }

    fn vector(&mut self, name: String, length: usize) -> Result<Vec<f32>, Fault> {
        self.finite(name, &[length])
    }

    fn finite(&mut self, name: String, shape: &[usize]) -> Result<Vec<f32>, Fault> {
        let numbers: Vec<f32> =
            self.tensors.f32s_of(&name, shape).map_err(Fault::Tensors)?.collect();
        if let Some(wrong) = numbers.iter().position(|number| !number.is_finite()) {
            let fault =
                format!("`{name}`[{wrong}] = {}: allowed is a finite number", numbers[wrong]);
            return Err(Fault::Tensors(fault));
        }
        self.used.insert(name);
        Ok(numbers)
    }

    fn forest(&mut self, prefix: &str, inputs: usize) -> Result<Forest, Fault> {
        let forest = Forest::read_named(self.tensors, prefix, inputs).map_err(Fault::Tensors)?;
        self.used.extend(Forest::TENSORS.map(|part| format!("{prefix}{part}")));
        Ok(forest)
    }

    fn nothing_left(&self) -> Result<(), Fault> {
        let Some(name) = self.tensors.names().find(|name| !self.used.contains(*name)) else {
            return Ok(());
        };
        let name: String = name.chars().take(80).collect();
        let fault = format!("tensor {name:?} is left over: allowed are those of the layers");
        Err(Fault::Tensors(fault))
    }
}
