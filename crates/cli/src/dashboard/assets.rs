//! The page's own files, which are part of the program.

use super::http::Response;
use crate::report::{SHARED_SCRIPT, style_sheet};
use selvedge_core::metrics::{Better, METRICS, Metric};

const PAGE: &str = include_str!("assets/index.html");
const STYLE: &str = include_str!("assets/dashboard.css");

/// Modules that the page loads; `main.js` loads the others.
const SCRIPTS: [(&str, &str); 7] = [
    ("/main.js", include_str!("assets/main.js")),
    ("/page.js", include_str!("assets/page.js")),
    ("/chart.js", include_str!("assets/chart.js")),
    ("/list.js", include_str!("assets/list.js")),
    ("/run.js", include_str!("assets/run.js")),
    ("/compare.js", include_str!("assets/compare.js")),
    ("/topology.js", include_str!("assets/topology.js")),
];

/// The file at a path, if it is one of ours.
pub(super) fn respond(path: &str) -> Option<Response> {
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    Some(match path {
        "/" | "/index.html" => Response::bytes("text/html; charset=utf-8", PAGE.as_bytes()),
        // Reports look the same.
        "/style.css" => {
            let style = format!("{}{STYLE}", style_sheet());
            Response::bytes("text/css; charset=utf-8", style.into_bytes())
        }
        "/metrics.js" => {
            let is_lower = |m: &Metric| m.better == Better::Lower;
            let list = METRICS.iter().map(|m| (m.name, m.title, is_lower(m)));
            let list: Vec<_> = list.collect();
            let script = format!("export const METRICS = {};\n", serde_json::json!(list));
            Response::bytes(SCRIPT, script.into_bytes())
        }
        "/shared.js" => Response::bytes(SCRIPT, SHARED_SCRIPT.as_bytes()),
        _ => {
            let (_, text) = SCRIPTS.into_iter().find(|(name, _)| *name == path)?;
            Response::bytes(SCRIPT, text.as_bytes())
        }
    })
}
