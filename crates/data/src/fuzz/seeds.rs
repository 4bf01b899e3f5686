//! Small valid inputs.

use crate::SETS;
use crate::files::npz::npy_header;
use crate::files::zip::ZipWriter;
use flate2::{Compression, write::GzEncoder};
use selvedge_core::codec::Codec;
use selvedge_core::experiment::Experiment;
use selvedge_nn::random::Key;
use std::io::{Cursor, Write};

pub(crate) fn npy_headers() -> Vec<Vec<u8>> {
    vec![
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n".into(),
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (), }".into(),
        b"{'descr': '<U9', 'fortran_order': False, 'shape': (6,), }".into(),
    ]
}

fn array(descr: &str, dims: &[usize], bytes: &[u8]) -> Vec<u8> {
    [&npy_header(descr, dims), bytes].concat()
}

fn zipped(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let write = |out: &mut Cursor<Vec<u8>>| {
        let mut zip = ZipWriter::new(out)?;
        for (name, bytes) in files {
            zip.file(name, bytes.len() as u64, |file| file.write_all(bytes))?;
        }
        zip.finish()
    };
    write(&mut out).expect("memory can be written to");
    out.into_inner()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory can be written to")
}

/// A tar archive with its two closing blocks.
fn tarred(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        out.extend(header);
        out.extend_from_slice(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    super::files::with_right_sums(&out)
}

pub(crate) fn zips() -> Vec<Vec<u8>> {
    let text: Vec<u8> = "ab\0c\0\0"
        .chars()
        .flat_map(|c| (c as u32).to_le_bytes())
        .collect();
    vec![
        zipped(&[
            ("a.npy", array("<f4", &[2, 1], &1.5f64.to_le_bytes())),
            ("b.npy", array("<U3", &[2], &text)),
        ]),
        zipped(&[("c.npy", array(">i2", &[3], b"\0\x01\xff\xfe\x7f\0"))]),
        zipped(&[]),
    ]
}

pub(crate) fn medmnist() -> Vec<Vec<u8>> {
    let pixels: Vec<u8> = (0..128).collect();
    let names: Vec<u8> = "lungbone"
        .chars()
        .flat_map(|c| (c as u32).to_le_bytes())
        .collect();
    let mut files = vec![
        ("train_images.npy", array("|u1", &[2, 8, 8], &pixels)),
        ("train_labels.npy", array("|u1", &[2, 1], &[0, 1])),
        ("val_images.npy", array("|u1", &[1, 8, 8], &pixels[..64])),
        ("val_labels.npy", array("<i4", &[1], &[1, 0, 0, 0])),
        ("test_images.npy", array("|u1", &[1, 8, 8], &pixels[64..])),
        ("test_labels.npy", array("|u1", &[1, 1], &[0])),
    ];
    let without_names = zipped(&files);
    let mut without_training = files.clone();
    without_training[0].1 = array("|u1", &[0, 8, 8], &[]);
    without_training[1].1 = array("|u1", &[0, 1], &[]);
    files.push(("class_names.npy", array("<U4", &[2], &names)));
    vec![zipped(&files), without_names, zipped(&without_training)]
}

pub(crate) fn tars() -> Vec<Vec<u8>> {
    let mut long = tarred(&[
        ("././@LongLink", b"folder/a name that is given before\0"),
        ("short", b"1,2\n"),
    ]);
    long[156] = b'L';
    let mut posix = tarred(&[("pax", b"24 path=folder/file.csv\n"), ("short", b"1,2\n")]);
    posix[156] = b'x';
    vec![
        tarred(&[("a/b.txt", b"x\ny\n"), ("c.skip", b""), ("./d", b"z")]),
        super::files::with_right_sums(&long),
        super::files::with_right_sums(&posix),
    ]
}

pub(crate) fn tars_gz() -> Vec<Vec<u8>> {
    tars().iter().map(|tar| gzipped(tar)).collect()
}

pub(crate) fn lines() -> Vec<Vec<u8>> {
    let plain = b"\xef\xbb\xbfa,b\r\n1,\"2,3\"\n\n4,5".to_vec();
    let two_members = [gzipped(&plain), gzipped(b"6,7\n")].concat();
    vec![gzipped(&plain), two_members, plain]
}

pub(crate) fn esr() -> Vec<Vec<u8>> {
    let columns: Vec<String> = (1..=178).map(|i| format!("X{i}")).collect();
    let row = |id: &str, y: u32| {
        let values: Vec<String> = (0..178).map(|i| (i % 13 - 6).to_string()).collect();
        format!("{id},{},{y}\n", values.join(","))
    };
    let header = format!("Unnamed,{},y\n", columns.join(","));
    let table = format!("{header}{}{}", row("X1.A", 1), row("X2.B", 5));
    vec![gzipped(table.as_bytes()), table.into()]
}

const STAY: &[u8] =
    b"Time,Parameter,Value\n00:00,RecordID,132539\n00:00,Age,54\n00:00,Gender,0\n00:00,Height,-1\n\
    00:00,ICUType,4\n00:00,Weight,80.6\n00:07,GCS,15\n07:35,HR,73\n47:59,Temp,35.1\n48:00,pH,7.4\n";

const OUTCOMES: &[u8] =
    b"RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n132539,6,1,5,-1,0\n\
    132540,16,8,8,-1,1\n";

pub(crate) fn stays() -> Vec<Vec<u8>> {
    vec![STAY.into()]
}

pub(crate) fn outcomes() -> Vec<Vec<u8>> {
    vec![OUTCOMES.into()]
}

pub(crate) fn physionet2012() -> Vec<Vec<u8>> {
    let second = b"Time,Parameter,Value\n00:00,RecordID,132540\n01:00,HR,90\n";
    let files: [(&str, &[u8]); 3] = [
        ("set-a/132539.txt", STAY),
        ("set-b/132540.txt", second),
        ("Outcomes-a.txt", OUTCOMES),
    ];
    vec![tarred(&files), tarred(&files[..2])]
}

const MIMIC3_STAY: &[u8] = b"Hours,Capillary refill rate,Diastolic blood pressure,Fraction inspired oxygen,\
    Glascow coma scale eye opening,Glascow coma scale motor response,Glascow coma scale total,\
    Glascow coma scale verbal response,Glucose,Heart Rate,Height,Mean blood pressure,Oxygen saturation,Respiratory rate,\
    Systolic blood pressure,Temperature,Weight,pH\n\
    0.5,0.0,60,,To Pain,,15,,,80,,,98.0,,118.0,36.6,,7.4\n\
    47.9,,,0.21,,No response,,Confused,128,,170,,,19,,,81.5,\n\
    48.5,,,,,,,,,,,,,,,,,\n";

const LIST: &[u8] = b"stay,y_true\n1_episode1_timeseries.csv,0\n2_episode3_timeseries.csv,17.5,1\n";

pub(crate) fn mimic3_stays() -> Vec<Vec<u8>> {
    vec![MIMIC3_STAY.into()]
}

pub(crate) fn mimic3_lists() -> Vec<Vec<u8>> {
    vec![LIST.into()]
}

pub(crate) fn mimic3() -> Vec<Vec<u8>> {
    let test = b"stay,y_true\n1_episode1_timeseries.csv,1\n";
    vec![tarred(&[
        ("train/1_episode1_timeseries.csv", MIMIC3_STAY),
        ("train/2_episode3_timeseries.csv", MIMIC3_STAY),
        ("test/1_episode1_timeseries.csv", MIMIC3_STAY),
        ("train_listfile.csv", LIST),
        ("test_listfile.csv", test),
    ])]
}

pub(crate) fn normalisers() -> Vec<Vec<u8>> {
    let state = serde_json::json!({
        "continuous_columns": [2, 3],
        "means": vec![0.5; 76],
        "stds": vec![1; 76],
    });
    vec![state.to_string().into()]
}

pub(crate) fn deals() -> Vec<Vec<u8>> {
    vec![
        b"data.split=iid\ndata.groups=3\ndata.test=0.2\ndata.validation=0.1\ndata.samples_per_device=2".into(),
        b"data.split=dirichlet\ndata.groups=2\ndata.beta=0.5\ndata.sizes=[2, 1]".into(),
        b"data.split=ramp\ndata.groups=2".into(),
        b"data.split=pairs\ndata.groups=4\ndata.classes=4".into(),
        b"data.groups=10\ndata.classes=5".into(),
    ]
}

pub(crate) fn statistics() -> Vec<Vec<u8>> {
    let side = |shape: &[usize]| {
        serde_json::json!({
            "names": ["HR"],
            "shape": shape,
            "scales": [{ "mean": 1.5, "deviation": 2.0, "clip": [-1.0, 4.0] }, { "mean": 0, "deviation": 1 }],
        })
    };
    let statistics = serde_json::json!({
        "set": "table",
        "rows": 3,
        "classes": ["no", "yes"],
        "hospital": side(&[2]),
        "device": side(&[48, 2]),
    });
    vec![statistics.to_string().into()]
}

pub(crate) fn experiments() -> Vec<Vec<u8>> {
    vec![
        b"seed = 7\n[data]\nfeatures = [[12, 8], [1, 28, 28]]\n[train]\nclass_weights = [1, 2]\n[stop]\nauc = 0.9\n\
        [model]\nhospital = [{ conv1d = { out = 2, size = 3 } }, { maxpool = { size = 2 } }, { gru = { hidden = 4 } }]\n\
        device = [{ conv2d = { out = 2, size = 3, stride = 2 } }, \"relu\", { maxpool = {} }, \"flatten\"]\n"
            .into(),
        b"[data]\nfeatures = [16, 20]\n[model]\nhospital = [{ window = { size = 8 } }, { lstm = { hidden = 4 } }, \"tanh\"]\n\
        combined = [{ linear = { out = 2 } }]\n"
            .into(),
        Experiment::default().to_toml().into(),
    ]
}

pub(crate) fn overrides() -> Vec<Vec<u8>> {
    vec![
        b"train.iterations=70\ndata.features = [3, 4]\n".into(),
        b"data.set=esr\nmodel.device=[{ linear = { out = 4 } }, \"relu\"]\ntime.compute=measured\n"
            .into(),
    ]
}

pub(crate) fn experiments_json() -> Vec<Vec<u8>> {
    let mut seeds = vec![
        b"{\"seed\":18446744073709551615,\"data\":{\"features\":[[12,8],[1,28,28]]}}".to_vec(),
    ];
    let parsed = experiments().into_iter().filter_map(|text| {
        let experiment = SETS.parse(str::from_utf8(&text).ok()?, &[]).ok()?;
        serde_json::to_vec(&experiment).ok()
    });
    seeds.extend(parsed);
    seeds
}

pub(crate) fn tables() -> Vec<Vec<u8>> {
    let flat =
        b"id,age,alb,sex,hr,dose,y\n1,50,3.5,f,80,low,a\n2,60,,m,,high,b\n3,NA,4,f,70,low,a\n";
    let labels = b"id,age,y\n1,50,a\n2,60,b\n3,70,a\n";
    let long = b"id,t,name,v\n1,0.5,hr,80\n1,7:30,hr,82\n2,1,dose,low\n3,2,alb,4\n9,1,hr,1\n";
    let series = b"id;t;hr;alb\n1;0;80;\n1;1;82;4\n2;2;\"70\";5\n";
    vec![
        flat.to_vec(),
        [&labels[..], b"\0", long].concat(),
        [&labels[..], b"\0", series].concat(),
        gzipped(flat),
        include_bytes!("../../tests/tables/patients.parquet").to_vec(),
    ]
}

pub(crate) fn parquets() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../tests/parquet/pyarrow_old.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_snappy.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_zstd.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_gzip.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_zstd_pages_2.parquet").to_vec(),
        include_bytes!("../../tests/parquet/encoded_delta_1.parquet").to_vec(),
        include_bytes!("../../tests/parquet/encoded_split.parquet").to_vec(),
        include_bytes!("../../tests/parquet/encoded_polars.parquet").to_vec(),
        include_bytes!("../../tests/parquet/spark.parquet").to_vec(),
        include_bytes!("../../tests/tables/patients.parquet").to_vec(),
    ]
}

pub(crate) fn shards() -> Vec<Vec<u8>> {
    let part = |prefix: &str, rows: usize| {
        let name: Vec<u8> = [u32::from(b'p').to_le_bytes(); 32].concat();
        let numbers: Vec<u8> = (0..2 * rows)
            .flat_map(|n| (n as f32).to_le_bytes())
            .collect();
        let whole: Vec<u8> = (0..rows as i64).flat_map(i64::to_le_bytes).collect();
        vec![
            (
                format!("{prefix}patients.npy"),
                array("<U32", &[rows], &name.repeat(rows)),
            ),
            (format!("{prefix}x.npy"), array("<f4", &[rows, 2], &numbers)),
            (format!("{prefix}y.npy"), array("<i8", &[rows], &whole)),
            (format!("{prefix}rows.npy"), array("<i8", &[rows], &whole)),
        ]
    };
    let mut files = part("", 2);
    files.extend(part("validation_", 1));
    files.extend(part("test_", 1));
    let whole = |name: &str, numbers: &[i64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        (
            format!("{name}.npy"),
            array("<i8", &[numbers.len()], &bytes),
        )
    };
    files.push(whole("offsets", &[0, 1, 2]));
    let zip = |files: &[(String, Vec<u8>)]| {
        let files = files.iter();
        let files: Vec<_> = files
            .map(|(n, bytes)| (n.as_str(), bytes.clone()))
            .collect();
        zipped(&files)
    };
    let of_group = zip(&files);
    files.extend([whole("devices", &[0, 2]), whole("held_out", &[1])]);
    vec![of_group, zip(&files)]
}

/// Frames of every layout: a bitmap, indices, codes of whole and of broken bytes.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let codecs = [
        (0, Codec::None, 5),
        (1, Codec::TopK { levels: 128 }, 20),
        (1, Codec::TopK { levels: 2 }, 66),
        (2, Codec::Dither { levels: 16 }, 9),
        (2, Codec::Dither { levels: 100 }, 17),
    ];
    let frame = |(number, codec, n): (u8, Codec, u16)| {
        let levels = match codec {
            Codec::None => 2,
            Codec::TopK { levels } | Codec::Dither { levels } => levels,
        };
        let mut bytes = vec![number];
        bytes.extend((levels as u16 - 1).to_le_bytes());
        bytes.extend(n.to_le_bytes());
        let values: Vec<f32> = (0..n).map(|i| f32::from(i * 7 % 11) - 5.0).collect();
        codec.encode(Key::new(levels.into()), &values, &mut bytes);
        bytes
    };
    codecs.map(frame).into()
}
