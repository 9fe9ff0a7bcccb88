//! first light
use super::bench_desk::Desk;
#[test]
fn first() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.path("ws/.git/hooks")).unwrap();
    for text in [
        "echo hi",
        "echo a > new; cat new",
        "echo x > ../outside; cat ../outside",
        "mkdir d && echo b > d/f && mv d e && cat e/f && rm -r e && ls -la",
        "echo x > .git/hooks/pre-commit",
        "echo x > .git/config",
        "echo x >.git/HEAD; ls .git",
        "mv .git .git2",
        "chmod 600 ../own; chmod +x new; ls -l new",
        "touch new; touch ../own",
        "exec 3<>/dev/tcp/127.0.0.1/80",
        "echo a >/dev/udp/127.0.0.1/80",
        "mktemp",
        "echo err >/dev/stderr",
        "git init -q sub && cd sub && echo a>a && git add a && git -c user.name=a -c user.email=b commit -qm x && git log --oneline | wc -l",
    ] {
        let started = desk.start_in(text, desk.confinement());
        let r = started.ended();
        println!(
            "{text}\n  => {r:?} {:?}",
            started.process.refused().iter().map(|r| r.to_string()).collect::<Vec<_>>()
        );
        println!("{:?}", started.process.enforced());
    }
}
