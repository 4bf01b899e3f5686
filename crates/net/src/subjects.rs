//! Names of what is sent: `<link>.<group>.<from>.<to>`, and of what is kept: `record.<name>.…`.
//!
//! Servers grant rights by these names, so they are only ever built by the functions here.

use std::fmt;

/// The hospital of a group.
pub const HOSPITAL: &str = "hospital";
/// The edge of a group.
pub const EDGE: &str = "edge";
/// The one cloud.
pub const CLOUD: &str = "cloud";

/// Where a party asks its server which user it is.
pub const WHO_AM_I: &str = "$SYS.REQ.USER.INFO";

/// Where a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Inside a group's site: it never leaves it.
    Group,
    /// From a site to the cloud.
    Up,
    /// From the cloud to a site.
    Down,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Group => "group",
            Link::Up => "up",
            Link::Down => "down",
        })
    }
}

/// The subject of a message, such as `up.3.hospital.cloud`.
pub fn subject(link: Link, group: usize, from: &str, to: &str) -> String {
    format!("{link}.{group}.{from}.{to}")
}

/// Inside a group, such as `group.3.edge.hospital`.
pub fn inside(group: usize, from: &str, to: &str) -> String {
    subject(Link::Group, group, from, to)
}

/// From a party of a group to the cloud.
pub fn up(group: usize, from: &str) -> String {
    subject(Link::Up, group, from, CLOUD)
}

/// From the cloud to a party of a group.
pub fn down(group: usize, to: &str) -> String {
    subject(Link::Down, group, CLOUD, to)
}

/// All that may go over a group's link in one direction, such as `up.3.>`.
pub fn all_over(link: Link, group: usize) -> String {
    format!("{link}.{group}.>")
}

/// What the cloud listens to: all that any group sends it.
pub fn all_to_cloud() -> String {
    format!("{}.*.*.{CLOUD}", Link::Up)
}

/// What the cloud may send: anything to any group.
pub fn all_from_cloud() -> String {
    format!("{}.*.{CLOUD}.*", Link::Down)
}

/// Where a party keeps its records; more names may follow after a dot.
pub fn record(name: &str) -> String {
    format!("record.{name}")
}

/// All records of a party below [`record`].
pub fn all_records(name: &str) -> String {
    format!("record.{name}.>")
}

/// What a party's inboxes begin with: nobody else may listen there.
pub fn inbox_prefix(name: &str) -> String {
    format!("_INBOX_{name}")
}

/// A group's name, for servers and JetStream domains.
pub fn group_name(group: usize) -> String {
    format!("group-{group}")
}

/// Whether this is a valid name of a party: one token of a subject, and no wildcard.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_names_link_group_sender_and_receiver() {
        assert_eq!(up(3, HOSPITAL), "up.3.hospital.cloud");
        assert_eq!(down(0, EDGE), "down.0.cloud.edge");
        assert_eq!(inside(12, EDGE, "gateway-1"), "group.12.edge.gateway-1");
    }

    #[test]
    fn names_are_single_tokens() {
        assert!(is_name("gateway-1") && is_name("a_b"));
        for wrong in ["", "a.b", "*", ">", "a b", "ä", "$SYS"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
