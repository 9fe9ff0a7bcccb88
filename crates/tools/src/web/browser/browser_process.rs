//! Starting and ending the browser: its switches, its private directory, its sandbox, its proxy.

use super::browser_hosts::BrowserHosts;
use super::debug_pipe::DebugPipe;
use super::find_browser::find_browser;
use super::page_events::PausedRequest;
use crate::shell::{ShellTasks, choose_upstream, proxy_variables};
use crate::web::WebState;
use std::collections::BTreeMap;
use tokio::sync::mpsc;
use toolgate_files::{ScratchDirectory, run_blocking};
use toolgate_gate::Cleared;
use toolgate_process::sandbox::{ProcessLimits, SandboxNetworkAccess, SandboxProfile};
use toolgate_process::{ProxyHosts, SandboxProxy, ServerLaunch, ServerProcess};
use toolgate_proto::{AbsPath, Code, Refusal};

/// Switches that do not depend on the call.
const SWITCHES: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    // The sandbox of toolgate confines every process of the browser, and leaves no namespaces for one of its own.
    "--no-sandbox",
    "--no-first-run",
    // A window of its own would cost a renderer that nothing is shown in.
    "--no-startup-window",
    "--no-default-browser-check",
    "--no-pings",
    "--no-service-autorun",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
    "--disable-client-side-phishing-detection",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--disable-search-engine-choice-screen",
    "--disable-features=SpareRendererForSitePerProcess,Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,NetworkPrediction,PrivacySandboxSettings4",
    "--metrics-recording-only",
    "--mute-audio",
    "--hide-scrollbars",
    "--password-store=basic",
    "--force-color-profile=srgb",
    "--dns-prefetch-disable",
    // The proxy alone leaves loopback, link-local addresses and WebRTC outside of it.
    "--proxy-bypass-list=<-loopback>",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--js-flags=--max-old-space-size=512",
];
/// Bytes of one file in the profile of the browser.
const MAX_PROFILE_FILE_BYTES: u64 = 1 << 30;
/// Seconds of processor time of one process of the browser.
const MAX_PROCESSOR_SECONDS: u64 = 600;
/// Puts the pipes where the browser looks for them: 3 to read from, 4 to write to.
const PIPE_SCRIPT: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;
/// Characters of the browser's standard error in a message.
const MAX_STDERR_CHARS: usize = 300;

/// How to start a browser for a session.
#[derive(Clone)]
pub(crate) struct BrowserLaunch {
    /// The program.
    program: AbsPath,
    /// toolgate's environment; the browser gets the harmless part of it.
    environment: BTreeMap<String, String>,
    /// The variables that name proxies, as `WebFetch` uses them.
    proxy_environment: BTreeMap<String, String>,
    /// Where the private directory is made.
    temp_dir: AbsPath,
    /// Hosts that commands may not reach, which hold for pages too.
    denied_hosts: Vec<String>,
}

impl BrowserLaunch {
    /// The launch for a call, by the settings of its session. Refused where there is no browser.
    pub(crate) fn from_call(cleared: &Cleared) -> Result<Self, Refusal> {
        let session = &cleared.context().session;
        let (shell, web) = (session.state::<ShellTasks>().config(), session.state::<WebState>().config());
        let program =
            find_browser(web.browser.as_deref(), &shell.environment, &cleared.context().workspace.roots)?;
        Ok(Self {
            program,
            environment: shell.environment.clone(),
            proxy_environment: proxy_variables(&web.environment),
            temp_dir: shell.temp_dir.clone(),
            denied_hosts: shell.sandbox.denied_hosts.clone(),
        })
    }
}

/// A running browser. Dropping it kills every process of it.
pub(super) struct BrowserProcess {
    /// The connection; dropped before the process.
    pub(super) pipe: DebugPipe,
    /// Owns the processes. `None` once it was ended.
    process: Option<ServerProcess>,
    /// The only way to the network.
    pub(super) proxy: SandboxProxy,
    /// The profile, removed at last.
    private: Option<ScratchDirectory>,
}

impl BrowserProcess {
    /// Starts a browser whose pages reach the hosts that `hosts` allows.
    pub(super) async fn start(
        launch: BrowserLaunch,
        hosts: &BrowserHosts,
    ) -> Result<(Self, mpsc::Receiver<PausedRequest>), Refusal> {
        let hosts = hosts.clone();
        let runtime = tokio::runtime::Handle::current();
        // Starting blocks until the program was executed.
        let started = run_blocking(move || {
            let _inside = runtime.enter();
            start_process(&launch, hosts)
        });
        let failed =
            |problem: String| browser_failure(format!("the browser could not be started: {problem}"));
        let (process, output, input, proxy, private) =
            started.await.map_err(|problem| failed(problem.to_string()))?.map_err(failed)?;
        let (pipe, paused) = DebugPipe::new(output, input);
        Ok((Self { pipe, process: Some(process), proxy, private: Some(private) }, paused))
    }

    /// What a failure of the browser is explained with: its last words, and what the sandbox refused.
    pub(super) fn explain(&self, problem: &str) -> String {
        let mut text = problem.to_owned();
        let Some(process) = &self.process else { return text };
        let stderr = process.stderr_tail();
        let is_telling = |line: &&str| !line.trim().is_empty() && !line.contains("dbus");
        // A sandbox has no message bus, and the browser says so many times.
        if let Some(last) = stderr.lines().rev().find(is_telling) {
            let last: String = last.trim().chars().take(MAX_STDERR_CHARS).collect();
            text.push_str(&format!("; its last output: {last}"));
        }
        text
    }

    /// Ends it, and removes its profile.
    pub(super) async fn end(mut self) {
        if let Some(process) = self.process.take() {
            process.end_now().await;
        }
        if let Some(private) = self.private.take() {
            let _ = run_blocking(move || drop(private)).await;
        }
    }
}

/// The refusal for a browser that failed.
pub(super) fn browser_failure(message: String) -> Refusal {
    Refusal::new(Code::Fetch, message)
}

/// The parts of a browser that was started.
type StartedParts<O, I> = (ServerProcess, O, I, SandboxProxy, ScratchDirectory);

/// Starts the proxy and the process. Blocks.
fn start_process(
    launch: &BrowserLaunch,
    hosts: BrowserHosts,
) -> Result<
    StartedParts<
        impl tokio::io::AsyncRead + Unpin + Send + use<>,
        impl tokio::io::AsyncWrite + Unpin + Send + use<>,
    >,
    String,
> {
    let listed = ProxyHosts { allowed: Vec::new(), denied: launch.denied_hosts.clone() };
    let upstream = choose_upstream(&launch.proxy_environment);
    let proxy = SandboxProxy::start(&listed, move |host, port| hosts.decide(host, port), upstream)
        .map_err(|error| format!("its proxy does not start: {error}"))?;
    let private = ScratchDirectory::new(&launch.temp_dir, "toolgate-browser-")
        .map_err(|error| format!("no private directory can be made for it: {error}"))?;
    let directory = private.dir().to_string();
    let mut args = vec!["-c".to_owned(), PIPE_SCRIPT.to_owned(), launch.program.to_string()];
    args.extend(SWITCHES.iter().map(|&switch| switch.to_owned()));
    args.push(format!("--proxy-server={}", proxy.url()));
    args.push(format!("--user-data-dir={directory}/profile"));
    // Nothing of the user's own configuration is read, and nothing is left in it.
    let own = ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"];
    let env = own.iter().map(|&name| (name.to_owned(), directory.clone())).collect();
    let server = ServerLaunch::new("/bin/sh", args, private.dir().clone()).with_env(env);
    let profile = SandboxProfile {
        private: vec![private.dir().clone()],
        // Programs, libraries and fonts of the system come by themselves.
        readable: Some(launch.program.parent().into_iter().collect()),
        net: SandboxNetworkAccess::Loopback(Some(proxy.port())),
        limits: ProcessLimits::default()
            .with_file_size(MAX_PROFILE_FILE_BYTES)
            .with_cpu_seconds(MAX_PROCESSOR_SECONDS),
        // A page is code of strangers: without the sandbox there is no browser.
        required: true,
        ..SandboxProfile::default()
    };
    let (process, output, input) = ServerProcess::start_sandboxed(&server, &launch.environment, profile)
        .map_err(|error| error.message)?;
    Ok((process, output, input, proxy, private))
}
