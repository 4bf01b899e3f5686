//! Figures 7 to 9: what the three adaptive strategies say of P, Q and η, in bytes until a target.

use super::claims::{Verdict, compare};
use super::figures::against_counted_bytes;
use super::intervals::{FIGURE7, FIGURE8, FIGURE9, Setting, Varied};
use super::iteration::exchange_by_aggregation;
use super::strategy2::{Choice, claim_choice, strategy2};
use super::trend::{Costs, Shape, Trend};
use super::{Claim, PerSeed, Section, mean_text};
use crate::comparison::Options;
use crate::comparison::targets::Target;
use crate::load;
use crate::report::chart::ChartAxis;
use crate::report::points::{Mark, Measured, PointChart, PointRow, draw, scale_for};
use crate::report::ticks::{Scale, Unit};
use anyhow::Result;
use selvedge_run::format::{bytes, count};
use selvedge_run::runs::Series;

/// What the text says that P = Q saves at Q = 1, against the other three P.
const SAVED: [&str; 3] = ["20 % saved", "27 % saved", "29 % saved"];

/// The curves that are drawn of a trend have so many points.
const CURVE: u32 = 80;

/// A figure's costs as the paper counts them: what its claims are about.
fn counted(one: &Varied, setting: Setting, target: &Target) -> PerSeed {
    one.costs(setting, target, |e| e.bytes_paper)
}

/// The headings above [`add_row`].
fn add_head(section: &mut Section, target: &Target) {
    let heads = ["bytes by the paper's count", "every byte", "iterations"];
    section.row(format!("until {}", target.name()), heads.map(String::from));
}

/// What a setting takes until a target.
fn add_row(
    section: &mut Section,
    name: String,
    (one, setting, target): (&Varied, Setting, &Target),
) {
    let exact = one.costs(setting, target, |e| e.bytes_exact);
    let iterations = one.costs(setting, target, |e| e.t as f64);
    let cells = [
        mean_text(&counted(one, setting, target), bytes),
        mean_text(&exact, bytes),
        mean_text(&iterations, |t| count(t.round() as u64)),
    ];
    section.row(name, cells);
}

/// Means of a row of settings, each at its x, joined by lines where all seeds get there.
fn joined(label: String, style: usize, points: Vec<Measured>) -> PointRow {
    let curve = points.iter().filter_map(|p| Some((p.x, p.whole()?)));
    PointRow {
        label,
        style,
        curve: curve.collect(),
        points,
    }
}

/// A chart of a group's bytes.
fn chart(
    target: &str,
    x: (&str, Scale, Vec<f64>),
    rows: Vec<PointRow>,
    marks: Vec<Mark>,
) -> String {
    let (title, scale, x_ticks) = x;
    let all = rows.iter().flat_map(|row| &row.points);
    let means = all.filter_map(|p| p.y.map(|(mean, _)| mean));
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    let y = ChartAxis {
        title: format!("Bytes by the paper's count until {target}"),
        unit: Unit::Bytes,
        scale: scale_for(means),
    };
    let description = format!("{} against {title}: {}", y.title, labels.join(", "));
    let x = ChartAxis {
        title: title.into(),
        unit: Unit::Number,
        scale,
    };
    let chart = PointChart {
        description,
        x,
        y,
        x_ticks,
        rows,
        marks,
    };
    draw(&chart).file()
}

/// AUC against bytes as the paper counts them, of some settings.
fn curves(one: &Varied, name: &str, settings: impl Iterator<Item = Setting>) -> (String, String) {
    let series: Vec<Series> = settings.filter_map(|s| one.series(s).cloned()).collect();
    let file = format!("{name}-{}.svg", one.experiment);
    (file, against_counted_bytes(&series, "auc"))
}

/// P = Q against larger P, for three Q: strategy 1.
pub(super) fn figure7(one: &Varied) -> Section {
    let mut section = one.section("fig7", "Figure 7, P above Q");
    let target = Target::new("auc", one.targets.figure7);
    let (all_q, ratios) = FIGURE7;
    add_head(&mut section, &target);
    let mut lines = Vec::new();
    for (style, q) in all_q.into_iter().enumerate() {
        let settings = ratios.map(|ratio| Setting::new(ratio * q, q));
        let costs = settings.map(|setting| counted(one, setting, &target));
        for (i, setting) in settings.into_iter().enumerate() {
            let p = setting.p;
            let equal = if p == q { " (P = Q)" } else { "" };
            let name = format!("Q = {q}, P = {p}{equal}");
            add_row(&mut section, name, (one, setting, &target));
            if p > q {
                let text = format!("bytes until {}, Q = {q}: P = {q} < P = {p}", target.name());
                let paper = match q {
                    1 => SAVED[i - 1],
                    _ => "P = Q needs the fewest",
                };
                section.claim(text, paper, &compare(&costs[0], &costs[i]));
            }
        }
        let at = |(ratio, costs): (u64, &PerSeed)| Measured::of(ratio as f64, costs);
        let points = ratios.into_iter().zip(&costs).map(at).collect();
        lines.push(joined(format!("Q = {q}"), style, points));
        let (file, svg) = curves(one, &format!("fig7-q{q}"), settings.into_iter());
        section.figure(file, svg);
    }
    let any = one.series(Setting::new(1, 1));
    section.notes.extend(any.map(exchange_by_aggregation));
    let ticks = ratios.map(|ratio| ratio as f64).to_vec();
    let marks = vec![Mark {
        label: "P = Q, strategy 1".into(),
        x: 1.0,
    }];
    let svg = chart(&target.name(), ("P / Q", Scale::Log, ticks), lines, marks);
    let file = format!("fig7-{}.svg", one.experiment);
    section.figure(file, svg);
    section
}

/// Bytes against P = Q: strategy 2.
pub(super) fn figure8(one: &Varied, options: &Options) -> Result<Section> {
    let dataset = load::dataset(&one.base, &options.data)?;
    let choice = strategy2(&one.base, &dataset);
    let mut section = one.section("fig8", "Figure 8, P = Q from 1 to 20");
    let (auc, loss) = one.targets.figure8;
    let targets = [Target::new("auc", auc), Target::new("loss", loss)];
    let mut lines = Vec::new();
    for (style, target) in targets.iter().enumerate() {
        add_head(&mut section, target);
        for q in FIGURE8 {
            let of = (one, Setting::new(q, q), target);
            add_row(&mut section, format!("P = Q = {q}"), of);
        }
        let of = |q| (q, counted(one, Setting::new(q, q), target));
        let costs: Vec<Costs> = FIGURE8.map(of).collect();
        let shape = Shape::of(&costs);
        let (line, note) = trend_line(&costs, &shape, target, style);
        lines.push(line);
        section.notes.push(note);
        claim_shape(&mut section, &shape, target);
        if let Some(chosen) = choice.as_ref().map(|choice| choice.corrected.interval) {
            claim_choice(&mut section, (chosen, &shape), &costs, target);
        }
    }
    section.notes.push("For each seed, the lowest is what it needs with the P = Q that is lowest for the other seeds.".into());
    section.notes.push(match &choice {
        Some(choice) => choice.sentence(),
        None => "Strategy 2 chooses nothing: pre-training gives no constants for it.".into(),
    });
    let ticks = [1.0, 5.0, 10.0, 15.0, 20.0].to_vec();
    let x = ("P = Q", Scale::Linear, ticks);
    let svg = chart("a target", x, lines, marks(choice.as_ref()));
    let file = format!("fig8-{}.svg", one.experiment);
    section.figure(file, svg);
    Ok(section)
}

/// The points of a target with their fitted curve, and a sentence on their shape. Only means over all seeds are fitted.
fn trend_line(costs: &[Costs], shape: &Shape, target: &Target, style: usize) -> (PointRow, String) {
    let at = |(q, costs): &Costs| Measured::of(*q as f64, costs);
    let points: Vec<Measured> = costs.iter().map(at).collect();
    let whole = |p: &Measured| Some((p.x, p.whole()?));
    let whole: Vec<(f64, f64)> = points.iter().filter_map(whole).collect();
    let found = match shape.lowest {
        Some(q) => format!("P = Q = {q} needs the fewest bytes"),
        None => "with no P = Q do all seeds reach it".to_owned(),
    };
    let mut note = format!("Until {}: {found}; {}.", target.name(), shape.sentence());
    let ends = whole.first().zip(whole.last());
    let trend = Trend::fit(&whole).zip(ends);
    let mut curve = Vec::new();
    if let Some((trend, ((from, _), (to, _)))) = trend {
        let step = libm::pow(to / from, 1.0 / f64::from(CURVE));
        let places = (0..=CURVE).map(|i| from * step.powi(i as i32));
        curve = places.map(|q| (q, trend.at(q))).collect();
        let course = match trend.lowest(*from, *to) {
            lowest if lowest == *from => "rises throughout".to_owned(),
            lowest if lowest == *to => "falls throughout".to_owned(),
            lowest => format!("is lowest at P = Q = {lowest:.1}"),
        };
        note += &format!(
            " The fitted curve, quadratic in logarithms over {} means, {course}.",
            whole.len()
        );
    }
    let with_trend = if curve.is_empty() {
        ""
    } else {
        ", with its trend"
    };
    let row = PointRow {
        label: format!("until {}{with_trend}", target.name()),
        style,
        points,
        curve,
    };
    (row, note)
}

/// With growing P = Q bytes first fall and then rise, among the intervals with which every seed gets there.
fn claim_shape(section: &mut Section, shape: &Shape, target: &Target) {
    let Some((first, last)) = shape.ends.filter(|(first, last)| first < last) else {
        return;
    };
    for (what, end, paper, found) in [
        ("first fall", first, "decrease first", &shape.falls),
        ("then rise", last, "and then increase", &shape.rises),
    ] {
        let until = target.name();
        let text = format!("bytes until {until} {what}: the lowest of the others < P = Q = {end}");
        let claim = Claim::new(text, paper, found, true);
        // Longer ones that do not get there may still cost more.
        let is_cut = what == "then rise" && last < *FIGURE8.end();
        let verdict = match claim.verdict {
            Verdict::Reversed if is_cut => Verdict::Open,
            verdict => verdict,
        };
        section.claims.push(Claim { verdict, ..claim });
    }
}

/// What strategy 2 chooses, as far as it is on the chart.
fn marks(choice: Option<&Choice>) -> Vec<Mark> {
    let Some(choice) = choice else {
        return Vec::new();
    };
    let (corrected, printed) = (choice.corrected.interval, choice.printed.interval);
    let named = match corrected == printed {
        true => vec![("corrected and printed root", corrected)],
        false => vec![("corrected root", corrected), ("printed root", printed)],
    };
    let is_shown = |(_, q): &(&str, u64)| FIGURE8.contains(q);
    let mark = |(root, q): (&str, u64)| Mark {
        label: format!("strategy 2, {root}: {q}"),
        x: q as f64,
    };
    named.into_iter().filter(is_shown).map(mark).collect()
}

/// η against its half and its quarter, for three pairs of P and Q: strategy 3.
pub(super) fn figure9(one: &Varied) -> Section {
    let mut section = one.section("fig9", "Figure 9, learning rates");
    let target = Target::new("auc", one.targets.figure9);
    let (pairs, all_halvings) = FIGURE9;
    let base = one.base.train.learning_rate;
    let setting = |(p, q), halvings| Setting { halvings, q, p };
    add_head(&mut section, &target);
    let mut lines = Vec::new();
    for (style, (p, q)) in pairs.into_iter().enumerate() {
        let settings = all_halvings.map(|halvings| setting((p, q), halvings));
        let mut points = Vec::new();
        for setting in settings {
            let rate = setting.rate(base);
            let name = format!("P = {p}, Q = {q}, η = {rate}");
            add_row(&mut section, name, (one, setting, &target));
            points.push(Measured::of(rate, &counted(one, setting, &target)));
        }
        points.reverse();
        lines.push(joined(format!("P = {p}, Q = {q}"), style, points));
        let name = format!("fig9-p{p}-q{q}");
        let (file, svg) = curves(one, &name, settings.into_iter());
        section.figure(file, svg);
    }
    let mut ticks = all_halvings.map(|h| setting(pairs[0], h).rate(base));
    ticks.reverse();
    let x = ("η", Scale::Log, ticks.to_vec());
    let svg = chart(&target.name(), x, lines, Vec::new());
    let file = format!("fig9-{}.svg", one.experiment);
    section.figure(file, svg);
    for (pair, less, more, paper) in FIGURE9_CLAIMS {
        let settings = [less, more].map(|halvings| setting(pair, halvings));
        let [ours, theirs] = settings.map(|s| counted(one, s, &target));
        let [less, more] = settings.map(|s| s.rate(base));
        let ((p, q), until) = (pair, target.name());
        let text = format!("bytes until {until}, P = {p}, Q = {q}: η = {less} < η = {more}");
        section.claim(text, paper, &compare(&ours, &theirs));
    }
    section
}

/// P and Q, how often η is halved where fewer bytes are claimed and where more are, and what the text says: at Q = 5
/// the best η falls as P goes from 10 to 20, and at P/Q = 2 as Q goes from 5 to 10.
const FIGURE9_CLAIMS: [((u64, u64), u32, u32, &str); 4] = [
    ((10, 5), 0, 2, "0.01 needs less than 0.0025"),
    ((20, 5), 2, 0, "0.0025 needs less than 0.01"),
    ((10, 5), 1, 2, "0.005 needs less than 0.0025"),
    ((20, 10), 2, 1, "0.0025 needs less than 0.005"),
];
