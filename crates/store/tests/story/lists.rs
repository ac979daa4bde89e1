//! Lists of commands and entries, for those who may see them.

use weighlock_store::{Command, Entry, EntryFilter, Filter, RunStatus, State, Store, Visible};

use crate::{assert_verifies, command, entry, open};

/// Clocks are set back now and then; ids are not.
fn time(number: i64) -> i64 {
    if number % 30 == 0 { 5 } else { number * 10 }
}

/// Sixty commands of three requesters, four sandboxes and five sessions.
async fn fill(store: &Store) {
    for number in 1..=60 {
        let waits = number % 6 == 0;
        let command = Command {
            requested_by: ["ann", "bob", "doctor"][number as usize % 3].into(),
            sandbox: Some(format!("sb_{}", number % 4)),
            session: Some(format!("s_{}", number % 5)),
            state: if waits { State::Waiting } else { State::Failed },
            approved_by: (number % 10 == 0).then(|| "eve".into()),
            open: false,
            external: number % 2 == 0,
            created_at: time(number.into()),
            ..command(number, "true")
        };
        store
            .commands()
            .insert(command, None, vec![])
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn commands_are_listed_to_those_who_may_see_them() {
    let (_dir, store) = open();
    fill(&store).await;
    let check = |filter: Filter, expected: &dyn Fn(i64) -> bool| {
        let mut found: Vec<i64> = vec![];
        let mut filter = Filter { limit: 7, ..filter };
        loop {
            let page = store.commands().list(&filter).unwrap();
            let Some(last) = page.last() else { break };
            filter.before = Some(last.id.clone());
            let numbers = page.iter().map(|one| one.id[2..12].parse::<i64>());
            found.extend(numbers.map(Result::unwrap));
        }
        let expected: Vec<_> = (1..=60).rev().filter(|number| expected(*number)).collect();
        assert_eq!(found, expected, "{filter:?}");
    };
    let filter = Filter::default;
    let seen = |number| number % 3 != 2;
    check(filter(), &seen);

    let who = |who: &str| Some(who.to_owned());
    let requested_by = who("doctor");
    check(
        Filter {
            requested_by,
            ..filter()
        },
        &|number| number % 3 == 2,
    );
    let sandbox = who("sb_1");
    check(
        Filter {
            sandbox,
            ..filter()
        },
        &|number| seen(number) && number % 4 == 1,
    );
    let session = who("s_1");
    check(
        Filter {
            session,
            ..filter()
        },
        &|number| seen(number) && number % 5 == 1,
    );
    let approved_by = who("eve");
    check(
        Filter {
            approved_by,
            ..filter()
        },
        &|number| seen(number) && number % 10 == 0,
    );
    let state = Some(State::Waiting);
    check(Filter { state, ..filter() }, &|number| {
        seen(number) && number % 6 == 0
    });
    let status = Some(RunStatus::Failed);
    check(Filter { status, ..filter() }, &|number| {
        seen(number) && number % 6 != 0
    });
    let (since, until) = (Some(200), Some(400));
    let between = |number| (200..400).contains(&time(number));
    check(
        Filter {
            since,
            until,
            ..filter()
        },
        &|number| seen(number) && between(number),
    );
    check(Filter { since, ..filter() }, &|number| {
        seen(number) && time(number) >= 200
    });
    check(
        Filter {
            until: Some(8),
            ..filter()
        },
        &|number| seen(number) && time(number) < 8,
    );

    let visible = Visible::Own("bob".into());
    let own = Filter {
        visible,
        ..filter()
    };
    let bobs = |number| number % 3 == 1;
    check(own.clone(), &bobs);
    check(
        Filter {
            requested_by: who("ann"),
            ..own.clone()
        },
        &|_| false,
    );
    check(
        Filter {
            status: Some(RunStatus::Pending),
            ..own.clone()
        },
        &|_| false,
    );
    check(
        Filter {
            session: who("s_1"),
            ..own.clone()
        },
        &|number| bobs(number) && number % 5 == 1,
    );
    check(
        Filter {
            since,
            until,
            ..own
        },
        &|number| bobs(number) && between(number),
    );

    let visible = Visible::Within {
        name: "bob".into(),
        sandboxes: vec!["sb_0".into(), "sb_2".into()],
    };
    let within = Filter {
        visible,
        ..filter()
    };
    let may = |number| bobs(number) || seen(number) && number % 2 == 0;
    check(within.clone(), &may);
    check(
        Filter {
            sandbox: who("sb_1"),
            ..within.clone()
        },
        &|number| bobs(number) && number % 4 == 1,
    );
    check(
        Filter {
            sandbox: who("sb_2"),
            ..within.clone()
        },
        &|number| seen(number) && number % 4 == 2,
    );
    check(
        Filter {
            requested_by: who("bob"),
            ..within.clone()
        },
        &bobs,
    );
    check(
        Filter {
            requested_by: who("ann"),
            ..within.clone()
        },
        &|number| number % 6 == 0,
    );
    check(
        Filter {
            status: Some(RunStatus::Pending),
            ..within.clone()
        },
        &|number| number % 6 == 0,
    );
    check(
        Filter {
            status: Some(RunStatus::Rejected),
            ..within
        },
        &|_| false,
    );
}

#[tokio::test]
async fn entries_are_found_by_what_they_are_about() {
    let (_dir, store) = open();
    let entries = (1..=60).map(|number: i64| Entry {
        time: time(number),
        actor: format!("actor{}", number % 2),
        run: Some(format!("r_{}", number % 3)),
        sandbox: (number % 4 != 0).then(|| format!("sb_{}", number % 4)),
        owner: (number % 5 != 0).then(|| format!("owner{}", number % 5)),
        ..entry(
            ["run.started", "run.ended", "runner", "run"][number as usize % 4],
            "",
        )
    });
    store.audit().record(entries.collect()).await.unwrap();
    let check = |filter: EntryFilter, expected: &dyn Fn(i64) -> bool| {
        let mut found = vec![];
        let mut filter = EntryFilter { limit: 7, ..filter };
        loop {
            let page = store.audit().entries(&filter).unwrap();
            let seqs = page.iter().map(|body| body["seq"].as_i64().unwrap());
            found.extend(seqs);
            if page.is_empty() {
                break;
            }
            filter.after = found[found.len() - 1] as u64;
        }
        let expected: Vec<_> = (1..=60).filter(|number| expected(*number)).collect();
        assert_eq!(found, expected, "{filter:?}");
    };
    let filter = EntryFilter::default;
    let text = |text: &str| Some(text.to_owned());
    check(filter(), &|_| true);
    check(
        EntryFilter {
            run: text("r_1"),
            ..filter()
        },
        &|number| number % 3 == 1,
    );
    check(
        EntryFilter {
            actor: text("actor1"),
            ..filter()
        },
        &|number| number % 2 == 1,
    );
    check(
        EntryFilter {
            owner: text("owner2"),
            ..filter()
        },
        &|number| number % 5 == 2,
    );
    check(
        EntryFilter {
            kind: text("run"),
            ..filter()
        },
        &|number| number % 4 == 3,
    );
    check(
        EntryFilter {
            kind: text("run."),
            ..filter()
        },
        &|number| number % 4 < 2,
    );
    check(
        EntryFilter {
            kind: text("."),
            ..filter()
        },
        &|_| false,
    );
    let (from, to) = (Some(200), Some(400));
    let then = |number| (200..400).contains(&time(number));
    check(
        EntryFilter {
            from,
            to,
            ..filter()
        },
        &then,
    );
    let sandbox = EntryFilter {
        sandbox: text("sb_1"),
        ..filter()
    };
    check(sandbox.clone(), &|number| number % 4 == 1);
    let timed = EntryFilter {
        from,
        to,
        ..sandbox
    };
    check(timed.clone(), &|number| number % 4 == 1 && then(number));
    let all = EntryFilter {
        run: text("r_2"),
        actor: text("actor1"),
        owner: text("owner4"),
        kind: text("run."),
        ..timed
    };
    check(all, &|number| number == 29);
    assert_verifies(&store);
}

#[tokio::test]
async fn any_limit_will_do() {
    let (_dir, store) = open();
    fill(&store).await;
    for (limit, expected) in [(0, 0), (1, 1), (usize::MAX, 40)] {
        let filter = Filter {
            limit,
            ..Filter::default()
        };
        assert_eq!(store.commands().list(&filter).unwrap().len(), expected);
        let filter = EntryFilter {
            limit,
            ..EntryFilter::default()
        };
        let all = store.audit().newest_seq().unwrap() as usize;
        assert_eq!(
            store.audit().entries(&filter).unwrap().len(),
            all.min(limit)
        );
        store.sessions().list(&Visible::All, None, limit).unwrap();
        let filter = weighlock_store::ApprovalFilter {
            limit,
            ..Default::default()
        };
        store.approvals().list(&filter).unwrap();
    }
}
