//! Where a field or a syntax error is in the text of a file.
use super::Fault;
use toml::de::{DeTable, DeValue, Error};

/// The line of the field at `path`, or of its nearest enclosing table; 0 if there is none.
pub fn line_of_path(text: &str, path: &str) -> usize {
    line_of(text, path.split(['.', '[', ']']).filter(|step| !step.is_empty()))
}

/// As [`line_of_path`], by steps, which may hold dots themselves.
pub fn line_of<'a>(text: &str, steps: impl IntoIterator<Item = &'a str>) -> usize {
    DeTable::parse(text).map_or(0, |root| line_below(text, root.get_ref(), steps))
}

/// As [`line_of`], in the table that `text` is.
pub(super) fn line_below<'a>(
    text: &str,
    root: &DeTable,
    steps: impl IntoIterator<Item = &'a str>,
) -> usize {
    let mut offset = None;
    let mut table = Some(root);
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

/// The line, from 1 (0 for none), and the sentence for a text that is not TOML. It has no fields, so
/// the sentence quotes the line, and says what the parser says.
pub(super) fn syntax(text: &str, error: &Error) -> (usize, String) {
    let Some(span) = error.span() else { return (0, super::one_line(error.message())) };
    let number = line_at(text, span.start);
    let line = text.lines().nth(number - 1).unwrap_or_default();
    let allowed = format!("TOML ({})", super::one_line(error.message()));
    let fault = match line.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Fault::new(key.trim(), value.trim(), allowed)
        }
        _ => Fault::new("line", format!("{:?}", line.trim()), allowed),
    };
    (number, fault.to_string())
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}
