//! `medmnist`: any set of grey images in MedMNIST's `.npz` layout, OrganAMNIST among them.
//!
//! The hospital holds the centre of an image (22 × 22 of 28 × 28), the device the frame of 3 pixels around it, as an
//! image of full size with an empty centre; or the other way around (`data.vertical = "frame"`). Together they are the
//! image. The publisher's own test and validation images are used as such.

use crate::DataError;
use crate::files::npy::{self, Kind};
use crate::files::unzip::{Archive, Problem};
#[cfg(feature = "fuzz")]
use crate::fuzz::{self, Target};
use crate::inputs::Inputs;
use crate::rows::{Part, Purpose, Rows, Side, UNLABELLED};
use crate::sets::{DataSet, Source, Twin, single};
use crate::settings::{find_file, vertical};
use crate::statistics::{Scale, Scaling};
use selvedge_core::experiment::{DataSettings, Usual};
use selvedge_nn::{ConvSpec, LayerSpec, Shape};
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

const ORIGIN: &str = "`selvedge data fetch organamnist` downloads MedMNIST's OrganAMNIST; \
                      `--set data.set=synthetic-organamnist` runs without files";

pub(crate) static SET: DataSet = DataSet {
    // What the hospital holds.
    verticals: &["centre", "frame"],
    usual: |data| {
        let convolution = |out| {
            LayerSpec::Conv2d(ConvSpec {
                out,
                size: 3,
                stride: 1,
                padding: 1,
            })
        };
        Usual {
            tower: vec![
                convolution(8),
                LayerSpec::Relu,
                LayerSpec::Maxpool { size: 2 },
                convolution(16),
                LayerSpec::Relu,
                LayerSpec::Maxpool { size: 2 },
                LayerSpec::Flatten,
            ],
            combined: Vec::new(),
            outputs: data.classes,
            learns: true,
            rows: Some(58_000),
            seconds: 0.06,
            seconds_of_pairs: 0.48,
        }
    },
    twins: &[
        twin("synthetic-mednist", 6, 3_510),
        twin("synthetic-organamnist", 11, 3_456),
    ],
    targets: &[
        ("loss", 1.5),
        ("loss", 0.5),
        ("precision", 0.5),
        ("precision", 0.7),
        ("recall", 0.5),
        ("recall", 0.7),
        ("f1", 0.6),
        ("auc", 0.9),
    ],
    // Deflate packs a thousand zeros into a byte, and a byte of an image becomes eight in memory.
    #[cfg(feature = "fuzz")]
    fuzz: &[Target::new("medmnist", fuzz::sets::medmnist, "zip")
        .up_to(8 << 10)
        .with_memory(256 << 20)],
    ..DataSet::new("medmnist", Source::Files { read, read_new })
};

const fn twin(name: &'static str, classes: usize, devices: usize) -> Twin {
    Twin {
        name,
        hospital: Shape::Image(1, 22, 22),
        device: Shape::Image(1, 28, 28),
        classes,
        devices,
    }
}

/// The frame is 3 of 28 pixels wide.
const FRAME: (usize, usize) = (3, 28);

/// Grey values from 0 to 255 become −1 to 1.
const GREY: Scale = Scale {
    mean: 127.5,
    deviation: 127.5,
    ..Scale::IDENTITY
};

/// The parts of the file, in order.
const PARTS: [(&str, Part); 3] = [
    ("train_", Part::Training),
    ("val_", Part::Validation),
    ("test_", Part::Test),
];

/// Heights and widths that an image may have: no square of them overflows, even where there are no images.
const SIDES: std::ops::RangeInclusive<usize> = 8..=4096;

/// Most classes that a set of images has.
const MOST_CLASSES: usize = 1_000;

/// Reads the set.
fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    let centre_at_hospital = centre_at_hospital(settings)?;
    let file = find_file(
        "MedMNIST",
        settings,
        data_dir,
        &["organamnist/organamnist.npz", "organamnist.npz"],
        ORIGIN,
    )?;
    let opened = crate::files::open(&file)?;
    of_bytes(&file, BufReader::new(opened), centre_at_hospital)
}

/// Reads images that training has not seen: `test_images` and the like, or `images`; any of them.
fn read_new(
    settings: &DataSettings,
    _: &Inputs,
    files: &[PathBuf],
    purpose: Purpose,
) -> Result<Rows, DataError> {
    let file = single("medmnist", files)?;
    let centre_at_hospital = centre_at_hospital(settings)?;
    let bytes = BufReader::new(crate::files::open(file)?);
    of_archive(file, bytes, centre_at_hospital, purpose)
}

fn centre_at_hospital(settings: &DataSettings) -> Result<bool, DataError> {
    Ok(vertical(settings, &SET)? != "frame")
}

/// Reads the set from the bytes of `file`.
pub(crate) fn of_bytes(
    file: &Path,
    bytes: impl Read + Seek,
    centre_at_hospital: bool,
) -> Result<Rows, DataError> {
    of_archive(file, bytes, centre_at_hospital, Purpose::Training)
}

fn of_archive(
    file: &Path,
    bytes: impl Read + Seek,
    centre_at_hospital: bool,
    purpose: Purpose,
) -> Result<Rows, DataError> {
    let problem = |problem: Problem| DataError::file(file, problem);
    let mut archive = Archive::open(bytes).map_err(problem)?;
    let mut images = Images::default();
    for (prefix, part) in PARTS {
        images
            .read(&mut archive, prefix, (part, purpose))
            .map_err(problem)?;
    }
    if purpose.is_new() {
        images
            .read(&mut archive, "", (Part::Open, purpose))
            .map_err(problem)?;
    }
    if images.side == 0 {
        return Err(problem(
            "no images in it: expected test_images, or images".into(),
        ));
    }
    let classes = class_names(&mut archive, &images).map_err(problem)?;
    let Images {
        side,
        centre,
        frame,
        y,
        parts,
        ids,
    } = images;
    let inner = side - 2 * frame_width(side);
    let of = |values, side| {
        let scaling = Scaling::Given(vec![GREY]);
        Side::new(Shape::Image(1, side, side), values, scaling)
    };
    let (centre, frame) = (of(centre, inner), of(frame, side));
    let sides = match centre_at_hospital {
        true => [centre, frame],
        false => [frame, centre],
    };
    Ok(Rows {
        classes,
        y,
        ids,
        parts,
        ..Rows::new("medmnist", file, sides, "pairs")
    })
}

fn frame_width(side: usize) -> usize {
    side * FRAME.0 / FRAME.1
}

#[derive(Default)]
struct Images {
    /// Height and width.
    side: usize,
    centre: Vec<f32>,
    /// With an empty centre.
    frame: Vec<f32>,
    y: Vec<u32>,
    parts: Vec<Part>,
    ids: Vec<String>,
}

impl Images {
    fn read<R: Read + Seek>(
        &mut self,
        archive: &mut Archive<R>,
        prefix: &str,
        (part, purpose): (Part, Purpose),
    ) -> Result<(), Problem> {
        let array = format!("{prefix}images");
        if purpose.is_new() && archive.find(&format!("{array}.npy")).is_none() {
            return Ok(());
        }
        let labels = match purpose {
            Purpose::New { labelled: false } => None,
            _ => Some(self.labels(archive, &format!("{prefix}labels"))?),
        };
        let (header, unpacking) = npy::open(archive, &array)?;
        let count = labels.unwrap_or(*header.shape.first().unwrap_or(&0));
        let [images, height, width] = header.shape[..] else {
            return Err(format!(
                "array {array:?} has the shape {:?}: expected [images, height, width], grey",
                header.shape
            ));
        };
        if images != count
            || height != width
            || !SIDES.contains(&height)
            || (self.side > 0 && height != self.side)
        {
            return Err(format!(
                "array {array:?} has the shape {:?}: expected {count} square images, as many as there are labels, all of one size, {} to {} pixels wide",
                header.shape,
                SIDES.start(),
                SIDES.end()
            ));
        }
        if header.kind
            != (Kind::Integer {
                bytes: 1,
                signed: false,
            })
        {
            return Err(format!(
                "array {array:?} has {:?}: expected one-byte grey values",
                header.kind
            ));
        }
        self.side = height;
        let (pixels, edge) = (height * height, frame_width(height));
        let inside = |at: usize| (edge..height - edge).contains(&at);
        npy::numbers(&header, unpacking, &array, |index, value| {
            let pixel = index % pixels;
            if inside(pixel / height) && inside(pixel % height) {
                self.centre.push(value as f32);
                self.frame.push(f32::NAN);
            } else {
                self.frame.push(value as f32);
            }
            Ok(())
        })?;
        self.parts.resize(self.parts.len() + count, part);
        self.y.resize(self.parts.len(), UNLABELLED);
        let name = match prefix {
            "" => "image",
            prefix => prefix.trim_end_matches('_'),
        };
        self.ids.extend((0..count).map(|n| format!("{name}-{n}")));
        Ok(())
    }

    /// Reads labels; gives how many.
    fn labels<R: Read + Seek>(
        &mut self,
        archive: &mut Archive<R>,
        array: &str,
    ) -> Result<usize, Problem> {
        let (header, unpacking) = npy::open(archive, array)?;
        let ([count] | [count, 1]) = header.shape[..] else {
            return Err(format!(
                "array {array:?} has the shape {:?}: expected one label per image (data sets with several labels per image are not supported)",
                header.shape
            ));
        };
        npy::numbers(&header, unpacking, array, |index, value| {
            if !(0.0..MOST_CLASSES as f64).contains(&value) || value.fract() != 0.0 {
                return Err(format!(
                    "array {array:?}, row {index}: {value} is not a label: expected 0, 1, 2, …"
                ));
            }
            self.y.push(value as u32);
            Ok(())
        })?;
        Ok(count)
    }
}

/// The names in the file, or numbers.
fn class_names<R: Read + Seek>(
    archive: &mut Archive<R>,
    images: &Images,
) -> Result<Vec<String>, Problem> {
    let known = images.y.iter().filter(|y| **y != UNLABELLED);
    let count = known.max().map_or(0, |most| *most as usize + 1);
    let named = match archive.find("class_names.npy") {
        None => None,
        Some(_) => {
            let (header, unpacking) = npy::open(archive, "class_names")?;
            match header.kind {
                Kind::Text { .. } => Some(npy::texts(&header, unpacking, "class_names")?),
                _ => None,
            }
        }
    };
    match named {
        Some(names) if names.len() < count => Err(format!(
            "array \"class_names\" has {} names, but labels go up to {}: expected a name for each",
            names.len(),
            count - 1
        )),
        Some(names) => Ok(names),
        None => Ok((0..count).map(|class| class.to_string()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::npz::npy_header;
    use crate::files::zip::ZipWriter;
    use selvedge_nn::random::Key;
    use std::io::Cursor;

    const SIDE: usize = 28;

    /// Random images, so many of each part, and the archive they come in.
    fn archive(seed: u64, counts: [usize; 3]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut stream = Key::new(seed).stream();
        let (mut images, mut out) = (Vec::new(), Cursor::new(Vec::new()));
        let mut zip = ZipWriter::new(&mut out).unwrap();
        for ((part, _), count) in PARTS.iter().zip(counts) {
            let mut draw = |below: u64, n: usize| -> Vec<u8> {
                (0..n).map(|_| stream.below(below) as u8).collect()
            };
            let pixels = draw(256, count * SIDE * SIDE);
            let labels = draw(3, count);
            images.extend(pixels.chunks(SIDE * SIDE).map(<[u8]>::to_vec));
            for (name, dims, bytes) in [
                ("images", vec![count, SIDE, SIDE], pixels),
                ("labels", vec![count, 1], labels),
            ] {
                let bytes = [npy_header("|u1", &dims), bytes].concat();
                zip.file(&format!("{part}{name}.npy"), bytes.len() as u64, |file| {
                    file.write_all(&bytes)
                })
                .unwrap();
            }
        }
        zip.finish().unwrap();
        (images, out.into_inner())
    }

    #[test]
    fn new_images_need_no_labels_and_no_training_images() {
        let (_, bytes) = archive(3, [5, 2, 3]);
        let read = |bytes: &[u8], purpose| {
            of_archive(Path::new("x.npz"), Cursor::new(bytes), true, purpose)
        };
        let whole = read(&bytes, Purpose::Training).unwrap();
        let new = read(&bytes, Purpose::New { labelled: false }).unwrap();
        assert_eq!((new.ids.len(), new.ids[7].as_str()), (10, "test-0"));
        assert!(new.y.iter().all(|y| *y == UNLABELLED));
        assert_eq!(new.hospital.row(7), whole.hospital.row(7));
        let mut out = Cursor::new(Vec::new());
        let mut zip = ZipWriter::new(&mut out).unwrap();
        let images = [
            npy_header("|u1", &[2, SIDE, SIDE]),
            vec![9; 2 * SIDE * SIDE],
        ]
        .concat();
        zip.file("images.npy", images.len() as u64, |file| {
            file.write_all(&images)
        })
        .unwrap();
        zip.finish().unwrap();
        let plain = read(out.get_ref(), Purpose::New { labelled: false }).unwrap();
        assert_eq!(plain.ids, ["image-0", "image-1"]);
        let refused = read(out.get_ref(), Purpose::New { labelled: true });
        assert!(refused.unwrap_err().to_string().contains("\"labels\""));
        assert!(read(out.get_ref(), Purpose::Training).is_err());
    }

    #[test]
    fn centre_and_frame_are_the_image() {
        for seed in 0..20 {
            let (images, bytes) = archive(seed, [5, 2, 3]);
            for centre_at_hospital in [true, false] {
                let rows = of_bytes(Path::new("x.npz"), Cursor::new(&bytes), centre_at_hospital);
                let rows = rows.unwrap();
                let (centre, frame) = match centre_at_hospital {
                    true => (&rows.hospital, &rows.device),
                    false => (&rows.device, &rows.hospital),
                };
                assert_eq!(centre.shape, Shape::Image(1, 22, 22));
                assert_eq!(frame.shape, Shape::Image(1, SIDE, SIDE));
                assert_eq!(rows.y.len(), images.len());
                for (n, image) in images.iter().enumerate() {
                    let (centre, frame) = (centre.row(n), frame.row(n));
                    let seen = frame.iter().filter(|value| !value.is_nan()).count();
                    assert_eq!((centre.len(), seen), (484, 300));
                    let mut inside = centre.iter();
                    let pixel = |value: &f32| match value.is_nan() {
                        true => *inside.next().unwrap() as u8,
                        false => *value as u8,
                    };
                    let whole: Vec<u8> = frame.iter().map(pixel).collect();
                    assert_eq!(whole, *image, "image {n}");
                }
            }
        }
    }

    #[test]
    fn archives_that_are_cut_or_changed_are_refused() {
        let (_, bytes) = archive(1, [4, 1, 2]);
        let read = |bytes: &[u8]| of_bytes(Path::new("x.npz"), Cursor::new(bytes), true);
        for length in (0..bytes.len()).step_by(61) {
            let message = read(&bytes[..length]).unwrap_err().to_string();
            assert!(message.contains("x.npz"), "{message}");
        }
        // A changed pixel is found by its checksum.
        let mut changed = bytes.clone();
        changed[500] ^= 1;
        assert!(read(&changed).is_err());
        // Ten terabytes take no memory.
        let (from, to) = (b"(4, 28, 28), }", b"(9999999,1000)");
        let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
        changed = bytes.clone();
        changed[at..at + to.len()].copy_from_slice(to);
        assert!(read(&changed).is_err());
    }
}
