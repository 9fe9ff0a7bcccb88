//! Telemetry of the program itself, where it was built with it and a collector is named.

use super::out::Out;
use super::world::World;
use toolgate::Builder;

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
    pub(crate) fn start(world: &World, out: &mut Out) -> Self {
        use toolgate::telemetry::{TelemetryOptions, TelemetrySink};
        let env = &world.ambient.env;
        let off = env.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let Some(endpoint) = env.get(ENDPOINT).filter(|endpoint| !off && !endpoint.is_empty()) else {
            return Self::default();
        };
        match TelemetrySink::start(TelemetryOptions::new(endpoint)) {
            Ok(telemetry) => Self { telemetry: Some(std::sync::Arc::new(telemetry)) },
            Err(error) => {
                out.note(&error.to_string());
                Self::default()
            }
        }
    }

    #[cfg(not(feature = "otel"))]
    pub(crate) fn start(_world: &World, _out: &mut Out) -> Self {
        Self::default()
    }

    /// Lets it see the calls.
    pub(crate) fn attach(&self, builder: Builder) -> Builder {
        #[cfg(feature = "otel")]
        if let Some(telemetry) = &self.telemetry {
            return builder.sink(std::sync::Arc::clone(telemetry) as std::sync::Arc<dyn toolgate::Sink>);
        }
        builder
    }

    /// Sends what is left.
    pub(crate) fn finish(&self, out: &mut Out) {
        #[cfg(feature = "otel")]
        if let Some(telemetry) = &self.telemetry
            && let Err(error) = telemetry.shutdown()
        {
            out.note(&error.to_string());
        }
        let _ = out;
    }
}
