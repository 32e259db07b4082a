//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng) with one interface: raw IP, nanoseconds.
use ackademy::units::Time;
use std::io::{self, Write};
use std::net::IpAddr;

/// Link type `LINKTYPE_RAW`: an IP header comes first.
const LINKTYPE_RAW: u16 = 101;
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const NAME_RESOLUTION: u32 = 4;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// Options, by the block that they belong to.
const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_DESCRIPTION_TEXT: u16 = 3;
const INTERFACE_RESOLUTION: u16 = 9;
const NAME_OF_IPV4: u16 = 1;
const NAME_OF_IPV6: u16 = 2;
/// Longest text of an option.
const TEXT_MAX: usize = 60_000;

/// What the head of a file says.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// What was simulated.
    pub comment: &'a str,
    /// Name of the interface: where packets are seen.
    pub interface: &'a str,
    /// What that means.
    pub description: &'a str,
    /// Most bytes of a packet in the file.
    pub snaplen: u32,
}

/// A block that is being made.
struct Block(Vec<u8>);

impl Block {
    fn new(kind: u32) -> Self {
        let mut block = Self(Vec::with_capacity(256));
        block.0.extend(kind.to_le_bytes());
        block.0.extend([0; 4]); // its length
        block
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// An option, or a record of a name.
    fn option(mut self, code: u16, value: &[u8]) -> Self {
        self.0.extend(code.to_le_bytes());
        self.0.extend((value.len() as u16).to_le_bytes());
        self.put(value)
    }

    fn text(self, code: u16, text: &str) -> Self {
        let mut end = text.len().min(TEXT_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.option(code, &text.as_bytes()[..end])
    }

    fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        let length = (self.0.len() as u32 + 4).to_le_bytes();
        self.0[4..8].copy_from_slice(&length);
        out.write_all(&self.0)?;
        out.write_all(&length)
    }
}

/// Begins a file: its section and its interface.
pub fn write_head(out: &mut impl Write, head: &Head) -> io::Result<()> {
    Block::new(SECTION_HEADER)
        .put(&BYTE_ORDER_MAGIC.to_le_bytes())
        .put(&[1, 0, 0, 0]) // version 1.0
        .put(&(-1_i64).to_le_bytes()) // of unknown length
        .text(COMMENT, head.comment)
        .text(SECTION_APPLICATION, concat!("ackademy ", env!("CARGO_PKG_VERSION")))
        .option(0, &[])
        .write(out)?;
    Block::new(INTERFACE_DESCRIPTION)
        .put(&u32::from(LINKTYPE_RAW).to_le_bytes())
        .put(&head.snaplen.to_le_bytes())
        .text(INTERFACE_NAME, head.interface)
        .text(INTERFACE_DESCRIPTION_TEXT, head.description)
        .option(INTERFACE_RESOLUTION, &[9]) // 10^-9 s
        .option(0, &[])
        .write(out)
}

/// Names addresses.
pub fn write_names(
    out: &mut impl Write,
    names: impl Iterator<Item = (IpAddr, String)>,
) -> io::Result<()> {
    let mut block = Block::new(NAME_RESOLUTION);
    for (address, name) in names {
        let mut value = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let code = if address.is_ipv4() { NAME_OF_IPV4 } else { NAME_OF_IPV6 };
        value.extend(name.bytes().filter(|&byte| byte != 0).take(255));
        value.push(0);
        block = block.option(code, &value);
    }
    block.option(0, &[]).write(out)
}

/// A packet of `length` bytes, of which `bytes` are kept.
pub fn write_packet(out: &mut impl Write, at: Time, bytes: &[u8], length: usize) -> io::Result<()> {
    Block::new(ENHANCED_PACKET)
        .put(&0_u32.to_le_bytes())
        .put(&((at.0 >> 32) as u32).to_le_bytes())
        .put(&(at.0 as u32).to_le_bytes())
        .put(&(bytes.len() as u32).to_le_bytes())
        .put(&(length as u32).to_le_bytes())
        .put(bytes)
        .write(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_length_at_both_ends_and_is_padded() {
        let mut out = Vec::new();
        write_packet(&mut out, Time((3 << 32) | 7), &[1, 2, 3, 4, 5], 1500).expect("memory");
        let words: Vec<u32> = out
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        assert_eq!(words, [6, 40, 0, 3, 7, 5, 1500, 0x0403_0201, 5, 40]);
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let mut out = Vec::new();
        let comment = "ü".repeat(TEXT_MAX);
        let head = Head { comment: &comment, interface: "a", description: "b", snaplen: 128 };
        write_head(&mut out, &head).expect("memory");
        assert_eq!(u16::from_le_bytes([out[26], out[27]]) as usize, TEXT_MAX);
    }
}
