//! Settings of controllers. The list in a controller's file defines them: it has the defaults, the
//! ranges and the help.
use crate::digest::{EMPTY, fnv1a};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// One setting of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Key in a scenario's `params` table; ends in its unit.
    pub name: &'static str,
    /// What it does and where the default comes from (*paper*, *source* or *proposed*).
    pub about: &'static str,
    /// What it may be.
    pub kind: ParamKind,
}

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A number in `[min, max]`.
    Number {
        /// Used if a scenario does not set it.
        default: f64,
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },
    /// One of a few words; the first is the default.
    Choice(&'static [&'static str]),
    /// The name of a file. There is no default: a scenario must give it.
    File {
        /// What the file must hold, for errors and help.
        holds: &'static str,
        /// Reads it.
        read: ReadFile,
    },
    /// The name of a folder with these files. There is no default: a scenario must give it.
    Files {
        /// What the folder must hold, for errors and help.
        holds: &'static str,
        /// Its files, in the order in which they are read.
        names: &'static [&'static str],
        /// Reads them.
        read: ReadFiles,
    },
}

/// From the bytes of a file to what they mean, or what is wrong with them and what is allowed, on
/// one line.
pub type ReadFile = fn(&[u8]) -> Result<Arc<dyn Any + Send + Sync>, String>;

/// As [`ReadFile`], of several files: their bytes in the order of the setting's names.
pub type ReadFiles = fn(&[Vec<u8>]) -> Result<Arc<dyn Any + Send + Sync>, String>;

/// How a setting's file or files are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// What they must hold, for errors.
    holds: &'static str,
    read: Read,
}

#[derive(Clone, Copy, Debug)]
enum Read {
    File(ReadFile),
    Files(&'static [&'static str], ReadFiles),
}

impl PartialEq for Reader {
    fn eq(&self, other: &Self) -> bool {
        match (self.read, other.read) {
            (Read::File(own), Read::File(other)) => std::ptr::fn_addr_eq(own, other),
            (Read::Files(names, own), Read::Files(others, other)) => {
                names == others && std::ptr::fn_addr_eq(own, other)
            }
            _ => false,
        }
    }
}

/// Reads the file of this name, at most so many bytes, or says what file is allowed. The core does no
/// I/O, so its caller passes this function.
pub type Loader<'a> = dyn FnMut(&str, u64) -> Result<Vec<u8>, String> + 'a;

/// Largest file of a setting, in bytes: a forest of five million nodes, which is a hundred times
/// the largest that is known.
pub const FILE_BYTES_MAX: u64 = 1 << 26;

/// A value given for a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number (also from a TOML integer or boolean: true is 1).
    Number(f64),
    /// A word.
    Word(String),
    /// A file or a folder, read by [`open`]; before that it is the word that names it.
    File(Content),
}

/// The content of a file or of a folder of files, shared by the flows that use it.
#[derive(Clone)]
pub struct Content {
    /// The name it was given by.
    pub path: String,
    /// FNV-1a over its bytes, for a folder over the length and the bytes of each of its files: equal
    /// digests mean equal runs.
    pub digest: u64,
    object: Arc<dyn Any + Send + Sync>,
}

impl Content {
    /// Loads and reads a file, or a folder's files.
    pub(crate) fn load(path: &str, reader: Reader, load: &mut Loader) -> Result<Self, String> {
        let refused = |fault| format!("{} ({fault})", reader.holds);
        let (object, digest) = match reader.read {
            Read::File(read) => {
                let bytes = load(path, FILE_BYTES_MAX)?;
                (read(&bytes).map_err(refused)?, fnv1a(EMPTY, &bytes))
            }
            Read::Files(names, read) => {
                let one = |name: &&str| {
                    let file = format!("{}/{name}", path.trim_end_matches('/'));
                    load(&file, FILE_BYTES_MAX)
                        .map_err(|allowed| refused(format!("{name}: allowed is {allowed}")))
                };
                let files = names.iter().map(one).collect::<Result<Vec<_>, _>>()?;
                let digest = files.iter().fold(EMPTY, |hash, bytes| {
                    fnv1a(fnv1a(hash, &(bytes.len() as u64).to_le_bytes()), bytes)
                });
                (read(&files).map_err(refused)?, digest)
            }
        };
        Ok(Self { path: path.to_owned(), digest, object })
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Content({:?}, {:016x})", self.path, self.digest)
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.digest) == (&other.path, other.digest)
    }
}

/// Reads the files that `given` names, each with the reader of its setting; other settings are
/// unchanged and are checked by [`Params::resolve`].
///
/// # Errors
///
/// If a file cannot be loaded, or does not hold what it must.
pub fn open(
    specs: &[Param],
    given: &[(String, ParamValue)],
    load: &mut Loader,
) -> Result<Vec<(String, ParamValue)>, ParamError> {
    open_with(specs, given, |path, reader| Content::load(path, reader, load))
}

/// As [`open`], with a function `content` of each file's name and its reader.
pub(crate) fn open_with(
    specs: &[Param],
    given: &[(String, ParamValue)],
    mut content: impl FnMut(&str, Reader) -> Result<Content, String>,
) -> Result<Vec<(String, ParamValue)>, ParamError> {
    let open_one = |(name, value): &(String, ParamValue)| {
        let kind = specs.iter().find(|spec| spec.name == name).map(|spec| spec.kind);
        let (Some(reader), ParamValue::Word(path)) = (kind.and_then(ParamKind::reader), value)
        else {
            return Ok((name.clone(), value.clone()));
        };
        let refused =
            |allowed| ParamError { name: name.clone(), value: value.to_string(), allowed };
        let content = content(path, reader).map_err(refused)?;
        Ok((name.clone(), ParamValue::File(content)))
    };
    given.iter().map(open_one).collect()
}

/// A complete, checked set of settings.
#[derive(Clone, Debug)]
pub struct Params {
    specs: &'static [Param],
    /// By index in the list; an absent setting has its default, which takes no memory in a flow.
    given: Box<[(usize, ParamValue)]>,
}

/// Why a setting was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamError {
    /// The offending key.
    pub name: String,
    /// The value given, as text.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl std::error::Error for ParamError {}

impl fmt::Display for ParamError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` = {}: allowed is {}", self.name, self.value, self.allowed)
    }
}

impl Params {
    /// Fills in defaults and checks names and ranges.
    ///
    /// # Errors
    ///
    /// If a name is unknown, a number out of range or not finite, a word not among the choices, or
    /// a file absent or not read ([`open`]).
    pub fn resolve(
        specs: &'static [Param],
        given: &[(String, ParamValue)],
    ) -> Result<Self, ParamError> {
        let mut values: Vec<(usize, ParamValue)> = Vec::new();
        for (name, value) in given {
            let Some(index) = specs.iter().position(|spec| spec.name == name) else {
                let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
                let allowed =
                    if known.is_empty() { "no parameter".to_owned() } else { known.join(", ") };
                return Err(ParamError { name: name.clone(), value: value.to_string(), allowed });
            };
            if !specs[index].kind.allows(value) {
                return Err(ParamError {
                    name: name.clone(),
                    value: value.to_string(),
                    allowed: specs[index].kind.allowed(),
                });
            }
            values.retain(|&(other, _)| other != index);
            values.push((index, value.clone()));
        }
        for (index, spec) in specs.iter().enumerate() {
            let is_given = values.iter().any(|&(other, _)| other == index);
            if !is_given && spec.kind.default().is_none() {
                let (name, value) = (spec.name.to_owned(), "absent".to_owned());
                return Err(ParamError { name, value, allowed: spec.kind.allowed() });
            }
        }
        Ok(Self { specs, given: values.into() })
    }

    /// The defaults.
    ///
    /// # Panics
    ///
    /// If a setting has none ([`ParamKind::File`], [`ParamKind::Files`]).
    pub fn defaults(specs: &'static [Param]) -> Self {
        Self::resolve(specs, &[]).expect("every setting has a default")
    }

    /// The number called `name`.
    ///
    /// # Panics
    ///
    /// If the controller's own list has no such number: a mistake in its file.
    pub fn number(&self, name: &str) -> f64 {
        match self.find(name) {
            (_, Some(ParamValue::Number(number))) => *number,
            (ParamKind::Number { default, .. }, None) => default,
            (kind, _) => panic!("`{name}` is {}, not a number", kind.allowed()),
        }
    }

    /// The word called `name`.
    ///
    /// # Panics
    ///
    /// If the controller's own list has no such choice: a mistake in its file.
    pub fn choice(&self, name: &str) -> &str {
        match self.find(name) {
            (_, Some(ParamValue::Word(word))) => word,
            (ParamKind::Choice(words), None) => words[0],
            (kind, _) => panic!("`{name}` is {}, not a word", kind.allowed()),
        }
    }

    /// What the file or folder called `name` holds.
    ///
    /// # Panics
    ///
    /// If the controller's own list has no such file, or reads it as something else: a mistake in
    /// its file.
    pub fn file<T: Send + Sync + 'static>(&self, name: &str) -> Arc<T> {
        match self.find(name) {
            (_, Some(ParamValue::File(content))) => Arc::clone(&content.object)
                .downcast()
                .unwrap_or_else(|_| panic!("`{name}` is read as another type")),
            (kind, _) => panic!("`{name}` is {}, not a file", kind.allowed()),
        }
    }

    /// What a setting may be, and what it is if it was given.
    fn find(&self, name: &str) -> (ParamKind, Option<&ParamValue>) {
        let index = self
            .specs
            .iter()
            .position(|spec| spec.name == name)
            .unwrap_or_else(|| panic!("`{name}` is not in the controller's own list"));
        let given = self.given.iter().find(|&&(other, _)| other == index);
        (self.specs[index].kind, given.map(|(_, value)| value))
    }
}

impl ParamKind {
    /// The default value; `None` if a scenario must give the setting.
    pub fn default(self) -> Option<ParamValue> {
        match self {
            Self::Number { default, .. } => Some(ParamValue::Number(default)),
            Self::Choice(words) => Some(ParamValue::Word(words[0].to_owned())),
            Self::File { .. } | Self::Files { .. } => None,
        }
    }

    /// What is allowed, for an error or a help text.
    pub fn allowed(self) -> String {
        match self {
            Self::Number { min, max, .. } => format!("a number in [{min}, {max}]"),
            Self::Choice(words) => words.join(" | "),
            Self::File { holds, .. } | Self::Files { holds, .. } => holds.to_owned(),
        }
    }

    /// What a file or folder must hold and how it is read; `None` for other settings.
    fn reader(self) -> Option<Reader> {
        match self {
            Self::File { holds, read } => Some(Reader { holds, read: Read::File(read) }),
            Self::Files { holds, names, read } => {
                Some(Reader { holds, read: Read::Files(names, read) })
            }
            Self::Number { .. } | Self::Choice(_) => None,
        }
    }

    /// Whether it names a file or a folder, which a scenario must give.
    pub fn is_file(self) -> bool {
        self.reader().is_some()
    }

    fn allows(self, value: &ParamValue) -> bool {
        match (self, value) {
            (Self::Number { min, max, .. }, ParamValue::Number(number)) => {
                (min..=max).contains(number)
            }
            (Self::Choice(words), ParamValue::Word(word)) => words.contains(&word.as_str()),
            (Self::File { .. } | Self::Files { .. }, ParamValue::File(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(out, "{number}"),
            Self::Word(word) | Self::File(Content { path: word, .. }) => write!(out, "\"{word}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[Param] = &[
        Param {
            name: "beta",
            about: "",
            kind: ParamKind::Number { default: 0.7, min: 0.1, max: 0.9 },
        },
        Param { name: "mode", about: "", kind: ParamKind::Choice(&["code", "paper"]) },
    ];

    #[test]
    fn what_is_not_given_has_its_default() {
        let params = Params::resolve(LIST, &[]).unwrap();
        assert!((params.number("beta") - 0.7).abs() < 1e-12);
        assert_eq!(params.choice("mode"), "code");
    }

    #[test]
    fn unknown_name_lists_every_known_one() {
        let given = [("bete".to_owned(), ParamValue::Number(0.5))];
        let error = Params::resolve(LIST, &given).unwrap_err();
        assert_eq!(error.to_string(), "`bete` = 0.5: allowed is beta, mode");
    }

    #[test]
    fn nan_is_out_of_every_range() {
        let given = [("beta".to_owned(), ParamValue::Number(f64::NAN))];
        assert!(Params::resolve(LIST, &given).is_err());
    }

    const FILE: &[Param] = &[Param {
        name: "policy",
        about: "",
        kind: ParamKind::File {
            holds: "a file that begins with P",
            read: |bytes| match bytes.first() {
                Some(b'P') => Ok(Arc::new(bytes.len())),
                _ => Err("no P".to_owned()),
            },
        },
    }];

    fn opened(load: &mut Loader) -> Result<Params, ParamError> {
        let given = [("policy".to_owned(), ParamValue::Word("dir/p".to_owned()))];
        Params::resolve(FILE, &open(FILE, &given, load)?)
    }

    #[test]
    fn a_file_reaches_the_controller_as_what_it_holds() {
        let params = opened(&mut |name, _| Ok(format!("P{name}").into_bytes())).unwrap();
        assert_eq!(*params.file::<usize>("policy"), 6);
    }

    #[test]
    fn a_file_that_is_absent_unreadable_or_wrong_is_refused_by_name() {
        let absent = Params::resolve(FILE, &[]).unwrap_err().to_string();
        assert_eq!(absent, "`policy` = absent: allowed is a file that begins with P");
        let unread = opened(&mut |_, _| Err("a file that can be read".to_owned())).unwrap_err();
        assert_eq!(unread.to_string(), "`policy` = \"dir/p\": allowed is a file that can be read");
        let wrong = opened(&mut |_, _| Ok(b"Q".to_vec())).unwrap_err().to_string();
        assert_eq!(wrong, "`policy` = \"dir/p\": allowed is a file that begins with P (no P)");
    }

    #[test]
    fn a_name_is_no_file_before_it_is_opened() {
        let given = [("policy".to_owned(), ParamValue::Word("dir/p".to_owned()))];
        assert!(Params::resolve(FILE, &given).is_err());
    }

    #[test]
    fn files_are_equal_by_name_and_content() {
        let given = [("policy".to_owned(), ParamValue::Word("p".to_owned()))];
        let with =
            |bytes: &'static [u8]| open(FILE, &given, &mut |_, _| Ok(bytes.to_vec())).unwrap();
        assert_eq!(with(b"P1"), with(b"P1"));
        assert_ne!(with(b"P1"), with(b"P2"));
    }

    const FOLDER: &[Param] = &[Param {
        name: "policy",
        about: "",
        kind: ParamKind::Files {
            holds: "a folder of two files that begin with P",
            names: &["a", "b"],
            read: |files| match files.iter().find(|file| file.first() != Some(&b'P')) {
                None => Ok(Arc::new(files.concat())),
                Some(_) => Err("no P".to_owned()),
            },
        },
    }];

    fn folder(load: &mut Loader) -> Result<Vec<(String, ParamValue)>, ParamError> {
        open(FOLDER, &[("policy".to_owned(), ParamValue::Word("dir/".to_owned()))], load)
    }

    #[test]
    fn the_files_of_a_folder_reach_the_controller_in_their_order() {
        let given = folder(&mut |name, _| Ok(format!("P{name}").into_bytes())).unwrap();
        let params = Params::resolve(FOLDER, &given).unwrap();
        assert_eq!(*params.file::<Vec<u8>>("policy"), b"Pdir/aPdir/b");
    }

    #[test]
    fn a_file_of_a_folder_that_is_unreadable_or_wrong_is_refused_by_name() {
        let unread = folder(&mut |name, _| match name {
            "dir/a" => Ok(b"P".to_vec()),
            _ => Err("a file that can be read".to_owned()),
        });
        assert_eq!(
            unread.unwrap_err().to_string(),
            "`policy` = \"dir/\": allowed is a folder of two files that begin with P \
             (b: allowed is a file that can be read)"
        );
        let wrong = folder(&mut |_, _| Ok(b"Q".to_vec())).unwrap_err().to_string();
        assert!(wrong.ends_with("that begin with P (no P)"), "{wrong}");
    }

    #[test]
    fn a_folder_is_known_by_what_each_of_its_files_holds() {
        let with = |a: &'static [u8], b: &'static [u8]| {
            folder(&mut |name, _| Ok(if name == "dir/a" { a } else { b }.to_vec())).unwrap()
        };
        assert_eq!(with(b"P1", b"P2"), with(b"P1", b"P2"));
        assert_ne!(with(b"P1", b"P2"), with(b"P1", b"P3"));
        assert_ne!(with(b"PP", b"P"), with(b"P", b"PP"));
    }
}
