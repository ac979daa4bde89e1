//! Tells what a file holds: text, something else, or too much to say.

use crate::content::OpenedFile;
use crate::error::Error;

/// Bytes that are looked at for what is no text. Git looks at as many.
const HEAD_BYTES: usize = 8_000;

/// Larger files are not compared line by line; nobody reads them either.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// See `MOST_BYTES`; short lines are as much work as long ones.
const MOST_LINES: usize = 100_000;

/// One byte in so many may be no UTF-8: French in Latin-1 has one in twenty,
/// and what is compressed every second.
const STRAY_SHARE: usize = 10;

/// What one side of a change holds.
pub(crate) enum SideContent {
    /// Lines that can be compared.
    Text(Vec<u8>),
    /// Something else, and perhaps what.
    Binary(Option<&'static str>),
    /// Text, and more than is compared.
    TooLarge,
}

impl SideContent {
    /// Reads it; no more than is needed.
    pub(crate) fn of(content: &OpenedFile) -> Result<Self, Error> {
        let head = content.head(HEAD_BYTES)?;
        if head.contains(&0) {
            return Ok(Self::Binary(guess(&head)));
        }
        if content.size() > MOST_BYTES {
            return Ok(if is_text(&head) {
                Self::TooLarge
            } else {
                Self::Binary(guess(&head))
            });
        }
        let all = content.read()?;
        Ok(if !is_text(&all) {
            Self::Binary(guess(&head))
        } else if all.iter().filter(|&&byte| byte == b'\n').count() > MOST_LINES {
            Self::TooLarge
        } else {
            Self::Text(all)
        })
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let stray: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    // A character may have been cut at the end.
    stray.saturating_sub(3) * STRAY_SHARE <= bytes.len()
}

/// What files begin with. The first that fits counts.
const MAGIC: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF8", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (0, b"\0\0\x01\0", "icon"),
    (0, b"II*\0", "TIFF image"),
    (0, b"MM\0*", "TIFF image"),
    (4, b"ftypavif", "AVIF image"),
    (4, b"ftyp", "MP4 video"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska video"),
    (8, b"WAVE", "WAV audio"),
    (0, b"OggS", "Ogg audio"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"ID3", "MP3 audio"),
    (0, b"%PDF-", "PDF document"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (0, b"\x7fELF", "ELF program"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (0, b"MZ", "Windows program"),
    (0, b"\0asm", "WebAssembly module"),
    (0, b"\xca\xfe\xba\xbe", "Java class"),
    (0, b"!<arch>\n", "static library"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"PK\x05\x06", "ZIP archive"),
    (0, b"\x1f\x8b", "gzip archive"),
    (0, b"BZh", "bzip2 archive"),
    (0, b"\xfd7zXZ\0", "xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (0, b"Rar!\x1a\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"wOFF", "WOFF font"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"OTTO", "OpenType font"),
    (0, b"\0\x01\0\0", "TrueType font"),
    (0, b"DIRC", "git index"),
    (0, b"PACK", "git pack"),
    (0, b"PAR1", "Parquet table"),
    (0, b"\xff\xfe", "UTF-16 text"),
    (0, b"\xfe\xff", "UTF-16 text"),
];

fn guess(head: &[u8]) -> Option<&'static str> {
    let fits = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    let found = MAGIC.iter().find(|(at, magic, _)| fits(*at, magic));
    found.map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_shows_in_its_first_bytes() {
        assert_eq!(guess(b"\x89PNG\r\n\x1a\n\0\0"), Some("PNG image"));
        assert_eq!(guess(b"RIFF\0\0\0\0WEBPVP8 "), Some("WebP image"));
        assert_eq!(guess(b"\x7fELF\x02\x01\x01\0"), Some("ELF program"));
        assert_eq!(guess(b"\x1f\x8b\x08\0"), Some("gzip archive"));
        assert_eq!(guess(b"\x01\x02\x03"), None);
        assert_eq!(guess(b""), None);
    }

    #[test]
    fn text_in_an_old_encoding_is_text() {
        assert!(is_text(
            b"d\xe9j\xe0 vu, \xe0 la fin de l'\xe9t\xe9, dans la for\xeat"
        ));
        assert!(is_text("schön, 漢字, 🎈".as_bytes()));
        assert!(is_text(b""));
        assert!(!is_text(&[0x80, 0x91, 0xfe, 0xa2].repeat(20)));
    }
}
