//! OpenTelemetry of the program, if it was built with the feature `otel` and an environment variable names a collector.

use super::context::CliContext;
use super::output::CliOutput;
use toolgate::ToolgateBuilder;

/// The standard environment variable with the address of the collector.
#[cfg(feature = "otel")]
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The telemetry of one run, or none.
#[derive(Default)]
pub(crate) struct CliTelemetry {
    /// Absent if no collector is configured, `OTEL_SDK_DISABLED` is set, or the exporter could not start.
    #[cfg(feature = "otel")]
    telemetry: Option<std::sync::Arc<toolgate::telemetry::TelemetrySink>>,
}

impl CliTelemetry {
    /// Starts the exporter. An error becomes a note: missing telemetry is no reason not to run a call.
    #[cfg(feature = "otel")]
    pub(crate) fn start(context: &CliContext, out: &mut CliOutput) -> Self {
        use toolgate::telemetry::{TelemetryOptions, TelemetrySink};
        let env = &context.ambient.env;
        let off = env.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let Some(endpoint) = env.get(ENDPOINT).filter(|endpoint| !off && !endpoint.is_empty()) else {
            return Self::default();
        };
        match TelemetrySink::start(TelemetryOptions::new(endpoint)) {
            Ok(telemetry) => Self { telemetry: Some(std::sync::Arc::new(telemetry)) },
            Err(error) => {
                out.print_note(&error.to_string());
                Self::default()
            }
        }
    }

    /// Does nothing: the program was built without telemetry.
    #[cfg(not(feature = "otel"))]
    pub(crate) fn start(_world: &CliContext, _out: &mut CliOutput) -> Self {
        Self::default()
    }

    /// Adds the exporter to the sinks of the builder.
    pub(crate) fn attach(&self, builder: ToolgateBuilder) -> ToolgateBuilder {
        #[cfg(feature = "otel")]
        if let Some(telemetry) = &self.telemetry {
            return builder.sink(std::sync::Arc::clone(telemetry));
        }
        builder
    }

    /// Exports what is buffered and stops.
    pub(crate) fn finish(&self, out: &mut CliOutput) {
        #[cfg(feature = "otel")]
        if let Some(telemetry) = &self.telemetry
            && let Err(error) = telemetry.shutdown()
        {
            out.print_note(&error.to_string());
        }
        let _ = out;
    }
}
