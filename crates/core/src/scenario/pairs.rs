//! Pairs in a file: of exactly two values. As a tuple, serde would ignore a third.
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A field that is a pair.
pub(super) fn pair<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<(T, T)>, D::Error> {
    Pair::deserialize(from).map(|Pair(first, second)| Some((first, second)))
}

/// A field that is a list of pairs.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Vec<(T, T)>, D::Error> {
    let found = Vec::<Pair<T>>::deserialize(from)?;
    Ok(found.into_iter().map(|Pair(first, second)| (first, second)).collect())
}

/// A field that may be a list of pairs.
pub(super) fn optional_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Vec<(T, T)>>, D::Error> {
    list(from).map(Some)
}

struct Pair<T>(T, T);

struct PairVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pair<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_tuple(2, PairVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for PairVisitor<T> {
    type Value = Pair<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a pair of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Pair<T>, A::Error> {
        let mut next =
            |length| values.next_element()?.ok_or_else(|| A::Error::invalid_length(length, &self));
        let pair = Pair(next(0)?, next(1)?);
        let mut length = 2;
        while values.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        if length > 2 { Err(A::Error::invalid_length(length, &self)) } else { Ok(pair) }
    }
}
