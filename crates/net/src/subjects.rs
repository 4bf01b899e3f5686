//! Names of what is sent: `<link>.<group>.<from>.<to>`, and of what is kept: `record.<name>.…`.
//!
//! Servers give rights by these names, so the functions here are the only place where they are put together.

use std::fmt;

/// The hospital of a group.
pub const HOSPITAL: &str = "hospital";
/// The edge of a group.
pub const EDGE: &str = "edge";
/// The one cloud.
pub const CLOUD: &str = "cloud";

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

/// A message's subject taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// Where it travels.
    pub link: Link,
    /// Of which group.
    pub group: usize,
    /// Who sent it: servers let nobody else.
    pub from: &'a str,
    /// Who gets it.
    pub to: &'a str,
}

/// Takes a message's subject apart; `None` if it is not one of a message.
pub fn parse(subject: &str) -> Option<Route<'_>> {
    let mut tokens = subject.split('.');
    let link = match tokens.next()? {
        "group" => Link::Group,
        "up" => Link::Up,
        "down" => Link::Down,
        _ => return None,
    };
    let number = tokens.next()?;
    let group: usize = number.parse().ok()?;
    let (from, to) = (tokens.next()?, tokens.next()?);
    // A number has one spelling, so that a subject has one meaning.
    let whole =
        tokens.next().is_none() && number == group.to_string() && is_name(from) && is_name(to);
    whole.then_some(Route {
        link,
        group,
        from,
        to,
    })
}

/// Whether a party may be called so: a name is one token of a subject, and no wildcard.
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
    fn a_subject_comes_apart_again() {
        assert_eq!(up(3, HOSPITAL), "up.3.hospital.cloud");
        assert_eq!(down(0, EDGE), "down.0.cloud.edge");
        let text = inside(12, EDGE, "gateway-1");
        assert_eq!(text, "group.12.edge.gateway-1");
        let route = Route {
            link: Link::Group,
            group: 12,
            from: EDGE,
            to: "gateway-1",
        };
        assert_eq!(parse(&text), Some(route));
        for wrong in [
            "",
            "up",
            "up.0.edge",
            "up.0.edge.cloud.x",
            "up.x.edge.cloud",
            "up.00.edge.cloud",
            "up.+1.a.b",
            "up.0.*.b",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_are_single_tokens() {
        assert!(is_name("gateway-1") && is_name("a_b"));
        for wrong in ["", "a.b", "*", ">", "a b", "ä", "$SYS"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
