//! What goes out with a question that is put instead of an answer, and comes
//! back with the call that is made again: ours, and nobody else's.

use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};

use crate::api;
use crate::tool::Arguments;

/// A question that was put: what is decided by answering it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SealedQuestion {
    /// The run that waits.
    pub(crate) run: String,
    pub(crate) approval: String,
    /// Names exactly what was shown.
    pub(crate) fingerprint: String,
    /// What a yes is: the run, or what it has changed.
    pub(crate) effect: bool,
    /// How many identical requests it was about.
    pub(crate) count: u64,
}

/// Whose call it is, and which: a question comes back with no other.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Bound<'a> {
    pub(crate) who: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Arguments,
}

/// Signs questions with a key that dies with this process. It is no secret
/// what one says, and it counts for as long as its approval waits.
#[derive(Clone)]
pub(crate) struct Seal(RequestStateCodec);

impl Seal {
    pub(crate) fn new() -> Self {
        let codec = RequestStateCodec::try_new(api::random_bytes::<32>());
        Self(codec.expect("the key is long enough"))
    }

    pub(crate) fn close(&self, asked: &SealedQuestion, bound: Bound<'_>) -> String {
        let bound = bound.bytes();
        let options = SealOptions::new().associated_data(&bound);
        let sealed = self.0.seal_json_with(asked, &options);
        sealed.expect("a question is always JSON")
    }

    /// Nothing if it is not ours, or was for somebody or something else.
    pub(crate) fn open(&self, sealed: &str, bound: Bound<'_>) -> Option<SealedQuestion> {
        self.0.open_json_with(sealed, &bound.bytes()).ok()
    }
}

impl Bound<'_> {
    fn bytes(self) -> Vec<u8> {
        // The same arguments in another order are the same call.
        let mut bound = serde_json::to_value(self).expect("a call is always JSON");
        bound.sort_all_objects();
        bound.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_sealed_is_for_one_call_of_one_principal() {
        let seal = Seal::new();
        let asked = SealedQuestion {
            run: "r_1".into(),
            approval: "ap_1".into(),
            fingerprint: "f".into(),
            effect: false,
            count: 1,
        };
        let of = |command: &str| {
            let mut arguments = Arguments::new();
            arguments.insert("command".into(), json!(command));
            arguments.insert("env".into(), json!({ "A": "1", "B": "2" }));
            arguments
        };
        let (touch, list) = (of("touch x"), of("ls"));
        let bound = |who, tool, arguments| Bound {
            who,
            tool,
            arguments,
        };
        let mine = bound("ana", "run", &touch);
        let sealed = seal.close(&asked, mine);
        assert_eq!(seal.open(&sealed, mine), Some(asked.clone()));
        let turned = [
            ("env", json!({ "B": "2", "A": "1" })),
            ("command", json!("touch x")),
        ];
        let turned = turned.map(|(name, value)| (name.to_owned(), value));
        let turned = turned.into_iter().collect();
        let same = bound("ana", "run", &turned);
        assert_eq!(seal.open(&sealed, same), Some(asked.clone()));
        for other in [
            bound("ben", "run", &touch),
            bound("ana", "Bash", &touch),
            bound("ana", "run", &list),
        ] {
            assert_eq!(seal.open(&sealed, other), None, "{other:?}");
        }
        let other = SealedQuestion {
            approval: "ap_2".into(),
            ..asked
        };
        let forged = Seal::new().close(&other, mine);
        assert_eq!(seal.open(&forged, mine), None);
        assert_eq!(seal.open(&format!("{sealed}A"), mine), None);
        assert_eq!(seal.open("", mine), None);
    }
}
