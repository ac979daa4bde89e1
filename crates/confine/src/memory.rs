//! Memory that this process has freed.

/// Gives freed memory back to the kernel. The C library of GNU keeps it for
/// later otherwise, once for each of its arenas.
pub fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers, looks at free memory only, and holds the
    // allocator's own locks meanwhile.
    unsafe {
        libc::malloc_trim(0);
    }
}
