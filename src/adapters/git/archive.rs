//! The files of an archive (`tar.gz`), in memory: nothing is unpacked to a disk. What a tarball must not have, paths and links that lead out of
//! it, refuses all of it: whoever made that did not mean well.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

use super::collect::{Collector, Content, DEPTH_MAX, LimitError};
use super::walk::{self, Entry, Files, Kind, Step, WalkScope};
use crate::api::kustomization::{folder as folder_of, join};
use crate::api::source::SourceFile;
use crate::core::plan::Note;

/// Of everything, unpacked. What is read of it is a part.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;
/// What is kept of one file; larger ones can not be definitions.
const KEPT_BYTES_MAX: u64 = 8 << 20;
/// Of all files that are kept.
const KEPT_TOTAL_MAX: usize = 256 << 20;
const ENTRIES_MAX: usize = 100_000;
const PATH_BYTES_MAX: usize = 4_096;
/// Of what is said of an entry beside its header: its path, that of a link, and extended attributes.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Of all entries and of the folders that they lie in.
const PATHS_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("the archive can not be unpacked")]
    Damaged(#[source] std::io::Error),
    #[error("the archive is larger than {} MiB when it is unpacked", UNPACKED_BYTES_MAX >> 20)]
    TooManyBytes,
    #[error("the archive has more than {ENTRIES_MAX} entries")]
    TooManyEntries,
    #[error("`{0}` leads out of the archive")]
    Escapes(String),
    #[error("`{path}` is a link to `{target}`, which is out of the archive")]
    LinkOut { path: String, target: String },
    #[error("`{0}` is neither a file nor a folder nor a symbolic link")]
    Odd(String),
    #[error("`{0}` lies in what is no folder")]
    InNoFolder(String),
    #[error("two entries are both shown as `{0}`: their names are no UTF-8 text, so rename one")]
    Alike(String),
    #[error("the archive has a record about an entry that is longer than {} KiB", RECORD_BYTES_MAX >> 10)]
    LongRecord,
    #[error("the paths of the archive are longer than {} MiB together", PATHS_BYTES_MAX >> 20)]
    TooLongPaths,
    #[error("the archive has no folder `{0}`")]
    NotThere(String),
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// What may hold definitions in a folder of the archive; empty: all of it.
pub fn read_archive(archive: &[u8], folder: &str) -> Result<(Vec<SourceFile>, Vec<Note>), ArchiveError> {
    read_archive_within(archive, folder, UNPACKED_BYTES_MAX)
}

fn read_archive_within(
    archive: &[u8],
    folder: &str,
    bytes_max: u64,
) -> Result<(Vec<SourceFile>, Vec<Note>), ArchiveError> {
    let archive = Archive::unpack(archive, bytes_max)?;
    let Some((root, Kind::Folder)) = archive.resolve(folder)? else {
        return Err(ArchiveError::NotThere(folder.to_owned()));
    };
    let scope = WalkScope { root, links: String::new() };
    let mut collector = Collector::default();
    let finds = walk::find(&archive, &scope, &mut collector)?;
    walk::collect(&archive, &scope, finds, &mut collector)?;
    Ok(collector.finish())
}

enum Item {
    Folder,
    File(Vec<u8>),
    Large,
    Link(String),
}

/// By path.
#[derive(Default)]
struct Archive {
    items: BTreeMap<String, Item>,
    path_bytes: usize,
}

impl Archive {
    fn unpack(archive: &[u8], bytes_max: u64) -> Result<Self, ArchiveError> {
        check_records(archive, bytes_max)?;
        let unpacked = Bounded { inner: MultiGzDecoder::new(archive), left: bytes_max };
        let mut reader = tar::Archive::new(unpacked);
        let (mut items, mut kept) = (Self::default(), 0);
        for (count, entry) in reader.entries().map_err(damaged)?.enumerate() {
            if count >= ENTRIES_MAX {
                return Err(ArchiveError::TooManyEntries);
            }
            let mut entry = entry.map_err(damaged)?;
            let kind = entry.header().entry_type();
            if kind == EntryType::XGlobalHeader {
                continue;
            }
            let path = inside(&entry.path().map_err(damaged)?)?;
            let item = match kind {
                EntryType::Directory => Item::Folder,
                EntryType::Regular | EntryType::Continuous if entry.size() > KEPT_BYTES_MAX => Item::Large,
                EntryType::Regular | EntryType::Continuous => {
                    let mut content = Vec::new();
                    entry.read_to_end(&mut content).map_err(damaged)?;
                    kept += content.len();
                    if kept > KEPT_TOTAL_MAX {
                        return Err(ArchiveError::TooManyBytes);
                    }
                    Item::File(content)
                }
                EntryType::Symlink => {
                    let target = entry.link_name().map_err(damaged)?.unwrap_or_default();
                    Item::Link(link(&path, &target)?)
                }
                _ => return Err(ArchiveError::Odd(path)),
            };
            items.add(path, item)?;
        }
        Ok(items)
    }

    fn add(&mut self, path: String, item: Item) -> Result<(), ArchiveError> {
        let mut above = folder_of(&path);
        while !above.is_empty() {
            match self.items.get(above) {
                Some(Item::Folder) => break,
                Some(_) => return Err(ArchiveError::InNoFolder(path)),
                None => self.insert(above.to_owned(), Item::Folder)?,
            }
            above = folder_of(above);
        }
        let takes_a_folder_away = !matches!(item, Item::Folder) && matches!(self.items.get(&path), Some(Item::Folder));
        if takes_a_folder_away {
            return Err(ArchiveError::InNoFolder(path));
        }
        // A later one of the same name takes the place of the earlier; of two names that are shown alike neither does.
        if path.contains(char::REPLACEMENT_CHARACTER) && !matches!(item, Item::Folder) && self.items.contains_key(&path)
        {
            return Err(ArchiveError::Alike(path));
        }
        if path.is_empty() { Ok(()) } else { self.insert(path, item) }
    }

    /// Counts an item before it is kept: a path of some kilobytes brings a thousand folders.
    fn insert(&mut self, path: String, item: Item) -> Result<(), ArchiveError> {
        if self.items.len() >= ENTRIES_MAX {
            return Err(ArchiveError::TooManyEntries);
        }
        self.path_bytes += path.len();
        if self.path_bytes > PATHS_BYTES_MAX {
            return Err(ArchiveError::TooLongPaths);
        }
        self.items.insert(path, item);
        Ok(())
    }
}

/// Refuses records about entries, such as long names, that are longer than any path: the reader holds each of them in memory, however large.
/// The size of an entry is what its header says; a record that says another one is for files larger than any that is read here.
fn check_records(archive: &[u8], bytes_max: u64) -> Result<(), ArchiveError> {
    let unpacked = Bounded { inner: MultiGzDecoder::new(archive), left: bytes_max };
    let mut reader = tar::Archive::new(unpacked);
    for entry in reader.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let shown =
            |entry: &tar::Entry<'_, _>| String::from_utf8_lossy(&entry.path_bytes()).chars().take(200).collect();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::Directory | EntryType::Symlink => {}
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader => {
                if entry.size() > RECORD_BYTES_MAX {
                    return Err(ArchiveError::LongRecord);
                }
                let mut record = Vec::new();
                entry.read_to_end(&mut record).map_err(damaged)?;
                let says_size = |line: &[u8]| {
                    line.splitn(2, |byte| *byte == b' ').nth(1).is_some_and(|it| it.starts_with(b"size="))
                };
                let is_pax = entry.header().entry_type().is_pax_local_extensions();
                if is_pax && record.split(|byte| *byte == b'\n').any(says_size) {
                    return Err(ArchiveError::Odd(shown(&entry)));
                }
            }
            _ => return Err(ArchiveError::Odd(shown(&entry))),
        }
    }
    Ok(())
}

/// The path with `/` between its parts.
fn inside(path: &Path) -> Result<String, ArchiveError> {
    let shown = || path.to_string_lossy().chars().take(200).collect::<String>();
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return Err(ArchiveError::Escapes(shown()));
    }
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(ArchiveError::Escapes(shown()));
            }
        }
    }
    let joined = parts.join("/");
    // The file itself is in so many folders.
    if parts.len() > DEPTH_MAX + 1 {
        return Err(LimitError::TooDeep { path: shown() }.into());
    }
    Ok(joined)
}

fn link(path: &str, target: &Path) -> Result<String, ArchiveError> {
    let target = target.to_string_lossy().into_owned();
    let is_inside = |place: &String| !place.starts_with("..");
    if target.starts_with('/') || target.contains('\\') || join(folder_of(path), &target).filter(is_inside).is_none() {
        return Err(ArchiveError::LinkOut { path: path.to_owned(), target });
    }
    Ok(target)
}

fn damaged(error: std::io::Error) -> ArchiveError {
    if error.kind() == ErrorKind::FileTooLarge { ArchiveError::TooManyBytes } else { ArchiveError::Damaged(error) }
}

/// Reads so much and no more: a small archive may unpack to anything.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or(ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}

impl Files for Archive {
    type Error = ArchiveError;

    fn entries(&self, folder: &str) -> Result<Vec<Entry>, ArchiveError> {
        let beginning = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = self.items.range(beginning.clone()..).take_while(|(path, _)| path.starts_with(&beginning));
        let entry = |(path, item): (&String, &Item)| {
            let name = path.strip_prefix(&beginning).filter(|name| !name.is_empty() && !name.contains('/'))?;
            let kind = match item {
                Item::Folder => Kind::Folder,
                Item::File(_) | Item::Large => Kind::File,
                Item::Link(_) => Kind::Link,
            };
            Some(Entry { name: name.to_owned(), kind })
        };
        Ok(below.filter_map(entry).collect())
    }

    fn resolve(&self, path: &str) -> Result<Option<(String, Kind)>, ArchiveError> {
        walk::followed(path, |place| {
            Ok(self.items.get(place).map(|item| match item {
                Item::Folder => Step::There(Kind::Folder),
                Item::File(_) | Item::Large => Step::There(Kind::File),
                Item::Link(target) => Step::LeadsTo(target.clone()),
            }))
        })
    }

    fn is_of_repository(&self, _: &str) -> bool {
        true
    }

    fn content(&self, path: &str, _: &str) -> Result<Option<Content>, ArchiveError> {
        match self.items.get(path) {
            Some(Item::File(content)) => Ok(Some(Content::Read(content.clone()))),
            Some(Item::Large) => Ok(Some(Content::TooLarge)),
            _ => Err(ArchiveError::NotThere(path.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;
    use crate::api::source::Standing;

    fn header(path: &str, kind: EntryType, size: usize) -> Header {
        let mut header = Header::new_gnu();
        // As somebody writes it who does not ask the library.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_size(size as u64);
        header.set_mode(0o644);
        header.set_cksum();
        header
    }

    fn packed(add: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        add(&mut builder);
        let tar = builder.into_inner().unwrap();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&tar).unwrap();
        encoder.finish().unwrap()
    }

    fn file(builder: &mut Builder<Vec<u8>>, path: &str, content: &str) {
        builder.append(&header(path, EntryType::Regular, content.len()), content.as_bytes()).unwrap();
    }

    fn linked(builder: &mut Builder<Vec<u8>>, path: &str, kind: EntryType, target: &str) {
        let mut header = header(path, kind, 0);
        header.set_link_name_literal(target).unwrap();
        header.set_cksum();
        builder.append(&header, std::io::empty()).unwrap();
    }

    fn paths(archive: &[u8], folder: &str) -> Vec<String> {
        read_archive(archive, folder).unwrap().0.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn what_may_hold_definitions_is_read() {
        let archive = packed(|it| {
            file(it, "cutlist.yaml", "a");
            file(it, "./nodes/pool.yaml", "b");
            file(it, "nodes/logo.png", "c");
            file(it, "nodes/.hidden/x.yaml", "d");
            linked(it, "nodes/again.yaml", EntryType::Symlink, "pool.yaml");
            linked(it, "nodes/nowhere.yaml", EntryType::Symlink, "../gone.yaml");
        });
        assert_eq!(paths(&archive, ""), ["cutlist.yaml", "nodes/again.yaml", "nodes/nowhere.yaml", "nodes/pool.yaml"]);
        assert_eq!(paths(&archive, "nodes"), ["again.yaml", "nowhere.yaml", "pool.yaml"]);
        assert_eq!(read_archive(&archive, "other").unwrap_err().to_string(), "the archive has no folder `other`");
        assert!(read_archive(&archive, "../nodes").is_err() && read_archive(&archive, "cutlist.yaml").is_err());
    }

    #[test]
    fn what_leads_out_refuses_all_of_it() {
        let with = |add: &dyn Fn(&mut Builder<Vec<u8>>)| {
            let archive = packed(|it| {
                file(it, "pool.yaml", "a");
                add(it);
            });
            read_archive(&archive, "").map(|_| ()).unwrap_err().to_string()
        };
        for path in ["../a.yaml", "a/../../b.yaml", "/etc/a.yaml", "a/../b.yaml"] {
            assert!(with(&|it| file(it, path, "x")).ends_with("leads out of the archive"), "{path}");
        }
        for target in ["/etc/passwd", "../../etc/passwd", "a/../../.."] {
            let error = with(&|it| linked(it, "nodes/b.yaml", EntryType::Symlink, target));
            assert!(error.contains("which is out of the archive"), "{target}: {error}");
        }
        assert!(with(&|it| linked(it, "b.yaml", EntryType::Link, "pool.yaml")).contains("is neither a file"));
        assert!(with(&|it| linked(it, "b.yaml", EntryType::Char, "")).contains("is neither a file"));
        let through_a_link = with(&|it| {
            linked(it, "nodes", EntryType::Symlink, "elsewhere");
            file(it, "nodes/a.yaml", "x");
        });
        assert!(through_a_link.ends_with("lies in what is no folder"), "{through_a_link}");
    }

    /// A path by way of a record, as GNU tar writes one that is too long for the header.
    fn file_far_down(builder: &mut Builder<Vec<u8>>, path: &str) {
        builder.append(&header("././@LongLink", EntryType::GNULongName, path.len()), path.as_bytes()).unwrap();
        file(builder, "x", "");
    }

    #[test]
    fn what_brings_more_than_it_weighs_refuses_all_of_it() {
        let fails = |archive: &[u8]| read_archive(archive, "").map(|_| ()).unwrap_err();
        let deep = |folders: usize, number: usize| format!("{number:05}{}/x.yaml", "/a".repeat(folders - 1));
        assert_eq!(paths(&packed(|it| file_far_down(it, &deep(100, 0))), ""), [deep(100, 0)]);
        let error = fails(&packed(|it| file_far_down(it, &deep(101, 0))));
        assert!(matches!(error, ArchiveError::Limit(LimitError::TooDeep { .. })), "{error}");
        let many = packed(|it| (0..1_100).for_each(|number| file_far_down(it, &deep(100, number))));
        assert!(many.len() < 200 << 10);
        assert!(matches!(fails(&many), ArchiveError::TooManyEntries), "the folders count");
        let long = |number: usize| format!("{number:05}{}", format!("/{}", "a".repeat(200)).repeat(18));
        let many = packed(|it| (0..2_000).for_each(|number| file_far_down(it, &long(number))));
        assert!(matches!(fails(&many), ArchiveError::TooLongPaths));
        let error = fails(&packed(|it| file_far_down(it, &"a".repeat(1 << 20))));
        assert!(matches!(error, ArchiveError::LongRecord), "{error}");
        let record = b"14 size=99999\n";
        let error = fails(&packed(|it| {
            it.append(&header("x", EntryType::XHeader, record.len()), record.as_slice()).unwrap();
            file(it, "pool.yaml", "a");
        }));
        assert!(matches!(error, ArchiveError::Odd(_)), "{error}");
    }

    /// Whatever bytes a name is of, what it names is read; by names that are shown alike it could not be.
    #[test]
    fn a_name_that_is_no_text_is_read() {
        let named = |builder: &mut Builder<Vec<u8>>, path: &[u8]| {
            let mut header = header("", EntryType::Regular, 1);
            header.as_old_mut().name[..path.len()].copy_from_slice(path);
            header.set_cksum();
            builder.append(&header, b"a".as_slice()).unwrap();
        };
        let one = packed(|it| named(it, b"po\xffols/pool\xfe.yaml"));
        let (files, _) = read_archive(&one, "").unwrap();
        assert_eq!(
            (files[0].path.as_str(), files[0].content.as_slice()),
            ("po\u{fffd}ols/pool\u{fffd}.yaml", b"a".as_slice())
        );
        let two = packed(|it| [b"a\xff.yaml", b"a\xfe.yaml"].into_iter().for_each(|path| named(it, path)));
        assert!(matches!(read_archive(&two, "").unwrap_err(), ArchiveError::Alike(_)));
    }

    #[test]
    fn what_is_too_much_refuses_all_of_it() {
        let zeros = "0".repeat(1 << 20);
        let bomb = packed(|it| (0..20).for_each(|number| file(it, &format!("{number}.yaml"), &zeros)));
        assert!(bomb.len() < 1 << 20);
        let error = read_archive_within(&bomb, "", 10 << 20).unwrap_err();
        assert!(matches!(error, ArchiveError::TooManyBytes), "{error}");
        assert!(read_archive_within(&bomb, "", 30 << 20).is_ok());
        let large = packed(|it| file(it, "pool.yaml", &"0".repeat(9 << 20)));
        let (files, _) = read_archive(&large, "").unwrap();
        assert_eq!((files[0].path.as_str(), &files[0].standing), ("pool.yaml", &Standing::TooLarge));
        let large = packed(|it| file(it, "logo.png", &"0".repeat(9 << 20)));
        assert_eq!(paths(&large, ""), Vec::<String>::new(), "nobody reads it");
        for damaged in [b"".as_slice(), b"not gzip", &bomb[..100]] {
            assert!(matches!(read_archive(damaged, "").unwrap_err(), ArchiveError::Damaged(_)));
        }
    }
}
