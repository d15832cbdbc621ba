//! Who holds a lock, written so that another process can tell whether the holder still lives.

use uuid::Uuid;

/// The name of a new holder: Hermes's own fields, then what lets another process of this machine look.
pub(crate) fn name(agent: &str) -> String {
    let agent: String = agent
        .chars()
        .map(|c| {
            if c == ':' || c == '=' || c.is_control() {
                '_'
            } else {
                c
            }
        })
        .collect();
    let pid = std::process::id();
    let thread: String = format!("{:?}", std::thread::current().id())
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let start = started(pid).map_or_else(String::new, |start| start.to_string());
    format!(
        "pid={pid}:tid={thread}:agent={agent}:nonce={}:host={}:start={start}",
        Uuid::new_v4().simple(),
        host()
    )
}

/// Whether the holder is a process of this machine that certainly does not exist any more.
pub(crate) fn is_dead(holder: &str) -> bool {
    let field = |name: &str| {
        holder
            .split(':')
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    };
    let (Some(pid), Some(at), Some(start)) = (
        field("pid").and_then(|p| p.parse().ok()),
        field("host"),
        field("start"),
    ) else {
        // Another program's holder: only its lease can tell.
        return false;
    };
    if at.is_empty() || at != host() || start.is_empty() {
        return false;
    }
    match started(pid) {
        // The number may have been given to a younger process.
        Some(now) => now.to_string() != start,
        None => true,
    }
}

/// This boot and this process-number space; two of either never share process ids. Empty if unknown.
fn host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default();
    let (boot, space): (String, String) = (
        boot.chars()
            .filter(char::is_ascii_alphanumeric)
            .take(12)
            .collect(),
        space.chars().filter(char::is_ascii_digit).collect(),
    );
    if boot.is_empty() || space.is_empty() {
        String::new()
    } else {
        format!("{boot}-{space}")
    }
}

/// When a process started, in clock ticks since boot; `None` when there is no such process.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in parentheses, may hold blanks; the numbers follow its last one.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // A zombie holds nothing any more.
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_and_the_dead_are_told_apart() {
        let me = name("a:b");
        assert!(me.contains("agent=a_b:") && !is_dead(&me), "{me}");
        if host().is_empty() {
            return;
        }
        let pid = std::process::id();
        let reused = me
            .rsplit_once("start=")
            .map(|(head, _)| format!("{head}start=1"))
            .unwrap();
        assert!(is_dead(&reused), "a younger process with the same number");
        let gone = me.replace(&format!("pid={pid}:"), "pid=4194303:");
        assert!(is_dead(&gone));
        assert!(
            !is_dead("pid=4194303:tid=1:agent=x:nonce=y"),
            "another program's holder has only its lease"
        );
        assert!(
            !is_dead(&gone.replace("host=", "host=other")),
            "another machine's"
        );
    }
}
