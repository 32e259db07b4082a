//! A value of a TOML text, or of a table made here, that serde reads.
use super::problem::{Problem, Step};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Value;
use toml::de::DeValue;

/// The field that names the variant of an enum.
const KIND: &str = "kind";

/// A value.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    /// Of a text.
    Parsed(&'a DeValue<'a>),
    /// Of a table made here.
    Made(&'a Value),
    /// All of a table made here.
    Root(&'a toml::Table),
}

type Fields<'a> = Vec<(&'a str, Node<'a>)>;

/// A value by its type.
enum View<'a> {
    Word(&'a str),
    /// `None` if it is too large for TOML.
    Integer(Option<i64>),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    List(Vec<Node<'a>>),
    Table(Fields<'a>),
}

impl<'a> Node<'a> {
    fn view(self) -> View<'a> {
        match self {
            Self::Parsed(value) => parsed(value),
            Self::Made(value) => made(value),
            Self::Root(table) => fields(table),
        }
    }

    /// The value as the text has it; no more than five members of a list.
    pub(super) fn show(self) -> String {
        match (self.view(), self) {
            (View::Word(text), _) => format!("{text:?}"),
            (View::List(items), _) => {
                let items: Vec<String> = items.iter().take(5).map(|item| item.show()).collect();
                format!("[{}]", items.join(", "))
            }
            (View::Table(_), _) => "a table".to_owned(),
            (View::Datetime(time), _) => time,
            (_, Self::Parsed(DeValue::Integer(number))) => number.as_str().to_owned(),
            (_, Self::Parsed(DeValue::Float(number))) => number.as_str().to_owned(),
            (View::Float(_), Self::Made(value)) => value.to_string(),
            (View::Boolean(on), _) => on.to_string(),
            (View::Integer(number), _) => number.unwrap_or_default().to_string(),
            (View::Float(number), _) => number.to_string(),
        }
    }

    fn problem(self, allowed: impl Into<String>) -> Problem {
        Problem::new(self.show(), allowed)
    }

    /// The whole number, at most `max` and not below 0.
    fn whole(self, max: u64) -> Result<u64, Problem> {
        match self.view() {
            View::Integer(Some(number)) => u64::try_from(number).ok().filter(|&n| n <= max),
            View::Integer(None) => return Err(self.problem(too_large())),
            _ => None,
        }
        .ok_or_else(|| self.problem(format!("a whole number in [0, {max}]")))
    }

    fn number(self) -> Result<f64, Problem> {
        match self.view() {
            View::Float(number) => Ok(number),
            View::Integer(Some(number)) => Ok(number as f64),
            // Beyond 64 bits: the field says itself what is too large for it.
            View::Integer(None) => self.decimal().ok_or_else(|| self.problem(too_large())),
            _ => Err(self.problem("a number")),
        }
    }

    /// A whole number that is written in decimal, of any size.
    fn decimal(self) -> Option<f64> {
        match self {
            Self::Parsed(DeValue::Integer(number)) if number.radix() == 10 => {
                number.as_str().parse().ok()
            }
            _ => None,
        }
    }

    fn list(self, allowed: &str) -> Result<List<'a>, Problem> {
        match self.view() {
            View::List(items) => Ok(List { items: items.into_iter().enumerate() }),
            _ => Err(self.problem(allowed)),
        }
    }

    fn table(self, allowed: &str) -> Result<Fields<'a>, Problem> {
        match self.view() {
            View::Table(fields) => Ok(fields),
            _ => Err(self.problem(allowed)),
        }
    }
}

fn too_large() -> String {
    format!("a whole number of at most {}", i64::MAX)
}

fn parsed<'a>(value: &'a DeValue<'a>) -> View<'a> {
    match value {
        DeValue::String(text) => View::Word(text),
        DeValue::Integer(number) => {
            View::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        // What is not a number to us, the parser would have refused.
        DeValue::Float(number) => View::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(on) => View::Boolean(*on),
        DeValue::Datetime(time) => View::Datetime(time.to_string()),
        DeValue::Array(items) => {
            View::List(items.iter().map(|item| Node::Parsed(item.get_ref())).collect())
        }
        DeValue::Table(table) => View::Table(
            table
                .iter()
                .map(|(key, value)| (key.get_ref().as_ref(), Node::Parsed(value.get_ref())))
                .collect(),
        ),
    }
}

fn made(value: &Value) -> View<'_> {
    match value {
        Value::String(text) => View::Word(text),
        Value::Integer(number) => View::Integer(Some(*number)),
        Value::Float(number) => View::Float(*number),
        Value::Boolean(on) => View::Boolean(*on),
        Value::Datetime(time) => View::Datetime(time.to_string()),
        Value::Array(items) => View::List(items.iter().map(Node::Made).collect()),
        Value::Table(table) => fields(table),
    }
}

fn fields(table: &toml::Table) -> View<'_> {
    View::Table(table.iter().map(|(key, value)| (key.as_str(), Node::Made(value))).collect())
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $kind:ty),*) => {
        $(fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
            let max = u64::from(<$kind>::MAX).min(i64::MAX as u64);
            let number = self.whole(max)?;
            visitor.$visit(number as $kind).map_err(|problem: Problem| problem.of(|| self.show()))
        })*
    };
}

impl<'a> Deserializer<'a> for Node<'a> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        let found = match self.view() {
            View::Word(text) => visitor.visit_borrowed_str(text),
            View::Integer(Some(number)) => visitor.visit_i64(number),
            View::Integer(None) => Err(self.problem(too_large())),
            View::Float(number) => visitor.visit_f64(number),
            View::Boolean(on) => visitor.visit_bool(on),
            View::Datetime(time) => visitor.visit_string(time),
            View::List(items) => visitor.visit_seq(List { items: items.into_iter().enumerate() }),
            View::Table(fields) => visitor.visit_map(Table::new(fields)),
        };
        found.map_err(|problem: Problem| problem.of(|| self.show()))
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.view() {
            View::Boolean(on) => visitor.visit_bool(on),
            _ => Err(self.problem("true or false")),
        }
    }

    whole_numbers!(
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64
    );

    fn deserialize_i64<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.view() {
            View::Integer(Some(number)) => visitor.visit_i64(number),
            View::Integer(None) => Err(self.problem(too_large())),
            _ => Err(self.problem("a whole number")),
        }
    }

    fn deserialize_f32<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_f64<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.view() {
            View::Word(text) => visitor
                .visit_borrowed_str(text)
                .map_err(|problem: Problem| problem.of(|| self.show())),
            _ => Err(self.problem("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor
            .visit_seq(self.list("a list")?)
            .map_err(|problem: Problem| problem.of(|| self.show()))
    }

    fn deserialize_tuple<V: Visitor<'a>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let allowed = match length {
            2 => "a pair of numbers".to_owned(),
            _ => format!("a list of {length} values"),
        };
        let list = self.list(&allowed)?;
        if list.items.len() != length {
            return Err(self.problem(allowed));
        }
        visitor.visit_seq(list).map_err(|problem: Problem| problem.of(|| self.show()))
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor
            .visit_map(Table::new(self.table("a table")?))
            .map_err(|problem: Problem| problem.of(|| self.show()))
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let variant = match self.view() {
            View::Word(name) => Variant { node: self, name, step: None, fields: None },
            View::Table(mut fields) => {
                let kind = fields.iter().position(|(key, _)| *key == KIND);
                let kind = kind.ok_or_else(|| Problem::missing_field(KIND))?;
                let (_, node) = fields.remove(kind);
                let View::Word(name) = node.view() else {
                    let problem = node.problem(known.join(", "));
                    return Err(problem.below(Step::Key(KIND.to_owned())));
                };
                let step = Some(Step::Key(KIND.to_owned()));
                Variant { node: self, name, step, fields: Some(fields) }
            }
            _ => return Err(self.problem(known.join(", "))),
        };
        visitor.visit_enum(variant).map_err(|problem: Problem| problem.of(|| self.show()))
    }

    fn deserialize_identifier<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_str(visitor)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        i8 i16 i32 i128 u128 char bytes byte_buf unit unit_struct tuple_struct ignored_any
    }
}

/// The members of a list that are left.
struct List<'a> {
    items: std::iter::Enumerate<std::vec::IntoIter<Node<'a>>>,
}

impl<'a> SeqAccess<'a> for List<'a> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Problem> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let found = seed.deserialize(node);
        found.map(Some).map_err(|problem| problem.below(Step::Index(index)))
    }
}

/// The fields of a table that are left.
struct Table<'a> {
    fields: std::vec::IntoIter<(&'a str, Node<'a>)>,
    now: Option<(&'a str, Node<'a>)>,
}

impl<'a> Table<'a> {
    fn new(fields: Fields<'a>) -> Self {
        Self { fields: fields.into_iter(), now: None }
    }
}

impl<'a> MapAccess<'a> for Table<'a> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        self.now = self.fields.next();
        let Some((key, node)) = self.now else { return Ok(None) };
        let name: StrDeserializer<'_, Problem> = key.into_deserializer();
        let found = seed.deserialize(name);
        let named = |problem: Problem| problem.of(|| node.show()).below(Step::Key(key.to_owned()));
        found.map(Some).map_err(named)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let (key, node) = self.now.take().expect("a value is asked for after its key");
        seed.deserialize(node).map_err(|problem| problem.below(Step::Key(key.to_owned())))
    }
}

/// An enum: its variant's name alone, or a table with it.
struct Variant<'a> {
    node: Node<'a>,
    name: &'a str,
    /// Where the name stands in the table.
    step: Option<Step>,
    fields: Option<Fields<'a>>,
}

impl<'a> EnumAccess<'a> for Variant<'a> {
    type Error = Problem;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'a>>(
        mut self,
        seed: V,
    ) -> Result<(V::Value, Self), Problem> {
        let name: StrDeserializer<'_, Problem> = self.name.into_deserializer();
        match seed.deserialize(name) {
            Ok(variant) => Ok((variant, self)),
            Err(problem) => Err(match self.step.take() {
                Some(step) => problem.below(step),
                None => problem,
            }),
        }
    }
}

impl<'a> VariantAccess<'a> for Variant<'a> {
    type Error = Problem;

    fn unit_variant(self) -> Result<(), Problem> {
        match self.fields {
            None => Ok(()),
            Some(_) => Err(self.node.problem(format!("{:?} alone", self.name))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Problem> {
        match self.fields {
            Some(fields) => seed.deserialize(MapAccessDeserializer::new(Table::new(fields))),
            None => Err(self.no_table()),
        }
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, _: V) -> Result<V::Value, Problem> {
        Err(Problem::custom("a table with fields"))
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.fields {
            Some(fields) => visitor.visit_map(Table::new(fields)),
            None => Err(self.no_table()),
        }
    }
}

impl Variant<'_> {
    fn no_table(&self) -> Problem {
        self.node.problem(format!("a table with a field `{KIND}`"))
    }
}
