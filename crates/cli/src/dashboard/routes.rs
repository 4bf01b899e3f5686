//! What is answered where.
//!
//! ```text
//! /                              the page, with its style and scripts beside it
//! /api/runs?since=VERSION        what has changed
//! /api/run/ID                    one run; /curves, /interval?t=T, /file/NAME below it
//! ```

use super::assets;
use super::details;
use super::http::{Body, Request, Response};
use super::shelf::{Run, Shelf};
use super::summary::{FILES, read};
use selvedge_run::files::is_run;
use selvedge_run::follow::open;
use serde_json::Value;

pub(super) fn respond(shelf: &Shelf, request: &Request) -> Response {
    let path = request.path.as_str();
    if let Some(response) = assets::respond(path) {
        return response;
    }
    match path.strip_prefix("/api/") {
        Some("runs") => Response::json(&shelf.list(request.asked("since"))),
        Some(path) => match path.strip_prefix("run/") {
            Some(path) => of_run(shelf, path, request),
            None => Response::error(404, "expected /api/runs or /api/run/ID"),
        },
        None => Response::text(404, "there is nothing here: the dashboard is at /"),
    }
}

fn of_run(shelf: &Shelf, path: &str, request: &Request) -> Response {
    let (id, what) = path.split_once('/').unwrap_or((path, ""));
    let gone = || {
        Response::error(
            404,
            "this run no longer exists: it was removed, moved or renamed",
        )
    };
    let Some((run, summary)) = shelf.run(id) else {
        return gone();
    };
    let answer = match what {
        "" => details::details(&run, &summary),
        "curves" => details::curves(&run),
        "interval" => match request.asked("t").map(str::parse) {
            None => details::interval(&run, &summary, None),
            Some(Ok(t)) => details::interval(&run, &summary, Some(t)),
            Some(Err(_)) => {
                return Response::error(400, "t is not an iteration: expected a whole number");
            }
        },
        what => match what.strip_prefix("file/") {
            Some(name) => return file(&run, &summary, name),
            None => {
                return Response::error(404, "expected /curves, /interval or /file/NAME of a run");
            }
        },
    };
    match answer {
        Ok(value) => Response::json(&value),
        // Somebody has removed it since folders were last searched.
        Err(_) if !is_run(&run.found.path) => gone(),
        Err(why) => Response::error(422, &why),
    }
}

/// A file of a run as it is, to be kept. No name but those of [`FILES`] leads to a file.
fn file(run: &Run, summary: &Value, name: &str) -> Response {
    let id = summary["id"].as_str().unwrap_or("run");
    let disposition = format!("attachment; filename=\"{id}-{name}\"");
    if name == "experiment.toml" {
        return match read(&run.found) {
            Ok((_, experiment)) => {
                Response::bytes("application/toml", experiment.to_toml().into_bytes())
                    .with("Content-Disposition", disposition)
            }
            Err(why) => Response::error(422, &why),
        };
    }
    let Some(known) = FILES.into_iter().find(|known| *known == name) else {
        return Response::error(
            404,
            &format!("expected experiment.toml, {}", FILES.join(", ")),
        );
    };
    let opened = open(&run.found.path.join(known)).and_then(|file| {
        let with_length = |file: std::fs::File| Ok((file.metadata()?.len(), file));
        file.map(with_length).transpose()
    });
    match opened {
        Ok(Some((length, file))) => Response {
            status: 200,
            kind: match known.rsplit('.').next() {
                Some("json") => "application/json",
                Some("csv") => "text/csv; charset=utf-8",
                _ => "application/x-ndjson",
            },
            headers: vec![("Content-Disposition", disposition)],
            body: Body::File(file, length),
        },
        Ok(None) => Response::error(404, &format!("this run has no {known}")),
        Err(e) => Response::error(
            422,
            &format!("{}: {e}", run.found.path.join(known).display()),
        ),
    }
}
