//! A race against symlinks: a second thread swaps files and directories for symlinks while this one uses them.

use crate::fault_tests::{FaultTestFixture, new_directory};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SWAP_COUNT: usize = 100_000;

#[test]
fn no_symlink_that_is_swapped_in_during_the_race_is_followed() {
    let dir = new_directory();
    let fixture = FaultTestFixture::open(dir.path());
    let outside = fixture.top.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "secret").unwrap();
    std::fs::write(outside.join("g"), "secret").unwrap();
    std::fs::create_dir(fixture.path("d")).unwrap();
    std::fs::write(fixture.path("d/f"), "inside").unwrap();
    std::fs::write(fixture.path("g"), "inside").unwrap();
    // Each of the two names alternates between a file or directory inside and a symlink to one outside.
    symlink(&outside, fixture.path("d.other")).unwrap();
    symlink(outside.join("g"), fixture.path("g.other")).unwrap();
    let swaps = AtomicUsize::new(0);
    let finished = AtomicBool::new(false);
    let (mut applied, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..SWAP_COUNT / 2 {
                for name in ["d", "g"] {
                    let (one, other) = (fixture.path(name), fixture.path(&format!("{name}.other")));
                    let swap =
                        || renameat_with(CWD, one.as_path(), CWD, other.as_path(), RenameFlags::EXCHANGE);
                    if swap().is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            finished.store(true, Ordering::SeqCst);
        });
        let mut round = 0;
        while !finished.load(Ordering::SeqCst) {
            round += 1;
            let name = if round % 2 == 0 { "d/f" } else { "g" };
            let texts = ["inside", "inside too"];
            match fixture.change("race", name, Some(texts[round / 2 % 2])) {
                Ok(()) => applied += 1,
                Err(_) => refused += 1,
            }
            let files = fixture.files("race");
            if let Ok(mut file) = files.open(&fixture.path(name)) {
                let mut text = String::new();
                std::io::Read::read_to_string(&mut file, &mut text).unwrap();
                assert!(text.starts_with("inside"), "read outside: {text}");
            }
        }
    });
    println!("{} swaps, {applied} changes applied, {refused} refused", swaps.load(Ordering::Relaxed));
    assert!(swaps.load(Ordering::Relaxed) >= SWAP_COUNT / 2, "the swaps happened");
    for name in ["f", "g"] {
        assert_eq!(std::fs::read_to_string(outside.join(name)).unwrap(), "secret");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 2, "nothing was written outside");
}
