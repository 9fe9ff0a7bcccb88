//! Telemetry of the program itself, where it was built with it and a collector is named.

use super::context::CliContext;
use super::output::CliOutput;
use toolgate::ToolgateBuilder;

/// The collector, as every OpenTelemetry program reads it.
#[cfg(feature = "otel")]
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Telemetry under way, or none.
#[derive(Default)]
pub(crate) struct CliTelemetry {
    #[cfg(feature = "otel")]
    telemetry: Option<std::sync::Arc<toolgate::telemetry::TelemetrySink>>,
}

impl CliTelemetry {
    #[cfg(feature = "otel")]
    pub(crate) fn start(world: &CliContext, out: &mut CliOutput) -> Self {
        use toolgate::telemetry::{TelemetryOptions, TelemetrySink};
        let env = &world.ambient.env;
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

    #[cfg(not(feature = "otel"))]
    pub(crate) fn start(_world: &CliContext, _out: &mut CliOutput) -> Self {
        Self::default()
    }

    /// Lets it see the calls.
    pub(crate) fn attach(&self, builder: ToolgateBuilder) -> ToolgateBuilder {
        #[cfg(feature = "otel")]
        if let Some(telemetry) = &self.telemetry {
            return builder.sink(std::sync::Arc::clone(telemetry));
        }
        builder
    }

    /// Sends what is left.
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
