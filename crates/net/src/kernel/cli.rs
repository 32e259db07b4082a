//! The command line.
use super::{Agent, Assign, FlowKey, Options};
use crate::error::Error;
use ackademy::control::{Coupled, FlowInfo, Spec};
use ackademy::controllers;
use ackademy::params::Params;
use clap::Args;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of the command.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Controller of every flow
    #[arg(long, default_value = "new_reno")]
    cc: String,
    /// Name that programs give to `TCP_CONGESTION`
    #[arg(long, default_value = "ackademy")]
    name: String,
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

struct OneForAll {
    spec: &'static Spec,
    params: Params,
}

impl Assign for OneForAll {
    fn governor(&mut self, _key: &FlowKey, _info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        Some(Box::new(controllers::per_flow(self.spec, self.params.clone())))
    }
}

/// Runs the command.
///
/// # Errors
///
/// One line for a person.
pub fn run(arguments: Arguments) -> Result<(), Error> {
    let spec = controllers::find(&arguments.cc.replace('-', "_")).ok_or_else(|| {
        Error::Input(format!(
            "unknown controller `{}`; known: {}",
            arguments.cc,
            controllers::names()
        ))
    })?;
    let options = Options { name: arguments.name, pins: None, ..Options::default() };
    let params = Params::defaults(spec.params);
    // SAFETY: the handler stores a flag.
    unsafe {
        libc::signal(libc::SIGINT, stop as *const () as libc::sighandler_t);
        libc::signal(libc::SIGTERM, stop as *const () as libc::sighandler_t);
    }
    let mut agent = Agent::start(&options, Box::new(OneForAll { spec, params }))?;
    eprintln!("ackademyd: `{}` is {}", options.name, spec.name);
    agent.run(&STOP)?;
    eprintln!("{:?}", agent.totals());
    Ok(())
}
