//! A cloud of three servers that loses one of them, and its disk.

use crate::common::run::{Run, same_results};
use crate::deployment::{FORTY_INTERVALS, place_with_server, simulated};
use crate::kit::{Kit, consortium};

/// A server and its disk are lost and stay away: two go on. Then it comes back with nothing, and the next is lost, and
/// so on: in the end every disk was lost once, and what those who came back were told again was needed.
#[test]
fn one_server_of_three_and_its_disk_can_be_lost() {
    let Some(place) = place_with_server("cluster") else {
        return;
    };
    let longer = FORTY_INTERVALS.replace("iterations = 80", "iterations = 12000");
    let longer = longer.replace("evaluate_every = 8", "evaluate_every = 200");
    let expected = simulated(&place, &longer, &[]);
    let mut kit = Kit::of_shards(&place, &consortium(3, &[("north", 1), ("south", 2)]));
    kit.launch_all();
    kit.start_all();
    let mut lost_at = Vec::new();
    for lost in ["hub-0", "hub-1", "hub-2"] {
        let t = kit.gets_beyond(lost_at.last().map_or(20, |t| t + 20));
        kit.servers.remove(lost).unwrap().kill().unwrap();
        std::fs::remove_dir_all(kit.file(&format!("{lost}/store"))).unwrap();
        let t = kit.gets_beyond(t + 40);
        lost_at.push(t);
        kit.launch(lost);
        let again = kit.servers.get_mut(lost).unwrap();
        again.wait_until_healthy().unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(kit.t() < 12000, "it was over before the last was lost");
    kit.ends();
    println!("lost servers were back at t = {lost_at:?}");
    same_results(
        &expected,
        &Run(kit.file("cloud/run")),
        "every disk was lost once",
    );
}
