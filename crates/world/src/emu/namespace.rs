//! Hosts as network namespaces: each with a loopback, one TUN device, addresses, a route to all the
//! others, and their names in its own `/etc/hosts`.

use super::record::{Record, Turn, files_path, namespace_path, remove_leftovers};
use super::{EmuError, address, ip, system};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, setns};
use nix::sys::stat::Mode;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// The device that leads to the emulator, in every namespace.
const DEVICE: &str = "emu0";
/// Packets that the device holds until the emulator reads them. It is a second queue in front of
/// the first link's, so what it drops makes a run invalid.
const DEVICE_QUEUE: u32 = 10_000;
/// How many devices one thread closes.
const CLOSED_BY_ONE: usize = 4;
/// A name is also a word in `/etc/hosts` and a file's name.
const NAME_MAX: usize = 100;

/// What a host is to be.
pub(super) struct Plan {
    /// Its name in the topology.
    pub(super) name: String,
    /// Its namespace's.
    pub(super) namespace: String,
    /// The largest packet its link takes.
    pub(super) mtu: u32,
    /// Hosts (by number) behind a link that takes only smaller packets, and how small.
    pub(super) narrow: Vec<(u32, u32)>,
}

/// A host that is there.
pub(super) struct Port {
    /// The emulator's end of its device; reads and writes do not wait.
    pub(super) device: OwnedFd,
    /// Its namespace, by which it is found again whatever becomes of the name.
    pub(super) namespace: OwnedFd,
}

/// What the kernel counted at a host's device.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// Packets dropped between the emulator and the host.
    pub(super) to_host: u64,
    /// Packets that the device's queue dropped.
    pub(super) from_host: u64,
}

/// The namespaces of a run; they are removed when this is dropped.
pub(super) struct Namespaces {
    record: Option<Record>,
    /// In the order of the plans.
    pub(super) ports: Arc<Vec<Port>>,
    /// Namespaces of runs that are no more, removed before these were made.
    pub(super) leftovers: Vec<String>,
}

/// Whether namespace and host may be called so.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    starts_well && name.len() <= NAME_MAX && name.bytes().all(fits)
}

impl Namespaces {
    /// Makes them all, or nothing.
    pub(super) fn make(plans: &[Plan], congestion: Option<&str>) -> Result<Namespaces, EmuError> {
        check_machine()?;
        let turn = Turn::take()?;
        let leftovers = remove_leftovers(&turn)?;
        check_names(plans)?;
        let names = plans.iter().map(|plan| plan.namespace.clone()).collect();
        let record = Record::write(&turn, names)?;
        let mut made = Namespaces { record: Some(record), ports: Arc::default(), leftovers };
        let ports = make(plans, congestion);
        match ports {
            Ok(ports) => made.ports = Arc::new(ports),
            Err(error) => {
                // What went wrong first is the one to tell.
                let _ = made.remove_in(&turn);
                return Err(error);
            }
        }
        Ok(made)
    }

    /// What the kernel counted, in the order of the plans.
    pub(super) fn counted(&self) -> Result<Vec<Counted>, EmuError> {
        let read = |port: &Port| {
            enter(&port.namespace)?;
            let text = std::fs::read_to_string("/proc/thread-self/net/dev");
            let text = text.map_err(|error| failed("cannot read the device's counters", &error))?;
            counted(&text).ok_or_else(|| EmuError::Failed(format!("there is no {DEVICE} any more")))
        };
        on_thread(|| self.ports.iter().map(read).collect())
    }

    /// Removes them.
    pub(super) fn remove(mut self) -> Result<(), EmuError> {
        let turn = Turn::take()?;
        let removed = self.remove_in(&turn);
        if let Ok(ports) = Arc::try_unwrap(std::mem::take(&mut self.ports)) {
            close(ports);
        }
        removed
    }

    fn remove_in(&mut self, turn: &Turn) -> Result<(), EmuError> {
        self.record.take().map_or(Ok(()), |record| record.remove(turn))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        if self.record.is_some() {
            // Whatever stays is found by the next run.
            let _ = Turn::take().and_then(|turn| self.remove_in(&turn));
        }
    }
}

/// Root, iproute2 and TUN devices.
fn check_machine() -> Result<(), EmuError> {
    if !nix::unistd::geteuid().is_root() {
        let text = "the emulator makes network namespaces, which needs root; run it with sudo";
        return Err(EmuError::Missing(text.into()));
    }
    ip::check()?;
    open_tun().map(drop)
}

fn open_tun() -> Result<OwnedFd, EmuError> {
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    open("/dev/net/tun", flags, Mode::empty()).map_err(|error| {
        let text = format!("/dev/net/tun cannot be opened ({error}); load the kernel module tun");
        EmuError::Missing(text)
    })
}

fn check_names(plans: &[Plan]) -> Result<(), EmuError> {
    for Plan { name, namespace, .. } in plans {
        if !is_name(namespace) || !is_name(name) {
            return Err(EmuError::Refused(format!(
                "host {name:?} cannot be a namespace: letters, digits, `-`, `_` and `.` can, after \
                 a letter or digit, {NAME_MAX} at most"
            )));
        }
        if namespace_path(namespace).exists() || files_path(namespace).exists() {
            return Err(EmuError::Refused(format!(
                "there is a network namespace {namespace:?} already, perhaps of another run; give \
                 this run's a prefix with --prefix, or remove it with `ip netns delete {namespace}`"
            )));
        }
    }
    Ok(())
}

fn make(plans: &[Plan], congestion: Option<&str>) -> Result<Vec<Port>, EmuError> {
    let commands: String =
        plans.iter().map(|plan| format!("netns add {}\n", plan.namespace)).collect();
    ip::ip(&commands, false)?;
    let hosts = hosts_file(plans);
    for plan in plans {
        let folder = files_path(&plan.namespace);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join("hosts"), &hosts))
            .map_err(|error| failed(&format!("cannot write to {}", folder.display()), &error))?;
    }
    let _allowed = Allowed::also(congestion);
    on_thread(|| {
        let host = |(number, plan)| make_host(number, plan, congestion);
        (0..).zip(plans).map(host).collect()
    })
}

/// The names of all hosts, for each. A name leads to the IPv4 address, `NAME.v6` to the other.
fn hosts_file(plans: &[Plan]) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    for (number, Plan { name, .. }) in (0..).zip(plans) {
        let (v4, v6) = (address::v4(number), address::v6(number));
        let _ = writeln!(text, "{v4} {name}\n{v6} {name}.v6");
    }
    text
}

/// Runs something on a thread of its own, which may go from namespace to namespace and never has to
/// come back.
fn on_thread<T: Send>(run: impl FnOnce() -> Result<T, EmuError> + Send) -> Result<T, EmuError> {
    let stopped = || EmuError::Failed("the thread that works in the namespaces stopped".into());
    std::thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|_| Err(stopped())))
}

/// Closes devices, several at once: for each the kernel waits some 30 ms until nobody uses it any
/// more.
fn close(mut ports: Vec<Port>) {
    std::thread::scope(|scope| {
        while !ports.is_empty() {
            let some = ports.split_off(ports.len().saturating_sub(CLOSED_BY_ONE));
            scope.spawn(move || drop(some));
        }
    });
}

fn enter(namespace: &OwnedFd) -> Result<(), EmuError> {
    setns(namespace, CloneFlags::CLONE_NEWNET)
        .map_err(|error| failed("cannot enter a namespace", &error))
}

/// Fits out a host. The calling thread stays in its namespace.
fn make_host(number: u32, plan: &Plan, congestion: Option<&str>) -> Result<Port, EmuError> {
    let path = namespace_path(&plan.namespace);
    let namespace = open(&path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|error| failed(&format!("cannot open {}", path.display()), &error))?;
    enter(&namespace)?;
    let device = open_tun()?;
    system::attach_tun(&device, DEVICE)
        .map_err(|error| failed(&format!("cannot make a TUN device for {}", plan.name), &error))?;
    // TCP remembers slow-start thresholds per address, and one run would colour the next
    // connection's start.
    set("net/ipv4/tcp_no_metrics_save", "1")?;
    if let Some(congestion) = congestion {
        set_congestion(congestion)?;
    }
    ip::ip(&commands(number, plan, Path::new("/proc/sys/net/ipv6").exists()), false)?;
    // Without this every packet would pass a queue of the kernel's choice before the device's.
    ip::tc(&format!("qdisc replace dev {DEVICE} root noqueue\n"))?;
    Ok(Port { device, namespace })
}

/// The commands that bring a host's devices up.
fn commands(number: u32, plan: &Plan, has_v6: bool) -> String {
    let mtu = plan.mtu;
    let v4: fn(u32) -> Ipv4Addr = address::v4;
    let v6: fn(u32) -> Ipv6Addr = address::v6;
    // IPv6 does without links below 1280 bytes (RFC 8200 §5).
    let has_v6 = has_v6 && mtu >= 1280;
    let mut text = format!(
        "link set lo up\n\
         link set {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE}\n\
         address add {}/{} dev {DEVICE}\n",
        v4(number),
        address::PREFIX_V4
    );
    if has_v6 {
        let (address, prefix) = (v6(number), address::PREFIX_V6);
        let _ = writeln!(text, "link set {DEVICE} addrgenmode none");
        let _ = writeln!(text, "address add {address}/{prefix} dev {DEVICE} nodad");
    }
    let _ = writeln!(text, "link set {DEVICE} up");
    for &(to, mtu) in &plan.narrow {
        let _ = writeln!(text, "route add {}/32 dev {DEVICE} mtu {mtu}", v4(to));
        if has_v6 {
            let _ = writeln!(text, "route add {}/128 dev {DEVICE} mtu {mtu}", v6(to));
        }
    }
    text
}

/// Writes a kernel parameter of the thread's namespace.
fn set(parameter: &str, value: &str) -> Result<(), EmuError> {
    std::fs::write(Path::new("/proc/sys").join(parameter), value)
        .map_err(|error| failed(&format!("cannot set {parameter}"), &error))
}

/// What TCP uses unless a program asks for something else.
fn set_congestion(name: &str) -> Result<(), EmuError> {
    std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name).map_err(|error| {
        let text = match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT) => format!(
                "this kernel has no congestion control {name:?}; load its module (as `modprobe \
                 tcp_{name}`) or name another in the topology"
            ),
            Some(Errno::EPERM) => format!(
                "this kernel keeps congestion control {name:?} from namespaces; add it to \
                 {ALLOWED} of the machine"
            ),
            _ => format!("cannot set the congestion control to {name:?}: {error}"),
        };
        EmuError::Missing(text)
    })
}

/// The congestion controls that everybody may use, for the whole machine.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Namespaces take none but those that everybody may use. While this lives, one more is among them;
/// a namespace keeps what it has been given.
struct Allowed {
    before: Option<String>,
}

impl Allowed {
    fn also(name: Option<&str>) -> Allowed {
        let before = std::fs::read_to_string(ALLOWED).ok();
        let lacking = name
            .zip(before)
            .filter(|(name, before)| before.split_whitespace().all(|allowed| allowed != *name));
        let before = lacking.and_then(|(name, before)| {
            // What cannot be allowed is refused where it is set, with the reason.
            std::fs::write(ALLOWED, format!("{} {name}", before.trim())).ok().map(|()| before)
        });
        Allowed { before }
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // It could be written a moment ago.
            let _ = std::fs::write(ALLOWED, before);
        }
    }
}

/// Reads the drops of the device from the text of `/proc/net/dev`: after the name eight numbers of
/// what came in, then eight of what went out; the fourth of each are drops.
fn counted(text: &str) -> Option<Counted> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(Counted { to_host: *numbers.get(3)?, from_host: *numbers.get(11)? })
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> EmuError {
    EmuError::Failed(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_kernels_table() {
        let text = "Inter-|   Receive  | Transmit\n face |bytes packets errs drop\n    \
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                    emu0: 9 9 0 70 0 0 0 0 8 8 0 50 0 0 0 0\n";
        assert_eq!(counted(text), Some(Counted { to_host: 70, from_host: 50 }));
        assert_eq!(counted("nothing"), None);
    }

    #[test]
    fn names_that_are_paths_options_or_two_words_are_no_names() {
        for name in ["source", "r1", "9a.b-c_d"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "..", ".x", "-all", "a/b", "a b", "ä", &"x".repeat(101)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
