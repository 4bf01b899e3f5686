//! Who may do what on a server: its users.

use super::{ConfigError, check_name, quoted};
use crate::subjects;
use std::collections::HashSet;

/// What a party may publish and subscribe to; all else is refused.
pub(super) struct Rights {
    pub(super) publish: Vec<String>,
    pub(super) subscribe: Vec<String>,
}

impl Rights {
    /// What every party has: its inbox, and the question to its server who it is, which also tells the time.
    pub(super) fn of(name: &str) -> Self {
        Self {
            publish: vec![subjects::WHO_AM_I.to_owned()],
            subscribe: vec![format!("{}.>", subjects::inbox_prefix(name))],
        }
    }

    /// A party's inbox and its stream, which has its name.
    pub(super) fn with_stream(name: &str) -> Self {
        let mut rights = Self::of(name);
        rights
            .publish
            .extend([subjects::record(name), subjects::all_records(name)]);
        let calls = [
            "STREAM.CREATE",
            "STREAM.INFO",
            "STREAM.UPDATE",
            "STREAM.PURGE",
        ]
        .iter()
        .chain(&["STREAM.MSG.DELETE", "STREAM.MSG.GET", "DIRECT.GET"]);
        rights
            .publish
            .extend(calls.map(|call| format!("$JS.API.{call}.{name}")));
        // The last message of a subject is asked for with the subject at the end.
        rights.publish.push(format!("$JS.API.DIRECT.GET.{name}.>"));
        rights
    }

    /// Lets two parties of a group send each other messages.
    pub(super) fn connect(
        group: usize,
        (one, one_rights): (&str, &mut Rights),
        (two, two_rights): (&str, &mut Rights),
    ) {
        let there = subjects::inside(group, one, two);
        let back = subjects::inside(group, two, one);
        one_rights.publish.push(there.clone());
        two_rights.subscribe.push(there);
        two_rights.publish.push(back.clone());
        one_rights.subscribe.push(back);
    }
}

/// How somebody may connect.
#[derive(Clone, Copy)]
pub(super) enum Connection {
    Client,
    Link,
}

/// The users of a server, each with a name and a key of its own.
#[derive(Default)]
pub(super) struct Users {
    taken: HashSet<String>,
    text: String,
}

impl Users {
    pub(super) fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// Adds somebody whose name is reserved, if there is a key.
    pub(super) fn add_reserved(
        &mut self,
        name: &str,
        public: Option<&str>,
        rights: Rights,
    ) -> Result<(), ConfigError> {
        self.taken.remove(name);
        match public {
            Some(public) => self.add(name, public, Connection::Client, rights)?,
            None => self.reserve(name),
        }
        Ok(())
    }

    /// The text of those who were added since the last time: the users of one account.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        public: &str,
        connection: Connection,
        rights: Rights,
    ) -> Result<(), ConfigError> {
        check_name(name)?;
        let is_user = public.starts_with('U') && nkeys::KeyPair::from_public_key(public).is_ok();
        if !is_user {
            return Err(ConfigError::Key {
                name: name.to_owned(),
                is_secret: public.starts_with('S'),
            });
        }
        for unique in [name, public] {
            if !self.taken.insert(unique.to_owned()) {
                return Err(ConfigError::Twice(unique.to_owned()));
            }
        }
        let kind = match connection {
            Connection::Client => "STANDARD",
            Connection::Link => "LEAFNODE",
        };
        let (publish, subscribe) = (list(&rights.publish), list(&rights.subscribe));
        self.text.push_str(&format!(
            "      {{ # {name}
        nkey: {public}
        allowed_connection_types: [{kind}]
        permissions: {{
          publish: {{ allow: {publish} }}
          subscribe: {{ allow: {subscribe} }}
        }}
      }}
"
        ));
        Ok(())
    }
}

/// A list as the configuration's language writes it.
pub(super) fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}
