//! OpenTelemetry export: each call as a span with one child span per stage, and metrics, over OTLP/HTTP.
//!
//! Spans and metrics are made from the record of a finished call, so no call waits for the collector.
//! Names follow the OpenTelemetry semantic conventions for generative AI where they exist (`execute_tool`,
//! `gen_ai.tool.name`, `gen_ai.client.operation.duration`); the others start with `toolgate.`.
//! Neither inputs nor outputs are exported.
//!
//! Telemetry is not an audit log: spans are lost when the collector is slow or unreachable. The ledger is the audit
//! log.

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

/// How telemetry is exported.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TelemetryOptions {
    /// The base address of the collector, such as `http://localhost:4318`.
    pub endpoint: String,
    /// Headers of each request, such as an API key.
    pub headers: HashMap<String, String>,
    /// The value of `service.name`.
    pub service_name: String,
    /// How often metrics are exported.
    pub interval: Duration,
    /// Timeout of one export request.
    pub timeout: Duration,
}

impl TelemetryOptions {
    /// Options for a collector, with the service name `toolgate`, 60 seconds between exports and 10 seconds timeout.
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

/// Telemetry could not be started, or its last export failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot export telemetry: {0}")]
pub struct TelemetryError(String);

/// A sink that exports telemetry. Add it to the builder, and call [`TelemetrySink::shutdown`] at the end.
///
/// ```no_run
/// use std::sync::Arc;
/// use toolgate::telemetry::{TelemetryOptions, TelemetrySink};
///
/// let mut options = TelemetryOptions::new("http://localhost:4318");
/// options.service_name = "my-agent".to_owned();
/// let telemetry = Arc::new(TelemetrySink::start(options)?);
/// // Pass a clone to `ToolgateBuilder::sink`, make calls, then:
/// telemetry.shutdown()?;
/// # Ok::<(), toolgate::telemetry::TelemetryError>(())
/// ```
#[derive(Debug)]
pub struct TelemetrySink {
    /// Owns the batch exporter of spans.
    traces: SdkTracerProvider,
    /// Makes the spans.
    tracer: SdkTracer,
    /// Owns the periodic exporter of metrics.
    metrics: SdkMeterProvider,
    /// Number of calls, by tool, verdict and outcome.
    calls: Counter<u64>,
    /// Duration of calls in seconds.
    duration: Histogram<f64>,
    /// Duration of the stage that runs `PreToolUse` hooks, in seconds.
    hooks: Histogram<f64>,
    /// How long approvals took, in seconds.
    approval: Histogram<f64>,
    /// Size of results in bytes.
    output: Histogram<u64>,
}

/// The program, as collectors list it.
fn describe_service(name: String) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    Resource::builder().with_service_name(name).with_attribute(version).build()
}

impl TelemetrySink {
    /// Starts the exporters. No request is made before there is data.
    pub fn start(options: TelemetryOptions) -> Result<Self, TelemetryError> {
        // The exporter's HTTP client panics without one. An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
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
        let metric_exporter = MetricExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{base}/v1/metrics"))
            .with_timeout(options.timeout)
            .with_headers(options.headers)
            .build()
            .map_err(failed)?;
        let resource = describe_service(options.service_name);
        let traces =
            SdkTracerProvider::builder().with_batch_exporter(spans).with_resource(resource.clone()).build();
        let reader = PeriodicReader::builder(metric_exporter).with_interval(options.interval).build();
        let metrics = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
        let meter = metrics.meter("toolgate");
        Ok(Self {
            tracer: traces.tracer("toolgate"),
            calls: meter
                .u64_counter("toolgate.calls")
                .with_unit("{call}")
                .with_description("Calls, by tool, verdict and outcome.")
                .build(),
            duration: meter
                .f64_histogram("gen_ai.client.operation.duration")
                .with_unit("s")
                .with_description("Duration of calls, all stages together.")
                .build(),
            hooks: meter
                .f64_histogram("toolgate.hook.duration")
                .with_unit("s")
                .with_description("Duration of PreToolUse hooks.")
                .build(),
            approval: meter
                .f64_histogram("toolgate.approval.wait")
                .with_unit("s")
                .with_description("Time until a question was answered.")
                .build(),
            output: meter
                .u64_histogram("toolgate.output.size")
                .with_unit("By")
                .with_description("Size of results for the model.")
                .build(),
            traces,
            metrics,
        })
    }

    /// Exports what is buffered and stops. Blocks until the collector answers, so do not call it in async code.
    pub fn shutdown(&self) -> Result<(), TelemetryError> {
        let traces = self.traces.shutdown();
        let metrics = self.metrics.shutdown();
        traces.and(metrics).map_err(|error| TelemetryError(error.to_string()))
    }

    /// Exports the span of a call and the spans of its stages.
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
            OutcomeRecord::Refused { code, stage, .. }
            | OutcomeRecord::Failed { code, stage, .. }
            | OutcomeRecord::Cancelled { code, stage, .. } => {
                attributes.push(KeyValue::new("error.type", code.info().kind));
                attributes.push(KeyValue::new("toolgate.code", code.to_string()));
                attributes.push(KeyValue::new("toolgate.stage", stage.as_str()));
                // The reason may quote the input; the description of the code does not.
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
        let parent = Context::new().with_remote_span_context(span.span_context().clone());
        let mut at = started;
        for mark in &record.stages {
            let end = at + Duration::from_micros(mark.micros);
            self.stage(mark.stage, at, end, &parent);
            at = end;
        }
        span.end_with_timestamp(started + Duration::from_micros(record.micros));
    }

    /// Exports the span of one stage.
    fn stage(&self, stage: Stage, from: SystemTime, to: SystemTime, parent: &Context) {
        let mut span = self
            .tracer
            .span_builder(stage.as_str())
            .with_kind(SpanKind::Internal)
            .with_start_time(from)
            .start_with_context(&self.tracer, parent);
        span.end_with_timestamp(to);
    }

    /// Adds a call to the metrics.
    fn measure(&self, record: &CallRecord) {
        // The name of an unknown tool is arbitrary text of the model, and would make the number of labels unbounded.
        let tool = record.tool.as_ref().map_or("unknown", |tool| tool.as_str()).to_owned();
        let verdict = record.judged.as_ref().map_or("none", |judged| judged.verdict.as_str()).to_owned();
        let tool = KeyValue::new("gen_ai.tool.name", tool);
        let mut labels = vec![tool.clone(), KeyValue::new("toolgate.verdict", verdict)];
        let mut timed = vec![KeyValue::new("gen_ai.operation.name", "execute_tool"), tool.clone()];
        labels.push(KeyValue::new("toolgate.outcome", record.outcome.as_str()));
        if let OutcomeRecord::Done { bytes, .. } = &record.outcome {
            self.output.record(*bytes, std::slice::from_ref(&tool));
        }
        if let Some(code) = record.outcome.code() {
            labels.push(KeyValue::new("error.type", code.info().kind));
            timed.push(KeyValue::new("error.type", code.info().kind));
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
    /// Exports a span and the metrics of a finished call.
    fn record(&self, record: &CallRecord) {
        self.trace(record);
        self.measure(record);
    }
}

/// The value of `gen_ai.tool.type`.
fn tool_type(source: Option<&SourceId>) -> &'static str {
    match source {
        Some(SourceId::Mcp { .. }) => "extension",
        Some(SourceId::Builtin | SourceId::Plugin { .. } | SourceId::Skill { .. } | SourceId::Sdk) | None => {
            "function"
        }
    }
}

/// Microseconds as seconds.
fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}
