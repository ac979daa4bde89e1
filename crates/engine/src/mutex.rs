//! Locking without a poisoned state.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex. A thread that panicked with the lock left whole values
/// behind, so a poisoned one is used all the same.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}
