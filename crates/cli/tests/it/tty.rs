//! A terminal with our binary at it, and somebody who types.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::{PATIENCE, signal};

/// A process whose standard streams are one terminal.
pub(crate) struct Tty {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    /// How much of the screen was looked at.
    seen: usize,
}

impl Tty {
    pub(crate) fn start(command: Command) -> Self {
        Self::start_in(80, command)
    }

    /// The same on a terminal of some width.
    pub(crate) fn start_in(columns: u16, mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, size(50, columns)).unwrap();
        let name = ptsname(&master, vec![]).unwrap();
        let slave = open(
            name.as_c_str(),
            OFlags::RDWR | OFlags::NOCTTY,
            Mode::empty(),
        );
        let slave = File::from(slave.unwrap());
        let child = command
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave)
            .spawn()
            .unwrap();
        // Our own copies of its side must go, or it would never end.
        drop(command);
        let keyboard = File::from(master);
        let screen = Arc::new(Mutex::new(vec![]));
        let (mut reader, shared) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                shared.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: 0,
        }
    }

    /// Waits until this appears, and returns everything from the last look up
    /// to it.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        self.expect_any(&[text])
    }

    /// The same with the first of several texts.
    pub(crate) fn expect_any(&mut self, texts: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            let new = &screen[self.seen..];
            let ends = texts
                .iter()
                .filter_map(|text| Some(new.find(text)? + text.len()));
            if let Some(end) = ends.min() {
                let shown = new[..end].to_owned();
                self.seen += end;
                return shown;
            }
            assert!(Instant::now() < deadline, "no {texts:?} in {screen}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything so far, with plain newlines.
    pub(crate) fn screen(&self) -> String {
        let bytes = self.screen.lock().unwrap();
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    }

    /// The same as it came.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.screen.lock().unwrap().clone()
    }

    /// Makes the terminal larger or smaller.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.keyboard, size(rows, columns)).unwrap();
        // It is not the terminal that its process was started from, so the
        // kernel tells nobody.
        signal(self.pid(), "WINCH");
    }

    /// Tells whether it takes lines and shows what is typed, as terminals do.
    pub(crate) fn is_usual(&self) -> bool {
        let usual = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        tcgetattr(&self.keyboard)
            .unwrap()
            .local_modes
            .contains(usual)
    }

    /// Types at once.
    pub(crate) fn send(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types as a person does, who has looked first.
    pub(crate) fn press(&mut self, key: &str) {
        std::thread::sleep(Duration::from_millis(500));
        self.send(key);
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it goes on: {}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
