//! What a tool is: a name, a shape, and a deed.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::api::Failure;
use crate::call::Call;
use crate::reply::Reply;

pub(crate) type Arguments = Map<String, Value>;

type Deed = for<'a> fn(&'a Call, Arguments) -> BoxFuture<'a, Result<Reply, Failure>>;

/// One tool.
#[derive(Clone)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) input: fn() -> Value,
    pub(crate) output: Option<fn() -> Value>,
    pub(crate) hints: Hints,
    pub(crate) deed: Deed,
}

/// What a client may tell its person before it calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) reads: bool,
    pub(crate) destroys: bool,
    pub(crate) idempotent: bool,
    /// It may reach what is not on this machine.
    pub(crate) open_world: bool,
}

/// Reads arguments; what is wrong is said with its place. Null is nothing:
/// some models name all that they know of.
pub(crate) fn parse<T: DeserializeOwned>(mut arguments: Arguments) -> Result<T, Failure> {
    arguments.retain(|_, value| !value.is_null());
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let place = error.path().to_string();
        let what = match place.as_str() {
            "." => error.inner().to_string(),
            place => format!("`{place}`: {}", error.inner()),
        };
        Failure::new(
            "invalid_arguments",
            format!("{what}; nothing was done"),
            "Call it again with arguments as its input schema says.",
        )
    })
}

/// Returns the schema of a tool's input.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    inline::<T>(SchemaSettings::draft2020_12())
}

/// The schema of an answer: where a tool fails, it has nothing but `error`.
pub(crate) fn answer<T: JsonSchema>() -> Value {
    // As it is written: what is empty is left out.
    let mut schema = inline::<T>(SchemaSettings::draft2020_12().for_serialize());
    if let Value::Object(fields) = &mut schema {
        fields.shift_remove("required");
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            let error = json!({
                "type": "object",
                "description": "Why nothing was done.",
                "properties": {
                    "code": { "type": "string" },
                    "message": { "type": "string" },
                    "hint": { "type": "string" },
                },
            });
            properties.insert("error".into(), error);
        }
    }
    schema
}

/// The schema of a type, with everything in one place: not every client
/// follows references, or knows that what may be left out may be null.
fn inline<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    plain(&mut schema);
    if let Value::Object(schema) = &mut schema {
        schema.shift_remove("title");
        schema.shift_remove("description");
    }
    schema
}

fn plain(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(plain),
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    fields.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(words)) = fields.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            // Numbers have no such kinds in JSON.
            if fields.get("format").is_some_and(Value::is_string) {
                fields.shift_remove("format");
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if fields.get("default").is_some_and(Value::is_null) {
                fields.shift_remove("default");
            }
            fields.values_mut().for_each(plain);
        }
        _ => {}
    }
}
