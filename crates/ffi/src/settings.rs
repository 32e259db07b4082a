//! Names and settings as text: `cubic`, `beta=0.8,fast_convergence=off`.
use ackademy::params::ParamValue;
use ackademy::scheme::{Entry, Scheme};
use ackademy::{controllers, coupled};
use std::fs::File;
use std::io::Read as _;

/// Of both tables.
pub(crate) fn names() -> String {
    let plain = controllers::ALL.iter().map(|spec| spec.name);
    plain.chain(coupled::ALL.iter().map(|spec| spec.name)).collect::<Vec<_>>().join(",")
}

/// The controller of this name with its settings; files are read.
pub(crate) fn parse(name: &str, settings: &str) -> Result<Scheme, String> {
    let unknown = || format!("controller {name}: allowed is {}", coupled::all_names());
    let entry = Entry::find(name).ok_or_else(unknown)?;
    let words = settings.split(',').map(str::trim).filter(|word| !word.is_empty());
    let given = words.map(setting).collect::<Result<Vec<_>, _>>()?;
    Scheme::open(entry, &given, &mut load).map_err(|error| format!("{name}: {error}"))
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
