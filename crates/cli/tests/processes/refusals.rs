//! Everything wrong: an exit code and one sentence that says what, and what to do.

use crate::stage::{End, Program, Stage, assert_same, is_root, skip};
use anabranch_node::Ticket;
use std::process::Command;

/// Asserts the exit code, the error event, and one sentence on stderr with `words` in it.
#[track_caller]
fn assert_refused(end: &End, code: i32, words: &str) {
    assert_eq!(end.code, Some(code), "{end:?}");
    assert_eq!(end.last["event"], "error", "{end:?}");
    assert_eq!(end.last["code"], code, "{end:?}");
    let errors: Vec<&str> =
        end.stderr.lines().filter(|line| line.starts_with("anabranch: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains(words), "{words:?} is not in {errors:?}");
}

fn send(stage: &Stage, arguments: &[&str]) -> End {
    let mut command = stage.command("source");
    command.arg("send").args(arguments);
    Program::start(command).end()
}

#[test]
fn a_bad_ticket_is_a_usage_error_that_says_what_is_wrong_with_it() {
    let stage = Stage::new();
    let mut source = stage.send(&stage.file("content", 1000), &[]);
    let ticket = source.ticket();
    let cut = &ticket[..ticket.len() - 9];
    let swapped =
        ticket.replacen(&ticket[20..21], if &ticket[20..21] == "a" { "b" } else { "a" }, 1);
    let later = ticket.replacen("anabranch1:", "anabranch9:", 1);
    for (text, words) in [
        ("hello", "not a ticket"),
        (cut, "cut off"),
        (&swapped, "mistyped"),
        (&later, "later version"),
        ("@/no/such/file", "cannot read a ticket"),
    ] {
        assert_refused(&stage.get("r", text, &[]).end(), 2, words);
    }
}

#[test]
fn a_wrong_secret_is_refused() {
    let stage = Stage::new();
    let mut source = stage.send(&stage.file("content", 1000), &[]);
    let mut ticket: Ticket = source.ticket().parse().unwrap();
    ticket.secret.0[0] ^= 1;
    assert_refused(&stage.get("r", &ticket.to_string(), &[]).end(), 4, "refused");
}

#[test]
fn a_wrong_source_key_is_refused() {
    let stage = Stage::new();
    let mut source = stage.send(&stage.file("content", 1000), &[]);
    let mut ticket: Ticket = source.ticket().parse().unwrap();
    ticket.source.0[0] ^= 1;
    ticket.contacts.iter_mut().for_each(|contact| contact.id = ticket.source);
    assert_refused(&stage.get("r", &ticket.to_string(), &[]).end(), 4, "refused");
}

#[test]
fn a_source_that_is_gone_is_unreachable() {
    let stage = Stage::new();
    let mut source = stage.send(&stage.file("content", 1000), &[]);
    let ticket = source.ticket();
    source.kill();
    assert_refused(&stage.get("r", &ticket, &[]).end(), 3, "cannot reach");
}

#[test]
fn an_unknown_path_is_a_usage_error() {
    let stage = Stage::new();
    assert_refused(&send(&stage, &["no-such-file"]), 2, "no-such-file");
}

#[test]
fn an_unreadable_file_is_named() {
    if is_root() {
        return skip("root can read every file, so none is unreadable");
    }
    let stage = Stage::new();
    let file = stage.file("secret", 10);
    let locked = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(&file, locked).unwrap();
    assert_refused(&send(&stage, &["secret"]), 6, "secret");
}

#[test]
fn an_address_in_use_is_named() {
    let stage = Stage::new();
    stage.file("content", 10);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_refused(&send(&stage, &["content", "--listen", &address]), 2, &address);
}

#[test]
fn a_different_file_of_the_same_name_is_replaced_only_when_told_to() {
    let stage = Stage::new();
    let file = stage.file("content", 100_000);
    let mut source = stage.send(&file, &[]);
    let ticket = source.ticket();
    std::fs::create_dir(stage.path("r")).unwrap();
    std::fs::write(stage.path("r/content"), "mine").unwrap();
    assert_refused(&stage.get("r", &ticket, &[]).end(), 6, "--overwrite");
    assert_eq!(std::fs::read(stage.path("r/content")).unwrap(), b"mine");
    let end = stage.get("r", &ticket, &["--overwrite", "--linger", "0"]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_same(&file, &stage.path("r/content"));
}

#[test]
fn a_transport_that_is_not_there_is_a_missing_capability() {
    let stage = Stage::new();
    stage.file("content", 10);
    assert_refused(&send(&stage, &["content", "--transport", "plt"]), 8, "PLT");
}

#[test]
fn a_wrong_configuration_file_is_named() {
    let stage = Stage::new();
    std::fs::write(stage.path("bad.toml"), "limit_up = '100'\n").unwrap();
    let mut command = stage.command("source");
    command.env("ANABRANCH_CONFIG", stage.path("bad.toml")).args(["send", "x"]);
    assert_refused(&Program::start(command).end(), 2, "bad.toml");
}

#[test]
fn a_full_disk_is_told_of_and_the_fetch_continues_when_there_is_room() {
    let stage = Stage::new();
    let Some(disk) = Disk::mount(&stage, "r", 4) else {
        return skip("a small disk needs root and the right to mount");
    };
    let file = stage.file("content", 8 << 20);
    let mut source = stage.send(&file, &[]);
    let ticket = source.ticket();
    assert_refused(&stage.get("r", &ticket, &[]).end(), 6, "no space left");
    assert!(!stage.path("r/content").exists());
    disk.resize(64);
    let end = stage.get("r", &ticket, &["--linger", "0"]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_same(&file, &stage.path("r/content"));
}

/// A disk in memory of a few MiB; unmounted when dropped.
struct Disk {
    path: std::path::PathBuf,
}

impl Disk {
    fn mount(stage: &Stage, name: &str, mib: u32) -> Option<Disk> {
        let path = stage.path(name);
        std::fs::create_dir(&path).unwrap();
        let options = format!("size={mib}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path);
        let is_mounted = is_root() && mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then_some(Disk { path })
    }

    fn resize(&self, mib: u32) {
        let options = format!("remount,size={mib}m");
        let mut mount = Command::new("mount");
        assert!(mount.args(["-o", &options]).arg(&self.path).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A mount that is left over is removed with the machine at the latest.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
