//! Which local process serves a URL, found by the port it listens on. Sends nothing to it.

use std::fs;
use std::path::Path;

use url::{Host, Url};

/// The process behind a URL on the loopback interface; `None` when it is elsewhere or not ours to see.
pub(crate) fn local_pid(url: &Url, default_port: u16) -> Option<u32> {
    if !is_loopback(url) {
        return None;
    }
    listener_pid(url.port().unwrap_or(default_port))
}

fn is_loopback(url: &Url) -> bool {
    // Addresses of schemes the URL standard does not know are parsed as names.
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.starts_with("127."),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The oldest process that holds a socket listening on this TCP port.
fn listener_pid(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let inodes = tables.iter().flatten().flat_map(|table| table.lines());
    let sockets: Vec<String> = inodes
        .filter_map(|line| listening_inode(line, port))
        .map(|i| format!("socket:[{i}]"))
        .collect();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| holds(*pid, &sockets)).min()
}

/// The inode in one line of the kernel's socket table, when that socket listens (state 0A) on the port.
fn listening_inode(line: &str, port: u16) -> Option<u64> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
    let matches = u16::from_str_radix(local_port, 16) == Ok(port) && *fields.get(3)? == "0A";
    matches.then(|| fields.get(9)?.parse().ok())?
}

fn holds(pid: u32, sockets: &[String]) -> bool {
    let descriptors = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd"));
    let targets = descriptors
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| fs::read_link(entry.path()));
    targets.flatten().any(|target| {
        target
            .to_str()
            .is_some_and(|t| sockets.iter().any(|s| s == t))
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_process_that_listens_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = Url::parse(&format!("postgres://someone@127.0.0.1:{port}/db")).unwrap();
        assert_eq!(local_pid(&url, 5432), Some(std::process::id()));
    }

    #[test]
    fn a_server_elsewhere_has_no_local_process() {
        let url = Url::parse("amqp://broker.example:5672").unwrap();
        assert_eq!(local_pid(&url, 5672), None);
    }
}
