//! The web pages, built into the program.
//!
//! ```
//! assert!(weighlock_ui::file("index.html").is_some());
//! ```

/// One file of the pages.
#[derive(Debug)]
pub struct File {
    /// Its address, without the first slash.
    pub path: &'static str,
    /// Its content, compressed.
    pub gzip: &'static [u8],
    /// The same, smaller, for who takes that.
    pub brotli: Option<&'static [u8]>,
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Returns a file by its address, without the first slash.
pub fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}
