//! A second thread swaps files and directories for links while this one works.

use super::torture::{FaultTestFixture, scratch};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SWAPS: usize = 100_000;

#[test]
fn swaps_of_files_and_directories_for_links_lead_nowhere() {
    let dir = scratch();
    let world = FaultTestFixture::open(dir.path());
    let outside = world.top.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "secret").unwrap();
    std::fs::write(outside.join("g"), "secret").unwrap();
    std::fs::create_dir(world.path("d")).unwrap();
    std::fs::write(world.path("d/f"), "inside").unwrap();
    std::fs::write(world.path("g"), "inside").unwrap();
    // Each of the two names is, turn by turn, the real thing and a link that leads out.
    symlink(&outside, world.path("d.other")).unwrap();
    symlink(outside.join("g"), world.path("g.other")).unwrap();
    let swaps = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let (mut made, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..SWAPS / 2 {
                for name in ["d", "g"] {
                    let (one, other) = (world.path(name), world.path(&format!("{name}.other")));
                    let swap =
                        || renameat_with(CWD, one.as_path(), CWD, other.as_path(), RenameFlags::EXCHANGE);
                    if swap().is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        let mut round = 0;
        while !over.load(Ordering::SeqCst) {
            round += 1;
            let name = if round % 2 == 0 { "d/f" } else { "g" };
            let texts = ["inside", "inside too"];
            match world.change("race", name, Some(texts[round / 2 % 2])) {
                Ok(()) => made += 1,
                Err(_) => refused += 1,
            }
            let files = world.hands("race");
            if let Ok(mut file) = files.open(&world.path(name)) {
                let mut text = String::new();
                std::io::Read::read_to_string(&mut file, &mut text).unwrap();
                assert!(text.starts_with("inside"), "read outside: {text}");
            }
        }
    });
    println!("{} swaps, {made} changes made, {refused} refused", swaps.load(Ordering::Relaxed));
    assert!(swaps.load(Ordering::Relaxed) >= SWAPS / 2, "the swaps happened");
    for name in ["f", "g"] {
        assert_eq!(std::fs::read_to_string(outside.join(name)).unwrap(), "secret");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 2, "nothing was written outside");
}
