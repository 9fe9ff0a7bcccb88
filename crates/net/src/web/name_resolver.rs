//! Name resolution (DNS and the hosts file), as a trait, so that tests can answer like a hostile server.

use futures_util::future::BoxFuture;
use std::net::IpAddr;

/// Resolves names to addresses.
pub trait NameResolver: Send + Sync {
    /// Every address of a name. An error is a text for the user.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>>;
}

/// The resolver of the system: the hosts file, then DNS.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await.map_err(|error| error.to_string())?;
            let mut addresses: Vec<IpAddr> = Vec::new();
            for address in found {
                if !addresses.contains(&address.ip()) {
                    addresses.push(address.ip());
                }
            }
            Ok(addresses)
        })
    }
}
