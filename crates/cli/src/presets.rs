//! The experiments that come with selvedge, inside the binary so that it needs no files.

/// An experiment under `experiments/`.
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// All of them. The first is what `selvedge train` runs.
pub(crate) const PRESETS: &[Preset] = &[
    Preset {
        name: "synthetic",
        text: include_str!("../../../experiments/synthetic.toml"),
    },
    Preset {
        name: "esr",
        text: include_str!("../../../experiments/esr.toml"),
    },
    Preset {
        name: "esr-paper",
        text: include_str!("../../../experiments/esr-paper.toml"),
    },
    Preset {
        name: "physionet2012",
        text: include_str!("../../../experiments/physionet2012.toml"),
    },
    Preset {
        name: "mednist",
        text: include_str!("../../../experiments/mednist.toml"),
    },
    Preset {
        name: "million",
        text: include_str!("../../../experiments/million.toml"),
    },
    Preset {
        name: "size-esr",
        text: include_str!("../../../experiments/size-esr.toml"),
    },
    Preset {
        name: "size-physionet",
        text: include_str!("../../../experiments/size-physionet.toml"),
    },
    Preset {
        name: "size-cnn",
        text: include_str!("../../../experiments/size-cnn.toml"),
    },
];

impl Preset {
    /// Its first comment line.
    pub(crate) fn about(&self) -> &'static str {
        self.text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches('#')
            .trim()
    }
}

/// The preset of that name.
pub(crate) fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
