//! The few system calls of the emulator that have no safe wrapper. All unsafe code of this crate
//! is here.
#![expect(
    unsafe_code,
    reason = "four system calls have no safe wrapper; each says why it is sound"
)]

use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Priority among real-time threads, 1 to 99: above every ordinary program, below what the
/// machine's owner may have set higher with care.
const PRIORITY: libc::c_int = 10;

/// Makes an open `/dev/net/tun` the far end of a new TUN device of this name, in the namespace of
/// the thread that opened it. One read or write is then one IP packet without any header before it.
pub(super) fn attach_tun(tun: &OwnedFd, name: &str) -> Result<(), Errno> {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
        },
    };
    // The last byte stays zero, which ends the name.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns; the
    // descriptor is open because it is borrowed.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    Errno::result(result).map(drop)
}

/// Gives the calling thread real-time priority, first in, first out. Its children start with the
/// ordinary one.
pub(super) fn be_real_time() -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads one `sched_param`, which lives until it returns; 0 is this thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    Errno::result(result).map(drop)
}

/// Lets the kernel kill the program that `command` starts when the thread that starts it ends, however
/// that comes: `kill -9` of this process leaves no orphan.
pub(super) fn end_with_us(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
        // The parent may have ended before it was asked.
        match nix::unistd::getppid().as_raw().try_into() == Ok(parent) {
            true => Ok(()),
            false => Err(std::io::ErrorKind::NotFound.into()),
        }
    };
    // SAFETY: between fork and exec only two system calls are made and nothing is allocated.
    unsafe { command.pre_exec(ask) };
}

/// Keeps every page of the process in memory once it has been touched.
pub(super) fn lock_memory() -> Result<(), Errno> {
    let what = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: the call takes no pointer and changes nothing but whether pages may be swapped out.
    let result = unsafe { libc::mlockall(what) };
    Errno::result(result).map(drop)
}
