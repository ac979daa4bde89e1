//! Places that principals share, so that none of them takes what the others
//! need.
//!
//! One rule for everything of which there is a bounded number: nobody takes a
//! place when they hold as many as are free already. Alone, one principal gets
//! half of the places; beside another one who takes all that it can, a third;
//! and somebody new always finds one. An eighth of the places, and at least
//! one, is for people: however many agents there are, they leave it free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::error::NoPlace;
use crate::mutex::lock;
use crate::principal::Principal;

/// The part of the places that agents leave to people.
const FOR_PEOPLE: usize = 8;

/// So many places, for everybody together.
#[derive(Debug)]
pub struct Shares {
    /// What the places are for, such as `runs`.
    what: &'static str,
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by_name: HashMap<String, usize>,
}

/// A place that somebody holds until it is dropped.
#[derive(Debug)]
pub struct Place {
    shares: Arc<Shares>,
    who: String,
}

impl Shares {
    /// Makes so many places for something.
    pub fn new(what: &'static str, most: usize) -> Arc<Self> {
        Arc::new(Self {
            what,
            most,
            held: Mutex::default(),
        })
    }

    /// Takes a place for somebody, if that leaves enough to others.
    pub fn take(self: &Arc<Self>, who: &Principal) -> Result<Place, NoPlace> {
        self.take_as(who.name(), who.is_agent())
    }

    fn take_as(self: &Arc<Self>, who: &str, is_agent: bool) -> Result<Place, NoPlace> {
        let mut held = lock(&self.held);
        let reserve = if is_agent { self.for_people() } else { 0 };
        let free = self.most.saturating_sub(held.all + reserve);
        let own = held.by_name.get(who).copied().unwrap_or_default();
        if own >= free {
            return Err(NoPlace {
                what: self.what,
                who: who.to_owned(),
                is_agent,
                held: own,
                most: self.most,
            });
        }
        Ok(self.put(&mut held, who))
    }

    /// Counts a place that somebody holds already, whatever is left.
    pub fn count(self: &Arc<Self>, who: &str) -> Place {
        self.put(&mut lock(&self.held), who)
    }

    fn put(self: &Arc<Self>, held: &mut Held, who: &str) -> Place {
        held.all += 1;
        *held.by_name.entry(who.to_owned()).or_default() += 1;
        Place {
            shares: Arc::clone(self),
            who: who.to_owned(),
        }
    }

    /// Where there is one place only, nobody can have it for themselves.
    fn for_people(&self) -> usize {
        match self.most {
            0 | 1 => 0,
            most => most.div_ceil(FOR_PEOPLE),
        }
    }
}

impl Place {
    /// Returns whose place it is.
    pub fn who(&self) -> &str {
        &self.who
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = lock(&self.shares.held);
        held.all -= 1;
        if let Some(own) = held.by_name.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                held.by_name.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as many places as somebody gets.
    fn all(shares: &Arc<Shares>, who: &str, is_agent: bool) -> Vec<Place> {
        std::iter::from_fn(|| shares.take_as(who, is_agent).ok()).collect()
    }

    #[test]
    fn nobody_takes_what_others_need() {
        let shares = Shares::new("runs", 1000);
        let mut taken = all(&shares, "coder", true);
        assert_eq!(taken.len(), 438);
        let no = shares.take_as("coder", true).unwrap_err().to_string();
        let told = "agent `coder` uses 438 of 1000 runs, and the rest is reserved for others";
        assert_eq!(no, told);
        for n in 0..500 {
            taken.extend(all(&shares, &format!("agent {n}"), true));
        }
        assert_eq!(taken.len(), 875, "agents leave an eighth");
        let no = shares.take_as("one more", true).unwrap_err().to_string();
        assert_eq!(no, "agents use all 1000 runs that they may");
        assert_eq!(all(&shares, "ana", false).len(), 63);
        assert_eq!(taken.len(), 875);
        drop(taken);
        assert_eq!(all(&shares, "ana", false).len(), 500);
        assert!(lock(&shares.held).by_name.is_empty());
    }

    #[test]
    fn few_places_are_shared_too() {
        // Of so many places, an agent and then a person get so many.
        for (most, agent, person) in [
            (0, 0, 0),
            (1, 1, 0),
            (2, 1, 1),
            (3, 1, 1),
            (4, 2, 1),
            (12, 5, 4),
        ] {
            let shares = Shares::new("runs", most);
            let agents = all(&shares, "coder", true);
            let people = all(&shares, "ana", false);
            assert_eq!((agents.len(), people.len()), (agent, person), "{most}");
        }
        let person = |most| all(&Shares::new("runs", most), "ana", false).len();
        assert_eq!([1, 2, 3, 12].map(person), [1, 1, 2, 6]);
    }

    #[test]
    fn what_is_found_counts_for_whose_it_is() {
        let shares = Shares::new("runs", 4);
        let found: Vec<Place> = (0..6).map(|_| shares.count("coder")).collect();
        assert!(shares.take_as("ana", false).is_err());
        drop(found);
        assert_eq!(all(&shares, "ana", false).len(), 2);
    }
}
