//! How much of long output a reader wants.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use weighlock_engine::Cut;

/// No more characters at once; whatever is longer is read in pieces.
const MOST: usize = 1_000_000;

/// `head:5000` is the beginning of both streams joined, `tail:50000` the end of
/// each, `ends:30000` both ends of each; in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CutTo(Cut);

impl From<CutTo> for Cut {
    fn from(cut: CutTo) -> Self {
        cut.0
    }
}

impl From<Cut> for CutTo {
    fn from(cut: Cut) -> Self {
        Self(cut)
    }
}

impl TryFrom<String> for CutTo {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "give head, tail or ends with a number of characters, such as tail:50000";
        let (part, chars) = text.split_once(':').ok_or(wrong)?;
        let chars: usize = chars.parse().map_err(|_| wrong)?;
        if !(1..=MOST).contains(&chars) {
            return Err("give between 1 and 1000000 characters");
        }
        match part {
            "head" => Ok(Self(Cut::Head(chars))),
            "tail" => Ok(Self(Cut::Tail(chars))),
            "ends" => Ok(Self(Cut::Ends(chars))),
            _ => Err(wrong),
        }
    }
}

impl From<CutTo> for String {
    fn from(cut: CutTo) -> Self {
        match cut.0 {
            Cut::Head(chars) => format!("head:{chars}"),
            Cut::Tail(chars) => format!("tail:{chars}"),
            Cut::Ends(chars) => format!("ends:{chars}"),
        }
    }
}

impl JsonSchema for CutTo {
    fn schema_name() -> Cow<'static, str> {
        "CutTo".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "`head:5000` is the beginning of both streams joined, `tail:50000` the \
                end of each, `ends:30000` both ends of each; in characters, 1000000 at most.",
            "pattern": "^(head|tail|ends):([1-9][0-9]{0,5}|1000000)$",
        })
    }
}
