//! Where a process runs: on this machine's loopback, or in the network namespace of an emulated
//! host.

use nix::sched::{CloneFlags, setns};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

/// The port of BitTorrent clients that have a host for themselves.
const PORT: u16 = 6881;

/// Where a process runs.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    namespace: Option<String>,
    address: Ipv4Addr,
}

impl Seat {
    /// With all others, on this machine.
    pub(crate) fn loopback() -> Seat {
        Seat { namespace: None, address: Ipv4Addr::LOCALHOST }
    }

    /// At an emulated host.
    pub(crate) fn host(name: &str, address: Ipv4Addr) -> Seat {
        Seat { namespace: Some(name.to_owned()), address }
    }

    /// Where it is reached.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Its address when it is not shared with the others.
    pub(crate) fn own_address(&self) -> Option<Ipv4Addr> {
        self.namespace.is_some().then_some(self.address)
    }

    /// A command that runs there. It replaces the one that enters the namespace, so its id is the
    /// process's own.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let Some(namespace) = &self.namespace else { return Command::new(program) };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(program);
        command
    }

    /// A TCP port that nobody uses there now.
    pub(crate) fn port(&self) -> io::Result<u16> {
        if self.namespace.is_some() { Ok(PORT) } else { free_port() }
    }

    /// Listens there, on any port.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let Some(namespace) = &self.namespace else { return TcpListener::bind((self.address, 0)) };
        let file = File::open(Path::new("/run/netns").join(namespace))?;
        let address = self.address;
        // A namespace is entered by a thread, for good: so by one of its own.
        let listening = std::thread::spawn(move || {
            setns(&file, CloneFlags::CLONE_NEWNET)?;
            TcpListener::bind((address, 0))
        });
        listening.join().unwrap_or_else(|_| Err(io::Error::other("the listening thread failed")))
    }
}

/// A TCP port of loopback that nobody uses now.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
