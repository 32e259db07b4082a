//! From a parser's error, or a fault's path, to the line of the file and one sentence: which field,
//! what stands there, what may.
use super::{Fault, one_line, renamed};
use std::ops::Range;
use toml::de::{DeTable, DeValue, Error};

/// A place in a parsed file.
struct Place<'a, 'b> {
    path: String,
    value: &'a DeValue<'b>,
}

/// The line, from 1 (0 for none), and the sentence for a syntax or type error in `text`.
pub fn explain(text: &str, error: &Error) -> (usize, String) {
    let message = one_line(error.message());
    let Some(span) = error.span() else { return (0, message) };
    let line = line_at(text, span.start);
    let Ok(root) = DeTable::parse(text) else { return (line, syntax(text, line, &message)) };
    if message == "duplicate key" {
        return (line, syntax(text, line, &message));
    }
    let root = DeValue::Table(root.into_inner());
    let fault = type_fault(place(&root, &span), &message);
    (line_of_path(text, &fault.path).max(line), fault.to_string())
}

/// What is wrong where `text`, which is TOML, is of another type than asked for.
pub fn fault(text: &str, error: &Error) -> Fault {
    let message = one_line(error.message());
    match (error.span(), DeTable::parse(text)) {
        (Some(span), Ok(root)) => {
            let root = DeValue::Table(root.into_inner());
            type_fault(place(&root, &span), &message)
        }
        _ => Fault::new("scenario", "a table", message),
    }
}

/// The line of the field at `path`, or of its nearest enclosing table; 0 if there is none.
pub fn line_of_path(text: &str, path: &str) -> usize {
    line_of(text, path.split(['.', '[', ']']).filter(|step| !step.is_empty()))
}

/// As [`line_of_path`], by steps, which may hold dots themselves.
pub fn line_of<'a>(text: &str, steps: impl IntoIterator<Item = &'a str>) -> usize {
    let Ok(root) = DeTable::parse(text) else { return 0 };
    let mut offset = None;
    let mut table = Some(root.get_ref());
    let mut value: Option<&DeValue> = None;
    for step in steps {
        let next = match (table, value, step.parse::<usize>()) {
            (Some(table), ..) => {
                table.get_key_value(step).map(|(key, value)| (key.span().start, value.get_ref()))
            }
            (None, Some(DeValue::Array(items)), Ok(index)) => {
                items.get(index).map(|item| (item.span().start, item.get_ref()))
            }
            _ => None,
        };
        let Some((start, found)) = next else { break };
        offset = Some(start);
        table = found.as_table();
        value = Some(found);
    }
    offset.map_or(0, |offset| line_at(text, offset))
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// What is no TOML at all has no path: the line itself is quoted.
fn syntax(text: &str, line: usize, message: &str) -> String {
    let line = text.lines().nth(line - 1).unwrap_or_default();
    let allowed = format!("TOML ({message})");
    match line.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Fault::new(key.trim(), value.trim(), allowed).to_string()
        }
        _ => Fault::new("line", format!("{:?}", line.trim()), allowed).to_string(),
    }
}

/// The key or value that stands at `span`, or all.
fn place<'a, 'b>(root: &'a DeValue<'b>, span: &Range<usize>) -> Place<'a, 'b> {
    find(root, span).unwrap_or(Place { path: String::new(), value: root })
}

/// The key or value that stands at `span`; of several, the innermost.
fn find<'a, 'b>(root: &'a DeValue<'b>, span: &Range<usize>) -> Option<Place<'a, 'b>> {
    let mut found: Option<Place> = None;
    let mut open = vec![(String::new(), root)];
    while let Some((path, value)) = open.pop() {
        for (step, key, child) in children(value) {
            let path = if step.starts_with('[') || path.is_empty() {
                format!("{path}{step}")
            } else {
                format!("{path}.{step}")
            };
            let here = key.is_some_and(|key| key == *span) || child.span() == *span;
            let deeper = found.as_ref().is_none_or(|place| place.path.len() < path.len());
            if here && deeper {
                found = Some(Place { path: path.clone(), value: child.get_ref() });
            }
            open.push((path, child.get_ref()));
        }
    }
    found
}

type Child<'a, 'b> = (String, Option<Range<usize>>, &'a toml::Spanned<DeValue<'b>>);

fn children<'a, 'b>(value: &'a DeValue<'b>) -> Vec<Child<'a, 'b>> {
    match value {
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), Some(key.span()), value))
            .collect(),
        DeValue::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (format!("[{index}]"), None, item))
            .collect(),
        _ => Vec::new(),
    }
}

/// serde's message about `place` in our words. A tagged table is read whole before its fields are,
/// so its errors point at the table, and the field is found by its name or its value.
fn type_fault(place: Place, message: &str) -> Fault {
    let Place { mut path, mut value } = place;
    let name = message.split('`').nth(1).unwrap_or_default();
    if message.starts_with("unknown field") {
        if path.rsplit('.').next() != Some(name) {
            step_into(&mut path, &mut value, name);
        }
        let allowed = renamed(name, message)
            .unwrap_or_else(|| choices(message, "no field at all", "a field named "));
        return Fault::new(&path, show(value), allowed);
    }
    if message.starts_with("missing field") {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        return Fault::new(&path, "absent", "a value: there is no default");
    }
    if message.starts_with("unknown variant") {
        if value.is_table() {
            step_into(&mut path, &mut value, "kind");
        }
        return Fault::new(&path, format!("{name:?}"), choices(message, "nothing", ""));
    }
    let invalid =
        message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    let Some((found, expected)) = invalid.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return Fault::new(&path, show(value), in_words(message));
    };
    if value.is_table() {
        let child = children(value)
            .into_iter()
            .find(|(_, _, child)| one_line(&serde_name(child.get_ref())) == found);
        if let Some((step, ..)) = child {
            step_into(&mut path, &mut value, &step);
        }
    }
    Fault::new(&path, show(value), in_words(expected))
}

fn step_into(path: &mut String, value: &mut &DeValue, step: &str) {
    if let Some(table) = value.as_table() {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(step);
        if let Some(child) = table.get(step) {
            *value = child.get_ref();
        }
    }
}

/// The names in backticks behind the first one.
fn choices(message: &str, none: &str, prefix: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
    if names.is_empty() { none.to_owned() } else { format!("{prefix}{}", names.join(", ")) }
}

/// How serde names a value that it did not expect.
fn serde_name(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("string {text:?}"),
        DeValue::Integer(number) => format!("integer `{}`", number.as_str()),
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.fract() == 0.0 => format!("floating point `{number:.1}`"),
            Ok(number) => format!("floating point `{number}`"),
            Err(_) => String::new(),
        },
        DeValue::Boolean(on) => format!("boolean `{on}`"),
        DeValue::Datetime(_) => String::new(),
        DeValue::Array(_) => "sequence".to_owned(),
        DeValue::Table(_) => "map".to_owned(),
    }
}

fn show(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> =
                items.iter().take(5).map(|item| show(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// What serde expects, without the names of Rust's types.
fn in_words(expected: &str) -> String {
    match expected {
        "f64" => "a number".to_owned(),
        "u32" => format!("a whole number in [0, {}]", u32::MAX),
        "u64" => format!("a whole number in [0, {}]", i64::MAX),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        "a tuple of size 2" => "a pair of numbers".to_owned(),
        _ if expected.starts_with("struct ") => "a table".to_owned(),
        _ if expected.starts_with("internally tagged enum") => {
            "a table with a field `kind`".to_owned()
        }
        _ if expected.contains("untagged enum ParamSpec") => {
            "a number, true, false or a word".to_owned()
        }
        _ if expected.starts_with("invalid length") => "a pair of numbers".to_owned(),
        _ if expected.contains("too large") || expected.contains("any valid TOML value") => {
            format!("a whole number of at most {}", i64::MAX)
        }
        _ => expected.to_owned(),
    }
}
