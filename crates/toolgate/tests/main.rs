//! The command line as a person or a program meets it, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and start the real program on real files"
)]

mod main {
    mod calling;
    mod checking;
    mod desk;
    mod documents;
    mod examples;
    mod hostile;
    mod logging;
    mod policy;
    mod settings;
    #[cfg(feature = "otel")]
    mod telemetry;
    mod tools;
    mod undoing;
}
