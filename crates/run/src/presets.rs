//! The experiments that come with selvedge, inside the binary so that it needs no files.

/// An experiment under `experiments/`.
pub struct Preset {
    /// What it is called.
    pub name: &'static str,
    /// The experiment, as TOML.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal)*) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!("../../../experiments/", $name, ".toml")),
        }),*]
    };
}

/// All of them. The first is what `selvedge train` runs.
pub const PRESETS: &[Preset] = presets![
    "synthetic"
    "esr"
    "esr-lean"
    "esr-paper"
    "physionet2012"
    "physionet2012-best"
    "physionet2012-lean"
    "physionet2012-paper"
    "mednist"
    "mednist-paper"
    "organamnist"
    "organamnist-paper"
    "mimic3"
    "mimic3-paper"
    "million"
    "size-esr"
    "size-physionet"
    "size-cnn"
];

impl Preset {
    /// Its first comment line.
    pub fn about(&self) -> &'static str {
        self.text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches('#')
            .trim()
    }
}

/// The preset of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
