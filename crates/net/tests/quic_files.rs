//! Files over QUIC on the loopback device: what arrives, what is refused, and what survives.
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::cli::Folder;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ackademyd"))
}

/// A server, ended when dropped.
struct Server {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    at: String,
    pin: String,
}

impl Server {
    fn start(folder: &Path, words: &[&str]) -> Self {
        let listen: &[&str] =
            if words.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let mut child = program()
            .args(["quic", "serve"])
            .arg(folder)
            .args(listen)
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was built with the tests");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("text");
        let after = |word: &str| {
            let rest = line.split_once(word).map(|(_, rest)| rest).unwrap_or_default();
            rest.split([' ', ',', '\n']).next().unwrap_or_default().to_owned()
        };
        let (at, pin) = (after(" at "), after(", pin "));
        if at.is_empty() {
            let mut why = String::new();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut why);
            panic!("{line:?}: {why}");
        }
        Self { child, out, at, pin }
    }

    /// A fetch of a file with the server's pin.
    fn fetch(&self, file: &str, out: &Path) -> Command {
        let mut command = program();
        command.args(["quic", "fetch", &format!("quic://{}/{file}", self.at)]);
        command.args(["--pin", &self.pin, "--out"]).arg(out);
        command
    }

    /// The next line about a transfer.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        line
    }

    fn interrupt(&self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The complaint of a command that is refused in one line with exit status 2.
fn refused(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    said
}

fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = ackademy::rng::Rng::new(seed);
    (0..length).map(|_| rng.next_u64() as u8).collect()
}

/// Where random sizes come from.
const SEED: u64 = 43;

#[test]
fn files_of_any_size_arrive_as_they_are() {
    let folder = Folder::new("quic-sizes");
    let mut rng = ackademy::rng::Rng::new(SEED);
    for cc in ["cubic", "bbr3", "noq:new_reno"] {
        let mut server = Server::start(&folder.0, &["--cc", cc]);
        for size in [0, 1, 1 << 20, (1 << 20) + 1, rng.below(4_000_000) as usize] {
            let content = random_bytes(size as u64, size);
            fs::write(folder.0.join("file"), &content).expect("a file");
            let out = folder.0.join("copy");
            let output = server.fetch("file", &out).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{size} bytes under {cc}, seed {SEED}: {said}");
            assert!(fs::read(&out).expect("fetched") == content, "{size} bytes under {cc}");
            fs::remove_file(&out).expect("fetched");
            let line = server.line();
            assert!(line.contains(&format!(" file: {size} bytes in ")), "{line}");
            assert!(line.contains(" Mb/s; RTT ") && line.contains(" packets lost"), "{line}");
        }
    }
    assert_eq!(names(&folder.0), ["file"], "no part of a file stays");
}

#[test]
fn a_qlog_has_the_packets_of_each_transfer() {
    let folder = Folder::new("quic-qlog");
    fs::write(folder.0.join("file"), random_bytes(SEED, 300_000)).expect("a file");
    let file = folder.0.join("run.sqlog");
    let qlog = file.to_str().expect("UTF-8");
    let mut server = Server::start(&folder.0, &["--qlog", qlog]);
    for number in 0..2 {
        let out = folder.0.join(format!("copy{number}"));
        assert!(server.fetch("file", &out).status().expect("it runs").success());
        server.line();
    }
    let again = program().args(["quic", "serve"]).arg(&folder.0).args(["--qlog", qlog]).output();
    assert!(refused(&again.expect("it runs")).contains("allowed is a new file"));
    server.interrupt();
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    let text = fs::read_to_string(&file).expect("written");
    let records: Vec<serde_json::Value> = text
        .split('\u{1e}')
        .skip(1)
        .map(|record| serde_json::from_str(record).expect("a record"))
        .collect();
    assert_eq!(records[0]["trace"]["common_fields"]["protocol_type"][0], "QUIC");
    let sent = records.iter().filter(|one| one["name"] == "transport:packet_sent");
    let mut by_peer = std::collections::BTreeMap::<&str, u64>::new();
    for record in sent {
        let peer = record["group_id"].as_str().expect("a peer");
        *by_peer.entry(peer).or_default() +=
            record["data"]["raw"]["length"].as_u64().expect("a size");
    }
    assert_eq!(by_peer.len(), 2, "{by_peer:?}");
    assert!(by_peer.values().all(|&bytes| bytes > 300_000), "{by_peer:?}");
}

#[test]
fn a_fetch_that_was_killed_continues_where_it_was() {
    let folder = Folder::new("quic-resume");
    let size = 64 << 20;
    fs::File::create(folder.0.join("file")).expect("a file").set_len(size).expect("sparse");
    let mut server = Server::start(&folder.0, &[]);
    let out = folder.0.join("copy");
    let mut fetch = server.fetch("file", &out).spawn().expect("it runs");
    let deadline = ackademy_net::clock::now() + ackademy::units::Span::from_millis(60_000);
    let part = loop {
        assert!(ackademy_net::clock::now() < deadline, "nothing arrives");
        sleep(Duration::from_millis(2));
        let found = names(&folder.0).into_iter().find(|name| name.starts_with(".copy."));
        let Some(part) = found.map(|name| folder.0.join(name)) else { continue };
        if fs::metadata(&part).is_ok_and(|about| about.len() > 0) {
            break part;
        }
    };
    fetch.kill().expect("it runs");
    fetch.wait().expect("killed");
    let before = fs::metadata(&part).expect("it stays").len();
    assert!(before < size, "it was killed too late");
    let output = server.fetch("file", &out).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains(&format!("{} bytes, after {before} that were here", size - before)),
        "{said}"
    );
    assert_eq!(fs::metadata(&out).expect("whole").len(), size);
    assert_eq!(names(&folder.0), ["copy", "file"]);
    assert!(server.line().contains(&format!(" file: {} bytes in ", size - before)));
}

/// The line of a command that ends with exit status 1, which takes `seconds`.
fn gave_up(mut command: Command, seconds: std::ops::Range<f64>) -> String {
    let begun = ackademy_net::clock::now();
    let output = command.output().expect("it runs");
    let took = ackademy_net::clock::now().since(begun).as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(seconds.contains(&took), "{took} s: {said}");
    said
}

#[test]
fn a_fetch_from_a_peer_that_never_answers_ends_after_10_s_in_one_line() {
    let folder = Folder::new("quic-silent");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let at = silent.local_addr().expect("bound");
    let mut fetch = program();
    fetch.args(["quic", "fetch", &format!("quic://{at}/file"), "--pin", &"0".repeat(64), "--out"]);
    fetch.arg(folder.0.join("copy"));
    let said = gave_up(fetch, 10.0..20.0);
    assert!(said.contains(&format!("{at} does not answer within 10s")), "{said}");
    assert!(names(&folder.0).is_empty());
}

#[test]
#[ignore = "takes 30 s"]
fn a_fetch_from_a_peer_that_falls_silent_ends_after_30_s_in_one_line_and_keeps_its_part() {
    let folder = Folder::new("quic-stopped");
    fs::File::create(folder.0.join("file")).expect("a file").set_len(4 << 30).expect("sparse");
    let server = Server::start(&folder.0, &[]);
    let fetch = server.fetch("file", &folder.0.join("copy"));
    let pid = nix::unistd::Pid::from_raw(server.child.id().cast_signed());
    let stop = std::thread::spawn(move || {
        sleep(Duration::from_millis(500));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("it runs");
    });
    let said = gave_up(fetch, 30.0..60.0);
    stop.join().expect("it stopped the server");
    assert!(said.contains("stays, run again to continue"), "{said}");
    assert!(names(&folder.0).iter().any(|name| name.starts_with(".copy.")));
}

#[test]
fn nothing_outside_of_the_folder_is_served() {
    let folder = Folder::new("quic-outside");
    let inside = folder.0.join("inside");
    fs::create_dir_all(inside.join("deeper")).expect("a folder");
    fs::write(folder.0.join("secret"), "secret").expect("a file");
    fs::write(inside.join("file"), "file").expect("a file");
    symlink("../secret", inside.join("out")).expect("a link");
    symlink(folder.0.join("secret"), inside.join("absolute")).expect("a link");
    symlink("..", inside.join("up")).expect("a link");
    symlink("file", inside.join("within")).expect("a link");
    nix::unistd::mkfifo(&inside.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let server = Server::start(&inside, &[]);
    let out = folder.0.join("copy");
    let absolute = format!("/{}", folder.0.join("secret").display());
    for name in [
        "../secret",
        "deeper/../../secret",
        &absolute,
        "/etc/passwd",
        "out",
        "absolute",
        "up/secret",
        "pipe",
        "deeper",
        "nothing",
        "file\u{1b}[31m",
    ] {
        let said = refused(&server.fetch(name, &out).output().expect("it runs"));
        assert!(said.contains("no such file here"), "{name}: {said}");
        assert!(!said.contains('\u{1b}') || name.contains('\u{1b}'), "{said}");
        assert!(!out.exists(), "{name}");
    }
    for name in ["file", "within", "deeper/../file"] {
        assert!(server.fetch(name, &out).status().expect("it runs").success(), "{name}");
        assert_eq!(fs::read_to_string(&out).expect("fetched"), "file", "{name}");
        fs::remove_file(&out).expect("fetched");
    }
}

#[test]
fn a_server_with_another_key_is_refused() {
    let folder = Folder::new("quic-pin");
    fs::write(folder.0.join("file"), "file").expect("a file");
    let (server, other) = (Server::start(&folder.0, &[]), Server::start(&folder.0, &[]));
    assert_ne!(server.pin, other.pin);
    let out = folder.0.join("copy");
    let url = format!("quic://{}/file", server.at);
    let fetch = |words: &[&str]| {
        let output =
            program().args(["quic", "fetch", &url, "--out"]).arg(&out).args(words).output();
        refused(&output.expect("it runs"))
    };
    let said = fetch(&["--pin", &other.pin]);
    assert!(said.contains("not one that --pin or --ca trusts"), "{said}");
    assert!(!out.exists());
}

#[test]
fn a_certificate_is_checked_against_its_authority() {
    let folder = Folder::new("quic-certificate");
    fs::write(folder.0.join("file"), "file").expect("a file");
    let (certificate, key) = certified(&folder, "own", "localhost");
    let (stranger, other_key) = certified(&folder, "other", "localhost");
    let text = |path: &PathBuf| path.to_str().expect("UTF-8").to_owned();
    let server = Server::start(
        &folder.0,
        &["--certificate", &text(&certificate), "--key", &text(&key), "--listen", "127.0.0.1:0"],
    );
    assert_eq!(server.pin, "", "it has a certificate instead");
    let port = server.at.rsplit_once(':').expect("a port").1;
    let out = folder.0.join("copy");
    let fetch = |host: &str, ca: &PathBuf| {
        let url = format!("quic://{host}:{port}/file");
        let mut command = program();
        command.args(["quic", "fetch", &url, "--ca"]).arg(ca).arg("--out").arg(&out);
        command.output().expect("it runs")
    };
    assert!(refused(&fetch("localhost", &stranger)).contains("not one that --pin or --ca trusts"));
    assert!(
        refused(&fetch("127.0.0.1", &certificate)).contains("not one that --pin or --ca trusts")
    );
    let output = fetch("localhost", &certificate);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let serve = |words: &[&str]| {
        let output = program().args(["quic", "serve"]).arg(&folder.0).args(words).output();
        refused(&output.expect("it runs"))
    };
    let said = serve(&["--certificate", &text(&certificate), "--key", &text(&other_key)]);
    assert!(said.contains("it is not the key of the certificate"), "{said}");
    let said = serve(&["--certificate", &text(&folder.0.join("file")), "--key", &text(&key)]);
    assert!(said.contains("allowed is a file with certificates in PEM"), "{said}");
}

#[test]
fn what_cannot_work_is_said_in_one_line_before_anything_begins() {
    let folder = Folder::new("quic-input");
    fs::write(folder.0.join("file"), "file").expect("a file");
    let server = Server::start(&folder.0, &[]);
    let here = folder.0.to_str().expect("UTF-8");
    let run = |words: &[&str]| program().arg("quic").args(words).output().expect("it runs");
    let in_use = refused(&run(&["serve", here, "--listen", &server.at]));
    assert!(in_use.contains("a free port") && in_use.contains(&server.at), "{in_use}");
    let said = refused(&run(&["serve", &format!("{here}/file")]));
    assert!(said.contains("allowed is a folder that can be read"), "{said}");
    let said = refused(&run(&["serve", here, "--cc", "cubik"]));
    assert!(said.contains("--cc cubik: allowed is one of"), "{said}");
    let said = refused(&run(&["serve", here, "--cc", "cubic", "--param", "beta=7"]));
    assert!(said.contains("beta"), "{said}");
    let said = refused(&run(&["serve", here, "--cc", "noq:cubic", "--param", "beta=0.5"]));
    assert!(said.contains("has no settings"), "{said}");
    let said = refused(&run(&[
        "fetch",
        &format!("quic://{}/file", server.at),
        "--out",
        &format!("{here}/file"),
    ]));
    assert!(said.contains("allowed is a name that is free"), "{said}");
    for words in [
        &["serve", here, "--mtu", "1199"][..],
        &["fetch", "quic://a/b", "--mtu", "1199"],
        &["fetch", "http://a/b"],
    ] {
        let output = run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("1200..=65527") || said.contains("quic://HOST"), "{said}");
    }
}

#[test]
fn a_server_outlives_noise_and_clients_that_vanish() {
    let folder = Folder::new("quic-noise");
    fs::File::create(folder.0.join("file")).expect("a file").set_len(64 << 20).expect("sparse");
    fs::write(folder.0.join("small"), "small").expect("a file");
    let mut server = Server::start(&folder.0, &[]);
    let noise = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut rng = ackademy::rng::Rng::new(SEED);
    for _ in 0..300 {
        let mut bytes = random_bytes(rng.next_u64(), 1 + rng.below(1400) as usize);
        bytes[0] |= 0xc0 * (rng.below(2) as u8); // half of it like the start of a connection
        noise.send_to(&bytes, &server.at).expect("sent");
    }
    for number in 0..3 {
        let mut fetch =
            server.fetch("file", &folder.0.join(format!("copy{number}"))).spawn().expect("it runs");
        sleep(Duration::from_millis(100));
        fetch.kill().expect("it runs");
        fetch.wait().expect("killed");
    }
    let out = folder.0.join("copy");
    assert!(server.fetch("small", &out).status().expect("it runs").success());
    assert!(server.line().contains(" small: 5 bytes"));
    server.interrupt();
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A certificate that is its own authority, and its key, as files.
fn certified(folder: &Folder, name: &str, host: &str) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed([host.to_owned()]).expect("a certificate");
    let files = ["pem", "key"].map(|ending| folder.0.join(format!("{name}.{ending}")));
    fs::write(&files[0], made.cert.pem()).expect("a file");
    fs::write(&files[1], made.signing_key.serialize_pem()).expect("a file");
    let [certificate, key] = files;
    (certificate, key)
}
