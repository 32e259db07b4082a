//! What client and server tell each other. Numbers are big-endian.
//!
//! ```text
//! client, stream 0   u16 length, name        u64 from where on
//! server, stream 0            u8 0, u64 size, u64 tag          or: u8 1, u16 length, why not
//! server, a stream for each piece                    at most 1 MiB, in order; then stream 0 ends
//! ```
//!
//! Data goes in pieces: noq's receiver closes a connection in one of whose streams 1024 gaps are open, which slow start
//! over a deep queue reaches.
use noq::{ReadExactError, RecvStream};

/// What both ends speak (ALPN).
pub(super) const ALPN: &[u8] = b"ackademy-files/1";
/// Of a piece: fewer packets than noq allows gaps.
pub(super) const PIECE_BYTES: u64 = 1 << 20;
/// Of a name.
pub(super) const NAME_MAX: usize = 4096;

const FOUND: u8 = 0;
const REFUSED: u8 = 1;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The file's size, and a number that changes with the file.
    Found { size: u64, tag: u64 },
    /// Why there is none.
    Refused(String),
}

impl Answer {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Found { size, tag } => {
                [&[FOUND][..], &size.to_be_bytes(), &tag.to_be_bytes()].concat()
            }
            Self::Refused(why) => [&[REFUSED][..], &text(why)].concat(),
        }
    }

    pub(super) async fn read(stream: &mut RecvStream) -> Result<Self, ReadExactError> {
        let mut kind = [0];
        stream.read_exact(&mut kind).await?;
        if kind != [FOUND] {
            return Ok(Self::Refused(read_text(stream).await?));
        }
        let size = read_number(stream).await?;
        Ok(Self::Found { size, tag: read_number(stream).await? })
    }
}

/// A text with its length; a longer one is cut.
pub(super) fn text(text: &str) -> Vec<u8> {
    let bytes = &text.as_bytes()[..text.len().min(NAME_MAX)];
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

/// A text with its length, without what a terminal would take for more than text.
pub(super) async fn read_text(stream: &mut RecvStream) -> Result<String, ReadExactError> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).await?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length)).min(NAME_MAX)];
    stream.read_exact(&mut bytes).await?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect())
}

pub(super) async fn read_number(stream: &mut RecvStream) -> Result<u64, ReadExactError> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).await?;
    Ok(u64::from_be_bytes(bytes))
}
