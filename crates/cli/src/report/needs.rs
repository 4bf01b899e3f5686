//! What each target takes, as a table of the page.

use super::table::{Cell, Column, Table};
use crate::comparison::table::{Block, COSTS, Row, Spread, Table as Needs};
use selvedge_run::format::bytes;

/// A row for each target and series; nothing without targets.
pub(super) fn needs(needs: &Needs) -> Option<Table> {
    if needs.targets.is_empty() {
        return None;
    }
    let mut columns = vec![Column::text("Target"), Column::text("Series")];
    columns.push(Column::number(
        "Reached",
        vec!["reached".into(), "seeds".into()],
    ));
    for (title, name, _, _) in COSTS {
        let spread = vec![format!("{name}_mean"), format!("{name}_sd")];
        columns.push(Column::number(title, spread));
    }
    columns.push(Column::number("Memory per device", vec!["memory".into()]));
    let rows = needs.targets.iter().flat_map(rows).collect();
    Some(Table {
        id: "needs",
        title: "Cost of reaching each target".into(),
        columns,
        rows,
        has_total: false,
        parted_by: Some(0),
    })
}

fn rows(block: &Block) -> Vec<Vec<Cell>> {
    let least = |of: fn(&Row) -> Option<Spread>| {
        let whole = block.variants.iter().filter(|r| r.reached == r.seeds);
        let means = whole.filter_map(|r| of(r).map(|s| s.mean));
        means.fold(f64::INFINITY, f64::min)
    };
    let row = |row: &Row| {
        let mut cells = vec![
            Cell::text(block.target.name()),
            Cell::text(&row.variant),
            Cell {
                text: format!("{} of {}", row.reached, row.seeds),
                csv: vec![row.reached.to_string(), row.seeds.to_string()],
                ..Cell::default()
            },
        ];
        for (_, _, of, show) in COSTS {
            let several = block.variants.len() > 1 && row.reached == row.seeds;
            let spread = of(row);
            cells.push(Cell {
                is_best: several && spread.is_some_and(|s| s.mean == least(of)),
                ..Cell::spread(spread, show)
            });
        }
        cells.push(Cell::number(bytes(row.memory as f64), row.memory));
        cells
    };
    block.variants.iter().map(row).collect()
}
