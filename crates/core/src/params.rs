//! Settings of controllers. The list in a controller's file is the truth: it fills in defaults,
//! checks ranges, and prints the help.
use std::fmt;

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
        /// Used when a scenario is silent.
        default: f64,
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },
    /// One of a few words; the first is the default.
    Choice(&'static [&'static str]),
}

/// A value given for a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number (also from a TOML integer or boolean: true is 1).
    Number(f64),
    /// A word.
    Word(String),
}

/// A complete, checked set of settings.
#[derive(Clone, Debug)]
pub struct Params {
    specs: &'static [Param],
    values: Vec<ParamValue>,
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
    /// If a name is unknown, a number out of range or not finite, or a word not among the choices.
    pub fn resolve(
        specs: &'static [Param],
        given: &[(String, ParamValue)],
    ) -> Result<Self, ParamError> {
        let mut values: Vec<ParamValue> = specs.iter().map(|spec| spec.kind.default()).collect();
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
            values[index] = value.clone();
        }
        Ok(Self { specs, values })
    }

    /// The defaults.
    pub fn defaults(specs: &'static [Param]) -> Self {
        Self { specs, values: specs.iter().map(|spec| spec.kind.default()).collect() }
    }

    /// The number called `name`.
    ///
    /// # Panics
    ///
    /// If the controller's own list has no such number: a mistake in its file.
    pub fn number(&self, name: &str) -> f64 {
        match &self.values[self.index(name)] {
            ParamValue::Number(number) => *number,
            ParamValue::Word(word) => panic!("`{name}` is the word {word}, not a number"),
        }
    }

    /// The word called `name`.
    ///
    /// # Panics
    ///
    /// If the controller's own list has no such choice: a mistake in its file.
    pub fn choice(&self, name: &str) -> &str {
        match &self.values[self.index(name)] {
            ParamValue::Word(word) => word,
            ParamValue::Number(number) => panic!("`{name}` is the number {number}, not a word"),
        }
    }

    /// All settings as text, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ParamValue)> {
        self.specs.iter().map(|spec| spec.name).zip(&self.values)
    }

    fn index(&self, name: &str) -> usize {
        self.specs
            .iter()
            .position(|spec| spec.name == name)
            .unwrap_or_else(|| panic!("`{name}` is not in the controller's own list"))
    }
}

impl ParamKind {
    /// The value used when a scenario is silent.
    pub fn default(self) -> ParamValue {
        match self {
            Self::Number { default, .. } => ParamValue::Number(default),
            Self::Choice(words) => ParamValue::Word(words[0].to_owned()),
        }
    }

    /// What is allowed, for an error or a help text.
    pub fn allowed(self) -> String {
        match self {
            Self::Number { min, max, .. } => format!("a number in [{min}, {max}]"),
            Self::Choice(words) => words.join(" | "),
        }
    }

    fn allows(self, value: &ParamValue) -> bool {
        match (self, value) {
            (Self::Number { min, max, .. }, ParamValue::Number(number)) => {
                (min..=max).contains(number)
            }
            (Self::Choice(words), ParamValue::Word(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(out, "{number}"),
            Self::Word(word) => write!(out, "\"{word}\""),
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
}
