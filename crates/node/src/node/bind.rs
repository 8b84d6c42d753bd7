//! Listening sockets, and the addresses under which others reach them.

use crate::address::ADDRESSES_MAX;
use crate::config::{NodeConfig, PORT_DEFAULT};
use crate::error::BindError;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

/// Ports tried from the default one on.
const PORTS_TRIED: u16 = 64;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Where others reach this node.
#[derive(Debug)]
pub(super) struct Advertised {
    pub(super) addresses: Vec<SocketAddr>,
    /// The port listened on; `None` when there is no listener.
    pub(super) port: Option<u16>,
}

impl Advertised {
    /// The listener has another port now.
    pub(super) fn change_port(&mut self, port: u16) {
        let before = self.port.replace(port);
        for address in &mut self.addresses {
            if Some(address.port()) == before {
                address.set_port(port);
            }
        }
    }
}

/// Opens the sockets that `config` asks for.
pub(super) async fn bind(config: &NodeConfig) -> Result<(Vec<TcpListener>, Advertised), BindError> {
    if !config.accept_inbound {
        return Ok((Vec::new(), Advertised { addresses: Vec::new(), port: None }));
    }
    let unspecified = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT_DEFAULT);
    let asked = config.listen.unwrap_or(unspecified);
    let failed = |error| BindError::Listen { address: asked, error };
    let sockets = match config.listen {
        None => bind_default().map_err(failed)?,
        Some(address) => vec![listener(address, false).map_err(failed)?],
    };
    let bound = sockets[0].local_addr().map_err(failed)?;
    let addresses = if config.advertise.is_empty() {
        local_addresses(bound)
    } else {
        resolve(&config.advertise, bound.port()).await?
    };
    Ok((sockets, Advertised { addresses, port: Some(bound.port()) }))
}

/// The default port on every address, or the next free one, or any.
fn bind_default() -> io::Result<Vec<TcpListener>> {
    for port in PORT_DEFAULT..PORT_DEFAULT + PORTS_TRIED {
        match bind_everywhere(port) {
            Ok(sockets) => return Ok(sockets),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    bind_everywhere(0)
}

/// The same port of IPv4 and, where the machine has it, IPv6.
pub(super) fn bind_everywhere(port: u16) -> io::Result<Vec<TcpListener>> {
    let v4 = listener(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port), false)?;
    let port = v4.local_addr()?.port();
    match listener(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port), true) {
        Ok(v6) => Ok(vec![v4, v6]),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(_) => Ok(vec![v4]),
    }
}

fn listener(address: SocketAddr, only_v6: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// The addresses of this machine under which a listener bound to `bound` is reached: its own, or
/// those of all interfaces; loopback only when there is nothing else.
fn local_addresses(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let mut found: Vec<IpAddr> = nix::ifaddrs::getifaddrs()
        .into_iter()
        .flatten()
        .filter_map(|interface| interface.address)
        .filter_map(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        })
        .filter(|ip| is_useful(*ip))
        .collect();
    if found.iter().any(|ip| !ip.is_loopback()) {
        found.retain(|ip| !ip.is_loopback());
    }
    // IPv4 first: it is tried first, and works in more places.
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    found.truncate(ADDRESSES_MAX);
    found.into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect()
}

/// Link-local addresses mean nothing to others.
fn is_useful(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    }
}

async fn resolve(names: &[String], port: u16) -> Result<Vec<SocketAddr>, BindError> {
    let mut addresses = Vec::new();
    for name in names {
        let failed = |reason: String| BindError::Advertise { address: name.clone(), reason };
        let found: Vec<SocketAddr> = match (name.parse::<SocketAddr>(), name.parse::<IpAddr>()) {
            (Ok(address), _) => vec![address],
            (_, Ok(ip)) => vec![SocketAddr::new(ip, port)],
            _ => {
                let with_port =
                    if name.contains(':') { name.clone() } else { format!("{name}:{port}") };
                let found = tokio::net::lookup_host(with_port).await;
                found.map_err(|error| failed(error.to_string()))?.collect()
            }
        };
        if found.is_empty() {
            return Err(failed("it has no address".to_string()));
        }
        addresses.extend(found);
    }
    addresses.truncate(ADDRESSES_MAX);
    Ok(addresses)
}

/// Whether the kernel has the congestion control `name`.
pub(super) fn check_congestion(name: &str) -> Result<(), BindError> {
    let unknown = || BindError::Congestion { name: name.to_string() };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
    let socket = socket.map_err(|_| unknown())?;
    socket.set_tcp_congestion(name.as_bytes()).map_err(|_| unknown())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[tokio::test]
    async fn a_taken_port_is_an_error_when_it_was_asked_for_and_passed_over_when_not() {
        let taken = listener("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let mut config = NodeConfig::new(PathBuf::new());
        config.listen = Some(taken.local_addr().unwrap());
        assert!(matches!(bind(&config).await, Err(BindError::Listen { .. })));
        let first = bind_default().unwrap();
        let second = bind_default().unwrap();
        let port = |sockets: &[TcpListener]| sockets[0].local_addr().unwrap().port();
        assert_ne!(port(&first), port(&second));
    }

    #[tokio::test]
    async fn advertised_names_get_the_listeners_port_when_they_have_none() {
        let names = ["10.1.2.3".into(), "[::1]:9".into(), "localhost:8".into()];
        let found = resolve(&names, 77).await.unwrap();
        assert_eq!(found[0], "10.1.2.3:77".parse().unwrap());
        assert_eq!(found[1], "[::1]:9".parse().unwrap());
        assert!(found[2..].iter().all(|address| address.ip().is_loopback() && address.port() == 8));
        assert!(resolve(&["no such host".into()], 1).await.is_err());
    }

    #[test]
    fn an_unknown_congestion_control_is_refused_by_name() {
        assert!(check_congestion("cubic").is_ok() || check_congestion("reno").is_ok());
        assert!(matches!(check_congestion("magic"), Err(BindError::Congestion { .. })));
    }
}
