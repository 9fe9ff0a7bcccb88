//! OpenTelemetry: each call as a span with one child for each stage, and metrics, over OTLP/HTTP.
//!
//! Spans and metrics are made from the record of a call, after it is over, so that nothing waits for a collector.
//! Names follow the semantic conventions for generative AI where there are any (`execute_tool`, `gen_ai.tool.name`,
//! `gen_ai.client.operation.duration`); the rest is called `toolgate.…`.
//! Neither inputs nor outputs are exported.
//!
//! This is for looking at, not for proof: a collector that is slow or away loses spans.
//! What must not be lost is in the ledger.

use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_gate::Sink;
use toolgate_proto::{CallRecord, OutcomeRecord, SourceId, Stage};

/// Where telemetry goes.
#[derive(Debug, Clone)]
pub struct TelemetryOptions {
    /// The collector, without a path, such as `http://localhost:4318`.
    pub endpoint: String,
    /// Headers of each request.
    pub headers: HashMap<String, String>,
    /// What the program is called there.
    pub service_name: String,
    /// How often metrics are sent.
    pub interval: Duration,
    /// How long one request may take.
    pub timeout: Duration,
}

impl TelemetryOptions {
    /// The usual values for a collector.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: HashMap::new(),
            service_name: "toolgate".to_owned(),
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
        }
    }
}

/// Telemetry could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("telemetry cannot be sent: {0}")]
pub struct TelemetryError(String);

/// Sends telemetry. Add it to the builder as a sink, and shut it down at the end.
#[derive(Debug)]
pub struct TelemetrySink {
    traces: SdkTracerProvider,
    tracer: SdkTracer,
    metrics: SdkMeterProvider,
    calls: Counter<u64>,
    duration: Histogram<f64>,
    hooks: Histogram<f64>,
    approval: Histogram<f64>,
    output: Histogram<u64>,
}

impl TelemetrySink {
    /// Starts sending. Nothing is sent before there is something to send.
    pub fn start(options: TelemetryOptions) -> Result<Self, TelemetryError> {
        let base = options.endpoint.trim_end_matches('/');
        let failed = |error: opentelemetry_otlp::ExporterBuildError| TelemetryError(error.to_string());
        let spans = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{base}/v1/traces"))
            .with_timeout(options.timeout)
            .with_headers(options.headers.clone())
            .build()
            .map_err(failed)?;
        let numbers = MetricExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{base}/v1/metrics"))
            .with_timeout(options.timeout)
            .with_headers(options.headers)
            .build()
            .map_err(failed)?;
        let resource = Resource::builder()
            .with_service_name(options.service_name)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let traces =
            SdkTracerProvider::builder().with_batch_exporter(spans).with_resource(resource.clone()).build();
        let reader = PeriodicReader::builder(numbers).with_interval(options.interval).build();
        let metrics = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
        let meter = metrics.meter("toolgate");
        Ok(Self {
            tracer: traces.tracer("toolgate"),
            calls: meter
                .u64_counter("toolgate.calls")
                .with_unit("{call}")
                .with_description("Calls, by tool, verdict and how they ended.")
                .build(),
            duration: meter
                .f64_histogram("gen_ai.client.operation.duration")
                .with_unit("s")
                .with_description("How long calls took, all stages together.")
                .build(),
            hooks: meter
                .f64_histogram("toolgate.hook.duration")
                .with_unit("s")
                .with_description("How long hooks before the run took.")
                .build(),
            approval: meter
                .f64_histogram("toolgate.approval.wait")
                .with_unit("s")
                .with_description("How long answers of people took.")
                .build(),
            output: meter
                .u64_histogram("toolgate.output.size")
                .with_unit("By")
                .with_description("Bytes of content for the model.")
                .build(),
            traces,
            metrics,
        })
    }

    /// Sends what is left and stops. Waits for the collector, so it must not be called inside async code.
    pub fn shutdown(&self) -> Result<(), TelemetryError> {
        let traces = self.traces.shutdown();
        let metrics = self.metrics.shutdown();
        traces.and(metrics).map_err(|error| TelemetryError(error.to_string()))
    }

    fn trace(&self, record: &CallRecord) {
        let started = UNIX_EPOCH + Duration::from_millis(record.at);
        let tool = record.tool.as_ref().unwrap_or(&record.asked).as_str();
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", tool.to_owned()),
            KeyValue::new("gen_ai.tool.call.id", record.call.as_str().to_owned()),
            KeyValue::new("gen_ai.tool.type", tool_type(record.source.as_ref())),
            KeyValue::new("gen_ai.conversation.id", record.session.as_str().to_owned()),
            KeyValue::new("toolgate.edge", record.principal.edge.clone()),
        ];
        if let Some(judged) = &record.judged {
            attributes.push(KeyValue::new("toolgate.verdict", judged.verdict.clone()));
        }
        if let Some(approval) = &record.approval {
            attributes.push(KeyValue::new("toolgate.approval.by", approval.by.clone()));
            attributes.push(KeyValue::new("toolgate.approval.answer", approval.answer.clone()));
        }
        let mut status = Status::Unset;
        match &record.outcome {
            OutcomeRecord::Done { bytes, .. } => {
                attributes
                    .push(KeyValue::new("toolgate.output.size", i64::try_from(*bytes).unwrap_or(i64::MAX)));
            }
            OutcomeRecord::Refused { code, stage, .. } => {
                attributes.push(KeyValue::new("error.type", code.info().kind));
                attributes.push(KeyValue::new("toolgate.code", code.to_string()));
                attributes.push(KeyValue::new("toolgate.stage", stage.as_str()));
                // The reason may quote an input; the code's own words do not.
                status = Status::error(code.info().meaning);
            }
        }
        let mut span = self
            .tracer
            .span_builder(format!("execute_tool {tool}"))
            .with_kind(SpanKind::Internal)
            .with_start_time(started)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &Context::new());
        span.set_status(status);
        let inside = Context::new().with_remote_span_context(span.span_context().clone());
        let mut at = started;
        for mark in &record.stages {
            let end = at + Duration::from_micros(mark.micros);
            self.stage(mark.stage, at, end, &inside);
            at = end;
        }
        span.end_with_timestamp(started + Duration::from_micros(record.micros));
    }

    fn stage(&self, stage: Stage, from: SystemTime, to: SystemTime, inside: &Context) {
        let mut span = self
            .tracer
            .span_builder(stage.as_str())
            .with_kind(SpanKind::Internal)
            .with_start_time(from)
            .start_with_context(&self.tracer, inside);
        span.end_with_timestamp(to);
    }

    fn measure(&self, record: &CallRecord) {
        // A name that no tool has may be anything a model made up: it does not become a label.
        let tool = record.tool.as_ref().map_or("unknown", |tool| tool.as_str()).to_owned();
        let verdict = record.judged.as_ref().map_or("none", |judged| judged.verdict.as_str()).to_owned();
        let tool = KeyValue::new("gen_ai.tool.name", tool);
        let mut labels = vec![tool.clone(), KeyValue::new("toolgate.verdict", verdict)];
        let mut timed = vec![KeyValue::new("gen_ai.operation.name", "execute_tool"), tool.clone()];
        match &record.outcome {
            OutcomeRecord::Done { bytes, .. } => {
                labels.push(KeyValue::new("toolgate.outcome", "done"));
                self.output.record(*bytes, std::slice::from_ref(&tool));
            }
            OutcomeRecord::Refused { code, .. } => {
                labels.push(KeyValue::new("toolgate.outcome", "refused"));
                labels.push(KeyValue::new("error.type", code.info().kind));
                timed.push(KeyValue::new("error.type", code.info().kind));
            }
        }
        self.calls.add(1, &labels);
        self.duration.record(seconds(record.micros), &timed);
        if let Some(approval) = &record.approval {
            self.approval.record(seconds(approval.micros), std::slice::from_ref(&tool));
        }
        for mark in record.stages.iter().filter(|mark| mark.stage == Stage::Screen) {
            self.hooks.record(seconds(mark.micros), std::slice::from_ref(&tool));
        }
    }
}

impl Sink for TelemetrySink {
    fn record(&self, record: &CallRecord) {
        self.trace(record);
        self.measure(record);
    }
}

/// Who runs the tool, in the conventions' words.
fn tool_type(source: Option<&SourceId>) -> &'static str {
    match source {
        Some(SourceId::Mcp { .. }) => "extension",
        Some(SourceId::Builtin | SourceId::Plugin { .. } | SourceId::Skill { .. } | SourceId::Sdk) | None => {
            "function"
        }
    }
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}
