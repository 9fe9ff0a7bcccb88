//! Why calls are refused whatever policy says of them: mode bypass for root, and records that cannot be written.
//!
//! A check judges a call without making it. It asks here, so that it does not promise what no call does; `toolgate doctor`
//! asks the same.

use super::CliError;
use super::context::{CliContext, MAX_LEDGER_FILE_BYTES};
use toolgate::ledger::{ExternalAnchor, LedgerSink};
use toolgate::settings::{LoadedSettings, SYSLOG_ANCHOR};
use toolgate::{AbsPath, Mode, Sink};
use toolgate_process::SystemLog;

impl CliContext {
    /// Why every call is refused under these settings in this mode, if it is.
    pub(crate) fn find_refusal_of_all_calls(&self, settings: &LoadedSettings, mode: Mode) -> Option<String> {
        if let Some(why) = self.find_bypass_refusal(mode) {
            return Some(why.to_owned());
        }
        let is_required = settings.merged().ledger.required == Some(true);
        let anchor = match self.external_anchor(settings) {
            Ok(anchor) => anchor,
            Err(CliError::Usage(problem) | CliError::Declined(problem)) => return Some(problem),
            Err(CliError::ClosedPipe | CliError::Interrupted) => return None,
        };
        let problem = is_required.then(|| self.check_ledger_ready(anchor).err()).flatten()?;
        Some(format!(
            "calls must be recorded (`ledger.required`), and the ledger cannot be written: {problem}"
        ))
    }

    /// Refuses mode bypass for root, unless an environment variable says that a sandbox limits the process.
    pub(crate) fn check_bypass(&self, mode: Mode) -> Result<(), CliError> {
        self.find_bypass_refusal(mode).map_or(Ok(()), |why| Err(CliError::Usage(why.to_owned())))
    }

    /// Why calls are refused in this mode, if they are.
    fn find_bypass_refusal(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Bypass && !self.may_bypass()).then_some(
            "approval cannot be skipped for root, because root can change everything on this machine; run as another \
             user, or set TOOLGATE_SANDBOXED=1 inside a container or sandbox",
        )
    }

    /// Whether the record of a call could be written now, and its end named in the external anchor.
    pub(crate) fn check_ledger_ready(&self, anchor: Option<ExternalAnchor>) -> Result<(), String> {
        let (dir, anchor_dir) = self
            .ledger_dir()
            .zip(self.anchor_dir())
            .ok_or("there is no home directory; set TOOLGATE_STATE_DIR")?;
        let ledger = LedgerSink::open_anchored(&dir, &anchor_dir, MAX_LEDGER_FILE_BYTES)
            .map_err(|error| format!("{dir}: {error}"))?;
        ledger.set_external_anchor(anchor);
        ledger.check_ready().unwrap_or(Ok(()))
    }

    /// Where settings want the end of the ledger to be named. A place that cannot be one is an error: the user relies on
    /// it.
    pub(crate) fn external_anchor(
        &self,
        settings: &LoadedSettings,
    ) -> Result<Option<ExternalAnchor>, CliError> {
        let Some(place) = settings.merged().ledger.anchor.clone() else { return Ok(None) };
        if place == SYSLOG_ANCHOR {
            return Ok(Some(ExternalAnchor::Syslog(SystemLog::default())));
        }
        let path = match (place.strip_prefix("~/"), &self.ambient.home) {
            (Some(rest), Some(home)) => Ok(home.join(rest)),
            (_, _) => AbsPath::new(&place),
        };
        path.map(|path| Some(ExternalAnchor::File(path))).map_err(|_| {
            let set_by = settings.setting_places().get("ledger.anchor").map(ToString::to_string);
            CliError::Usage(format!(
                "`ledger.anchor` is `{place}`, and there is no home directory; give the absolute path of a file, or \
                 `{SYSLOG_ANCHOR}`, in {}",
                set_by.as_deref().unwrap_or("the settings")
            ))
        })
    }
}
