//! The page.

use super::drawing::Drawing;
use super::figures::{self, Figure, MOST_GROUPS, axis_name};
use super::needs;
use super::notes::{bands, notes};
use super::style::Style;
use super::table::Table;
use super::tables;
use super::text::{escape, json_in_html};
use super::ticks::Scale;
use crate::comparison::table::{Table as Needs, kind_of, means};
use crate::comparison::targets::HeldOut;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use selvedge_core::outcome::Kind;
use selvedge_run::format::count;
use selvedge_run::runs::{Axis, Series, differences};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
/// The colours of dark screens: for those who prefer them, and for those who switch to them.
const DARK: &str = include_str!("dark.css");
/// Theme and numbers, for the dashboard too.
pub(crate) const SHARED_SCRIPT: &str = include_str!("shared.js");
const SCRIPT: &str = concat!(include_str!("shared.js"), include_str!("page.js"));

/// The whole page, with what targets take. `incomplete` says which runs are not there yet.
pub(crate) fn page(series: &[Series], targets: &Needs, incomplete: &[String]) -> String {
    let metrics = figures::measured(series);
    let results = tables::results(series, &metrics);
    let needs = needs::needs(targets);
    let sent = tables::bytes_sent(series);
    let differing = tables::settings_that_differ(series);
    let runs = tables::runs(series);
    let tables: Vec<&Table> = [
        Some(&results),
        needs.as_ref(),
        sent.as_ref(),
        differing.as_ref(),
        Some(&runs),
    ]
    .into_iter()
    .flatten()
    .collect();
    let csv: serde_json::Map<_, _> = tables
        .iter()
        .map(|t| (t.id.to_owned(), json!(t.csv())))
        .collect();
    let data = json_in_html(&json!({ "series": figures::values(series), "csv": csv }));
    let title = title(series);
    let mut body = String::new();
    body += &header(series, &title, &notes(series, incomplete));
    body += &curves(series);
    body += &section(
        "results-section",
        "Results",
        &about_results(series),
        &results.html(),
    );
    if let Some(needs) = &needs {
        let about = "Cost until the first evaluation that meets the target: mean and standard deviation over the seeds that reach it. A dash means that none does.";
        body += &section(
            "needs-section",
            "Cost of reaching each target",
            about,
            &needs.html(),
        );
    }
    if let Some(sent) = &sent {
        let about =
            "Bytes of payload sent by all groups, mean over seeds, and their share of the total.";
        body += &section("bytes-section", "Where the bytes went", about, &sent.html());
    }
    if let Some(mix) = figures::label_mix(series) {
        body += &labels(series, &mix);
    }
    body += &experiment(series, differing.as_ref());
    let about = "Progress and duration of each run, and the version and CPU instructions it ran with. Data is the start of the data's fingerprint.";
    body += &section("runs-section", "Runs", about, &runs.html());
    let data = format!("<script type=\"application/json\" id=\"data\">{data}</script>\n");
    whole(&format!("{title} – Selvedge report"), SCRIPT, &body, &data)
}

/// An evaluation, as a page of the same look with nothing to point at.
pub(crate) fn plain_page(title: &str, body: &str) -> String {
    whole(&format!("{title} – Selvedge evaluation"), "", body, "")
}

fn whole(title: &str, script: &str, body: &str, data: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n<script>{script}</script>\n</head>\n<body>\n{body}<footer><p>Written by selvedge {}.</p></footer>\n{data}</body>\n</html>\n",
        policy(script),
        escape(title),
        style_sheet(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Only the script above may run, whatever a name that slipped through would say; nothing is loaded.
fn policy(script: &str) -> String {
    let hash = BASE64.encode(Sha256::digest(script.as_bytes()));
    format!(
        "default-src &#39;none&#39;; script-src &#39;sha256-{hash}&#39;; style-src &#39;unsafe-inline&#39;; img-src data:; base-uri &#39;none&#39;; form-action &#39;none&#39;"
    )
}

/// How pages look, on light and on dark screens.
pub(crate) fn style_sheet() -> String {
    format!(
        "{STYLE}\n@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=\"light\"]) {{ {DARK} }} }}\n@media screen {{ :root[data-theme=\"dark\"] {{ {DARK} }} }}\n"
    )
}

/// What the runs are called.
fn title(series: &[Series]) -> String {
    let mut names: Vec<&str> = series
        .iter()
        .map(|s| s.first().manifest.name.as_str())
        .collect();
    names.dedup();
    match names.len() {
        0..=3 => names.join(", "),
        n => format!("{} and {} more", names[0], n - 1),
    }
}

fn section(id: &str, title: &str, about: &str, content: &str) -> String {
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\"><h2 id=\"{id}-title\">{title}</h2><p class=\"about\">{about}</p>{content}</section>\n"
    )
}

/// `42`, `42–44`, or `3, 5, 9`
fn seed_list(seeds: &[u64]) -> String {
    let consecutive = seeds.windows(2).all(|w| w[1] == w[0].wrapping_add(1));
    match seeds {
        [first, .., last] if consecutive && seeds.len() > 2 => format!("{first}–{last}"),
        _ if seeds.len() > 8 => format!("{} of them", seeds.len()),
        _ => seeds
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn summary(series: &[Series]) -> String {
    let first = &series[0].first().experiment;
    let seeds_of = |s: &Series| {
        s.runs
            .iter()
            .map(|r| r.experiment.seed)
            .collect::<Vec<u64>>()
    };
    let seeds = seeds_of(&series[0]);
    let equal = series.iter().all(|s| seeds_of(s) == seeds);
    let seeds = match (equal, seeds.len(), series.len()) {
        (false, ..) => "with different seeds".into(),
        (true, 1, _) => format!("with seed {}", seeds[0]),
        (true, n, 1) => format!("with {n} seeds ({})", seed_list(&seeds)),
        (true, n, _) => format!("with {n} seeds each ({})", seed_list(&seeds)),
    };
    let set = &first.data.set;
    if let [_] = series {
        return format!("{} on {set}, {seeds}.", first.train.algorithm);
    }
    let differing: Vec<String> = differences(series)
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    let differing = match differing.len() {
        0..=4 => differing.join(", "),
        n => format!("{} and {} more keys", differing[..3].join(", "), n - 3),
    };
    format!(
        "{} variants on {set} that differ in {differing}, {seeds}.",
        count(series.len() as u64)
    )
}

fn header(series: &[Series], title: &str, notes: &[String]) -> String {
    let manifest = &series[0].first().manifest;
    let data = &manifest.data;
    let devices: usize = manifest.sizes.devices.iter().sum();
    let iterations = series
        .iter()
        .map(|s| s.first().experiment.train.iterations)
        .max();
    let (answers, outputs) = match data.outcome {
        Kind::Class => ("Classes", data.classes.len()),
        Kind::Labels => ("Labels", data.classes.len()),
        Kind::Quantity => ("Quantities", data.classes.len()),
        Kind::Survival => ("Intervals", series[0].first().experiment.data.intervals),
    };
    let facts = [
        ("Groups", manifest.sizes.groups),
        ("Devices", devices),
        ("Training samples", data.training_samples),
        ("Validation samples", data.validation_samples),
        ("Test samples", data.test_samples),
        (answers, outputs),
        ("Iterations", iterations.unwrap_or(0) as usize),
    ];
    let mut out = format!(
        "<header><div class=\"top\"><p class=\"eyebrow\">Selvedge report</p><button type=\"button\" class=\"quiet needs-js\" id=\"theme\">Dark</button></div><h1>{}</h1><p class=\"lead\">{}</p><dl class=\"facts\">",
        escape(title),
        escape(&summary(series))
    );
    for (name, n) in facts {
        let _ = write!(
            out,
            "<div><dt>{name}</dt><dd>{}</dd></div>",
            count(n as u64)
        );
    }
    out += "</dl>";
    if !notes.is_empty() {
        let items: String = notes
            .iter()
            .map(|note| format!("<li>{}</li>", escape(note)))
            .collect();
        let _ = write!(
            out,
            "<aside class=\"notes\" aria-label=\"Notes\"><ul>{items}</ul></aside>"
        );
    }
    out + "</header>\n"
}

/// The charts. Which axis is shown is chosen by radio buttons and the style sheet, so that it needs no script.
fn curves(series: &[Series]) -> String {
    let figures = figures::figures(series);
    let mut tools = String::from(
        "<div class=\"tools\"><fieldset class=\"tabs\"><legend class=\"hidden\">Horizontal axis</legend>",
    );
    for (axis, title) in [
        (Axis::Iterations, "Iterations"),
        (Axis::Bytes, "Bytes"),
        (Axis::Seconds, "Simulated time"),
    ] {
        let checked = if axis == Axis::Iterations {
            " checked"
        } else {
            ""
        };
        let name = axis_name(axis);
        let _ = write!(
            tools,
            "<label><input type=\"radio\" name=\"axis\" id=\"axis-{name}\" autocomplete=\"off\"{checked}><span>{title}</span></label>"
        );
    }
    tools += "</fieldset><label class=\"check\"><input type=\"checkbox\" id=\"log\" autocomplete=\"off\"><span>Logarithmic</span></label>";
    tools += &legend(series);
    tools += "</div>";
    let mut panels = String::new();
    for axis in Axis::ALL {
        for scale in [Scale::Linear, Scale::Log] {
            let name = if scale == Scale::Log { "log" } else { "linear" };
            let _ = write!(panels, "<div class=\"panel {} {name}\">", axis_name(axis));
            for figure in figures
                .iter()
                .filter(|f| f.axis == axis && f.scale == scale)
            {
                panels += &chart(figure);
            }
            panels += "</div>";
        }
    }
    section("curves", "Curves", bands(series), &(tools + &panels))
}

fn chart(figure: &Figure) -> String {
    let attributes = format!(
        " tabindex=\"0\" data-metric=\"{}\" data-axis=\"{}\"",
        figure.metric.name,
        axis_name(figure.axis)
    );
    let svg = figure.drawing.inline(&attributes);
    with_download(&svg, &figure.file(), figure.metric.title)
}

fn with_download(svg: &str, file: &str, title: &str) -> String {
    format!(
        "<figure>{svg}<button type=\"button\" class=\"quiet needs-js download\" data-file=\"{file}\" aria-label=\"Save the chart of {} as SVG\">SVG</button></figure>",
        escape(title)
    )
}

fn legend(series: &[Series]) -> String {
    let mut out = String::from(
        "<div class=\"legend\" role=\"group\" aria-label=\"Series: press to hide or show\">",
    );
    for (index, s) in series.iter().enumerate() {
        let style = Style { index };
        let _ = write!(
            out,
            "<button type=\"button\" aria-pressed=\"true\" data-toggle=\"{index}\"><svg class=\"c{}\" color=\"{}\" width=\"28\" height=\"10\" viewBox=\"0 0 28 10\" aria-hidden=\"true\" fill=\"currentColor\">{}</svg><span>{}</span></button>",
            style.colour_number(),
            style.colour(),
            style.swatch(1.0, 5.0),
            escape(&s.label)
        );
    }
    out + "</div>"
}

fn about_results(series: &[Series]) -> String {
    let mut about = String::from("The last evaluation");
    if series
        .iter()
        .flat_map(|s| &s.runs)
        .any(|run| run.best().is_some())
    {
        about += ", and the one that was best on the validation samples";
    }
    if series.iter().any(|s| s.evaluated().count() > 1) {
        about += "; mean ± standard deviation over seeds";
    }
    about += ".";
    if series.len() > 1 {
        let on = HeldOut::of(series);
        about += &format!(
            " {}. The best value of a column {} bold.",
            on.explained(),
            match on {
                HeldOut::Validation => "on these is",
                HeldOut::Test | HeldOut::Training => "is",
            }
        );
    }
    format!("{about} {}.", means(kind_of(series)))
}

fn labels(series: &[Series], mix: &Drawing) -> String {
    let run = series[0].first();
    let groups = run.manifest.data.labels.len();
    let which = match groups {
        n if n > MOST_GROUPS => format!("The first {MOST_GROUPS} of {} groups", count(n as u64)),
        _ => "The groups".into(),
    };
    let about = format!(
        "{which}: {} of their training samples, with seed {}.",
        match run.manifest.data.outcome {
            Kind::Labels => "the known answers, no and yes, to each label",
            Kind::Survival => "those without and with the event",
            _ => "the labels and the number",
        },
        run.experiment.seed
    );
    let figure = with_download(&mix.inline(""), "labels.svg", "labels");
    section(
        "labels-section",
        "Labels by group",
        &about,
        &format!("<div class=\"wide\">{figure}</div>"),
    )
}

fn experiment(series: &[Series], differing: Option<&Table>) -> String {
    let first = &series[0];
    let about = match differing {
        Some(_) => format!(
            "The settings in which the variants differ, and the full experiment of {}.",
            escape(&first.label)
        ),
        None => "All settings, including defaults.".into(),
    };
    let mut content = differing.map(Table::html).unwrap_or_default();
    let _ = write!(
        content,
        "<details><summary>The full experiment</summary><pre tabindex=\"0\"><code>{}</code></pre></details>",
        escape(&first.first().experiment.to_toml())
    );
    section("experiment-section", "Experiment", &about, &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_read_well() {
        assert_eq!(seed_list(&[42]), "42");
        assert_eq!(seed_list(&[42, 43]), "42, 43");
        assert_eq!(seed_list(&[42, 43, 44]), "42–44");
        assert_eq!(seed_list(&[3, 5, 9]), "3, 5, 9");
        assert_eq!(
            seed_list(&[u64::MAX - 1, u64::MAX]),
            format!("{}, {}", u64::MAX - 1, u64::MAX)
        );
    }

    #[test]
    fn the_script_cannot_end_its_element() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style") && !DARK.contains("</style"));
        for text in [SCRIPT, STYLE, DARK] {
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("url("));
        }
    }
}
