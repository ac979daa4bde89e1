//! Spans, told to a collector of OpenTelemetry: OTLP over HTTP, as JSON.
//!
//! The client is the one that tells webhooks. The crates of OpenTelemetry would
//! bring some hundred others and a second way to keep context.

use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use weighlock_engine::{Engine, Span};

use super::Outward;
use super::form::Form;
use super::send;

/// Spans in one request.
const BATCH: usize = 512;

/// How long the first of them waits for others.
const GATHER: Duration = Duration::from_millis(500);

/// For one request: a collector is near.
const WITHIN: Duration = Duration::from_secs(5);

/// Tells spans for as long as the server lives. What the collector does not
/// take is lost, and counted.
pub(crate) async fn tell(engine: Arc<Engine>, outward: Arc<Outward>) {
    let (Some(mut spans), Some(endpoint)) = (engine.spans(), outward.traces.clone()) else {
        return;
    };
    let mut well = true;
    while let Some(batch) = gather(&mut spans).await {
        let post = post(&endpoint, &batch, &outward);
        let told = match tokio::time::timeout(WITHIN, post).await {
            Ok(told) => told,
            Err(_) => Err("no answer".into()),
        };
        match told {
            Ok(()) => well = true,
            Err(why) => {
                engine.lose_spans(batch.len() as u64);
                if well {
                    // Once, and not for each batch while it is away.
                    tracing::warn!(endpoint, why, "spans are lost");
                }
                well = false;
            }
        }
    }
}

async fn gather(spans: &mut Receiver<Span>) -> Option<Vec<Span>> {
    let mut batch = vec![spans.recv().await?];
    let until = tokio::time::Instant::now() + GATHER;
    while batch.len() < BATCH
        && let Ok(Some(span)) = tokio::time::timeout_at(until, spans.recv()).await
    {
        batch.push(span);
    }
    Some(batch)
}

async fn post(endpoint: &str, batch: &[Span], outward: &Outward) -> Result<(), String> {
    let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let uri: Uri = address
        .parse()
        .map_err(|_| "that is no address".to_owned())?;
    let form = Form {
        headers: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        body: written(batch).to_string(),
    };
    let status = send::post(&uri, form, outward.ca_file.clone()).await?;
    match status.is_success() {
        true => Ok(()),
        false => Err(format!("answered {}", status.as_u16())),
    }
}

/// As the protocol writes it: numbers of 64 bits are strings.
fn written(batch: &[Span]) -> Value {
    let spans: Vec<_> = batch.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            attribute("service.name", &json!("weighlock")),
            attribute("service.version", &json!(env!("CARGO_PKG_VERSION"))),
        ] },
        "scopeSpans": [{ "scope": { "name": "weighlock" }, "spans": spans }],
    }] })
}

fn span(span: &Span) -> Value {
    let attributes: Vec<_> = { span.attributes.iter() }
        .map(|(name, value)| attribute(&format!("weighlock.{name}"), value))
        .collect();
    let nanos = |micros: i64| (micros.max(0) as u128 * 1000).to_string();
    json!({
        "traceId": span.trace, "spanId": span.id,
        "parentSpanId": span.parent.clone().unwrap_or_default(),
        "name": span.name, "kind": 1,
        "startTimeUnixNano": nanos(span.start), "endTimeUnixNano": nanos(span.end),
        "attributes": attributes,
        "status": { "code": if span.failed { 2 } else { 0 } },
    })
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(is) => json!({ "boolValue": is }),
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            json!({ "intValue": number.to_string() })
        }
        Value::Number(number) => json!({ "doubleValue": number }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": name, "value": value })
}
