//! The schema: a tree of columns in the order of a walk, of which the flat ones are kept.

use super::Problem;
use super::kind::{Described, Kind};
use super::thrift::{Compact, Damage, Type};

const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

/// A flat column.
#[derive(Debug)]
pub(super) struct Column {
    /// Which of a row group's pieces is its.
    pub(super) leaf: usize,
    /// Whether values may be missing.
    pub(super) optional: bool,
    /// The number of the physical type.
    pub(super) physical: i64,
    /// What the values are, or why they cannot be read.
    pub(super) kind: Result<Kind, Problem>,
}

/// One node of the tree.
pub(super) struct Element {
    name: String,
    repetition: i64,
    children: Option<u64>,
    described: Option<Described>,
}

impl Element {
    /// Reads a node.
    pub(super) fn read(compact: &mut Compact<'_>, kind: Type) -> Result<Self, Damage> {
        let (mut name, mut physical, mut children) = (None, None, None);
        let (mut repetition, mut length, mut scale) = (0, None, None);
        let (mut converted, mut logical) = (None, Logical::default());
        compact.fields(kind, |compact, number, kind| {
            match number {
                1 => physical = Some(compact.integer(kind)?),
                2 => length = Some(compact.integer(kind)?),
                3 => repetition = compact.integer(kind)?,
                4 => name = Some(compact.binary(kind)?),
                5 => children = Some(compact.count(kind)?),
                6 => converted = Some(compact.integer(kind)?),
                7 => scale = Some(compact.integer(kind)?),
                10 => logical = Logical::read(compact, kind)?,
                _ => compact.skip(kind)?,
            }
            Ok(())
        })?;
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        // Without its scale, an old kind of decimal is a whole number.
        let old_scale = (converted == Some(5)).then_some(scale.unwrap_or(0));
        let described = physical.map(|physical| Described {
            physical,
            length,
            unsigned: logical.unsigned || matches!(converted, Some(11..=14)),
            scale: logical.scale.or(old_scale),
        });
        Ok(Element {
            name: name.ok_or(Damage::Wrong("a column has no name"))?.into(),
            repetition,
            children,
            described,
        })
    }
}

/// The newer description of a type, as far as it matters.
#[derive(Default)]
struct Logical {
    unsigned: bool,
    scale: Option<i64>,
}

impl Logical {
    fn read(compact: &mut Compact<'_>, kind: Type) -> Result<Self, Damage> {
        let mut logical = Logical::default();
        compact.fields(kind, |compact, number, kind| match number {
            5 => compact.fields(kind, |compact, number, kind| match number {
                1 => compact
                    .integer(kind)
                    .map(|scale| logical.scale = Some(scale)),
                _ => compact.skip(kind),
            }),
            10 => compact.fields(kind, |compact, number, kind| {
                logical.unsigned |= number == 2 && kind == Type::Boolean(false);
                compact.skip(kind)
            }),
            _ => compact.skip(kind),
        })?;
        Ok(logical)
    }
}

/// What is kept of a schema.
pub(super) struct Schema {
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<Column>,
    /// The names of columns that are not flat.
    pub(super) nested: Vec<String>,
    /// Columns of which a row group has pieces.
    pub(super) leaves: usize,
}

/// Finds the flat columns of the tree.
pub(super) fn flatten(elements: Vec<Element>) -> Result<Schema, Damage> {
    let mut elements = elements.into_iter();
    let root = elements
        .next()
        .ok_or(Damage::Wrong("the schema is missing"))?;
    let mut schema = Schema {
        names: Vec::new(),
        columns: Vec::new(),
        nested: Vec::new(),
        leaves: 0,
    };
    let mut tops = 0;
    while let Some(element) = elements.next() {
        tops += 1;
        match element.described {
            Some(described) if element.repetition < REPEATED => {
                schema.names.push(element.name);
                schema.columns.push(Column {
                    leaf: schema.leaves,
                    optional: element.repetition == OPTIONAL,
                    physical: described.physical,
                    kind: Kind::of(&described),
                });
                schema.leaves += 1;
            }
            Some(_) => {
                schema.nested.push(element.name);
                schema.leaves += 1;
            }
            None => {
                let mut open = element.children.unwrap_or(0);
                schema.nested.push(element.name);
                while open > 0 {
                    let inner = elements
                        .next()
                        .ok_or(Damage::Wrong("the schema is cut short"))?;
                    match inner.described {
                        Some(_) => schema.leaves += 1,
                        None => open = open.saturating_add(inner.children.unwrap_or(0)),
                    }
                    open -= 1;
                }
            }
        }
    }
    if root.children != Some(tops) {
        return Err(Damage::Wrong(
            "the schema has not as many columns as it says",
        ));
    }
    Ok(schema)
}
