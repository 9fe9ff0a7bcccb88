//! The tables of programs that start other programs.
//!
//! A missing entry costs nothing but a deny rule that does not match behind that program; an entry too many adds a
//! spelling that no rule matches.

use crate::word_list::WordList;

/// Programs whose arguments contain a command.
pub(super) struct RunnerEntry {
    /// The programs that share the entry.
    pub(super) programs: WordList,
    /// How many words (subcommands, images, hosts) may stand before the command.
    pub(super) words_before: usize,
}

/// Programs with options whose value is a command or code.
pub(super) struct CodeOptions {
    /// The programs that share the entry.
    pub(super) programs: WordList,
    /// The options.
    pub(super) options: WordList,
}

/// Runners, by how many words may stand before the command.
pub(super) const RUNNERS: &[RunnerEntry] = &[
    RunnerEntry { programs: WordList("uv"), words_before: 2 },
    RunnerEntry {
        programs: WordList(
            "npx bunx pnpx uvx cross-env env-cmd dotenv dotenvx hyperfine concurrently nodemon \
             watchexec reflex fswatch chronic ifne sem rush unbuffer expect script valgrind ltrace \
             strace gdb lldb heaptrack kernprof scalene nix-shell wine wine64 box64 \
             qemu-x86_64 qemu-aarch64 tini dumb-init catatonit nsjail firejail bwrap proot fakechroot \
             sshpass osascript wsl powershell pwsh cmd.exe dtach abduco daemonize start-stop-daemon \
             runcon sg newgrp chpst numactl systemd-run watch entr parallel su \
             runuser setpriv unshare nsenter bpftrace sysdig ftrace uftrace tox nox choom run0 softlimit \
             s6-softlimit s6-env coresched uclampset retry onchange chokidar flatpak-spawn host-spawn \
             lxc-execute lxc-start systemd-nspawn systemd-cat dbus-launch ssh-agent xinit timelimit nocache \
             tsp nq memray austin viztracer pyinstrument mpirun mpiexec orterun srun salloc torchrun pee \
             mispipe zrun xe xterm urxvt alacritty kitty foot gnome-terminal konsole envdir s6-envdir \
             pgrphack fghack setlock argv0 lckdo vglrun optirun primusrun gamemoderun mangohud prime-run \
             bazelisk ccache sccache distcc icecc bear scan-build",
        ),
        words_before: 0,
    },
    RunnerEntry {
        programs: WordList(
            "poetry pipenv pdm hatch rye pipx pixi npm pnpm yarn bun deno bundle gem perf mise asdf \
             rbenv pyenv nodenv goenv jenv volta rustup fnm tmux screen byobu zellij doppler op \
             infisical coverage py-spy heroku ssh autossh mosh vagrant toolbox distrobox flatpak snap \
             guix opam rvm cargo make chroot flock arch-chroot pdsh ansible rr samply trace-cmd kcov devbox \
             flox devenv s6-setuidgid s6-envuidgid s6-applyuidgid setuidgid envuidgid faketime envchain \
             teller summon nsys ncu rocprof vtune accelerate pueue wezterm asciinema lerna nx rushx \
             clush ttyd gotty watchman-make pm2 forever tsocks capsh cgexec",
        ),
        words_before: 1,
    },
    RunnerEntry {
        programs: WordList(
            "docker podman nerdctl kubectl oc crictl nomad lxc lxc-attach incus machinectl multipass \
             conda mamba micromamba nix direnv nvm aws-vault chamber sops docker-compose fly flyctl \
             gcloud",
        ),
        words_before: 3,
    },
];

/// Options whose value is a command. A long option also counts in every abbreviation of at least four characters.
pub(super) const COMMAND_OPTIONS: &[CodeOptions] = &[
    CodeOptions { programs: WordList("rg"), options: WordList("--pre --hostname-bin") },
    CodeOptions { programs: WordList("sort gsort"), options: WordList("--compress-program") },
    CodeOptions {
        programs: WordList("tar gtar bsdtar"),
        options: WordList(
            "--to-command --checkpoint-action --use-compress-program --info-script \
             --new-volume-script --rsh-command --rmt-command -I -F",
        ),
    },
    CodeOptions { programs: WordList("zip"), options: WordList("-TT --unzip-command") },
    CodeOptions { programs: WordList("rsync"), options: WordList("-e --rsh --rsync-path") },
    CodeOptions { programs: WordList("scp sftp"), options: WordList("-S -o") },
    CodeOptions { programs: WordList("ssh autossh"), options: WordList("-o") },
    CodeOptions { programs: WordList("man"), options: WordList("-P --pager -H --html --preprocessor") },
    CodeOptions { programs: WordList("fd fdfind"), options: WordList("-x -X --exec --exec-batch") },
    CodeOptions { programs: WordList("wget"), options: WordList("--use-askpass") },
    CodeOptions {
        programs: WordList("gdb"),
        options: WordList("-ex -iex --eval-command --init-eval-command --init-command -x --command"),
    },
    CodeOptions {
        programs: WordList("gcc g++ cc c++ clang clang++"),
        options: WordList("-wrapper -fplugin -fpass-plugin -specs -B"),
    },
    CodeOptions {
        programs: WordList("go"),
        options: WordList("-toolexec -vettool -exec --toolexec --vettool --exec"),
    },
    CodeOptions { programs: WordList("cargo"), options: WordList("--config -Z") },
    CodeOptions {
        programs: WordList("npm pnpm"),
        options: WordList("--script-shell --shell --node-options -c --call"),
    },
    CodeOptions { programs: WordList("npx bunx"), options: WordList("-c --call") },
    CodeOptions { programs: WordList("make gmake"), options: WordList("--eval -E") },
    CodeOptions { programs: WordList("docker podman"), options: WordList("--entrypoint --health-cmd") },
    CodeOptions { programs: WordList("bat batcat ag delta"), options: WordList("--pager") },
    CodeOptions { programs: WordList("vim vi nvim view ex gvim vimdiff"), options: WordList("-c --cmd -S") },
    CodeOptions {
        programs: WordList("emacs emacsclient"),
        options: WordList("--eval -eval -f --funcall -l --load"),
    },
    CodeOptions { programs: WordList("less more"), options: WordList("+") },
    CodeOptions { programs: WordList("nodemon watchexec"), options: WordList("--exec -x") },
    CodeOptions { programs: WordList("screen"), options: WordList("-X") },
    CodeOptions {
        programs: WordList("git"),
        options: WordList("--upload-pack --receive-pack --exec-path --upload-archive"),
    },
    CodeOptions { programs: WordList("perf"), options: WordList("--objdump --addr2line") },
    CodeOptions { programs: WordList("split"), options: WordList("--filter") },
    CodeOptions { programs: WordList("ip"), options: WordList("exec") },
    CodeOptions { programs: WordList("crontab"), options: WordList("-e") },
    CodeOptions { programs: WordList("curl"), options: WordList("--engine") },
    CodeOptions { programs: WordList("pytest py.test"), options: WordList("-p -c --pyargs") },
    CodeOptions { programs: WordList("nmap"), options: WordList("--script") },
    CodeOptions { programs: WordList("openssl"), options: WordList("-engine -provider") },
    CodeOptions { programs: WordList("php"), options: WordList("-d") },
    CodeOptions { programs: WordList("ansible"), options: WordList("-a --args") },
    CodeOptions {
        programs: WordList("just"),
        options: WordList("--shell --shell-arg --shell-command --chooser -c --command"),
    },
    CodeOptions { programs: WordList("ncat nc netcat"), options: WordList("--exec --sh-exec --lua-exec") },
    CodeOptions { programs: WordList("asciinema bpftrace memray"), options: WordList("-c --command") },
    CodeOptions { programs: WordList("xterm urxvt alacritty konsole st"), options: WordList("-e") },
    CodeOptions { programs: WordList("sbatch"), options: WordList("--wrap") },
    CodeOptions { programs: WordList("fzf sk"), options: WordList("--preview --bind") },
    CodeOptions { programs: WordList("peco"), options: WordList("--exec") },
    CodeOptions { programs: WordList("watchman-make"), options: WordList("--run -r") },
];

/// Options of interpreters whose value is code. The first six entries also read code from standard input.
pub(super) const INTERPRETERS: &[CodeOptions] = &[
    CodeOptions { programs: WordList("python python2 python3 pypy pypy3 ipython"), options: WordList("-c") },
    CodeOptions { programs: WordList("perl"), options: WordList("-e -E") },
    CodeOptions { programs: WordList("ruby lua luajit julia elixir Rscript"), options: WordList("-e") },
    CodeOptions {
        programs: WordList("node nodejs bun tsx ts-node"),
        options: WordList("-e --eval -p --print"),
    },
    CodeOptions { programs: WordList("php"), options: WordList("-r") },
    CodeOptions { programs: WordList("deno"), options: WordList("eval") },
    CodeOptions { programs: WordList("osascript expect tclsh"), options: WordList("-e -c") },
    CodeOptions {
        programs: WordList("sqlite3 psql mysql mariadb"),
        options: WordList("-c -e --command --execute -cmd"),
    },
    CodeOptions { programs: WordList("vim vi nvim ex"), options: WordList("-c --cmd") },
    CodeOptions { programs: WordList("emacs"), options: WordList("--eval") },
];

/// Whether the first word of a runner names a script of the project, after which nothing is a command
/// (`npm run curl`).
pub(super) fn names_a_script(name: &str, word: &str) -> bool {
    match name {
        // `bun run` also runs programs that are no script of the project.
        "bun" => !matches!(word, "exec" | "x" | "run") && !word.starts_with('-'),
        "npm" | "pnpm" | "yarn" => !matches!(word, "exec" | "x" | "dlx" | "node") && !word.starts_with('-'),
        "cargo" => !matches!(word, "watch" | "xtask" | "flamegraph" | "llvm-cov") && !word.starts_with('-'),
        "rustup" => word != "run" && !word.starts_with('-'),
        "gem" => word != "exec",
        "bundle" => word != "exec" && !word.starts_with('-'),
        "deno" => true,
        "make" => true,
        _ => false,
    }
}
