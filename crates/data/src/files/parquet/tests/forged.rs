//! Files made byte by byte claim what no writer would.

use super::forge::Thrift::{Fields, Integer, List, Text, Yes};
use super::forge::{Forged, closed, dictionary, page, page_2, varint, whole_page};
use super::read_all;
use crate::files::cell::Cell;

#[test]
fn levels_must_be_there_and_of_today() {
    let with = |pages: Vec<u8>| Forged {
        optional: true,
        pages,
        ..Forged::default()
    };
    let fine = with(page_2(2, 6, &[2, 1, 7, 0, 0, 0]));
    assert_eq!(
        read_all(&fine.file(), |_, _, cells| assert_eq!(
            cells,
            [Cell::Integer(7)]
        )),
        Ok(1)
    );
    let mut old = whole_page(1, 0, &[2, 0, 0, 0, 2, 1, 7, 0, 0, 0]);
    let levels = old
        .windows(4)
        .position(|four| four == [0x16, 6, 0x16, 6])
        .unwrap();
    old[levels + 1] = 8;
    let mut unknown = old.clone();
    unknown[levels + 1] = 18;
    for (pages, expected) in [
        (
            page_2(9, 9, &[0; 6]),
            "the levels of a page are longer than it",
        ),
        (
            page_2(9, 6, &[0; 6]),
            "the levels of a page are longer than it",
        ),
        (
            page_2(i64::MAX, 6, &[0; 6]),
            "the levels of a page are longer than it",
        ),
        (
            page_2(2, 7, &[2, 1, 7, 0, 0, 0]),
            "expected 5 bytes packed with nothing",
        ),
        (page_2(0, 4, &[7, 0, 0, 0]), "a page has too few levels"),
        (
            whole_page(1, 0, &[9, 0, 0, 0, 2, 1]),
            "the levels of a page are longer than it",
        ),
        (old, "BIT_PACKED: expected RLE"),
        (unknown, "its levels are in encoding number 9: expected RLE"),
    ] {
        let problem = with(pages).problem();
        assert!(problem.contains(expected), "{problem:?} for {expected:?}");
    }
}

#[test]
fn a_run_of_millions_takes_no_memory_and_has_a_bound() {
    let run = |rows: i64| {
        let mut body = vec![0; 4];
        varint((rows as u64) << 1, &mut body);
        body.push(0);
        body[0] = body.len() as u8 - 4;
        Forged {
            rows,
            optional: true,
            pages: whole_page(rows, 0, &body),
            ..Forged::default()
        }
    };
    let missing = read_all(&run(3_000_000).file(), |_, _, cells| {
        assert_eq!(cells, [Cell::Missing])
    });
    assert_eq!(missing, Ok(3_000_000));
    let problem = run(1 << 31).problem();
    assert!(problem.contains("claims 2147483648 rows in"), "{problem}");
    let problem = run(i64::MAX).problem();
    assert!(problem.contains(": expected at most"), "{problem}");
}

#[test]
fn absurd_sizes_are_refused() {
    let with = |pages: Vec<u8>| Forged {
        pages,
        ..Forged::default()
    };
    let fine = with(whole_page(1, 0, &[7, 0, 0, 0]));
    assert_eq!(
        read_all(&fine.file(), |_, _, cells| assert_eq!(
            cells,
            [Cell::Integer(7)]
        )),
        Ok(1)
    );
    for (forged, expected) in [
        (
            with(page(1, 0, 10 << 40, &[7, 0, 0, 0])),
            "a page claims 10995116277760 bytes: expected",
        ),
        (
            with(page(1, 0, 1 << 28, &[7, 0, 0, 0])),
            "expected 268435456 bytes packed with nothing",
        ),
        (
            with(page(2, 0, 4, &[7, 0, 0, 0])),
            "a page claims 2 rows of 1",
        ),
        (with(whole_page(1, 0, &[7, 0, 0])), "damaged, or too few"),
        (with(whole_page(0, 0, &[])), "it ends 1 rows too early"),
        (
            with(fine.pages[..fine.pages.len() - 1].to_vec()),
            "a page claims 4 bytes of the 3",
        ),
        (
            with(fine.pages[..9].to_vec()),
            "a page's header is cut short",
        ),
        (
            with(whole_page(1, 5, &[0x80, 1, 4, 9])),
            "do not begin as their encoding should",
        ),
        (
            with(whole_page(1, 7, &[0; 9])),
            "numbers are in encoding number 7: expected",
        ),
        (
            Forged {
                more: 1 << 50,
                ..with(fine.pages.clone())
            },
            "a column lies outside of it",
        ),
        (
            Forged {
                more: i64::MAX - 1000,
                ..with(fine.pages.clone())
            },
            "a column lies outside of it",
        ),
        (
            Forged {
                rows: -1,
                ..with(fine.pages.clone())
            },
            "a count or an offset is negative",
        ),
        (
            Forged {
                codec: 99,
                ..with(fine.pages.clone())
            },
            "packed with codec number 99: expected none",
        ),
        (
            Forged {
                optional: true,
                ..with(fine.pages.clone())
            },
            "the levels of a page are longer than it",
        ),
    ] {
        let problem = forged.problem();
        assert!(problem.contains(expected), "{problem:?} for {expected:?}");
    }
}

#[test]
fn packed_pages_unpack_to_what_they_say_or_not_at_all() {
    // A zstd frame of a thousand blocks that repeat a byte 128 KiB times.
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    for _ in 0..1000 {
        bomb.extend([2, 0, 0x10, b'x']);
    }
    bomb.extend([1, 0, 0]);
    for unpacked in [4, 125 << 20, 128 << 20] {
        let forged = Forged {
            codec: 6,
            pages: page(1, 0, unpacked, &bomb),
            ..Forged::default()
        };
        match unpacked == 125 << 20 {
            true => assert_eq!(read_all(&forged.file(), |_, _, _| ()), Ok(1)),
            false => assert!(forged.problem().contains("bytes packed with zstd")),
        }
    }
    for codec in [1, 2, 6] {
        let forged = Forged {
            codec,
            pages: page(1, 0, 1 << 28, &[0xff; 64]),
            ..Forged::default()
        };
        assert!(forged.problem().contains("a page is damaged: expected"));
    }
}

#[test]
fn dictionaries_must_be_there_and_hold_what_they_claim() {
    let first = dictionary(2, &[1, 0, 0, 0, 2, 0, 0, 0]);
    let with = |pages: &[&[u8]]| Forged {
        pages: pages.concat(),
        ..Forged::default()
    };
    let points_to = |index: u8| whole_page(1, 8, &[8, 2, index]);
    let fine = with(&[&first, &points_to(1)]);
    assert_eq!(
        read_all(&fine.file(), |_, _, cells| assert_eq!(
            cells,
            [Cell::Integer(2)]
        )),
        Ok(1)
    );
    for (forged, expected) in [
        (with(&[&points_to(0)]), "there is none"),
        (with(&[&first, &points_to(2)]), "damaged, or too few"),
        (with(&[&first, &first]), "a second dictionary: expected one"),
        (
            with(&[&dictionary(3, &[0; 8])]),
            "claims 3 values in 8 bytes",
        ),
        (with(&[&dictionary(i64::MAX, &[0; 8])]), "values in 8 bytes"),
        (
            with(&[&first, &whole_page(1, 8, &[33, 2, 0])]),
            "do not begin as",
        ),
        (
            Forged {
                physical: 6,
                ..with(&[&dictionary(3, &[0; 8])])
            },
            "claims 3 values in 8 bytes",
        ),
        (
            Forged {
                physical: 0,
                ..with(&[&first])
            },
            "a dictionary in encoding 0: expected",
        ),
    ] {
        let problem = forged.problem();
        assert!(problem.contains(expected), "{problem:?} for {expected:?}");
    }
}

#[test]
fn texts_that_share_their_beginnings_have_a_bound() {
    // The first text is all its own, and the others are the same again: a few bytes for each thousand of them.
    let texts = |rows: u64, letters: usize| {
        let (block, width) = (1024, 17);
        let differences = |first: i64, smallest: i64, more: [usize; 2]| {
            let mut bytes = Vec::new();
            [block, 1, rows]
                .into_iter()
                .for_each(|number| varint(number, &mut bytes));
            Integer(first).write(&mut bytes);
            Integer(smallest).write(&mut bytes);
            bytes.push(width as u8);
            let mut packed = vec![0; (block as usize * width).div_ceil(8)];
            for bit in 0..block as usize * width {
                let number = more[usize::from(bit >= width)];
                packed[bit / 8] |= ((number >> (bit % width) & 1) as u8) << (bit % 8);
            }
            bytes.extend(packed);
            // Blocks of differences that are all 0.
            bytes.extend([0; 2].repeat((rows as usize - 1).div_ceil(block as usize) - 1));
            bytes
        };
        let prefixes = differences(0, 0, [letters, 0]);
        let suffixes = differences(letters as i64, -(letters as i64), [0, letters]);
        let body = [prefixes, suffixes, vec![b'x'; letters]].concat();
        Forged {
            rows: rows as i64,
            physical: 6,
            pages: whole_page(rows as i64, 7, &body),
            ..Forged::default()
        }
    };
    let fine = texts(2500, 10_000);
    let read = read_all(&fine.file(), |_, row, cells| {
        assert!(
            matches!(cells, [Cell::Text(text)] if text.len() == 10_000),
            "{row}: {cells:?}"
        );
    });
    assert_eq!(read, Ok(2500));
    let problem = texts(5000, 100_000).problem();
    assert!(
        problem.contains("row 2685 in row group 1: the texts of a page take more than"),
        "{problem}"
    );
}

#[test]
fn footers_that_are_wrong() {
    let fine = Forged::default().file();
    let problem = |file: &[u8]| read_all(file, |_, _, _| ()).unwrap_err();
    let mut encrypted = fine.clone();
    let end = encrypted.len();
    encrypted[end - 1] = b'E';
    assert_eq!(
        problem(&encrypted),
        "an encrypted Parquet file: expected a plain one"
    );
    let mut long = fine.clone();
    long[end - 5] = 0x7f;
    assert!(problem(&long).contains("its footer is longer than it"));
    for (footer, expected) in [
        (Fields(vec![]), "the schema is missing"),
        (Fields(vec![(2, Integer(1))]), "of another type"),
        (
            Fields(vec![(2, List(vec![Fields(vec![])]))]),
            "a column has no name",
        ),
        (
            Fields(vec![(
                2,
                List(vec![Fields(vec![(4, Text("root")), (5, Integer(2))])]),
            )]),
            "not as many columns",
        ),
        (
            Fields(vec![(
                2,
                List(vec![Fields(vec![(4, Text("root")), (5, Integer(0))])]),
            )]),
            "rows is missing",
        ),
        (
            Fields(vec![
                (
                    2,
                    List(vec![Fields(vec![(4, Text("root")), (5, Integer(0))])]),
                ),
                (3, Integer(9)),
                (7, Yes(true)),
            ]),
            "not as many rows",
        ),
    ] {
        let problem = problem(&closed(b"PAR1".to_vec(), &footer.bytes()));
        assert!(problem.contains(expected), "{problem:?} for {expected:?}");
    }
}
