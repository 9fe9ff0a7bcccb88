//! All servers behind one gate.
//!
//! Each server has a task of its own: it connects, brings the tools, and waits for news.
//! A server that is slow, dead or flooding holds up its own task and its own calls, and nothing else.
//! Tools stay listed while their server is away: a list that comes and goes helps no client, and a call says what is
//! the matter.

use super::config::{ServerEntry, folded};
use super::desk::Answerer;
use super::link::{Link, Live, Surroundings, Trouble};
use super::pins::{PinStore, tool_digest};
use super::remote_tool::RemoteTool;
use super::resources::{ListResourcesTool, ReadResourceTool};
use crate::server::ProtocolEra;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::ServiceError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use toolgate_gate::{Gate, RegisterError};
use toolgate_proto::{AbsPath, SourceId};

/// What a server that must be there gets beyond its own limits, so that what became of it is known.
const SLACK: Duration = Duration::from_secs(1);
/// More tools than this from one server are not taken.
const MAX_TOOLS_PER_SERVER: usize = 512;
/// More pages than this are not asked for.
const MOST_PAGES: usize = 64;

/// What the coordinator needs to know.
#[derive(Debug)]
pub struct Setup {
    /// The environment, of which servers see the harmless part.
    pub env: BTreeMap<String, String>,
    /// The roots that legacy servers are told of.
    pub roots: Vec<AbsPath>,
    /// What was approved.
    pub pins: PinStore,
    /// How long the first list of tools waits for servers that need not be there.
    pub patience: Duration,
    /// Who answers what servers ask where no client of ours can.
    pub answerer: Option<Arc<dyn Answerer>>,
    /// Who may sign in, and where credentials are kept.
    #[cfg(feature = "http")]
    pub access: super::http::Access,
}

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// The era it speaks, while it is connected.
    pub era: Option<ProtocolEra>,
    /// Its tools, as the gate knows them.
    pub tools: Vec<String>,
    /// What keeps it from working.
    pub trouble: Option<Trouble>,
    /// Tools and other things that were not taken, with the reason.
    pub problems: Vec<String>,
    /// Its process, while it runs here.
    pub process: Option<u32>,
    /// What it wrote to standard error last.
    pub said: String,
}

/// All servers behind one gate. Cheap to clone; [`McpCoordinator::close`] ends them.
#[derive(Debug, Clone)]
pub struct McpCoordinator {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    members: Vec<Arc<Member>>,
    patience: Duration,
    started: Instant,
    /// Names that were taken, in the form in which they could be mistaken for one another.
    taken: Mutex<BTreeMap<String, String>>,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) link: Arc<Link>,
    /// Whether it was tried once, one way or the other.
    tried: watch::Sender<bool>,
    brought: Mutex<Brought>,
}

#[derive(Debug, Default, Clone)]
struct Brought {
    /// From the joined name to the tool's own.
    tools: BTreeMap<String, String>,
    problems: Vec<String>,
}

impl McpCoordinator {
    /// Makes ready; nothing is started yet. Must be called inside a runtime.
    pub fn new(servers: Vec<ServerEntry>, setup: Setup) -> Self {
        let patience = setup.patience;
        let around = Arc::new(Surroundings {
            env: setup.env,
            roots: setup.roots,
            pins: setup.pins,
            answerer: setup.answerer,
            #[cfg(feature = "http")]
            access: setup.access,
        });
        let members = servers
            .into_iter()
            .map(|entry| {
                let link = Arc::new(Link::new(entry, Arc::clone(&around)));
                Arc::new(Member { link, tried: watch::Sender::new(false), brought: Mutex::default() })
            })
            .collect();
        let inner = Inner {
            members,
            patience,
            started: Instant::now(),
            taken: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Starts connecting, and keeps the gate's tools as the servers have them.
    pub fn start(&self, gate: &Arc<Gate>) -> Result<(), RegisterError> {
        if !self.inner.members.is_empty() {
            gate.register(SourceId::Builtin, ListResourcesTool(self.clone()))?;
            gate.register(SourceId::Builtin, ReadResourceTool(self.clone()))?;
        }
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for member in &self.inner.members {
            let (inner, member, gate) = (Arc::clone(&self.inner), Arc::clone(member), Arc::clone(gate));
            tasks.push(tokio::spawn(async move { inner.keep(&member, &gate).await }));
        }
        Ok(())
    }

    /// Waits until the tools can be listed: for servers that must be there as long as they may take, for the others
    /// as long as patience lasts.
    pub async fn ready(&self) {
        let patience = self.inner.started + self.inner.patience;
        for member in &self.inner.members {
            let entry = &member.link.entry;
            // It may be opened twice, where what is remembered of it is wrong.
            let until = if entry.always_load {
                self.inner.started + entry.connect_timeout.saturating_mul(2) + SLACK
            } else {
                patience
            };
            let mut tried = member.tried.subscribe();
            // Too late is no error: the tools come when they come.
            let _ = timeout_at(until, tried.wait_for(|tried| *tried)).await;
        }
    }

    /// How every server is doing, in the order in which they were named.
    pub fn states(&self) -> Vec<ServerState> {
        self.inner.members.iter().map(|member| member.state()).collect()
    }

    /// Ends every server, and waits until they are gone.
    pub async fn close(&self) {
        let tasks = std::mem::take(&mut *self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
        futures_util::future::join_all(self.inner.members.iter().map(|member| member.link.close())).await;
    }

    pub(crate) fn members(&self) -> &[Arc<Member>] {
        &self.inner.members
    }
}

impl Member {
    fn state(&self) -> ServerState {
        let live = self.link.opened();
        let brought = self.brought().clone();
        ServerState {
            name: self.link.entry.name.clone(),
            era: live.as_ref().map(|live| live.era),
            tools: brought.tools.into_keys().collect(),
            trouble: self.link.trouble(),
            problems: brought.problems,
            process: live.as_ref().and_then(|live| live.process_id()),
            said: live.as_ref().map(|live| live.said()).unwrap_or_default(),
        }
    }

    fn brought(&self) -> std::sync::MutexGuard<'_, Brought> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The life of one server.
    async fn keep(&self, member: &Arc<Member>, gate: &Gate) {
        loop {
            match member.link.live().await {
                Ok(live) => {
                    let mut live = self.bring(member, live, gate).await;
                    member.tried.send_replace(true);
                    // News, or the end of the connection: both lead to another look.
                    while live.is_open() {
                        if timeout(Duration::from_secs(1), live.desk.tools_changed.notified()).await.is_ok() {
                            live = self.bring(member, live, gate).await;
                        }
                    }
                }
                Err(_) => {
                    member.tried.send_replace(true);
                }
            }
            tokio::time::sleep(member.link.wait().await).await;
        }
    }

    /// Brings a server's tools to the gate, and takes away those that it no longer has. Gives the way that is open
    /// afterwards: a server may want us to sign in before it lists anything.
    async fn bring(&self, member: &Arc<Member>, mut live: Arc<Live>, gate: &Gate) -> Arc<Live> {
        let link = &member.link;
        let listed = loop {
            let problem = match timeout(link.entry.connect_timeout, list_tools(&live)).await {
                Ok(Ok(listed)) => break listed,
                Ok(Err(ToolListError::Request(error))) => match self.let_in(link, &live, &error).await {
                    Ok(Some(again)) => {
                        live = again;
                        continue;
                    }
                    Ok(None) => format!("its tools cannot be listed: {error}"),
                    Err(trouble) => {
                        link.set_last_error(Some(trouble.clone()));
                        trouble.refusal(&link.entry.name).reason
                    }
                },
                Ok(Err(ToolListError::Nonsense(problem))) => format!("its tools cannot be listed: {problem}"),
                Err(_) => "its tools were not listed in time".to_owned(),
            };
            member.brought().problems = vec![problem];
            return live;
        };
        #[cfg(feature = "http")]
        link.attempts.welcome();
        let server = &link.entry.name;
        let digests = listed.iter().map(|tool| (tool.name.to_string(), tool_digest(tool))).collect();
        let changed: BTreeSet<String> =
            link.pins().changed(&link.key(), &link.entry.launch_digest(), &digests).into_iter().collect();
        let before = std::mem::take(&mut member.brought().tools);
        let mut now = Brought::default();
        for tool in listed {
            let name = tool.name.to_string();
            if !link.entry.wants(&name) {
                continue;
            }
            let taken = if changed.contains(&name) {
                Err(format!("it changed since it was approved; see `toolgate mcp approve {server}`"))
            } else {
                self.take(member, gate, &tool)
            };
            match taken {
                Ok(joined) => drop(now.tools.insert(joined, name)),
                Err(problem) => now.problems.push(format!("tool `{name}`: {problem}")),
            }
        }
        for (joined, tool) in &before {
            if now.tools.get(joined) != Some(tool) {
                gate.unregister(&SourceId::Mcp { server: server.clone(), tool: tool.clone() }, joined);
                self.taken().remove(&folded(joined));
            }
        }
        *member.brought() = now;
        live
    }

    /// The way that is open once a server that turned us away was given what it wants; none where that is not why it
    /// did not answer.
    #[cfg(feature = "http")]
    async fn let_in(
        &self,
        link: &Link,
        live: &Live,
        error: &ServiceError,
    ) -> Result<Option<Arc<Live>>, Trouble> {
        let Some(challenge) = super::oauth::AuthChallenge::of_call(error) else { return Ok(None) };
        if !link.let_in(live, challenge).await? {
            return Err(Trouble::Auth("it lists its tools for nobody whom it does not know".to_owned()));
        }
        link.live().await.map(Some)
    }

    #[cfg(not(feature = "http"))]
    #[expect(clippy::unused_async, reason = "it waits where there is HTTP")]
    async fn let_in(&self, _: &Link, _: &Live, _: &ServiceError) -> Result<Option<Arc<Live>>, Trouble> {
        Ok(None)
    }

    fn take(&self, member: &Arc<Member>, gate: &Gate, tool: &rmcp::model::Tool) -> Result<String, String> {
        let (server, name) = (&member.link.entry.name, tool.name.as_ref());
        let joined = joined_name(server, name)?;
        let identity = format!("{server}\u{0}{name}");
        if let Some(owner) = self.taken().get(&folded(&joined)).filter(|owner| **owner != identity) {
            let (server, tool) = owner.split_once('\u{0}').unwrap_or((owner, ""));
            return Err(format!("it is too easily taken for `{tool}` of server `{server}`"));
        }
        let remote = RemoteTool::new(Arc::clone(&member.link), &joined, tool)?;
        let source = SourceId::Mcp { server: server.clone(), tool: name.to_owned() };
        gate.register(source, remote).map_err(|error| error.to_string())?;
        self.taken().insert(folded(&joined), identity);
        Ok(joined)
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name a model calls a server's tool by. The pair is kept beside it; this is for display and rules.
fn joined_name(server: &str, tool: &str) -> Result<String, String> {
    if tool.is_empty() || tool.contains("__") || tool.starts_with('_') || tool.ends_with('_') {
        return Err("its name could be read in two ways".to_owned());
    }
    let plain: String = tool
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    let joined = format!("mcp__{server}__{plain}");
    if joined.len() > 128 {
        return Err("its name is too long".to_owned());
    }
    Ok(joined)
}

/// Why there is no list.
enum ToolListError {
    Request(ServiceError),
    Nonsense(String),
}

async fn list_tools(live: &Live) -> Result<Vec<rmcp::model::Tool>, ToolListError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let page = live.peer.list_tools(Some(page)).await.map_err(ToolListError::Request)?;
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS_PER_SERVER {
            return Err(ToolListError::Nonsense(format!("it has more than {MAX_TOOLS_PER_SERVER} tools")));
        }
        match page.next_cursor {
            Some(next) if Some(&next) != cursor.as_ref() => cursor = Some(next),
            _ => return Ok(tools),
        }
    }
    Err(ToolListError::Nonsense("the list does not end".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_names_can_be_read_in_one_way() {
        for (tool, expected) in [
            ("read_file", Some("mcp__fs__read_file")),
            ("read.file", Some("mcp__fs__read_file")),
            ("a__b", None),
            ("_a", None),
            ("a_", None),
            ("", None),
        ] {
            assert_eq!(joined_name("fs", tool).ok().as_deref(), expected, "{tool}");
        }
        assert!(joined_name("fs", &"x".repeat(200)).is_err());
    }
}
