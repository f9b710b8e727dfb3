//! Every file of the corpora is read without a panic.

use std::fs;
use std::path::Path;

use readers::READERS;

#[test]
fn no_reader_panics_on_its_corpus() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, read) in READERS {
        let mut files = 0;
        for entry in fs::read_dir(corpora.join(name)).expect("a reader has a corpus") {
            let path = entry.expect("an entry of a folder").path();
            read(&fs::read(&path).expect("a file of a corpus"));
            files += 1;
        }
        assert!(files > 0, "the corpus of {name} is empty");
        println!("{name}: {files} files");
    }
}
