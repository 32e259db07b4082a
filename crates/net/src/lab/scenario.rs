//! Which scenario a command means: a file, what replaces parts of it, and the files it names.
use crate::error::Error;
use crate::files;
use ackademy::coupled;
use ackademy::params::{self, ParamValue};
use ackademy::scenario::Scenario;
use ackademy::sim::plan::NetworkPlan;
use ackademy::units::Span;
use clap::Args;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A scenario on the command line.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Scenario file; - is standard input
    #[arg(value_name = "SCENARIO")]
    file: PathBuf,
    /// Folder of the files that it names, if it is not that of the file
    #[arg(long, value_name = "FOLDER")]
    beside: Option<PathBuf>,
    /// `lab run`: this controller for every flow, a name of `ackademy list`, or kernel:NAME
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// A setting of --cc
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    param: Vec<(String, String)>,
    /// Another value for a field of the file, as in --set `dumbbell.rtt_ms=40`
    #[arg(long, value_name = "FIELD=TOML", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Another sampling interval
    #[arg(long, value_name = "MS")]
    sample_ms: Option<f64>,
}

impl Arguments {
    /// Refuses what names a controller, where none is served; `instead` is what to do.
    ///
    /// # Errors
    ///
    /// One line.
    pub fn without_controller(&self, instead: &str) -> Result<(), Error> {
        let param = self.param.first().map(|(name, value)| format!("--param {name}={value}"));
        match self.cc.as_ref().map(|name| format!("--cc {name}")).or(param) {
            Some(given) => Err(Error::Input(format!("{given}: {instead}"))),
            None => Ok(()),
        }
    }

    /// Reads and checks it.
    ///
    /// # Errors
    ///
    /// One line that names file, line, field, value and what is allowed.
    pub fn network(&self) -> Result<NetworkPlan, Error> {
        let (text, folder) = self.read()?;
        let origin = self.file.display().to_string();
        let mut load = |name: &str, bytes_max| files::read(&folder.join(name), bytes_max);
        let mut scenario = Scenario::parse_with(&text, &origin, &self.set, &mut load)
            .map_err(|error| Error::Input(error.to_string()))?;
        if let Some(controller) = &self.cc {
            let given: Vec<(String, ParamValue)> = self.param.iter().map(setting).collect();
            let refused = |fault: String| Error::Input(format!("--cc {controller}: {fault}"));
            let list = coupled::settings(controller).unwrap_or_default();
            let mut load = |name: &str, bytes_max| files::read(Path::new(name), bytes_max);
            let opened = params::open(list, &given, &mut load)
                .map_err(|error| refused(error.to_string()))?;
            scenario = scenario
                .with_controller(controller, &opened)
                .map_err(|error| refused(error.message))?;
        } else if let Some((name, _)) = self.param.first() {
            return Err(Error::Input(format!(
                "--param {name}: a setting of --cc, which is absent"
            )));
        }
        let mut network = scenario.network;
        if let Some(interval_ms) = self.sample_ms {
            if !(0.0..=SAMPLE_MS_MAX).contains(&interval_ms) {
                return Err(Error::Input(format!(
                    "--sample-ms {interval_ms}: allowed is a number in [0, {SAMPLE_MS_MAX}]"
                )));
            }
            network.sample_interval = Span::from_secs_f64(interval_ms / 1e3);
        }
        Ok(network)
    }

    /// The text, and the folder of the files it names.
    fn read(&self) -> Result<(String, PathBuf), Error> {
        let refused = |allowed: String| {
            Error::Input(format!("{}: allowed is {allowed}", self.file.display()))
        };
        let content = if self.file == Path::new("-") {
            let mut content = Vec::new();
            let read = std::io::stdin().take(SCENARIO_BYTES_MAX).read_to_end(&mut content);
            read.map(|_| content).map_err(|error| refused(format!("text ({error})")))?
        } else {
            files::read(&self.file, SCENARIO_BYTES_MAX).map_err(refused)?
        };
        let text = String::from_utf8(content).map_err(|error| {
            refused(format!("text; byte {} is not UTF-8", error.utf8_error().valid_up_to()))
        })?;
        let own = self.file.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok((text, self.beside.clone().unwrap_or(own)))
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("allowed is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A number if it reads as one, else a word.
fn setting((name, value): &(String, String)) -> (String, ParamValue) {
    let number = value.parse().map(ParamValue::Number);
    (name.clone(), number.unwrap_or_else(|_| ParamValue::Word(value.clone())))
}

const SCENARIO_BYTES_MAX: u64 = 16 << 20;
const SAMPLE_MS_MAX: f64 = 1e7;
