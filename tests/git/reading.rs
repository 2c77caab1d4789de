//! `read_folder` and `read_revision`.

use std::error::Error;
use std::os::unix::fs::symlink;
use std::path::Path;

use cutlist::adapters::git::{ReadError, read_files, read_folder, read_merge, read_revision};
use cutlist::api::source::Standing;
use cutlist::core::plan::NoteCode;

use crate::fixture::{Fixture, files, git, notes};

#[test]
fn a_folder_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    };
    write("pools/b.yml", "b");
    write("a.yaml", "a");
    write("c.json", "{}");
    write("README.md", "no definition");
    write(".hidden/d.yaml", "hidden");
    write(".pre-commit-config.yaml", "hidden");
    let content = read_folder(folder.path()).unwrap();
    assert_eq!(files(&content), [("a.yaml", "a"), ("c.json", "{}"), ("pools/b.yml", "b")]);
    assert_eq!(content.revision.reference, folder.path().display().to_string());
    assert_eq!(content.revision.id.len(), 64);
    assert_eq!(read_folder(folder.path()).unwrap(), content);

    write("README.md", "changed");
    assert_eq!(read_folder(folder.path()).unwrap().revision.id, content.revision.id, "no definition changed");
    write("a.yaml", "changed");
    assert_ne!(read_folder(folder.path()).unwrap().revision.id, content.revision.id);

    let one = read_folder(&folder.path().join("pools/b.yml")).unwrap();
    assert_eq!(files(&one), [("b.yml", "b")]);
}

#[test]
fn links_out_of_a_folder_are_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.yaml"), "secret").unwrap();
    let folder = tempfile::tempdir().unwrap();
    // As Kubernetes mounts a ConfigMap.
    std::fs::create_dir(folder.path().join("..2026")).unwrap();
    std::fs::write(folder.path().join("..2026/pool.yaml"), "pool").unwrap();
    symlink("..2026", folder.path().join("..data")).unwrap();
    symlink("..data/pool.yaml", folder.path().join("pool.yaml")).unwrap();
    symlink(outside.path().join("secret.yaml"), folder.path().join("secret.yaml")).unwrap();
    symlink(outside.path(), folder.path().join("outside")).unwrap();
    symlink(".", folder.path().join("circle")).unwrap();
    symlink("nowhere", folder.path().join("dangling.yaml")).unwrap();
    let content = read_folder(folder.path()).unwrap();
    assert_eq!(files(&content), [("pool.yaml", "pool")]);
    assert_eq!(
        notes(&content),
        [(
            NoteCode::SymbolicLinksLeftOut,
            "symbolic links that lead nowhere, or out of the repository, are not followed: dangling.yaml, outside, secret.yaml"
        )]
    );
}

/// Whoever writes definitions must not make the machine that reads them say what stands in its other files.
#[test]
fn kustomizations_and_links_of_a_folder_lead_to_no_secrets() {
    let machine = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = machine.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".docker/config.json", "{\"auths\": {}}");
    write("creds", "secret");
    write("shared/patch.yaml", "patch");
    write("base/kustomization.yaml", "resources: [pool.yaml, ../creds, ../shared/patch.yaml]");
    write("base/pool.yaml", "pool");
    write("defs/token", "secret");
    write(
        "defs/kustomization.yaml",
        "resources: [../base, ../creds, ../.docker/config.json, token, own.yaml, ../shared/patch.yaml]",
    );
    write("defs/own.yaml", "own");
    symlink("token", machine.path().join("defs/link.yaml")).unwrap();
    symlink("../creds", machine.path().join("defs/up.yaml")).unwrap();
    let content = read_folder(&machine.path().join("defs")).unwrap();
    let paths: Vec<&str> = files(&content).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["../base/kustomization.yaml", "../base/pool.yaml", "kustomization.yaml", "own.yaml"]);
}

/// A workspace of CI holds files that are no part of the repository.
#[test]
fn kustomizations_and_links_of_a_clone_lead_to_what_git_tracks() {
    let fixture = Fixture::new();
    let kustomization = "resources: [../shared/patch.yaml, ../kubeconfig.yaml, ../text, new.yaml, token]";
    let tracked = [("shared/patch.yaml", "patch"), ("text", "tracked"), ("overlays/kustomization.yaml", kustomization)];
    fixture.commit("Begin", &tracked);
    symlink("../.env", fixture.path().join("overlays/link.yaml")).unwrap();
    for path in [".env", "kubeconfig.yaml", "overlays/new.yaml", "overlays/token"] {
        fixture.write(path, "not tracked");
    }
    let content = read_folder(&fixture.path().join("overlays")).unwrap();
    let paths: Vec<&str> = files(&content).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["../shared/patch.yaml", "../text", "kustomization.yaml", "new.yaml"]);
}

#[test]
fn a_clone_is_read_from_disk_with_its_commit() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "ignored.yaml\nbuild/\ntracked-anyway.yaml\n");
    fixture.write("ignored.yaml", "ignored");
    fixture.write("build/generated.yaml", "ignored");
    fixture.write("tracked-anyway.yaml", "tracked");
    fixture.git(&["add", "--force", "tracked-anyway.yaml"]);
    let commit = fixture.commit("Add the pool\n\nBecause.", &[("pools/a.yaml", "a"), ("b.yaml", "b")]);

    let clean = read_folder(&fixture.path()).unwrap();
    assert_eq!(files(&clean), [("b.yaml", "b"), ("pools/a.yaml", "a"), ("tracked-anyway.yaml", "tracked")]);
    assert_eq!((clean.revision.id.as_str(), clean.revision.reference.as_str()), (commit.as_str(), "main"));
    assert_eq!(clean.title, "Add the pool");
    assert_eq!(notes(&clean), []);

    fixture.write("pools/a.yaml", "edited");
    fixture.write("pools/new.yaml", "new");
    std::fs::remove_file(fixture.path().join("b.yaml")).unwrap();
    let edited = read_folder(&fixture.path()).unwrap();
    assert_eq!(
        files(&edited),
        [("pools/a.yaml", "edited"), ("pools/new.yaml", "new"), ("tracked-anyway.yaml", "tracked")]
    );
    assert!(edited.revision.id.starts_with(&format!("{commit}-dirty-")), "{}", edited.revision.id);
    let text = format!("3 files differ from commit {}: b.yaml, pools/a.yaml, pools/new.yaml", &commit[..7]);
    assert_eq!(notes(&edited), [(NoteCode::UncommittedChanges, text.as_str())]);

    // What was committed can still be read, and a sub folder alone.
    assert_eq!(files(&read_revision(&fixture.path(), "HEAD").unwrap()), files(&clean));
    let pools = read_revision(&fixture.path().join("pools"), "main").unwrap();
    assert_eq!(files(&pools), [("a.yaml", "a")]);
    assert_eq!(
        files(&read_folder(&fixture.path().join("pools")).unwrap()),
        [("a.yaml", "edited"), ("new.yaml", "new")]
    );
    assert_eq!(files(&read_revision(&fixture.path().join("pools/a.yaml"), "main").unwrap()), [("a.yaml", "a")]);

    // A folder that Git ignores is a folder like any other.
    let ignored = read_folder(&fixture.path().join("build")).unwrap();
    assert_eq!((files(&ignored), ignored.revision.id.len()), (vec![("generated.yaml", "ignored")], 64));
}

#[test]
fn a_revision_has_many_names() {
    let fixture = Fixture::new();
    let first = fixture.commit("One", &[("a.yaml", "1")]);
    fixture.git(&["tag", "--annotate", "v1", "--message", "v1"]);
    let second = fixture.commit("Two", &[("a.yaml", "2")]);
    fixture.git(&["branch", "feature/x"]);
    fixture.git(&["update-ref", "refs/remotes/origin/reviewed", &first]);
    let bare = fixture.bare("bare.git");
    for (reference, commit) in [
        ("main", &second),
        ("feature/x", &second),
        ("HEAD~1", &first),
        ("v1", &first),
        ("v1^{commit}", &first),
        (&first[..8], &first),
        (first.as_str(), &first),
    ] {
        for path in [fixture.path(), bare.clone()] {
            let content = read_revision(&path, reference).unwrap();
            assert_eq!((&content.revision.id, content.revision.reference.as_str()), (commit, reference));
            assert_eq!(files(&content), [("a.yaml", if commit == &first { "1" } else { "2" })], "{reference}");
        }
    }
    assert_eq!(read_revision(&fixture.path(), "reviewed").unwrap().revision.id, first, "a branch of the remote");
    let head = read_folder(&bare).unwrap();
    assert_eq!((head.revision.id.as_str(), head.revision.reference.as_str()), (second.as_str(), "main"));

    fixture.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(read_folder(&fixture.path()).unwrap().revision.reference, "HEAD");
}

#[test]
fn links_and_submodules_of_a_commit_are_left_out() {
    let inner = Fixture::new();
    inner.commit("Inner", &[("inner.yaml", "inner")]);
    let fixture = Fixture::new();
    fixture.write("pool.yaml", "pool");
    symlink("/etc/passwd", fixture.path().join("passwd.yaml")).unwrap();
    symlink("..", fixture.path().join("up")).unwrap();
    let source = inner.path();
    fixture.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        source.to_str().unwrap(),
        "vendor/inner",
    ]);
    fixture.commit("Add what leads away", &[]);
    let expected = [
        (
            NoteCode::SymbolicLinksLeftOut,
            "symbolic links that lead nowhere, or out of the repository, are not followed: passwd.yaml, up",
        ),
        (NoteCode::SubmodulesLeftOut, "submodules are not read: vendor/inner"),
    ];
    for content in [read_folder(&fixture.path()).unwrap(), read_revision(&fixture.path(), "main").unwrap()] {
        assert_eq!(files(&content), [("pool.yaml", "pool")]);
        assert_eq!(notes(&content), expected);
        assert!(!content.revision.id.contains("dirty"));
    }
}

#[test]
fn links_inside_a_repository_are_followed_and_count_once() {
    let fixture = Fixture::new();
    fixture.write("shared/pool.yaml", "pool");
    fixture.write("shared/more/class.yaml", "class");
    fixture.write("clusters/prod/own.yaml", "own");
    // As it is where a file system has no links.
    fixture.write("clusters/prod/text.yaml", "../../shared/pool.yaml");
    for (target, link) in [
        ("../../shared/pool.yaml", "clusters/prod/pool.yaml"),
        ("../../shared", "clusters/prod/shared"),
        ("shared", "clusters/prod/again"),
        ("..", "clusters/prod/up"),
        ("loop.yaml", "clusters/prod/loop.yaml"),
        ("shared/pool.yaml", "pool.yaml"),
    ] {
        symlink(target, fixture.path().join(link)).unwrap();
    }
    fixture.commit("Share files", &[]);
    for sub_path in ["", "clusters/prod"] {
        let path = fixture.path().join(sub_path);
        let on_disk = read_folder(&path).unwrap();
        let at_commit = read_revision(&path, "main").unwrap();
        for content in [&on_disk, &at_commit] {
            let own = files(content);
            let expected: &[_] = match sub_path {
                "" => &[
                    ("clusters/prod/own.yaml", "own"),
                    ("shared/more/class.yaml", "class"),
                    ("shared/pool.yaml", "pool"),
                ],
                // What lies elsewhere is called by the first of the links that lead to it.
                _ => &[("again/more/class.yaml", "class"), ("again/pool.yaml", "pool"), ("own.yaml", "own")],
            };
            assert_eq!(own, expected, "{sub_path}");
        }
        assert!(!on_disk.revision.id.contains("dirty"), "{:?}", on_disk.notes);
        assert_eq!(on_disk.files, at_commit.files);
    }
}

/// What a kustomization names is read wherever it lies in the repository, on disk as at a commit.
#[test]
fn what_kustomizations_name_is_read_as_well() {
    let fixture = Fixture::new();
    let files_of_it: [(&str, &str); 6] = [
        ("base/kustomization.yaml", "resources: [all.yaml, ../shared/more.yaml]"),
        ("base/all.yaml", "all"),
        ("base/unnamed.yaml", "unnamed"),
        ("shared/more.yaml", "more"),
        (
            "overlays/prod/kustomization.yaml",
            "resources: [../../base, ../../../outside, ../../missing]\npatches: [{path: p.patch}]",
        ),
        ("overlays/prod/p.patch", "patch"),
    ];
    let id = fixture.commit("Lay out", &files_of_it);
    let path = fixture.path().join("overlays/prod");
    let on_disk = read_folder(&path).unwrap();
    let at_commit = read_revision(&path, "main").unwrap();
    let paths: Vec<&str> = files(&on_disk).into_iter().map(|(path, _)| path).collect();
    let expected = [
        "../../base/all.yaml",
        "../../base/kustomization.yaml",
        "../../shared/more.yaml",
        "kustomization.yaml",
        "p.patch",
    ];
    assert_eq!(paths, expected);
    assert_eq!((on_disk.files, on_disk.revision.id), (at_commit.files, id));
    fixture.write("base/all.yaml", "changed");
    assert!(read_folder(&path).unwrap().revision.id.contains("dirty"), "the base is a part of it");
}

#[test]
fn what_can_not_be_read_says_why_and_what_to_do() {
    let fixture = Fixture::new();
    let path = fixture.path();
    let missing = path.join("missing");
    check(
        read_folder(&missing).unwrap_err(),
        &format!("{} does not exist", missing.display()),
        "name a folder, a clone or a bare repository that exists",
    );
    check(
        read_revision(&path, "main").unwrap_err(),
        &format!("the Git repository {} has no commit yet", path.display()),
        "commit the definitions first",
    );
    fixture.write("a.yaml", "a");
    let uncommitted = read_folder(&path).unwrap();
    assert_eq!((files(&uncommitted), uncommitted.revision.reference.as_str()), (vec![("a.yaml", "a")], "main"));

    let commit = fixture.commit("One", &[]);
    for name in ["production", "staging", "feature-1", "feature-2", "feature-3"] {
        fixture.git(&["branch", name]);
    }
    check(
        read_revision(&path, "prodution").unwrap_err(),
        &format!("{} has no revision `prodution`", path.display()),
        "there is production, main, feature-1, feature-2, feature-3",
    );
    assert!(matches!(read_revision(&path, "HEAD~1").unwrap_err(), ReadError::NoSuchRevision { shallow: false, .. }));
    for nonsense in ["", "..", "HEAD:a.yaml", "@{", "a b", "-x", "main^{tree}", "\0"] {
        let error = read_revision(&path, nonsense).unwrap_err();
        assert!(matches!(error, ReadError::NoSuchRevision { .. }), "{nonsense:?}: {error:?}");
    }
    std::fs::create_dir(path.join("later")).unwrap();
    check(
        read_revision(&path.join("later"), "main").unwrap_err(),
        "`later` is not in revision `main`",
        "the folder may have had another name then",
    );

    let plain = tempfile::tempdir().unwrap();
    check(
        read_revision(plain.path(), "main").unwrap_err(),
        &format!("{} is not in a Git repository", plain.path().display()),
        "a revision can be read from a clone or a bare repository only; leave it out to read the files on disk",
    );
    std::fs::write(plain.path().join("notes.txt"), "").unwrap();
    let notes = plain.path().join("notes.txt");
    assert!(matches!(read_folder(&notes).unwrap_err(), ReadError::NotDefinitions(_)));
    assert!(matches!(read_folder(&notes.join("x")).unwrap_err(), ReadError::PathNotThere(_)));

    let empty = fixture.beside("empty.git");
    git(&path, &["init", "--quiet", "--bare", empty.to_str().unwrap()]);
    assert!(matches!(read_folder(&empty).unwrap_err(), ReadError::EmptyRepository(_)));

    let shallow = fixture.beside("shallow");
    fixture.commit("Two", &[("a.yaml", "2")]);
    let url = format!("file://{}", path.display());
    git(&path, &["clone", "--quiet", "--depth=1", &url, shallow.to_str().unwrap()]);
    let error = read_revision(&shallow, &commit).unwrap_err();
    assert!(error.hint().unwrap().starts_with("this clone is shallow: `git fetch --unshallow`"), "{error:?}");
}

#[test]
fn a_damaged_repository_is_an_error() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "a")]);
    let blob = fixture.git(&["rev-parse", "HEAD:a.yaml"]);
    let object = fixture.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    std::fs::remove_file(object).unwrap();
    let error = read_revision(&fixture.path(), "main").unwrap_err();
    assert_eq!(error.to_string(), format!("object {blob} of `a.yaml` can not be read"));
    assert!(error.source().is_some());

    std::fs::write(fixture.path().join(".git/config"), "[core\n").unwrap();
    assert!(matches!(read_folder(&fixture.path()).unwrap_err(), ReadError::DamagedRepository { .. }));
}

#[test]
fn a_file_that_is_too_large_is_never_dropped_in_silence() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "a"), ("large.yaml", &" ".repeat((8 << 20) + 1)), ("large.bin", "x")]);
    for content in [read_folder(&fixture.path()).unwrap(), read_revision(&fixture.path(), "main").unwrap()] {
        let standings: Vec<_> = content.files.iter().map(|file| (file.path.as_str(), &file.standing)).collect();
        assert_eq!(standings, [("a.yaml", &Standing::Own), ("large.yaml", &Standing::TooLarge)]);
    }
}

/// Git takes any bytes for a name, and so do file systems.
#[cfg(target_os = "linux")]
#[test]
fn a_file_whose_name_is_no_text_is_read() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "a")]);
    let write = |path: &[u8], text: &str| {
        let path = fixture.path().join(OsStr::from_bytes(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(b"nodepool\xff.yaml", "b");
    write(b"po\xffols/c\xfe.yaml", "c");
    fixture.git(&["add", "--all"]);
    fixture.git(&["commit", "--quiet", "--message", "Two"]);
    let expected = [("a.yaml", "a"), ("nodepool\u{fffd}.yaml", "b"), ("po\u{fffd}ols/c\u{fffd}.yaml", "c")];
    for content in [read_folder(&fixture.path()).unwrap(), read_revision(&fixture.path(), "main").unwrap()] {
        let found = content.files.iter().map(|file| (file.path.as_str(), str::from_utf8(&file.content).unwrap()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(!content.revision.id.contains("dirty"), "{}", content.revision.id);
    }
    write(b"nodepool\xfe.yaml", "d");
    let error = read_folder(&fixture.path()).unwrap_err();
    assert!(error.to_string().contains("are both shown as `nodepool\u{fffd}.yaml`"), "{error}");
    fixture.git(&["add", "--all"]);
    fixture.git(&["commit", "--quiet", "--message", "Three"]);
    let error = read_revision(&fixture.path(), "main").unwrap_err();
    assert!(error.to_string().contains("are both shown as `nodepool\u{fffd}.yaml`"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("rename one of them"));
}

#[test]
fn a_bare_repository_is_only_itself() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "a")]);
    let bare = fixture.bare("bare.git");
    assert!(matches!(read_revision(&bare.join("hooks"), "main").unwrap_err(), ReadError::NotARepository(_)));
    assert!(matches!(
        read_revision(Path::new(&fixture.path().join(".git")), "main").unwrap_err(),
        ReadError::NotARepository(_)
    ));
}

fn check(error: ReadError, message: &str, hint: &str) {
    assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)));
}

#[test]
fn settings_at_the_root_are_not_those_of_a_folder() {
    let fixture = Fixture::new();
    fixture.commit(
        "Two clusters",
        &[
            ("cutlist.yaml", "a"),
            ("blue/pool.yaml", "b"),
            ("green/cutlist.yaml", "c"),
            ("green/pool.yaml", "d"),
            ("green/inner/deep/pool.yaml", "e"),
        ],
    );
    let of_green =
        "green/cutlist.yaml is not read: the settings of `green/inner/deep` are those in it, and it has none";
    let note = "cutlist.yaml at the root of the repository is not read: the settings of `blue` are those in it, and it has none";
    for (folder, expected) in [
        ("blue", vec![(NoteCode::LeftOut, note)]),
        ("green/inner/deep", vec![(NoteCode::LeftOut, of_green)]),
        ("green", Vec::new()),
        ("", Vec::new()),
    ] {
        let path = fixture.path().join(folder);
        for content in [read_folder(&path), read_files(&path), read_revision(&path, "HEAD")] {
            assert_eq!(notes(&content.unwrap()), expected, "{folder}");
        }
        let proposal = read_merge(&fixture.path(), folder, "main", "main").unwrap();
        assert_eq!(notes(&proposal.base), expected, "{folder}");
    }
}

#[test]
fn files_of_a_clone_in_part_are_judged_as_far_as_they_are_there() {
    let fixture = Fixture::new();
    fixture.commit("Pools", &[("base/pool.yaml", "pool"), ("blue/pool.yaml", "blue"), ("blue/README.md", "blue")]);
    let bare = fixture.bare("origin.git");
    git(&bare, &["config", "uploadpack.allowFilter", "true"]);
    let (address, clone) = (format!("file://{}", bare.display()), fixture.beside("clone"));
    let filtered = ["clone", "--quiet", "--filter=blob:none", "--sparse", &address, clone.to_str().unwrap()];
    fixture.git(&filtered);
    git(&clone, &["sparse-checkout", "set", "base"]);
    assert!(matches!(read_folder(&clone), Err(ReadError::UnreadableObject { .. })), "no plan is made of a part");
    let content = read_files(&clone).unwrap();
    assert_eq!(files(&content), [("base/pool.yaml", "pool")]);
    let left_out = "1 file is not in this sparse checkout, and not read: blue/pool.yaml";
    assert_eq!(notes(&content), [(NoteCode::LeftOut, left_out)]);
    assert_eq!(notes(&read_files(&clone.join("base")).unwrap()), []);
}
