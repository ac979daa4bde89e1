//! The colours that the terminal reports to programs.

use alacritty_terminal::vte::ansi::{NamedColor, Rgb};

/// Those of xterm: light on dark, as most programs expect.
const NAMED: [u32; 16] = [
    0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5, 0x7F7F7F,
    0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF,
];

/// Returns a colour by its place in the emulator's table.
pub(crate) fn default(index: usize) -> Rgb {
    match index {
        0..16 => from_number(NAMED[index]),
        16..232 => cube(index - 16),
        232..256 => grey(index - 232),
        _ if index == NamedColor::Background as usize => from_number(NAMED[0]),
        _ => from_number(NAMED[7]),
    }
}

/// Six steps each of red, green and blue.
fn cube(index: usize) -> Rgb {
    let level = |step: usize| [0x00, 0x5F, 0x87, 0xAF, 0xD7, 0xFF][step % 6];
    Rgb {
        r: level(index / 36),
        g: level(index / 6),
        b: level(index),
    }
}

fn grey(step: usize) -> Rgb {
    let level = u8::try_from(8 + 10 * step).unwrap_or(u8::MAX);
    Rgb {
        r: level,
        g: level,
        b: level,
    }
}

fn from_number(number: u32) -> Rgb {
    let [_, r, g, b] = number.to_be_bytes();
    Rgb { r, g, b }
}
