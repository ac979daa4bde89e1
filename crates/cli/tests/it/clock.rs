//! Wall clocks may jump; limits and the order of the record do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use weighlock_api::{Run, State};
use weighlock_engine::{Clock, Config, Engine, Nursery, Outcome, Preset, Principal, Request};

use crate::support::PATIENCE;

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

#[test]
fn limits_and_order_do_not_depend_on_the_wall_clock() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let now = Arc::new(AtomicI64::new(1_800_000_000));
        let clock = {
            let now = Arc::clone(&now);
            Clock::new(move || Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap())
        };
        let program = env!("CARGO_BIN_EXE_weighlock").into();
        let nursery = Nursery::new(program, vec!["__nursery".into()]).unwrap();
        let mut config = Config::new(dir.path().join("state"), dir.path().to_owned());
        config.presets = vec![Preset::Blacklist];
        let engine = Engine::open(config, clock, nursery).await.unwrap();
        for jump in [-HOUR, YEAR, -YEAR] {
            let request = |command: &str, limit| Request {
                timeout_ms: Some(limit),
                ..Request::new(Principal::library("test"), command)
            };
            let began = Instant::now();
            let slow = tokio::spawn({
                let engine = Arc::clone(&engine);
                async move { engine.run(request("sleep 1000", 400)).await }
            });
            let quick = tokio::spawn({
                let engine = Arc::clone(&engine);
                async move { engine.run(request("sleep 0.2; echo ok", 60_000)).await }
            });
            tokio::time::sleep(Duration::from_millis(100)).await;
            now.fetch_add(jump, Ordering::Relaxed);
            let slow = ended(slow.await.unwrap().unwrap());
            let quick = ended(quick.await.unwrap().unwrap());
            assert_eq!(slow.state, State::TimedOut, "after a jump of {jump}");
            assert_eq!(quick.state, State::Succeeded, "after a jump of {jump}");
            let took = began.elapsed();
            assert!(took > Duration::from_millis(400) && took < PATIENCE);
            let spent = slow.detail.duration_ms.unwrap();
            let most = PATIENCE.as_millis() as f64;
            assert!((400.0..most).contains(&spent), "{spent} ms, not {jump} s");
        }
        let verified = engine
            .audit()
            .verify(&Principal::library("test"))
            .await
            .unwrap();
        assert_eq!((verified.entries, verified.fault), (2 + 3 * 4, None));
    });
}

fn ended(outcome: Outcome) -> Run {
    match outcome {
        Outcome::Ended(run) => run,
        other => panic!("not ended: {other:?}"),
    }
}
