//! Makes files byte by byte, to claim what no writer would.

use super::read_all;
use crate::files::parquet::Problem;

/// A value for a footer or a page's header.
#[derive(Clone)]
pub(super) enum Thrift {
    Integer(i64),
    Yes(bool),
    Text(&'static str),
    List(Vec<Thrift>),
    Fields(Vec<(u8, Thrift)>),
}
use Thrift::{Fields, Integer, List, Text, Yes};

impl Thrift {
    fn code(&self) -> u8 {
        match self {
            Integer(_) => 6,
            Yes(yes) => 2 - u8::from(*yes),
            Text(_) => 8,
            List(_) => 9,
            Fields(_) => 12,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Integer(number) => varint((*number << 1 ^ *number >> 63) as u64, out),
            Yes(_) => {}
            Text(text) => {
                varint(text.len() as u64, out);
                out.extend(text.as_bytes());
            }
            List(items) => {
                out.push(0xf0 | items.first().map_or(12, Thrift::code));
                varint(items.len() as u64, out);
                items.iter().for_each(|item| item.write(out));
            }
            Fields(fields) => {
                let mut last = 0;
                for (number, value) in fields {
                    out.push((number - last) << 4 | value.code());
                    value.write(out);
                    last = *number;
                }
                out.push(0);
            }
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

pub(super) fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A file of one column "c".
pub(super) struct Forged {
    pub(super) rows: i64,
    pub(super) physical: i64,
    pub(super) optional: bool,
    pub(super) codec: i64,
    pub(super) pages: Vec<u8>,
    /// Bytes that the column claims beyond those of its pages.
    pub(super) more: i64,
}

impl Default for Forged {
    fn default() -> Self {
        Forged {
            rows: 1,
            physical: 1,
            optional: false,
            codec: 0,
            pages: Vec::new(),
            more: 0,
        }
    }
}

impl Forged {
    pub(super) fn file(&self) -> Vec<u8> {
        let mut file = b"PAR1".to_vec();
        file.extend(&self.pages);
        let root = Fields(vec![(4, Text("root")), (5, Integer(1))]);
        let column = Fields(vec![
            (1, Integer(self.physical)),
            (3, Integer(self.optional.into())),
            (4, Text("c")),
        ]);
        let metadata = Fields(vec![
            (1, Integer(self.physical)),
            (4, Integer(self.codec)),
            (5, Integer(self.rows)),
            (7, Integer(self.pages.len() as i64 + self.more)),
            (9, Integer(4)),
        ]);
        let group = Fields(vec![
            (1, List(vec![Fields(vec![(3, metadata)])])),
            (3, Integer(self.rows)),
        ]);
        let footer = Fields(vec![
            (1, Integer(1)),
            (2, List(vec![root, column])),
            (3, Integer(self.rows)),
            (4, List(vec![group])),
        ]);
        closed(file, &footer.bytes())
    }

    pub(super) fn problem(&self) -> Problem {
        read_all(&self.file(), |_, _, _| ()).unwrap_err()
    }
}

pub(super) fn closed(mut file: Vec<u8>, footer: &[u8]) -> Vec<u8> {
    file.extend(footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    file
}

/// A page of the first version that claims to unpack to `unpacked` bytes.
pub(super) fn page(rows: i64, encoding: i64, unpacked: i64, body: &[u8]) -> Vec<u8> {
    let data = Fields(vec![
        (1, Integer(rows)),
        (2, Integer(encoding)),
        (3, Integer(3)),
        (4, Integer(3)),
    ]);
    let header = Fields(vec![
        (1, Integer(0)),
        (2, Integer(unpacked)),
        (3, Integer(body.len() as i64)),
        (5, data),
    ]);
    [&header.bytes(), body].concat()
}

pub(super) fn whole_page(rows: i64, encoding: i64, body: &[u8]) -> Vec<u8> {
    page(rows, encoding, body.len() as i64, body)
}

pub(super) fn dictionary(values: i64, body: &[u8]) -> Vec<u8> {
    let size = Integer(body.len() as i64);
    let inner = Fields(vec![(1, Integer(values)), (2, Integer(0))]);
    let header = Fields(vec![
        (1, Integer(2)),
        (2, size.clone()),
        (3, size),
        (7, inner),
    ]);
    [&header.bytes(), body].concat()
}

/// A page of the second version with so many bytes of levels.
pub(super) fn page_2(levels: i64, unpacked: i64, body: &[u8]) -> Vec<u8> {
    let data = Fields(vec![
        (1, Integer(1)),
        (2, Integer(0)),
        (3, Integer(1)),
        (4, Integer(0)),
        (5, Integer(levels)),
        (6, Integer(0)),
        (7, Yes(false)),
    ]);
    let header = Fields(vec![
        (1, Integer(3)),
        (2, Integer(unpacked)),
        (3, Integer(body.len() as i64)),
        (8, data),
    ]);
    [&header.bytes(), body].concat()
}
