//! Joint predictions: what is asked in a run that is over, and a gateway that is told anything at all.

use super::roles::{RIGHT, RUN, TASKS, push_message, take_frame};
use super::told;
use selvedge_core::role::{
    About, Asker, Event, Message, Newcomers, Numbers, Outbox, Party, Portion, Protocol,
};
use std::collections::HashSet;

const EDGE: Party = Party::Edge(0);
const GATEWAY: Party = Party::Gateway(0, 0);

/// The number of the first question, and a name for the key of the pseudonyms.
const FIRST: u64 = 5;
const KEY: u128 = 9;

/// Whom the gateway asks about, and the numbers of a row of ζ2.
fn asked() -> [About; 2] {
    let new = About::New {
        key: KEY,
        patients: vec![1, 2],
    };
    [About::Rows(Portion::Test, vec![0, 2]), new]
}

/// One whom the hospital knows, though it takes no part.
pub(super) fn newcomers() -> Newcomers {
    Newcomers::new(KEY, &[1], vec![0.5, -0.5], &HashSet::new())
}

/// What a gateway says when the run has ended at `t`.
pub(super) fn questions(t: u64) -> Vec<(Party, Party, Message)> {
    let mut said = vec![Message::Fetch];
    for (number, about) in (FIRST..).zip(asked()) {
        said.push(Message::Question {
            number,
            t,
            gateway: 0,
            zeta2: Numbers::Dense(vec![0.25; 2 * about.len()].into()),
            about,
        });
    }
    // Not its own.
    said.push(Message::Question {
        number: 1,
        t,
        gateway: 0,
        about: About::Rows(Portion::Training, vec![3]),
        zeta2: Numbers::Dense([0.25; 2].into()),
    });
    said.into_iter().map(|said| (GATEWAY, EDGE, said)).collect()
}

/// Messages to a gateway that asks, each with its length before it. Whatever comes, an answer is one of probabilities.
pub(super) fn answers(bytes: &[u8]) {
    let patients = asked().map(|about| (about.clone(), vec![0.5; about.len()]));
    let mut asker = Asker::new(TASKS[0].networks(), (0, 0), FIRST, &patients);
    let mut rest = bytes;
    let mut outbox = Outbox::default();
    asker.handle(Event::Retry, &mut outbox);
    while let Some(frame) = take_frame(&mut rest) {
        let Some(message) = told(asker.decode(RUN, &frame)) else {
            continue;
        };
        // Who is refused may be told something else all the same.
        outbox.news = false;
        asker.handle(Event::Received(EDGE, message), &mut outbox);
        if !outbox.news {
            asker.handle(Event::Retry, &mut outbox);
        }
        outbox.messages.clear();
        assert!(asker.failure().is_none_or(|why| !why.is_empty()));
        asker.waits_for();
    }
    let (over, (known, all)) = (asker.is_over(), asker.progress());
    assert!(known <= all && over == (known == all));
    let probable = |p: &f32| (0.0..=1.0).contains(p);
    for answer in asker.into_answers().iter().flatten() {
        assert!(answer.len() == 2 && answer.iter().all(probable));
    }
}

/// What a gateway is told in runs that are over.
pub(super) fn answered() -> Vec<Vec<u8>> {
    let of_run = |messages: &[(Party, Party, Message)]| {
        let mut bytes = Vec::new();
        let heard = messages.iter().filter(|(_, to, said)| {
            let joint = matches!(
                said,
                Message::Trained { .. } | Message::Passed { .. } | Message::Answer { .. }
            );
            *to == GATEWAY && joint
        });
        for (_, _, message) in heard {
            push_message(message, &mut bytes);
        }
        bytes
    };
    let runs = RIGHT.iter().map(|right| of_run(&right.messages));
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_have_every_kind_of_message_and_a_right_one_is_answered() {
        let kinds: HashSet<&str> = RIGHT
            .iter()
            .flat_map(|right| right.messages.iter().map(|(_, _, message)| message.kind()))
            .collect();
        for kind in [
            "fetch", "trained", "question", "passed", "answer", "refused",
        ] {
            assert!(kinds.contains(kind), "{kind}");
        }
        let patients = asked().map(|about| (about.clone(), vec![0.5; about.len()]));
        let mut asker = Asker::new(TASKS[0].networks(), (0, 0), FIRST, &patients);
        for (_, to, message) in &RIGHT[0].messages {
            let ours = !matches!(message, Message::Refused { .. });
            if *to == GATEWAY && ours {
                let event = Event::Received(EDGE, message.clone());
                asker.handle(event, &mut Outbox::default());
                assert_eq!(asker.failure(), None);
            }
        }
        let known: Vec<bool> = asker.into_answers().iter().map(Option::is_some).collect();
        assert_eq!(known, [true, true, true, false]);
    }
}
