#!/usr/bin/env python3
"""Gets the pages that conversions are scored with, from the registries, once.

  get_pages.py FOLDER

FOLDER/articles     the 130 pages of Mozilla Readability's tests, which the crate readabilityrs 0.1.4 carries
FOLDER/references   ten reference pages, from Debian's documentation packages and the documentation of the Rust toolchain;
                    what is expected of each is the container that its generator puts the content in, without buttons and
                    without parts that a style hides
Each page is a directory with `source.html` and `expected.html`, as `score_markdown.py` reads them.
"""
import glob, html.parser, os, shutil, subprocess, sys, tempfile

PACKAGES = ["nodejs-doc", "python3.11-doc", "git-doc", "postgresql-doc-15", "sqlite3-doc"]
# name: (file below /usr/share/doc, or below the toolchain's documentation with `rust:`; the tag of the container, and an attribute of it)
REFERENCES = {
    "node-path": ("nodejs/api/path.html", "div", ("id", "apicontent")),
    "node-url": ("nodejs/api/url.html", "div", ("id", "apicontent")),
    "python-json": ("python3.11/html/library/json.html", "div", ("role", "main")),
    "python-asyncio-task": ("python3.11/html/library/asyncio-task.html", "div", ("role", "main")),
    "rust-option": ("rust:std/option/enum.Option.html", "section", ("id", "main-content")),
    "rust-hashmap": ("rust:std/collections/struct.HashMap.html", "section", ("id", "main-content")),
    "rust-book-ownership": ("rust:book/ch04-01-what-is-ownership.html", "main", None),
    "git-rebase": ("git-doc/git-rebase.html", "body", None),
    "postgresql-select": ("postgresql-doc-15/html/sql-select.html", "div", ("class", "refentry")),
    "sqlite-select": ("sqlite3/lang_select.html", "div", ("class", "fancy")),
}


class ElementFinder(html.parser.HTMLParser):
    """Where elements of a name begin and end in a text; inside one, others of the name do not count."""
    def __init__(self, text, tag, is_wanted):
        super().__init__(convert_charrefs=False)
        self.text, self.tag, self.is_wanted, self.depth, self.spans = text, tag, is_wanted, 0, []
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.feed(text)

    def here(self):
        line, column = self.getpos()
        return self.lines[line - 1] + column

    def handle_starttag(self, tag, attributes):
        if tag != self.tag:
            return
        if self.depth:
            self.depth += 1
        elif self.is_wanted(attributes):
            self.spans.append([self.here(), len(self.text)])
            self.depth = 1

    def handle_endtag(self, tag):
        if tag == self.tag and self.depth:
            self.depth -= 1
            if not self.depth:
                self.spans[-1][1] = self.here() + len(f"</{tag}>")


def shown_part(source, tag, attribute):
    """The container of the content, without what is not shown or is no text."""
    begin, end = ElementFinder(source, tag, lambda attributes: attribute is None or attribute in attributes).spans[0]
    text = source[begin:end]
    is_hidden = lambda attributes: "display:none" in (dict(attributes).get("style") or "").replace(" ", "")
    for name, is_wanted in (("button", lambda _: True), ("div", is_hidden)):
        for begin, end in reversed(ElementFinder(text, name, is_wanted).spans):
            text = text[:begin] + text[end:]
    return text


def get_articles(folder):
    with tempfile.TemporaryDirectory() as crate:
        os.makedirs(f"{crate}/src")
        open(f"{crate}/src/lib.rs", "w").close()
        with open(f"{crate}/Cargo.toml", "w") as manifest:
            manifest.write('[package]\nname = "pages"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nreadabilityrs = "=0.1.4"\n[workspace]\n')
        subprocess.run(["cargo", "fetch", "--quiet"], cwd=crate, check=True)
    home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    pages = glob.glob(f"{home}/registry/src/*/readabilityrs-0.1.4/tests/test-pages")[0]
    shutil.copytree(pages, f"{folder}/articles")


def get_references(folder):
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["apt-get", "download", "-qq", *PACKAGES], cwd=work, check=True, stderr=subprocess.DEVNULL)
        for package in glob.glob(f"{work}/*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, f"{work}/root"], check=True)
        for name, (path, tag, attribute) in REFERENCES.items():
            top = f"{sysroot}/share/doc/rust/html" if path.startswith("rust:") else f"{work}/root/usr/share/doc"
            with open(os.path.join(top, path.removeprefix("rust:")), encoding="utf-8", errors="replace") as file:
                source = file.read()
            os.makedirs(f"{folder}/references/{name}")
            for kind, text in (("source", source), ("expected", shown_part(source, tag, attribute))):
                with open(f"{folder}/references/{name}/{kind}.html", "w", encoding="utf-8") as out:
                    out.write(text)


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for name, get in (("articles", get_articles), ("references", get_references)):
    if not os.path.isdir(f"{folder}/{name}"):
        get(folder)
    print(f"{folder}/{name}: {len(os.listdir(f'{folder}/{name}'))} pages")
