//! Recordings survive what happens to files.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use weighlock_marks::{
    Error, Event, EventKind, EventReader, Frame, Frames, Header, Index, Recorder, Size, Spacing,
};

fn header() -> Header {
    Header {
        size: Size {
            width: 80,
            height: 24,
        },
        timestamp: Some(1_700_000_000),
        title: Some("build \"it\"".into()),
        env: BTreeMap::from([("TERM".into(), "xterm".into())]),
    }
}

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn event(time: u64, kind: EventKind) -> Event {
    let time = millis(time);
    Event { time, kind }
}

fn output(time: u64, text: &str) -> Event {
    event(time, EventKind::Output(text.into()))
}

fn events(path: &Path) -> Vec<Event> {
    EventReader::open(path)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_was_recorded_is_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    let mut recorder = Recorder::create(&path, &header()).unwrap();
    let size = Size {
        width: 100,
        height: 30,
    };
    recorder
        .output(millis(1), b"\x1b[1m\"hi\"\r\n\xe6\xbc")
        .unwrap();
    recorder.marker(millis(2), "$ npm test").unwrap();
    recorder.output(millis(3), b"\xa2\xff").unwrap();
    recorder.input(millis(4), "y\r").unwrap();
    recorder.resize(millis(5), size).unwrap();
    // A clock that goes back does not take the recording with it.
    recorder.output(millis(2), b"\xc3").unwrap();
    recorder.finish().unwrap();

    assert_eq!(EventReader::open(&path).unwrap().header(), &header());
    let expected = [
        output(1, "\x1b[1m\"hi\"\r\n"),
        event(2, EventKind::Marker("$ npm test".into())),
        output(3, "漢\u{fffd}"),
        event(4, EventKind::Input("y\r".into())),
        event(5, EventKind::Resize(size)),
        output(5, "\u{fffd}"),
    ];
    assert_eq!(events(&path), expected);
}

#[test]
fn the_file_is_what_players_expect() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    let mut recorder = Recorder::create(&path, &header()).unwrap();
    recorder
        .output(Duration::from_micros(1_000_042), "\x1b]ü".as_bytes())
        .unwrap();
    let expected = concat!(
        r#"{"version":2,"width":80,"height":24,"timestamp":1700000000,"#,
        r#""title":"build \"it\"","env":{"TERM":"xterm"}}"#,
        "\n",
        r#"[1.000042, "o", "\u001b]ü"]"#,
        "\n"
    );
    let found = fs::read_to_string(&path).unwrap();
    assert_eq!(found, expected);
    assert_eq!(recorder.position(), found.len() as u64);
    let mut reader = EventReader::open(&path).unwrap();
    assert!(reader.position() < recorder.position());
    reader.next().unwrap().unwrap();
    assert_eq!(reader.position(), recorder.position());
}

#[test]
fn a_recording_goes_on_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    let mut recorder = Recorder::create(&path, &header()).unwrap();
    recorder.output(millis(1500), b"before").unwrap();
    drop(recorder);
    append(&path, "[2.0, \"o\", \"cut o");

    let mut recorder = Recorder::resume(&path, millis(500)).unwrap();
    assert_eq!(recorder.recorded(millis(10)), millis(2010));
    recorder.output(millis(10), b"after").unwrap();
    recorder.finish().unwrap();
    assert_eq!(
        events(&path),
        [output(1500, "before"), output(2010, "after")]
    );
}

#[test]
fn a_recording_of_nothing_goes_on() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    drop(Recorder::create(&path, &header()).unwrap());
    let mut recorder = Recorder::resume(&path, Duration::ZERO).unwrap();
    recorder.output(millis(7), b"x").unwrap();
    assert_eq!(events(&path), [output(7, "x")]);
}

#[test]
fn other_files_are_left_alone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    for text in ["", "hello\nworld", "{\"version\":1}\n", "{\"version\":2,"] {
        fs::write(&path, text).unwrap();
        let error = Recorder::resume(&path, Duration::ZERO).unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = Recorder::create(&path, &header()).unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
}

#[test]
fn a_cut_last_line_is_the_end_and_another_is_an_error() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    let head = "{\"version\":2,\"width\":80,\"height\":24}\n[1, \"o\", \"ü\"]\n";
    for cut in ["[2, \"o\", \"", "[2", "[2, \"o\", \"\\u00"] {
        fs::write(&path, format!("{head}{cut}")).unwrap();
        assert_eq!(events(&path), [output(1000, "ü")]);
    }
    fs::write(&path, format!("{head}[2, \"o\n[3, \"o\", \"\"]\n")).unwrap();
    let mut reader = EventReader::open(&path).unwrap().skip(1);
    assert!(matches!(
        reader.next(),
        Some(Err(Error::Line { line: 3, .. }))
    ));
    assert!(reader.next().is_none());
}

#[test]
fn version_three_is_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    let text = r##"{"version":3,"term":{"cols":80,"rows":24,"type":"xterm"},"timestamp":1}
# a comment
[0.5, "o", "a"]
[0.25, "z", "new"]
[1.0, "x", "3"]
"##;
    fs::write(&path, text).unwrap();
    assert_eq!(
        EventReader::open(&path).unwrap().header().size,
        header().size
    );
    let (code, data) = ("z".into(), "new".into());
    let expected = [
        output(500, "a"),
        event(750, EventKind::Other { code, data }),
        event(1750, EventKind::Exit(3)),
    ];
    assert_eq!(events(&path), expected);
    let error = Recorder::resume(&path, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
}

#[test]
fn long_output_becomes_several_events() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.cast");
    let mut recorder = Recorder::create(&path, &header()).unwrap();
    let long = "\x1bü".repeat(100_000);
    recorder.output(millis(1), long.as_bytes()).unwrap();
    let texts: Vec<_> = events(&path)
        .into_iter()
        .map(|event| match event.kind {
            EventKind::Output(text) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(texts.len() > 1 && texts.concat() == long);
    drop(recorder);
    let resumed = Recorder::resume(&path, Duration::ZERO).unwrap();
    assert_eq!(resumed.recorded(Duration::ZERO), millis(1));
}

const SPACING: Spacing = Spacing {
    bytes: 200,
    time: millis(1000),
};

/// Records a hundred events with key frames; returns the recording's length.
fn record_with_frames(recording: &Path, index: &Path) -> u64 {
    let mut recorder = Recorder::create(recording, &header()).unwrap();
    let mut frames = Frames::open(index, SPACING, recorder.position()).unwrap();
    for number in 0..100 {
        let time = millis(number * 10);
        recorder
            .output(time, format!("{number} ").as_bytes())
            .unwrap();
        if frames.due(time, recorder.position()) {
            let position = recorder.position();
            let snapshot = format!("screen after {number}").into_bytes();
            let frame = Frame {
                time,
                position,
                snapshot,
            };
            frames.add(&frame).unwrap();
        }
    }
    recorder.position()
}

#[test]
fn a_player_can_start_in_the_middle() {
    let dir = TempDir::new().unwrap();
    let (recording, side) = (dir.path().join("a.cast"), dir.path().join("a.index"));
    let length = record_with_frames(&recording, &side);
    let index = Index::open(&side, length).unwrap();
    assert_eq!(index.before(Duration::ZERO).unwrap(), None);

    let frame = index.before(millis(555)).unwrap().unwrap();
    assert!(frame.time <= millis(555) && frame.time > millis(400));
    let last = frame.time.as_millis() as u64 / 10;
    assert_eq!(frame.snapshot, format!("screen after {last}").into_bytes());
    let mut reader = EventReader::open(&recording).unwrap();
    reader.seek(&frame).unwrap();
    let next = reader.next().unwrap().unwrap();
    assert_eq!(next, output((last + 1) * 10, &format!("{} ", last + 1)));
}

#[test]
fn an_index_goes_on_after_a_crash() {
    let dir = TempDir::new().unwrap();
    let (recording, side) = (dir.path().join("a.cast"), dir.path().join("a.index"));
    let length = record_with_frames(&recording, &side);
    let whole = fs::read(&side).unwrap();
    // Cut anywhere, it has the frames that are whole.
    for cut in 0..whole.len() {
        fs::write(&side, &whole[..cut]).unwrap();
        drop(Frames::open(&side, SPACING, length).unwrap());
        let kept = fs::read(&side).unwrap();
        assert!(kept.len() <= cut.max(8) && whole.starts_with(&kept));
    }
    // Frames of what the recording lost are gone.
    fs::write(&side, &whole).unwrap();
    let half = length / 2;
    drop(Frames::open(&side, SPACING, half).unwrap());
    let last = Index::open(&side, length).unwrap();
    assert!(last.before(millis(10_000)).unwrap().unwrap().position <= half);
}

#[test]
fn another_file_is_no_index() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.index");
    fs::write(&path, "something else").unwrap();
    let error = Frames::open(&path, SPACING, 0).unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "something else");
}
