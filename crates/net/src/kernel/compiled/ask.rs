//! Asks what the kernel computes, without a connection: `bpf/ask.bpf.c` runs the code of the congestion
//! control for numbers that come through a map.
use super::layout::{Question, VALUES_MAX};
use super::{Compiled, POINT, Plain, tables};
use crate::error::Error;
use crate::kernel::table::Table;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject, ProgramInput, ProgramMut};
use skeleton::{AskSkel, AskSkelBuilder};
use std::mem::MaybeUninit;

#[allow(missing_docs, unused_imports, clippy::all, clippy::pedantic, clippy::unwrap_used)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/ask.skel.rs"));
}

/// Room for the program.
#[derive(Debug)]
pub struct Room(MaybeUninit<OpenObject>);

impl Room {
    /// Empty.
    pub fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

/// The loaded program, with a policy.
pub struct Asked<'room> {
    skeleton: AskSkel<'room>,
    questions: Table<Question>,
    outputs: usize,
}

/// What the functions of `bpf/fixed.h` give for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Functions {
    /// Base-2 logarithm, Q24.
    pub log2: i64,
    /// 2^x of x in Q24, in Q16.
    pub exp2: i64,
    /// Square root, rounded down.
    pub root: i64,
    /// Hyperbolic tangent, from Q14 to Q14.
    pub tanh: i64,
}

impl<'room> Asked<'room> {
    /// Loads the program.
    ///
    /// # Errors
    ///
    /// If the kernel cannot, or the caller may not.
    pub fn load(room: &'room mut Room, compiled: &Compiled) -> Result<Self, Error> {
        let failed = |error: libbpf_rs::Error| {
            Error::System(format!("cannot load the program that asks compiled policies: {error:#}"))
        };
        let open = AskSkelBuilder::default().open(&mut room.0).map_err(failed)?;
        let skeleton = open.load().map_err(failed)?;
        let first = 0_u32.to_ne_bytes();
        skeleton.maps.tables.update(&first, tables().bytes(), MapFlags::ANY).map_err(failed)?;
        let questions = MapHandle::try_from(&skeleton.maps.questions).map_err(failed)?;
        let mut asked = Self { questions: Table::map(&questions)?, skeleton, outputs: 0 };
        asked.set(compiled)?;
        Ok(asked)
    }

    /// From now on another policy is asked.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn set(&mut self, compiled: &Compiled) -> Result<(), Error> {
        self.outputs = compiled.outputs;
        let network = &self.skeleton.maps.network;
        network
            .update(&0_u32.to_ne_bytes(), &compiled.network_bytes(), MapFlags::ANY)
            .map_err(|error| Error::System(format!("cannot write a compiled policy: {error}")))
    }

    /// The network's outputs for an observation.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    ///
    /// # Panics
    ///
    /// If the observation is longer than any that can be compiled.
    pub fn outputs(&mut self, observation: &[f32]) -> Result<Vec<f64>, Error> {
        assert!(observation.len() <= VALUES_MAX, "{} numbers", observation.len());
        let mut question = self.questions.read(0);
        question.input.fill(0);
        let one = f64::from(1 << POINT);
        for (to, from) in question.input.iter_mut().zip(observation) {
            *to = (f64::from(*from) * one).round() as i32;
        }
        self.questions.put(0, &question);
        run(&self.skeleton.progs.ask_network)?;
        let answer = self.questions.read(0).answer;
        Ok(answer[..self.outputs].iter().map(|value| *value as f64 / one).collect())
    }

    /// The functions of a number.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn functions(&mut self, number: u64) -> Result<Functions, Error> {
        self.questions.put(0, &Question { number, ..self.questions.read(0) });
        run(&self.skeleton.progs.ask_functions)?;
        let [log2, exp2, root, tanh, ..] = self.questions.read(0).answer;
        Ok(Functions { log2, exp2, root, tanh })
    }
}

/// Runs a program once.
fn run(program: &ProgramMut<'_>) -> Result<(), Error> {
    let ran = program.test_run(ProgramInput::default());
    let failed = |why: String| Error::System(format!("cannot ask a compiled policy: {why}"));
    let output = ran.map_err(|error| failed(error.to_string()))?;
    if output.return_value == 0 { Ok(()) } else { Err(failed("no valid network".to_owned())) }
}
