use std::path::Path;

use regex::bytes::Regex;

use super::{Item, Log, LogWriter, Stream};

/// A dull but reproducible source of chance.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % below) as usize
    }
}

/// Writes numbered lines in pieces of any size and returns all bytes.
fn numbered(dir: &Path, bound: u64, lines: u64) -> (Vec<u8>, LogWriter) {
    let all: String = (1..=lines)
        .map(|number| format!("line {number}\n"))
        .collect();
    let mut writer = LogWriter::new(dir, bound);
    let mut dice = Dice(7);
    let (mut rest, mut micros) = (all.as_bytes(), 0);
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.len().min(1 + dice.roll(300)));
        writer.append(Stream::Stdout, piece, micros);
        micros += dice.roll(4000) as u64;
        rest = more;
    }
    (all.into_bytes(), writer)
}

fn joined(items: Vec<Item>) -> Vec<u8> {
    let mut bytes = vec![];
    for item in items {
        match item {
            Item::Piece(piece) => bytes.extend(piece.bytes),
            Item::Gap { .. } => panic!("a gap in a whole log"),
        }
    }
    bytes
}

fn on_disk(dir: &Path) -> u64 {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum()
}

#[test]
fn any_stretch_of_bytes_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let (all, writer) = numbered(dir.path(), 1 << 20, 3000);
    let log = Log::open(dir.path());
    assert_eq!(joined(log.read(0, usize::MAX).unwrap()), all);
    let mut dice = Dice(3);
    for _ in 0..200 {
        let from = dice.roll(all.len() as u64);
        let count = 1 + dice.roll(5000);
        let expected = &all[from..all.len().min(from + count)];
        assert_eq!(joined(log.read(from as u64, count).unwrap()), expected);
    }
    assert_eq!(log.read(all.len() as u64, 10).unwrap(), []);
    assert_eq!(writer.totals().stdout.bytes, all.len() as u64);
    assert_eq!(writer.totals().lines(), 3000);
    assert_eq!(log.kept().unwrap(), (all.len() as u64, None));
}

#[test]
fn any_line_is_reached_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    numbered(dir.path(), 1 << 20, 3000);
    let log = Log::open(dir.path());
    for number in [1, 2, 3, 999, 1000, 2999, 3000] {
        let found = log.lines(number, 2).unwrap();
        assert_eq!(found.lines[0].number, number);
        assert_eq!(found.lines[0].bytes, format!("line {number}").as_bytes());
        assert_eq!(found.missing, None);
        assert_eq!(found.lines.len(), if number == 3000 { 1 } else { 2 });
    }
    assert_eq!(log.lines(3001, 10).unwrap().lines, []);
    assert_eq!(log.lines(1, 10_000).unwrap().lines.len(), 3000);
}

#[test]
fn past_the_bound_the_head_and_the_newest_tail_are_kept() {
    const BOUND: u64 = 64 * 1024;
    let dir = tempfile::tempdir().unwrap();
    let (all, writer) = numbered(dir.path(), BOUND, 50_000);
    let log = Log::open(dir.path());
    assert!(on_disk(dir.path()) <= BOUND, "{}", on_disk(dir.path()));
    assert_eq!(writer.totals().bytes(), all.len() as u64);
    assert_eq!(writer.totals().lines(), 50_000);

    let items = log.read(0, usize::MAX).unwrap();
    let (mut at, mut gaps) = (0, vec![]);
    for item in items {
        match item {
            Item::Piece(piece) => {
                assert_eq!(piece.offset, at);
                let end = at as usize + piece.bytes.len();
                assert_eq!(piece.bytes, &all[at as usize..end]);
                at = end as u64;
            }
            Item::Gap { from, to } => {
                assert_eq!(from, at);
                gaps.push((from, to));
                at = to;
            }
        }
    }
    assert_eq!(at, all.len() as u64, "the newest bytes are there");
    assert_eq!(gaps.len(), 1);
    let (kept, gap) = log.kept().unwrap();
    assert_eq!(gap, Some(gaps[0]));
    assert_eq!(kept + gaps[0].1 - gaps[0].0, all.len() as u64);
    assert!(gaps[0].0 >= BOUND / 8, "a good part of the head: {gaps:?}");
    assert!(kept >= BOUND / 2, "most of what may be kept is: {kept}");
}

#[test]
fn lines_keep_their_numbers_across_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    numbered(dir.path(), 64 * 1024, 50_000);
    let log = Log::open(dir.path());
    let last = log.lines(50_000, 5).unwrap();
    assert_eq!(last.lines[0].bytes, b"line 50000");
    let all = log.lines(1, 50_000).unwrap();
    for line in all.lines.iter().filter(|line| !line.cut) {
        assert_eq!(line.bytes, format!("line {}", line.number).as_bytes());
    }
    let middle = log.lines(25_000, 10).unwrap();
    assert_eq!(middle.missing, Some((25_000, 25_009)));
    assert_eq!(middle.lines, []);
    let (first, missing) = (&all.lines[0], all.missing.unwrap());
    assert_eq!(first.number, 1);
    let numbers: Vec<u64> = all.lines.iter().map(|line| line.number).collect();
    let expected: Vec<u64> = (1..missing.0).chain(missing.1 + 1..=50_000).collect();
    assert_eq!(numbers, expected);
    let cut: Vec<u64> = all
        .lines
        .iter()
        .filter(|line| line.cut)
        .map(|line| line.number)
        .collect();
    assert_eq!(cut, [missing.0 - 1, missing.1 + 1], "the lines at the gap");
}

#[test]
fn lines_are_found_by_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    numbered(dir.path(), 1 << 20, 3000);
    let log = Log::open(dir.path());
    let numbers = |pattern: &str, from, most| -> Vec<u64> {
        let found = log.find(&Regex::new(pattern).unwrap(), from, most).unwrap();
        found.iter().map(|line| line.number).collect()
    };
    assert_eq!(
        numbers("^line 12.$", 1, 100),
        (120..=129).collect::<Vec<_>>()
    );
    assert_eq!(numbers("^line 12.$", 125, 2), [125, 126]);
    assert_eq!(numbers("nowhere", 1, 100), [0; 0]);
}

#[test]
fn streams_are_told_apart_and_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::new(dir.path(), 1 << 20);
    for (at, stream) in [Stream::Stdout, Stream::Stderr]
        .into_iter()
        .cycle()
        .take(100)
        .enumerate()
    {
        writer.append(stream, format!("{at}\n").as_bytes(), at as u64);
    }
    let log = Log::open(dir.path());
    let all: String = (0..100).map(|at| format!("{at}\n")).collect();
    assert_eq!(joined(log.read(0, usize::MAX).unwrap()), all.as_bytes());
    let odd: String = (0..100)
        .filter(|at| at % 2 == 1)
        .map(|at| format!("{at}\n"))
        .collect();
    assert_eq!(log.head(Stream::Stderr, 1 << 20).unwrap(), odd.as_bytes());
    assert_eq!(log.tail(Stream::Stderr, 6).unwrap(), b"97\n99\n");
    let sequence: Vec<u64> = log
        .read(0, usize::MAX)
        .unwrap()
        .into_iter()
        .map(|item| match item {
            Item::Piece(piece) => piece.sequence,
            Item::Gap { .. } => panic!("a gap"),
        })
        .collect();
    assert_eq!(sequence, (0..100).collect::<Vec<_>>());
}

#[test]
fn an_index_is_no_larger_than_its_bound_however_small_the_pieces() {
    const BOUND: u64 = 64 * 1024;
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::new(dir.path(), BOUND);
    for at in 0..20_000_u64 {
        let stream = [Stream::Stdout, Stream::Stderr][(at % 2) as usize];
        writer.append(stream, b"x", at * 10_000);
    }
    assert!(on_disk(dir.path()) <= BOUND, "{}", on_disk(dir.path()));
    assert_eq!(writer.totals().bytes(), 20_000);
}

#[test]
fn an_endless_line_is_handed_out_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::new(dir.path(), 4 << 20);
    for _ in 0..20 {
        writer.append(Stream::Stdout, &[b'x'; 50_000], 0);
    }
    let found = Log::open(dir.path()).lines(1, 10).unwrap();
    assert_eq!(found.lines.len(), 1);
    assert!(found.lines[0].cut);
    assert!(found.lines[0].bytes.len() < 100_000);
}

#[test]
fn what_cannot_be_stored_is_counted_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("gone");
    let mut writer = LogWriter::new(&place, 1 << 20);
    writer.append(Stream::Stdout, b"lost\n", 0);
    std::fs::create_dir(&place).unwrap();
    writer.append(Stream::Stdout, b"kept\n", 0);
    let totals = writer.totals();
    assert_eq!((totals.bytes(), totals.lost_bytes), (10, 5));
    assert!(totals.lost_because.is_some());
    let log = Log::open(&place);
    let items = log.read(0, 100).unwrap();
    assert_eq!(items[0], Item::Gap { from: 0, to: 5 });
    let Item::Piece(piece) = &items[1] else {
        panic!("no piece after the gap")
    };
    assert_eq!((piece.offset, piece.bytes.as_slice()), (5, &b"kept\n"[..]));
    let lines = log.lines(1, 2).unwrap();
    assert_eq!(lines.missing, Some((1, 1)));
    assert_eq!(
        (lines.lines[0].number, lines.lines[0].bytes.as_slice()),
        (2, &b"kept"[..])
    );
}
