//! Pieces of git's patch format: names, the ids of blobs, binary content.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest, Sha1};

use crate::content::OpenedFile;
use crate::error::Error;

/// The id that git writes for a missing blob.
pub(crate) const NO_ID: &str = "0000000000000000000000000000000000000000";

/// Bytes in each line of binary content; its length is one letter.
const LINE_BYTES: usize = 52;

/// The digits of git's base 85, which are not Adobe's.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// What git would keep under an id.
pub(crate) enum Blob {
    /// Here.
    Bytes(Vec<u8>),
    /// In a file that may be as large as it likes.
    File(OpenedFile),
}

impl Blob {
    pub(crate) fn id(&self) -> Result<String, Error> {
        let mut hash = Sha1::new();
        hash.update(format!("blob {}\0", self.size()));
        self.pieces(|piece| {
            hash.update(piece);
            Ok(())
        })?;
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    /// Writes it as one half of a binary patch.
    pub(crate) fn write_literal(&self, to: &mut dyn Write) -> Result<(), Error> {
        writeln!(to, "literal {}", self.size()).map_err(Error::Write)?;
        let mut packed = ZlibEncoder::new(Base85::new(to), Compression::default());
        self.pieces(|piece| packed.write_all(piece).map_err(Error::Write))?;
        let lines = packed.finish().map_err(Error::Write)?;
        lines.end().map_err(Error::Write)
    }

    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(content) => content.size(),
        }
    }

    fn pieces(&self, mut each: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        match self {
            Self::Bytes(bytes) => each(bytes),
            Self::File(content) => content.pieces(each),
        }
    }
}

/// Quotes a name as C would, if there is anything unusual in it.
pub(crate) fn quote(name: &[u8]) -> Vec<u8> {
    let unusual = |byte: u8| !(b' '..=b'~').contains(&byte) || byte == b'"' || byte == b'\\';
    if !name.iter().copied().any(unusual) {
        return name.to_vec();
    }
    let mut quoted = vec![b'"'];
    for &byte in name {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            b'\r' => quoted.extend(b"\\r"),
            _ if unusual(byte) => quoted.extend(format!("\\{byte:03o}").bytes()),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Lines of base 85, each with its length in front.
struct Base85<'a> {
    to: &'a mut dyn Write,
    line: Vec<u8>,
}

impl<'a> Base85<'a> {
    fn new(to: &'a mut dyn Write) -> Self {
        Self { to, line: vec![] }
    }

    /// Writes what is left, and the empty line at the end.
    fn end(mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.write_line()?;
        }
        self.to.write_all(b"\n")
    }

    fn write_line(&mut self) -> io::Result<()> {
        let length = self.line.len() as u8;
        let mut text = vec![match length {
            ..=26 => b'A' + length - 1,
            _ => b'a' + length - 27,
        }];
        for group in self.line.chunks(4) {
            let mut padded = [0; 4];
            padded[..group.len()].copy_from_slice(group);
            text.extend(digits(u32::from_be_bytes(padded)));
        }
        text.push(b'\n');
        self.line.clear();
        self.to.write_all(&text)
    }
}

impl Write for Base85<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = LINE_BYTES - self.line.len();
        let taken = room.min(bytes.len());
        self.line.extend_from_slice(&bytes[..taken]);
        if self.line.len() == LINE_BYTES {
            self.write_line()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn digits(mut number: u32) -> [u8; 5] {
    let mut digits = [0; 5];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(number % 85) as usize];
        number /= 85;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_git_does() {
        let check = |name: &[u8], quoted: &str| assert_eq!(quote(name), quoted.as_bytes());
        check(b"a b", "a b");
        check(b"a\"b\\c", r#""a\"b\\c""#);
        check(b"a\tb\nc\x01\x7f", r#""a\tb\nc\001\177""#);
        check("ü".as_bytes(), r#""\303\274""#);
    }

    #[test]
    fn blobs_have_the_ids_that_git_gives_them() {
        let id = |bytes: &[u8]| Blob::Bytes(bytes.to_vec()).id().unwrap();
        assert_eq!(id(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(id(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn bytes_are_written_as_git_writes_them() {
        let mut written = vec![];
        let mut lines = Base85::new(&mut written);
        lines.write_all(b"\x78\x01\x03\0\0\0\0\x01").unwrap();
        lines.end().unwrap();
        assert_eq!(written, b"HcmV?d00001\n\n");
    }
}
