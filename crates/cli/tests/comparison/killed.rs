//! Comparisons that are killed or interrupted, and gone on with by the same command.

use crate::common::process::{Live, Ran, finish};
use crate::common::run::Run;
use crate::common::{Place, Random, selvedge, words};
use crate::{SOON, finished, runs, same_comparison, stamped};
use std::fs;
use std::process::Command;
use std::time::Duration;

const WIDE: &str = "model.device=[{ linear = { out = 12 } }, \"tanh\"]";

#[test]
fn killed_at_random_moments_and_begun_again_it_ends_the_same() {
    let place = Place::new("cmp-killed");
    let args = words(
        "compare --algorithms hsgd,c-hsgd,jfl --seeds 3 --set train.iterations=600 \
         --target auc=0.85 --out",
    );
    let whole = place.succeeds(&[&args[..], &["whole"]].concat());
    let mut random = Random(0x5e1f_ed9e);
    let (mut kills, mut folders) = (0, 0);
    while kills < 6 {
        let name = format!("killed-{folders}");
        let folder = place.join(&name);
        let before = finished(&folder);
        let stamps = stamped(&before);
        let mut live = Live::start(selvedge(place.path()).args(&args).arg(&name));
        // Some die before they have made the folder, others a few runs later.
        let moment = Duration::from_secs_f64(0.4 * random.next());
        let ended = live.ends_within(moment);
        if !ended {
            live.signal("KILL");
        }
        let ran = live.finish();
        assert_eq!(
            stamps,
            stamped(&before),
            "kill {kills}: finished runs are not touched"
        );
        match ended {
            false => kills += 1,
            true => {
                check_end(&place, &ran.succeeded(), &whole, &name);
                folders += 1;
            }
        }
        assert!(folders < 20, "comparisons end too soon to be killed");
    }
    let name = format!("killed-{folders}");
    let before = finished(&place.join(&name));
    let stamps = stamped(&before);
    let ran = place.succeeds(&[&args[..], &[&name]].concat());
    assert_eq!(stamps, stamped(&before), "finished runs are not touched");
    check_end(&place, &ran, &whole, &name);
}

fn check_end(place: &Place, ran: &Ran, whole: &Ran, name: &str) {
    same_comparison(place, "whole", name);
    assert_eq!(ran.stdout.replace(name, "whole"), whole.stdout);
}

#[test]
fn ctrl_c_saves_and_the_command_that_is_printed_goes_on() {
    let place = Place::new("cmp-ctrl-c");
    let args = words(
        "compare --algorithms hsgd,jfl --seeds 1 --set train.iterations=3000 --target auc=0.85",
    );
    let args = [&args[..], &["--set", WIDE, "--out"]].concat();
    let whole = place.succeeds(&[&args[..], &["whole"]].concat());
    let mut live = Live::start(selvedge(place.path()).args(&args).arg("it's mine"));
    let run = Run(place.join("it's mine/hsgd/seed-42"));
    live.wait_until("begun", SOON, || run.evaluations_so_far() > 3);
    live.signal("INT");
    let ran = live.finish().ended(130);
    assert_eq!(ran.stdout, "", "there is no table yet");
    assert_eq!(run.manifest()["ending"]["kind"], "interrupted");
    assert!(run.checkpoint_t().unwrap() > 0);

    let command = ran.stderr.split("resume with `").nth(1).unwrap();
    let command = command.split_once('`').unwrap().0;
    let words = command.strip_prefix("selvedge ").unwrap();
    // As a shell reads it, which is where it is pasted.
    let again = finish(
        Command::new("sh")
            .args([
                "-c",
                &format!("\"$0\" {words}"),
                env!("CARGO_BIN_EXE_selvedge"),
            ])
            .current_dir(place.path()),
    );
    let again = again.succeeded();
    check_end(&place, &again, &whole, "it's mine");
}

/// Without `--out`, so that the folder must be found again, beside one of another experiment and one without rates.
#[test]
fn killed_while_it_tries_learning_rates_it_goes_on_in_the_same_folder() {
    let place = Place::new("cmp-tuning");
    let short = ["--set", "train.iterations=40"];
    let one = ["compare", "--algorithms", "hsgd", "--seeds", "1"];
    // As one that was killed at once leaves it: that is no folder to leave behind.
    place.write("runs/compare-synthetic/lock", "");
    place.succeeds(&[&one[..], &short].concat());
    let args = ["compare", "--algorithms", "hsgd,jfl,tdcd", "--seeds", "2"];
    let rates = words("--learning-rates 0.2,0.02,0.1 --set train.iterations=400");
    let args = [&args[..], &rates, &["--target", "auc=0.85"]].concat();
    let whole = place.succeeds(&[&args[..], &["--out", "runs/whole"]].concat());
    let folder = place.join("runs/compare-synthetic-2");
    let (mut wanted, mut late) = (1, 0);
    while wanted <= 3 {
        let mut live = Live::start(selvedge(place.path()).args(&args));
        let tuning = folder.join("tuning");
        live.wait_until("at rates", SOON, || runs(&tuning).len() >= wanted);
        live.signal("KILL");
        live.finish();
        wanted += 2;
        if folder.join("comparison.json").exists() {
            // On a busy machine the signal may come when all rates were tried.
            fs::remove_dir_all(&folder).unwrap();
            (wanted, late) = (1, late + 1);
            assert!(late < 5, "always killed too late");
        }
    }
    let tried = finished(&folder.join("tuning"));
    let stamps = stamped(&tried);
    let ran = place.succeeds(&args);
    assert_eq!(
        stamps,
        stamped(&tried),
        "rates that were tried are not tried again"
    );
    let name = "runs/compare-synthetic-2";
    check_end_with(&place, &ran, &whole, "runs/whole", name);
    let read =
        |folder: &str| fs::read_to_string(place.join(folder).join("comparison.json")).unwrap();
    assert_eq!(read("runs/whole"), read(name), "the same is chosen");
    assert!(!place.join("runs/compare-synthetic-3").exists());
    // With everything done, the same command finds it once more, and one without rates the first folder.
    let ran = place.succeeds(&args);
    check_end_with(&place, &ran, &whole, "runs/whole", name);
    let ran = place.succeeds(&[&one[..], &short].concat());
    assert!(
        ran.stdout
            .ends_with("Report  runs/compare-synthetic/report.html\n")
    );
}

fn check_end_with(place: &Place, ran: &Ran, whole: &Ran, expected: &str, name: &str) {
    same_comparison(place, expected, name);
    assert_eq!(ran.stdout.replace(name, expected), whole.stdout);
}
