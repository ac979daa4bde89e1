//! Every line of the corpora gets the verdict that it should have.

mod common;

use std::collections::HashSet;

use common::{Line, decider, judge, report};

#[test]
fn every_line_of_the_dev_corpus_is_judged_right() {
    check(&common::dev());
}

#[test]
fn every_line_of_our_own_corpus_is_judged_right() {
    check(&common::own());
}

#[test]
fn ids_and_commands_are_there_once() {
    let (dev, own) = (common::dev(), common::own());
    let once = |keys: Vec<&str>| {
        let mut seen = HashSet::new();
        let twice = keys.iter().filter(|key| !seen.insert(**key));
        let twice: Vec<String> = twice.map(|key| format!("{key:?}")).collect();
        report(&twice, keys.len());
    };
    once(dev.iter().map(|line| line.id.as_str()).collect());
    once(own.iter().map(|line| line.id.as_str()).collect());
    let all = dev.iter().chain(&own);
    once(all.map(|line| line.command.as_str()).collect());
}

fn check(lines: &[Line]) {
    let mut wrong = vec![];
    for line in lines {
        let judgement = judge(&line.command);
        let got = judgement.verdict;
        if got != line.expect && !line.also_ok.contains(&got) {
            wrong.push(format!(
                "{}: {got:?} instead of {:?}: {:?}\n    {}",
                line.id,
                line.expect,
                line.command,
                decider(&judgement)
            ));
        }
    }
    report(&wrong, lines.len());
}
