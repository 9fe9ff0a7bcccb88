//! toolgate's own files: settings in, private state out. No call of a model comes this way.

use super::open::FileProblem;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use toolgate_proto::AbsPath;

/// Reads a settings file as text. A file that is not there is `None`; any other trouble is an error,
/// because a file that cannot be read may hold a deny rule.
pub fn read_settings_text(path: &AbsPath, most_bytes: u64) -> Result<Option<String>, FileProblem> {
    let file = match OpenOptions::new().read(true).custom_flags(nonblock()).open(path.as_path()) {
        Ok(file) => file,
        Err(error) => {
            return match FileProblem::from(error) {
                FileProblem::Missing | FileProblem::NotDirectory => Ok(None),
                other => Err(other),
            };
        }
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(FileProblem::IsDirectory);
    }
    if !metadata.is_file() {
        return Err(FileProblem::Special);
    }
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(FileProblem::Other(format!("it is larger than {most_bytes} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| FileProblem::Other("it is not UTF-8 text".to_owned()))
}

/// Opens a file that the person named on the command line.
pub fn open_named_file(path: &AbsPath) -> Result<File, FileProblem> {
    Ok(File::open(path.as_path())?)
}

/// Writes a file that only this user may read, making its directory where needed.
pub fn write_private(path: &AbsPath, content: &[u8]) -> Result<(), FileProblem> {
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent.as_path())?;
    }
    let mut file =
        OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path.as_path())?;
    file.write_all(content)?;
    Ok(())
}

/// Makes a directory that only this user may enter, where it is not there yet.
pub fn make_private_dir(dir: &AbsPath) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir.as_path())
}

fn nonblock() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}
