//! Exports spans to an OpenTelemetry collector: OTLP over HTTP, as JSON.
//!
//! It uses the client of webhooks. The crates of OpenTelemetry would bring about
//! a hundred others and a second way to keep context.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use weighlock_engine::{Engine, HttpClient, Span};

/// Spans in one request.
const BATCH: usize = 512;

/// How long the first span of a request waits for others.
const GATHER: Duration = Duration::from_millis(500);

/// The time for one request: a collector is on the same network.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Exports spans while the server runs. Spans that the collector does not accept
/// are lost, and counted.
pub(crate) async fn export(engine: Arc<Engine>, endpoint: String, client: HttpClient) {
    let Some(mut spans) = engine.tracer().take_spans() else {
        return;
    };
    let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let mut is_working = true;
    while let Some(batch) = gather(&mut spans).await {
        let post = client.post_json(&url, written(&batch).to_string());
        let posted = tokio::time::timeout(TIMEOUT, post).await;
        let posted = posted.unwrap_or_else(|_| Err("no answer".into()));
        if let Err(why) = &posted {
            engine.tracer().count_lost(batch.len() as u64);
            // Logged once, and not for each batch while the collector is down.
            if is_working {
                tracing::warn!(endpoint, why, "spans are lost");
            }
        }
        is_working = posted.is_ok();
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

/// Returns spans in the JSON of OTLP, where numbers of 64 bits are strings.
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
