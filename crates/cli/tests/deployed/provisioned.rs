//! Kits: what is in them and who may read it, keys that are replaced and revoked, and the doctor.

use crate::common::Place;
use crate::common::run::{Run, same_results};
use crate::deployment::{FORTY_INTERVALS, place_with_server, read, simulated};
use crate::kit::{Kit, consortium};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Secrets of a kit by file: what is secret in them, without the words around it.
fn secrets(kit: &Path) -> BTreeMap<PathBuf, String> {
    let is_secret = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let names = [
            "key.nk",
            "key.pem",
            "link.conf",
            "authority-key.pem",
            "pseudonyms.key",
        ];
        names.contains(&name)
    };
    let secret = |path: PathBuf| {
        let text = read(&path);
        let longest = text.split_whitespace().max_by_key(|word| word.len());
        (path, longest.unwrap().trim_matches('"').to_owned())
    };
    files(kit)
        .iter()
        .filter(is_secret)
        .cloned()
        .map(secret)
        .collect()
}

/// Parties that enrol need no data to be provisioned.
const TABLE: &str = r#"
[data]
set = "table"
groups = 2
[data.table]
id = "id"
label = "ill"
labels = ["no", "yes"]
hospital = ["a"]
device = ["b"]
"#;

#[test]
fn secrets_are_in_one_folder_each_and_nowhere_else() {
    let place = Place::new("kit-secrets");
    place.write("experiment.toml", TABLE);
    let description = consortium(3, &[("north", 2), ("south", 1)]);
    place.write("consortium.toml", description);
    let args = ["provision", "consortium.toml", "--out", "kit"];
    let mut said = vec![place.succeeds(&args)];
    for more in [
        &["rotate", "kit", "north/edge"][..],
        &["rotate", "kit", "south"],
        &["rotate", "kit", "hub-1"],
        &["revoke", "kit", "north/gateway-1"],
        &["revoke", "kit", "north/gateway-1"],
        &["rotate", "kit", "north/gateway-1"],
        &["pseudonyms", "kit", "north"],
        &["add", "kit", "west", "--host", "10.0.0.9"],
        &["list", "kit"],
        &["list", "kit", "--json"],
    ] {
        said.push(place.succeeds(&[&["kit"], more].concat()));
    }
    let kit = place.join("kit");
    let secrets = secrets(&kit);
    // A key for each of eleven parties, a certificate's for each of six servers, a link's for each hospital, the
    // authority's; hospitals and gateways know how to make pseudonyms.
    assert_eq!(secrets.len(), 11 + 6 + 3 + 1 + 7, "{:?}", secrets.keys());
    let pseudonyms = |who: &str| &secrets[&kit.join(who).join("pseudonyms.key")];
    for (gateway, same) in [
        ("north/gateway-0", true),
        ("north/gateway-1", true),
        ("west/gateway-0", false),
    ] {
        let is_same = pseudonyms("north/hospital") == pseudonyms(gateway);
        assert_eq!(is_same, same, "{gateway}");
    }
    for (path, secret) in &secrets {
        assert!(secret.len() > 40, "{}", path.display());
        assert_eq!(mode(path), 0o600, "{}", path.display());
        assert_eq!(mode(path.parent().unwrap()), 0o700, "{}", path.display());
        for ran in &said {
            let all = format!("{}{}", ran.stdout, ran.stderr);
            assert!(
                !all.contains(secret),
                "{} shows {}",
                ran.command,
                path.display()
            );
        }
    }
    for path in files(&kit) {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let shared = path.ends_with("pseudonyms.key");
        for (of, secret) in secrets.iter().filter(|(of, _)| **of != path && !shared) {
            assert!(
                !text.contains(secret),
                "{} has the secret of {}",
                path.display(),
                of.display()
            );
        }
    }
}

/// A change of the consortium goes to who takes part, and to nobody who was revoked until that is taken back.
#[test]
fn who_is_revoked_is_given_nothing() {
    let place = Place::new("kit-given");
    place.write("experiment.toml", TABLE);
    place.write(
        "consortium.toml",
        consortium(1, &[("north", 2), ("south", 1)]),
    );
    place.succeeds(&["provision", "consortium.toml", "--out", "kit"]);
    let kit = place.join("kit");
    place.succeeds(&["kit", "revoke", "kit", "north/gateway-1"]);
    place.succeeds(&["kit", "revoke", "kit", "south"]);
    for folder in ["north/gateway-1", "south", "north/edge"] {
        fs::remove_dir_all(kit.join(folder)).unwrap();
    }
    let said = place.succeeds(&["kit", "add", "kit", "west", "--host", "10.0.0.9"]);
    assert!(kit.join("north/edge/experiment.toml").is_file());
    for folder in ["north/gateway-1", "south/hospital", "south/gateway-0"] {
        assert!(!kit.join(folder).exists(), "{folder} was given something");
        assert!(!said.stdout.contains(folder), "{}", said.stdout);
    }
    for (who, folder) in [
        ("north/gateway-1", "north/gateway-1"),
        ("south", "south/edge"),
    ] {
        place.succeeds(&["kit", "rotate", "kit", who]);
        let text = read(&kit.join(folder).join("experiment.toml"));
        assert!(text.contains("groups = 3"), "{text}");
    }
}

#[test]
fn what_cannot_be_provisioned_is_refused_and_leaves_nothing() {
    let place = Place::new("kit-refused");
    place.write("experiment.toml", FORTY_INTERVALS);
    let two = consortium(1, &[("north", 1), ("south", 1)]);
    place.write("consortium.toml", &two);
    let provision = ["provision", "consortium.toml", "--out", "kit"];
    place.refuses(&provision, &["data.set = \"synthetic\"", "--shards"]);
    place.succeeds(&["data", "split", "experiment.toml", "--out", "shards"]);
    let of_shards = [&provision[..], &["--shards", "shards"]].concat();
    for (wrong, parts) in [
        (
            two.replace("north", "south"),
            &["two hospitals", "\"south\""][..],
        ),
        (two.replace("north", "a b"), &["\"a b\"", "letters"]),
        (two.replace("[[cloud]]", "[[clouds]]"), &["clouds"]),
        (two.replace("experiment.toml", "none.toml"), &["none.toml"]),
        (two.replace("gateways = 1", "gateways = -1"), &["gateways"]),
        (consortium(1, &[("north", 1)]), &["2 groups", "1 hospital:"]),
    ] {
        place.write("consortium.toml", &wrong);
        place.refuses(&of_shards, parts);
    }
    let many = two.replace("gateways = 1", "gateways = 31");
    place.write("consortium.toml", many);
    place.refuses(&of_shards, &["gateways = 31", "30 devices"]);
    place.write("consortium.toml", &two);
    place.succeeds(&of_shards);
    // Nobody has what belongs to another group, or another side.
    let kit = place.join("kit");
    assert!(!kit.join("shards").exists());
    let of_edge: Vec<PathBuf> = files(&kit.join("north/edge/data"));
    let names = of_edge.iter().filter_map(|p| p.file_name()?.to_str());
    let names: Vec<&str> = names.collect();
    assert!(
        names.contains(&"edge.npz") && !names.contains(&"hospital.npz"),
        "{names:?}"
    );
    place.refuses(&of_shards, &["already exists", "selvedge kit"]);
    for (args, parts) in [
        (
            &["revoke", "kit", "north/gatway-0"][..],
            &["did you mean \"north/gateway-0\"?"][..],
        ),
        (&["revoke", "kit", "cloud"], &["rotate"]),
        (
            &["rotate", "kit", "north/edge", "--public", "SUAB"],
            &["public key", "secret half"],
        ),
        (
            &["add", "kit", "west", "--host", "h"],
            &["data.set", "a new kit"],
        ),
        (&["list", "nowhere"], &["nowhere"]),
    ] {
        place.refuses(&[&["kit"], args].concat(), parts);
    }
}

/// The documented way: the operator revokes, the server gets its new configuration and is restarted.
#[test]
fn a_revoked_party_is_off_and_one_with_a_new_key_goes_on() {
    let Some(place) = place_with_server("kit-revoked") else {
        return;
    };
    let longer = FORTY_INTERVALS.replace("iterations = 80", "iterations = 2000");
    let expected = simulated(&place, &longer, &[]);
    let mut kit = Kit::of_shards(&place, &consortium(1, &[("north", 2), ("south", 1)]));
    kit.launch_all();
    let doctor = |kind: &str, config: &str| place.selvedge(&["doctor", kind, "--config", config]);
    doctor("server", "kit/north/server/server.conf").succeeded();
    for (kind, who) in [
        ("hospital", "north/hospital"),
        ("devices", "north/gateway-1"),
        ("cloud", "cloud"),
    ] {
        let said = doctor(kind, &format!("kit/{who}/node.toml"))
            .succeeded()
            .stdout;
        for part in ["server", "identity", "clock", "data"] {
            assert!(said.contains(&format!("ok    {part}")), "{part}: {said}");
        }
    }
    // Another party's folder is found out.
    let said = doctor("edge", "kit/north/hospital/node.toml")
        .ended(2)
        .stdout;
    assert!(said.contains("FAIL"), "{said}");
    kit.start_all();
    let mut t = kit.gets_beyond(20);
    let listed = place.succeeds(&["kit", "list", "kit", "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let public = serde_json::json!({
        "north/gateway-1": listed["keys"]["north/gateway-1"],
        "south": listed["keys"]["south/server"],
    });
    for (who, server) in [("north/gateway-1", "north/server"), ("south", "hub")] {
        let key = public[who].as_str().unwrap();
        assert!(
            kit.connected(server).contains(key),
            "{who} is not connected"
        );
    }
    // A gateway, and a whole hospital with its live link.
    for (who, kind, server, part) in [
        (
            "north/gateway-1",
            "devices",
            "north/server",
            "does not know this key",
        ),
        ("south", "server", "hub", "no link"),
    ] {
        place.succeeds(&["kit", "revoke", "kit", who]);
        // It is in its configuration, and not in force before the restart.
        kit.gets_beyond(t);
        kit.restart(server);
        let config = match kind {
            "server" => "kit/south/server/server.conf".to_owned(),
            _ => format!("kit/{who}/node.toml"),
        };
        let began = std::time::Instant::now();
        loop {
            let said = doctor(kind, &config);
            if said.stdout.contains(part) {
                said.ended(2);
                break;
            }
            assert!(began.elapsed().as_secs() < 20, "{}", said.stdout);
        }
        // Its key is nobody's there any more, and without it nobody goes on: all are waited for here.
        let was = public[who].as_str().unwrap();
        assert!(
            !kit.connected(server).contains(was),
            "{who} is connected still"
        );
        t = kit.stands_still();
        // Its server says who was turned away.
        let log = read(&kit.file(&format!("{server}/log")));
        assert!(
            log.contains("authentication error") || log.contains("uthorization"),
            "{log}"
        );
        // With a new key it is let in again, and the run goes on where it was.
        place.succeeds(&["kit", "rotate", "kit", who]);
        let mut restarted = vec![server];
        if kind == "server" {
            restarted.push("south/server");
        } else {
            kit.nodes.remove(who);
        }
        for server in restarted {
            kit.restart(server);
        }
        if kind != "server" {
            kit.start(who);
        }
        t = kit.gets_beyond(t);
    }
    kit.ends();
    same_results(
        &expected,
        &Run(kit.file("cloud/run")),
        "with keys revoked and replaced",
    );
}

#[test]
fn a_consortium_without_defences_of_its_own_gets_the_usual_ones() {
    let place = Place::new("kit-defences");
    let description = consortium(1, &[("north", 1), ("south", 1)]);
    place.write("consortium.toml", description);
    let kit_of = |experiment: &str, out: &str| {
        place.write("experiment.toml", experiment);
        let said = place.succeeds(&["provision", "consortium.toml", "--out", out]);
        (
            said.stdout,
            read(&place.join(out).join("cloud/experiment.toml")),
        )
    };
    let (said, experiment) = kit_of(TABLE, "usual");
    assert!(
        said.contains("has no [defence], so the usual ones"),
        "{said}"
    );
    assert!(experiment.contains("device_limit = 100"), "{experiment}");
    let own = format!("{TABLE}[defence]\ndevices = \"median\"\n");
    let (said, experiment) = kit_of(&own, "own");
    assert!(!said.contains("[defence]"), "{said}");
    assert!(experiment.contains("devices = \"median\""), "{experiment}");
    assert!(!experiment.contains("device_limit = 100"), "{experiment}");
}
