//! A hospital: says who is known, then which labels those have who take part, and sums up its columns for the cloud.

use super::duty::{Context, Duty, Follows, Trouble, Words};
use super::holdings::{self, Holdings};
use super::known::words;
use super::message::{Body, Totals};
use super::ring::ColumnSums;
use super::roll::{FEWEST, Labels, Roster, digest_of_all, digests, part_of_all};
use super::{Enrolled, OwnPart, OwnShard, hex};
use crate::protocol::Party;

pub(super) struct Hospital<H> {
    own: H,
    state: Option<State>,
}

struct State {
    enrolled: Enrolled,
    parts: [OwnPart; 3],
    devices: u32,
}

impl<H: Holdings> Hospital<H> {
    pub(super) fn new(own: H) -> Self {
        Hospital { own, state: None }
    }

    fn labels(&self, roster: &Roster) -> Option<Labels> {
        let of = |own: &[Vec<String>; 3]| -> Option<[Vec<u32>; 3]> {
            let [training, validation, test] =
                own.each_ref().map(|p| Some(words(&self.own.known(p)?)));
            Some([training?, validation?, test?])
        };
        Some(Labels {
            gateways: roster.gateways.iter().map(of).collect::<Option<_>>()?,
        })
    }
}

impl<H: Holdings> Duty for Hospital<H> {
    fn begin(&mut self, at: &Context) -> Words {
        self.state = None;
        vec![(
            Party::Edge(at.group()),
            Body::Roll(holdings::roll(&self.own)),
        )]
    }

    fn heard(&mut self, at: &Context, from: Party, body: Body) -> Follows {
        match (body, &mut self.state) {
            (Body::Roster { roster, counts }, None) if from == Party::Edge(at.group()) => {
                if !roster.is_sound() || roster.training() != counts.training {
                    return Err(Trouble::nonsense(from, "an invalid roster"));
                }
                if roster.training() < FEWEST {
                    return Err(Trouble::too_few(at.group(), roster.training()));
                }
                let labels = self.labels(&roster).ok_or_else(|| {
                    Trouble::Told("the edge's roster has patients unknown to the hospital".into())
                })?;
                // From a secret that gateways have, and a number of this process that they do not.
                let salt = |part: usize| {
                    let text = format!("{} {} {part}", at.life, at.number());
                    hex(&self.own.secret("salt", &text)[..16])
                };
                let salts: Vec<String> = (0..3 * roster.gateways.len()).map(salt).collect();
                let parts = digests(&roster, &labels, &salts);
                let [training, validation, test] = [0, 1, 2].map(|part| {
                    let patients = part_of_all(&roster.gateways, part);
                    let words = part_of_all(&labels.gateways, part);
                    let known = at.terms.known(&words, patients.len()).ok_or_else(|| {
                        Trouble::Own(format!(
                            "what is known of patients is not of the kind {}",
                            at.terms.kind.name()
                        ))
                    });
                    holdings::take(&self.own, &patients, known?)
                });
                let (own, mut sums) = training?;
                sums.iter_mut().for_each(ColumnSums::hide_few);
                let mut enrolled = Enrolled::new(at.party, digest_of_all(&parts));
                enrolled.pseudonyms = self.own.key();
                enrolled.counts = vec![counts];
                enrolled.gateways = roster.ranges();
                let totals = Totals {
                    columns: self.own.columns(),
                    sums,
                    labels: at.terms.count(&own.y),
                    learnt: at.terms.learn(&own.y),
                    key: self.own.key(),
                    digest: enrolled.digest.clone(),
                    counts,
                };
                enrolled.notes = at.terms.lacks(&at.own_group(), totals.known(), None);
                let digest = enrolled.digest.clone();
                self.state = Some(State {
                    enrolled,
                    parts: [own, validation?.0, test?.0],
                    devices: roster.training() as u32,
                });
                Ok((
                    vec![
                        (
                            from,
                            Body::Labels {
                                labels,
                                salts,
                                digest,
                            },
                        ),
                        (Party::Cloud, Body::Totals(totals)),
                    ],
                    None,
                ))
            }
            (Body::Common(common), Some(state)) if from == Party::Cloud => {
                let mut enrolled = state.enrolled.clone();
                let bases = enrolled.adopt(at, from, &common)?;
                let mut parts = state.parts.clone();
                (parts[1].base, parts[2].base) = (bases[0], bases[1]);
                enrolled.shard = Some(OwnShard {
                    devices: state.devices,
                    from: [0; 2],
                    shape: holdings::shape(&self.own),
                    parts,
                });
                Ok((Vec::new(), Some(enrolled)))
            }
            _ => Err(Trouble::nonsense(from, "a message out of turn")),
        }
    }

    fn waits(&self, at: &Context) -> Vec<Party> {
        match self.state {
            None => vec![Party::Edge(at.group())],
            Some(_) => vec![Party::Cloud],
        }
    }
}
