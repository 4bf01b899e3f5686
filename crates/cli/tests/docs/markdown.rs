//! Pages, and what they are made of.

#![allow(unreachable_pub)] // a module of a test

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A page.
pub struct Page {
    /// Seen from the repository.
    pub name: String,
    pub path: PathBuf,
    pub text: String,
}

impl Page {
    pub fn read(name: &str) -> Self {
        let path = root().join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let name = name.to_owned();
        Page { name, path, text }
    }
}

/// The pages at the root, and the whole book.
pub fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    let mut todo = vec!["docs".to_owned()];
    let list = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<String>>()
    };
    for name in list(".").into_iter().filter(|name| name.ends_with(".md")) {
        found.push(Page::read(&name));
    }
    while let Some(folder) = todo.pop() {
        for name in list(&folder) {
            let path = format!("{folder}/{name}");
            if root().join(&path).is_dir() {
                todo.push(path);
            } else if name.ends_with(".md") {
                found.push(Page::read(&path));
            }
        }
    }
    assert!(found.len() > 8, "the book has pages");
    found
}

/// A fenced block: what stands behind its fence, its lines, and where the first of them is.
pub struct Block {
    pub info: String,
    pub lines: Vec<String>,
    pub at: usize,
}

/// The blocks of a text, and its other lines.
pub fn blocks(text: &str) -> (Vec<Block>, Vec<String>) {
    let (mut blocks, mut others) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            others.push(line.to_owned());
            continue;
        };
        let inside = lines.by_ref().map(|(_, line)| line.to_owned());
        blocks.push(Block {
            info: info.trim().to_owned(),
            lines: inside.take_while(|line| line != "```").collect(),
            at: at + 1,
        });
    }
    (blocks, others)
}
