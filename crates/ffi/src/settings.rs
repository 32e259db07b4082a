//! Names and settings as text: `cubic`, `beta=0.8,fast_convergence=off`.
use ackademy::control::{Coupled, Spec};
use ackademy::params::{self, Param, ParamValue, Params};
use ackademy::{controllers, coupled};
use std::fs::File;
use std::io::Read as _;

/// An entry of the table of plain controllers or of that of coupled ones.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    Plain(&'static Spec),
    Coupled(&'static coupled::Spec),
}

impl Entry {
    fn find(name: &str) -> Result<Self, String> {
        let plain = controllers::find(name).map(Self::Plain);
        let refused = || format!("controller {name}: allowed is {}", coupled::all_names());
        plain.or_else(|| coupled::find(name).map(Self::Coupled)).ok_or_else(refused)
    }

    fn params(self) -> &'static [Param] {
        match self {
            Self::Plain(spec) => spec.params,
            Self::Coupled(spec) => spec.params,
        }
    }

    pub(crate) fn build(self, params: &Params) -> Box<dyn Coupled> {
        match self {
            Self::Plain(spec) => Box::new(controllers::per_flow(spec, params.clone())),
            Self::Coupled(spec) => (spec.build)(params),
        }
    }
}

/// Of both tables.
pub(crate) fn names() -> String {
    let plain = controllers::ALL.iter().map(|spec| spec.name);
    plain.chain(coupled::ALL.iter().map(|spec| spec.name)).collect::<Vec<_>>().join(",")
}

/// The entry of this name and its settings; files are read.
pub(crate) fn parse(name: &str, settings: &str) -> Result<(Entry, Params), String> {
    let entry = Entry::find(name)?;
    let words = settings.split(',').map(str::trim).filter(|word| !word.is_empty());
    let given = words.map(setting).collect::<Result<Vec<_>, _>>()?;
    let refused = |error| format!("{name}: {error}");
    let opened = params::open(entry.params(), &given, &mut load).map_err(refused)?;
    Ok((entry, Params::resolve(entry.params(), &opened).map_err(refused)?))
}

fn setting(word: &str) -> Result<(String, ParamValue), String> {
    let refused = || format!("setting {word}: allowed is NAME=VALUE, separated by commas");
    let (name, value) = word.split_once('=').ok_or_else(refused)?;
    let number = value.parse().map(ParamValue::Number);
    Ok((name.to_owned(), number.unwrap_or_else(|_| ParamValue::Word(value.to_owned()))))
}

fn load(path: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut content));
    match read {
        Err(error) => Err(format!("a file that can be read ({error})")),
        Ok(_) if content.len() as u64 > bytes_max => {
            Err(format!("a file of at most {bytes_max} bytes"))
        }
        Ok(_) => Ok(content),
    }
}
