//! Reads safetensors, the container of policies: eight bytes of length, a JSON header, the numbers.
//! Untrusted input: whatever is wrong becomes one line that names field, value and what is allowed.
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// Longest header, in bytes; the format's own limit is 100 MB.
const HEADER_MAX: u64 = 1 << 20;

/// The tensors of a file.
#[derive(Debug)]
pub struct Tensors<'a> {
    header: Header,
    data: &'a [u8],
}

#[derive(Debug, Default)]
struct Header {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Place>,
    /// A name that occurs twice is ambiguous.
    twice: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Place {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'a> Tensors<'a> {
    /// Reads the header of a file.
    ///
    /// # Errors
    ///
    /// If it is not a safetensors header.
    pub fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let fault = |length: u64, allowed: &str| {
            Err(format!("length of the header = {length}: allowed is {allowed}"))
        };
        let Some((length, rest)) = bytes.split_first_chunk() else {
            return Err(format!("{} bytes: allowed is safetensors", bytes.len()));
        };
        let length = u64::from_le_bytes(*length);
        if length > HEADER_MAX {
            return fault(length, &format!("at most {HEADER_MAX}"));
        }
        let Some((header, data)) = rest.split_at_checked(length as usize) else {
            return fault(length, &format!("at most the {} bytes of the rest", rest.len()));
        };
        let header: Header = serde_json::from_slice(header).map_err(|error| {
            // The error's text may quote the file at any length.
            format!("header: allowed is JSON of tensors (column {} is not)", error.column())
        })?;
        match header.twice {
            Some(name) => Err(format!("name {:?} = twice: allowed is once", short(&name))),
            None => Ok(Self { header, data }),
        }
    }

    /// The metadata value of `key`.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.header.metadata.get(key).map(String::as_str)
    }

    /// Names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.header.tensors.keys().map(String::as_str)
    }

    /// Checks that the tensors fill the file without gaps or overlap, as the format requires. A copy of
    /// all tensors is then no larger than the file.
    ///
    /// # Errors
    ///
    /// If they do not.
    pub fn check_tiled(&self) -> Result<(), String> {
        let mut places: Vec<_> = self.header.tensors.iter().collect();
        places.sort_by_key(|(_, place)| place.data_offsets);
        let mut expected = 0;
        for (name, place) in places {
            let (start, end) = place.data_offsets;
            if start != expected || end < start {
                let name = short(name);
                return Err(format!(
                    "data_offsets of `{name}` = ({start}, {end}): allowed is a start at {expected}, \
                     where the tensor before it ends"
                ));
            }
            expected = end;
        }
        if expected == self.data.len() as u64 {
            return Ok(());
        }
        let length = self.data.len();
        Err(format!("tensors end at {expected}: allowed is {length}, where the file ends"))
    }

    /// The tensor called `name`, of dtype `F32` and of this shape, in row-major order.
    ///
    /// # Errors
    ///
    /// If there is no such tensor.
    pub fn f32s_of(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<impl ExactSizeIterator<Item = f32> + use<'a>, String> {
        let (place, chunks) =
            self.tensor(name, "F32", &format!("F32 tensor of shape {shape:?}"))?;
        if !place.shape.iter().copied().eq(shape.iter().map(|&length| length as u64)) {
            return Err(fault(name, "shape", &place.shape, &format!("{shape:?}")));
        }
        Ok(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)))
    }

    /// The vector called `name`, of dtype `U8`.
    ///
    /// # Errors
    ///
    /// If there is no such tensor.
    pub fn u8s(&self, name: &str) -> Result<&'a [u8], String> {
        Ok(self.chunks::<1>(name, "U8")?.as_flattened())
    }

    /// The vector called `name`, of dtype `U32`, read from the file as it is asked for: tensors may
    /// overlap, so that copies can be many times the file.
    ///
    /// # Errors
    ///
    /// If there is no such tensor.
    pub fn u32s(&self, name: &str) -> Result<impl ExactSizeIterator<Item = u32> + use<'a>, String> {
        let chunks = self.chunks(name, "U32")?;
        Ok(chunks.iter().map(|bytes| u32::from_le_bytes(*bytes)))
    }

    /// The vector called `name`, of dtype `F32`, read as [`Self::u32s`] is.
    ///
    /// # Errors
    ///
    /// If there is no such tensor.
    pub fn f32s(&self, name: &str) -> Result<impl ExactSizeIterator<Item = f32> + use<'a>, String> {
        let chunks = self.chunks(name, "F32")?;
        Ok(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)))
    }

    fn chunks<const WIDTH: usize>(
        &self,
        name: &str,
        dtype: &str,
    ) -> Result<&'a [[u8; WIDTH]], String> {
        let (place, chunks) = self.tensor(name, dtype, &format!("vector of {dtype}"))?;
        match place.shape[..] {
            [_] => Ok(chunks),
            _ => Err(fault(name, "shape", &place.shape, "one number")),
        }
    }

    /// The numbers of a tensor of any shape; `wanted` says which is looked for.
    fn tensor<const WIDTH: usize>(
        &self,
        name: &str,
        dtype: &str,
        wanted: &str,
    ) -> Result<(&Place, &'a [[u8; WIDTH]]), String> {
        let Some(place) = self.header.tensors.get(name) else {
            let article = if wanted.starts_with('F') { "an" } else { "a" };
            return Err(format!("`{name}` = absent: allowed is {article} {wanted}"));
        };
        if place.dtype != dtype {
            return Err(fault(name, "dtype", &place.dtype, &format!("{dtype:?}")));
        }
        let (start, end) = place.data_offsets;
        let within = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let bytes = within.and_then(|(start, end)| self.data.get(start..end));
        let Some(bytes) = bytes else {
            let allowed = format!("start and end within {} bytes", self.data.len());
            return Err(fault(name, "data_offsets", &place.data_offsets, &allowed));
        };
        let (chunks, rest) = bytes.as_chunks();
        let count = place.shape.iter().try_fold(1_u64, |count, &side| count.checked_mul(side));
        if count != Some(chunks.len() as u64) || !rest.is_empty() {
            let allowed = format!("what {} bytes hold", bytes.len());
            return Err(fault(name, "shape", &place.shape, &allowed));
        }
        Ok((place, chunks))
    }
}

fn fault(name: &str, field: &str, value: &dyn fmt::Debug, allowed: &str) -> String {
    let value: String = format!("{value:?}").chars().take(80).collect();
    format!("{field} of `{name}` = {value}: allowed is {allowed}")
}

/// What an error may quote of a name.
fn short(name: &str) -> String {
    name.chars().filter(|char| !char.is_control()).take(80).collect()
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a table of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut header = Header::default();
        let mut described = false;
        while let Some(name) = map.next_key::<String>()? {
            let repeated = if name == "__metadata__" {
                header.metadata = map.next_value()?;
                std::mem::replace(&mut described, true)
            } else {
                header.tensors.insert(name.clone(), map.next_value()?).is_some()
            };
            if repeated {
                header.twice.get_or_insert(name);
            }
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn vectors_and_metadata_are_read() {
        let header = r#"{"__metadata__":{"kind":"test"},
            "a":{"dtype":"U32","shape":[2],"data_offsets":[0,8]},
            "b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},
            "c":{"dtype":"U8","shape":[1],"data_offsets":[12,13]}}"#;
        let bytes = file(header, &[1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 128, 63, 7]);
        let tensors = Tensors::read(&bytes).unwrap();
        assert_eq!(tensors.metadata("kind"), Some("test"));
        assert!(tensors.u32s("a").unwrap().eq([1, 258]));
        assert!(tensors.f32s("b").unwrap().eq([1.0]));
        assert_eq!(tensors.u8s("c"), Ok(&[7][..]));
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let refused = |bytes: &[u8]| Tensors::read(bytes).unwrap_err();
        assert_eq!(refused(b"1234567"), "7 bytes: allowed is safetensors");
        assert_eq!(
            refused(&[255; 8]),
            "length of the header = 18446744073709551615: allowed is at most 1048576"
        );
        assert_eq!(
            refused(&[9, 0, 0, 0, 0, 0, 0, 0, b'{']),
            "length of the header = 9: allowed is at most the 1 bytes of the rest"
        );
        assert_eq!(
            refused(&file("{\"a\":\n1}", &[])),
            "header: allowed is JSON of tensors (column 1 is not)"
        );
    }

    #[test]
    fn a_tensor_that_does_not_fit_is_refused_by_its_field() {
        let refused = |dtype: &str, shape: &str, offsets: &str| {
            let header = format!(
                r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#
            );
            Tensors::read(&file(&header, &[0; 8])).unwrap().u32s("a").err().unwrap()
        };
        assert_eq!(refused("F32", "[2]", "[0,8]"), "dtype of `a` = \"F32\": allowed is \"U32\"");
        assert_eq!(
            refused("U32", "[1,2]", "[0,8]"),
            "shape of `a` = [1, 2]: allowed is one number"
        );
        assert_eq!(
            refused("U32", "[3]", "[0,8]"),
            "shape of `a` = [3]: allowed is what 8 bytes hold"
        );
        for offsets in ["[0,9]", "[8,4]", "[18446744073709551615,4]"] {
            let message = refused("U32", "[2]", offsets);
            assert!(message.starts_with("data_offsets of `a` = ("), "{message}");
        }
        let empty = file("{}", &[]);
        let absent = Tensors::read(&empty).unwrap().u8s("b").unwrap_err();
        assert_eq!(absent, "`b` = absent: allowed is a vector of U8");
    }
}
