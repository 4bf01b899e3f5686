//! `medmnist`: any set of grey images in MedMNIST's `.npz` layout, OrganAMNIST among them.
//!
//! The hospital holds the centre of an image (22 × 22 of 28 × 28), the device the frame of 3 pixels around it, as an image
//! of full size with an empty centre; or the other way around (`data.vertical = "frame"`). Together they are the image.
//! The publisher's own test and validation images are used as such.

use crate::DataError;
use crate::files::npy::{self, Kind};
use crate::files::unzip::{Archive, Problem};
use crate::rows::{Part, Rows, Side};
use crate::settings::{find_file, wrong};
use crate::statistics::{Scale, Scaling};
use selvedge_core::experiment::{DataSettings, one_of};
use selvedge_nn::Shape;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

const ORIGIN: &str = "`selvedge data fetch organamnist` gets MedMNIST's OrganAMNIST; \
                      `--set data.set=synthetic-organamnist` runs without files";

/// The names that `data.vertical` may have: what the hospital holds.
const VERTICALS: [&str; 2] = ["centre", "frame"];

/// The frame is 3 of 28 pixels wide.
const FRAME: (usize, usize) = (3, 28);

/// Grey values from 0 to 255 become −1 to 1.
const GREY: Scale = Scale {
    mean: 127.5,
    deviation: 127.5,
    clip: None,
};

/// The parts of the file, in order.
const PARTS: [(&str, Part); 3] = [
    ("train", Part::Training),
    ("val", Part::Validation),
    ("test", Part::Test),
];

/// Heights and widths that an image may have: no square of them overflows, even where there are no images.
const SIDES: std::ops::RangeInclusive<usize> = 8..=4096;

/// Most classes that a set of images has.
const MOST_CLASSES: usize = 1_000;

/// Reads the set.
pub(crate) fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    let centre_at_hospital = match settings.vertical.as_str() {
        "" | "centre" => true,
        "frame" => false,
        other => {
            return Err(wrong(
                "vertical",
                format!("{other:?}"),
                one_of(other, &VERTICALS),
            ));
        }
    };
    let file = find_file(
        "MedMNIST",
        settings,
        data_dir,
        &["organamnist/organamnist.npz", "organamnist.npz"],
        ORIGIN,
    )?;
    let opened = File::open(&file).map_err(|source| DataError::Io {
        file: file.clone(),
        source,
    })?;
    of_bytes(&file, BufReader::new(opened), centre_at_hospital)
}

/// Reads the set from the bytes of `file`.
pub(crate) fn of_bytes(
    file: &Path,
    bytes: impl Read + Seek,
    centre_at_hospital: bool,
) -> Result<Rows, DataError> {
    let problem = |problem: Problem| DataError::File {
        file: file.to_owned(),
        problem,
    };
    let mut archive = Archive::open(bytes).map_err(problem)?;
    let mut images = Images::default();
    for (name, part) in PARTS {
        images.read(&mut archive, name, part).map_err(problem)?;
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
    let of = |values, side| Side {
        shape: Shape::Image(1, side, side),
        names: Vec::new(),
        values,
        order: Vec::new(),
        scaling: Scaling::Given(vec![GREY]),
    };
    let (centre, frame) = (of(centre, inner), of(frame, side));
    let (hospital, device) = match centre_at_hospital {
        true => (centre, frame),
        false => (frame, centre),
    };
    Ok(Rows {
        set: "medmnist".into(),
        file: file.to_owned(),
        hospital,
        device,
        classes,
        y,
        ids,
        parts,
        units: Vec::new(),
        devices_are_units: false,
        given_groups: None,
        paper: "pairs",
        notes: Vec::new(),
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
        name: &str,
        part: Part,
    ) -> Result<(), Problem> {
        let count = self.labels(archive, &format!("{name}_labels"))?;
        let array = format!("{name}_images");
        let (header, unpacking) = npy::open(archive, &array)?;
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
                "array {array:?} has the shape {:?}: expected {count} square images, as many as labels, all of one size, {} to {} pixels a side",
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
                "array {array:?} has {:?}: expected grey values of one byte",
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
                "array {array:?} has the shape {:?}: expected one label per image (sets with several labels per image are not supported)",
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
    let count = images.y.iter().max().map_or(0, |most| *most as usize + 1);
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
