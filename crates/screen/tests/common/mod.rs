//! Streams that are made up, the same ones for the same seed.

/// Numbers that look random (xorshift).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below the one given.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Returns bytes without any meaning, rich in the ones that have some.
pub(crate) fn noise(dice: &mut Dice, length: usize) -> Vec<u8> {
    const LIKELY: &[u8] =
        b"\x1b\x1b\x1b[[];?0123456789ABCDHJKLMPSTXZbcdfghlmnqrstu \r\n\x08\t\x07\x0e\x0f";
    (0..length)
        .map(|_| match dice.below(4) {
            0 => dice.below(256) as u8,
            _ => dice.pick(LIKELY),
        })
        .collect()
}

/// Returns a stream of text and sequences, as a program might write them.
pub(crate) fn stream(dice: &mut Dice, length: usize) -> Vec<u8> {
    (0..length).flat_map(|_| piece(dice)).collect()
}

fn piece(dice: &mut Dice) -> Vec<u8> {
    match dice.below(10) {
        0..4 => text(dice).into_bytes(),
        4 => dice.pick(CONTROLS).as_bytes().to_vec(),
        5 => dice.pick(MODES).as_bytes().to_vec(),
        6 => style(dice).into_bytes(),
        7 => string(dice).into_bytes(),
        _ => command(dice).into_bytes(),
    }
}

fn text(dice: &mut Dice) -> String {
    const LETTERS: &[char] = &[
        'a', 'b', 'q', 'x', ' ', 'é', 'ß', '漢', '字', '😀', '\u{301}', '\u{200d}', '\u{fe0f}',
        '│', '\u{ad}', '\u{a0}', 'ﷺ',
    ];
    (0..dice.below(14)).map(|_| dice.pick(LETTERS)).collect()
}

const CONTROLS: &[&str] = &[
    "\r", "\n", "\r\n", "\r\n", "\r\n", "\x08", "\t", "\x0b", "\x07", "\x0e", "\x0f", "\x1b7",
    "\x1b8", "\x1bD", "\x1bE", "\x1bM", "\x1bH", "\x1b(0", "\x1b(B", "\x1b)0", "\x1b)B", "\x1b#8",
    "\x1b=", "\x1b>", "\x1b[s", "\x1b[u", "\x1bc", "\x18", "\x1b[!p",
];

const MODES: &[&str] = &[
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?6h",
    "\x1b[?6l",
    "\x1b[?7l",
    "\x1b[?7h",
    "\x1b[4h",
    "\x1b[4l",
    "\x1b[?1h",
    "\x1b[?1l",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[?2004h",
    "\x1b[?1000h",
    "\x1b[?1002h",
    "\x1b[?1003h",
    "\x1b[?1006h",
    "\x1b[?1005h",
    "\x1b[?1004h",
    "\x1b[20h",
    "\x1b[20l",
    "\x1b[?3h",
    "\x1b[?12h",
    "\x1b[?1007l",
    "\x1b[?2026h",
    "\x1b[?2026l",
    "\x1b[3 q",
    "\x1b[?47h",
];

fn style(dice: &mut Dice) -> String {
    const CODES: &[&str] = &[
        "0",
        "1",
        "2",
        "3",
        "4",
        "4:3",
        "4:2",
        "7",
        "8",
        "9",
        "22",
        "24",
        "27",
        "31",
        "42",
        "97",
        "103",
        "38;5;3",
        "38;5;200",
        "48;2;1;2;3",
        "48:2::9:8:7",
        "58;5;9",
        "59",
        "39",
        "49",
    ];
    let codes: Vec<_> = (0..1 + dice.below(3)).map(|_| dice.pick(CODES)).collect();
    format!("\x1b[{}m", codes.join(";"))
}

fn string(dice: &mut Dice) -> String {
    const STRINGS: &[&str] = &[
        "\x1b]0;title\x07",
        "\x1b]2;a;b\x1b\\",
        "\x1b[22t",
        "\x1b[23t",
        "\x1b]4;1;#102030\x07",
        "\x1b]11;rgb:01/02/03\x07",
        "\x1b]104\x07",
        "\x1b]8;;https://x\x07",
        "\x1b]8;;\x07",
        "\x1b]10;?\x07",
        "\x1b[c",
        "\x1b[6n",
        "\x1bPq#0~\x1b\\",
        "\x1b]0;\u{1}x\u{85}y\x07",
    ];
    dice.pick(STRINGS).to_owned()
}

fn command(dice: &mut Dice) -> String {
    const ENDS: &[char] = &[
        'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'H', 'H', 'I', 'J', 'J', 'K', 'K', 'L', 'M', 'P',
        'S', 'T', 'X', 'Z', '@', 'b', 'd', 'g', 'r', 'r',
    ];
    let end = dice.pick(ENDS);
    match dice.below(4) {
        0 => format!("\x1b[{end}"),
        1 => format!("\x1b[{}{end}", dice.below(4)),
        _ => format!("\x1b[{};{}{end}", dice.below(30), dice.below(90)),
    }
}
