//! Signed commits: those that `git`, `ssh-keygen` and `gpg` made (`signed/`, which `signed/make` makes anew), and those that are signed here.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aws_lc_rs::digest::{SHA512, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cutlist::adapters::git::{SignedCommit, SignedHistory};
use cutlist::adapters::signatures::{Keys, SignatureError};
use jiff::Timestamp;

use crate::fixture::{Fixture, clean};

const POOL: &str = include_str!("../run/pool.yaml");
const SETTINGS: &str = "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: {}\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/git/signed")
}

/// What was signed, and the signature, of a commit as an object.
fn parts(object: &str) -> (String, String) {
    let (mut payload, mut signature, mut is_signature) = (String::new(), String::new(), false);
    let (header, message) = object.split_once("\n\n").unwrap();
    for line in header.lines() {
        is_signature = line.starts_with("gpgsig ") || is_signature && line.starts_with(' ');
        if is_signature {
            let line = line.strip_prefix("gpgsig ").or(line.strip_prefix(' ')).unwrap();
            signature.push_str(&format!("{line}\n"));
        } else {
            payload.push_str(&format!("{line}\n"));
        }
    }
    (format!("{payload}\n{message}"), signature)
}

fn made(name: &str) -> (String, String) {
    parts(&std::fs::read_to_string(folder().join(format!("{name}.commit"))).unwrap())
}

/// When a commit says that it was made.
fn time_of(payload: &str) -> Timestamp {
    let line = payload.lines().find(|line| line.starts_with("committer ")).unwrap();
    Timestamp::from_second(line.rsplit(' ').nth(1).unwrap().parse().unwrap()).unwrap()
}

fn keys() -> Keys {
    Keys::read(Some(&folder().join("allowed_signers")), Some(&folder().join("openpgp.asc"))).unwrap()
}

/// A key that signs as `ssh-keygen -Y sign` does.
struct Signer {
    key: Ed25519KeyPair,
    namespace: &'static str,
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

impl Signer {
    /// Another one for each number.
    fn new(number: u8) -> Self {
        Self { key: Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap(), namespace: "git" }
    }

    fn blob(&self) -> Vec<u8> {
        [string(b"ssh-ed25519"), string(self.key.public_key().as_ref())].concat()
    }

    /// A line of the file of allowed signers.
    fn line(&self, principal_and_options: &str) -> String {
        format!("{principal_and_options} ssh-ed25519 {}\n", STANDARD.encode(self.blob()))
    }

    fn sign(&self, payload: &[u8]) -> String {
        let about = [string(self.namespace.as_bytes()), string(b""), string(b"sha512")].concat();
        let signed = [b"SSHSIG", &about[..], &string(digest(&SHA512, payload).as_ref())].concat();
        let signature = [string(b"ssh-ed25519"), string(self.key.sign(&signed).as_ref())].concat();
        let all = [b"SSHSIG", &1_u32.to_be_bytes()[..], &string(&self.blob()), &about, &string(&signature)].concat();
        let text = STANDARD.encode(all);
        let lines: Vec<&str> = text.as_bytes().chunks(70).map(|line| str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
    }

    /// Signs the last commit of the branch that is checked out.
    fn sign_head(&self, fixture: &Fixture) -> String {
        let object = fixture.git(&["cat-file", "commit", "HEAD"]) + "\n";
        let signature = self.sign(object.as_bytes()).trim_end().replace('\n', "\n ");
        let (header, message) = object.split_once("\n\n").unwrap();
        let object = format!("{header}\ngpgsig {signature}\n\n{message}");
        let mut command = Command::new("git");
        clean(&mut command, &fixture.path()).args(["hash-object", "-t", "commit", "-w", "--stdin"]);
        command.current_dir(fixture.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(object.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        fixture.git(&["reset", "--quiet", "--soft", &id]);
        id
    }

    fn commit(&self, fixture: &Fixture, message: &str, files: &[(&str, &str)]) -> String {
        fixture.commit(message, files);
        self.sign_head(fixture)
    }
}

#[test]
fn what_git_ssh_keygen_and_gpg_sign_is_known() {
    let keys = keys();
    let mut complaints = Vec::new();
    for (name, expected) in [
        ("ssh-ed25519", "ssh-ed25519@example.com"),
        ("ssh-rsa-3072", "ssh-rsa-3072@example.com"),
        ("ssh-ecdsa-256", "ssh-ecdsa-256@example.com"),
        ("ssh-ecdsa-384", "ssh-ecdsa-384@example.com"),
        ("ssh-ecdsa-521", "ssh-ecdsa-521@example.com"),
        ("openpgp-ed25519", "ed25519@example.com"),
        ("openpgp-rsa3072", "rsa3072@example.com"),
        ("openpgp-nistp256", "nistp256@example.com"),
        ("openpgp-nistp384", "nistp384@example.com"),
        ("openpgp-nistp521", "nistp521@example.com"),
        ("openpgp-subkey", "grace@example.com"),
    ] {
        let (payload, signature) = made(name);
        let (at, later) = (time_of(&payload), "2030-01-01T00:00:00Z".parse().unwrap());
        match keys.verify(payload.as_bytes(), signature.as_bytes(), &[at, later]) {
            Ok(by) if by.names.first().map(String::as_str) == Some(expected) => {}
            other => complaints.push(format!("{name}: {other:?}")),
        }
        let other = payload.replace("ada@example.com", "eve@example.com");
        let refused = keys.verify(other.as_bytes(), signature.as_bytes(), &[at]);
        let is_refused = match refused {
            Err(SignatureError::OtherData) => name.starts_with("ssh"),
            // OpenPGP names a key and does not hold it: which one it would have been is not known.
            Err(SignatureError::UnknownKey { key }) => key.len() == 40,
            _ => false,
        };
        if !is_refused {
            complaints.push(format!("{name} over something else"));
        }
        // Before the key was made, as whoever writes an old date would have it.
        let early = keys.verify(payload.as_bytes(), signature.as_bytes(), &[Timestamp::UNIX_EPOCH]);
        if name.starts_with("openpgp") && !matches!(early, Err(SignatureError::NotYetValid { .. })) {
            complaints.push(format!("{name} in 1970: {early:?}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn keys_that_count_no_more_are_named() {
    let keys = keys();
    let refused = |name: &str, moments: &[Timestamp]| {
        let (payload, signature) = made(name);
        keys.verify(payload.as_bytes(), signature.as_bytes(), moments).unwrap_err()
    };
    let (payload, signature) = made("openpgp-expired");
    let at = time_of(&payload);
    assert!(keys.verify(payload.as_bytes(), signature.as_bytes(), &[at]).is_ok(), "when it was made, it counted");
    let later = at.saturating_add(jiff::SignedDuration::from_secs(60)).unwrap();
    assert!(matches!(refused("openpgp-expired", &[at, later]), SignatureError::Expired { .. }));
    let text = refused("openpgp-revoked", &[at]).to_string();
    assert!(text.starts_with("key lost@example.com (") && text.ends_with("was revoked"), "{text}");
    let text = refused("openpgp-unknown", &[at]).to_string();
    assert!(text.ends_with("is not among those that may sign"), "{text}");
}

#[test]
fn signatures_that_do_not_count_say_why() {
    let (ada, eve) = (Signer::new(1), Signer::new(2));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("allowed_signers");
    let lines = [
        ada.line("ada@example.com valid-after=\"20260101\",valid-before=\"20270101\""),
        Signer::new(3).line("mail@example.com namespaces=\"file\""),
    ];
    std::fs::write(&file, lines.concat()).unwrap();
    let keys = Keys::read(Some(&file), None).unwrap();
    let at = |text: &str| -> Vec<Timestamp> { vec![text.parse().unwrap()] };
    let summer = at("2026-07-01T00:00:00Z");
    let verify = |signature: &str, moments: &[Timestamp]| {
        let verified = keys.verify(b"payload", signature.as_bytes(), moments);
        verified.map(|by| by.to_string()).unwrap_or_else(|error| error.to_string())
    };
    let good = ada.sign(b"payload");
    assert!(verify(&good, &summer).starts_with("ada@example.com (SHA256:"));
    for (signature, moments, expected) in [
        (good.clone(), at("2025-07-01T00:00:00Z"), "counts from 2026-01-01T00:00:00Z on"),
        (good.clone(), at("2027-07-01T00:00:00Z"), "counted until 2027-01-01T00:00:00Z"),
        (
            Signer { namespace: "file", ..Signer::new(1) }.sign(b"payload"),
            summer.clone(),
            "for the namespace `file`, not for git",
        ),
        (Signer::new(3).sign(b"payload"), summer.clone(), "may not sign for Git"),
        (eve.sign(b"payload"), summer.clone(), "is not among those that may sign"),
        (ada.sign(b"another"), summer.clone(), "over something else than this commit"),
        (good.replace("SSH", "PGP"), summer.clone(), "can not be read: its packets can not be read"),
        ("-----BEGIN SIGNED MESSAGE-----\nx".to_owned(), summer.clone(), "one of X.509, which does not count"),
        ("hello".to_owned(), summer.clone(), "of no kind that is known"),
        ("x".repeat(70_000), summer.clone(), "larger than any"),
        (format!("{good}{good}"), summer, "it is not one signature"),
    ] {
        let text = verify(&signature, &moments);
        assert!(text.contains(expected), "{text}, and not: {expected}");
    }
}

/// Whatever is cut off or changed: an answer, and never the wrong one.
#[test]
fn what_is_garbled_is_refused() {
    let keys = keys();
    for name in ["ssh-ed25519", "ssh-rsa-3072", "ssh-ecdsa-521", "openpgp-rsa3072", "openpgp-subkey"] {
        let (payload, signature) = made(name);
        let at = [time_of(&payload)];
        let body: String = signature.lines().filter(|line| !line.starts_with('-') && !line.starts_with('=')).collect();
        let bytes = STANDARD.decode(&body).unwrap();
        let label = if name.starts_with("ssh") { "SSH SIGNATURE" } else { "PGP SIGNATURE" };
        let verify = |bytes: &[u8]| {
            let text = format!("-----BEGIN {label}-----\n\n{}\n-----END {label}-----\n", STANDARD.encode(bytes));
            keys.verify(payload.as_bytes(), text.as_bytes(), &at)
        };
        assert!(verify(&bytes).is_ok(), "{name}");
        for end in 0..bytes.len() {
            assert!(verify(&bytes[..end]).is_err(), "{name}: {end}");
        }
        let mut taken = 0;
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 1 << (place % 8);
            // Of OpenPGP not all is signed: a hint at the key, the first bytes of the hash.
            taken += usize::from(verify(&other).is_ok());
        }
        assert!(taken == 0 || label == "PGP SIGNATURE" && taken < 24, "{name}: {taken}");
    }
}

#[test]
fn files_that_can_not_be_used_say_where_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let refused = |of_openpgp: bool| {
        let (ssh, openpgp) = if of_openpgp { (None, Some(file.as_path())) } else { (Some(file.as_path()), None) };
        let error = Keys::read(ssh, openpgp).unwrap_err();
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        format!("{error}{}", source.unwrap_or_default()).replace(&file.display().to_string(), "FILE")
    };
    assert!(refused(false).starts_with("FILE can not be read: "), "{}", refused(false));
    for (content, of_openpgp, expected) in [
        (&b"\n# nobody\n"[..], false, "FILE names nobody who may sign"),
        (b"", true, "FILE names nobody who may sign"),
        (b"\xff\xfe", false, "FILE is no text"),
        (
            b"# x\nada@example.com ssh-ed25519 AAAA\n",
            false,
            "FILE:2 is no allowed signer: the key is no base64 of a key of type ssh-ed25519",
        ),
        (
            b"* cert-authority ssh-ed25519 AAAA\n",
            false,
            "FILE:1 is no allowed signer: cert-authority: certificates are not looked at",
        ),
        (b"binary", true, "FILE:1 is no key of OpenPGP: this is no armoured key"),
        (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ==\n", true, "FILE:1 is no key of OpenPGP: a block has no end"),
        (
            b"\n-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ==\n-----END PGP PUBLIC KEY BLOCK-----\n",
            true,
            "FILE:2 is no key of OpenPGP: the block can not be read",
        ),
    ] {
        std::fs::write(&file, content).unwrap();
        let text = refused(of_openpgp);
        assert!(text.starts_with(expected), "{text}");
    }
    std::fs::File::create(&file).unwrap().set_len(100 << 20).unwrap();
    assert_eq!(refused(false), "FILE is larger than 1024 KiB");
    // A key with a name that somebody else added to it, and one whose own signature was taken off.
    let text = std::fs::read_to_string(self::folder().join("openpgp.asc")).unwrap();
    let block: Vec<&str> = text.lines().take_while(|line| !line.starts_with("-----END")).collect();
    let body: String = block.iter().skip(2).filter(|line| !line.starts_with('=')).copied().collect();
    let bytes = STANDARD.decode(body).unwrap();
    let mut changed = bytes.clone();
    let place = changed.windows(3).position(|window| window == b"Ada").unwrap();
    changed[place] = b'E';
    let armoured = |bytes: &[u8]| {
        let label = "PGP PUBLIC KEY BLOCK";
        format!("-----BEGIN {label}-----\n\n{}\n-----END {label}-----\n", STANDARD.encode(bytes))
    };
    std::fs::write(&file, armoured(&changed)).unwrap();
    assert!(refused(true).contains("has no name that it signed itself"), "{}", refused(true));
    for end in 0..bytes.len() {
        std::fs::write(&file, armoured(&bytes[..end])).unwrap();
        assert!(Keys::read(None, Some(&file)).is_err(), "{end}");
    }
}

fn paths(commit: &SignedCommit) -> Vec<&str> {
    commit.paths.iter().map(String::as_str).collect()
}

#[test]
fn a_merge_answers_for_what_its_parents_do_not_bring() {
    let fixture = Fixture::new();
    let base = fixture.commit("First", &[("a.yaml", "1\n"), ("b.yaml", "1\n"), ("c.yaml", "1\n")]);
    fixture.git(&["checkout", "--quiet", "-b", "topic"]);
    fixture.commit("On a topic", &[("a.yaml", "2\n")]);
    fixture.git(&["checkout", "--quiet", "main"]);
    fixture.commit("On main", &[("b.yaml", "2\n")]);
    fixture.git(&["merge", "--quiet", "--no-ff", "--message", "Merge", "topic"]);
    let merged = fixture.git(&["rev-parse", "HEAD"]);
    // The same, with something that neither has, and without what one of them has.
    fixture.write("c.yaml", "evil\n");
    fixture.write("b.yaml", "1\n");
    fixture.git(&["commit", "--quiet", "--all", "--amend", "--message", "Evil merge"]);
    let evil = fixture.git(&["rev-parse", "HEAD"]);
    let history = SignedHistory::open(&fixture.path()).unwrap();
    let between = history.between(Some(&base), &merged).unwrap();
    let titles: Vec<&str> = between.commits.iter().map(|commit| commit.title.as_str()).collect();
    assert_eq!((titles.len(), titles[2]), (3, "Merge"));
    let of = |title: &str| paths(between.commits.iter().find(|commit| commit.title == title).unwrap());
    assert_eq!((of("On a topic"), of("On main"), of("Merge")), (vec!["a.yaml"], vec!["b.yaml"], vec![]));
    assert_eq!(between.paths, ["a.yaml", "b.yaml"]);
    let between = history.between(Some(&base), &evil).unwrap();
    assert_eq!(paths(between.commits.last().unwrap()), ["b.yaml", "c.yaml"]);
    // A branch that was set back has no commit of its own: the head answers.
    let back = history.between(Some(&merged), &base).unwrap();
    assert_eq!((back.commits.len(), back.paths.len()), (1, 2));
    assert!(history.between(Some(&base), &base).unwrap().commits.is_empty());
    assert_eq!(history.between(None, &merged).unwrap().commits.len(), 1);
    // What both changed is for who merges.
    fixture.git(&["checkout", "--quiet", "-B", "conflict", &base]);
    fixture.commit("Also a", &[("a.yaml", "3\n")]);
    let mut merge = Command::new("git");
    clean(&mut merge, &fixture.path()).args(["merge", "--quiet", "topic"]).current_dir(fixture.path());
    assert!(!merge.output().unwrap().status.success());
    let resolved = fixture.commit("Resolved", &[("a.yaml", "2\n")]);
    let between = SignedHistory::open(&fixture.path()).unwrap().between(Some(&base), &resolved).unwrap();
    assert_eq!(paths(between.commits.last().unwrap()), ["a.yaml"]);
}

/// A merge of three could take what the oldest of them had, and nothing would differ from its first parent.
#[test]
fn a_merge_of_three_answers_for_what_it_undoes() {
    let fixture = Fixture::new();
    let old = fixture.commit("Old", &[("cutlist.yaml", "old"), ("a.yaml", "a")]);
    let base = fixture.commit("Strict", &[("cutlist.yaml", "strict"), ("a.yaml", "a")]);
    let tree = |commit: &str| fixture.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    let made = |name: &str, tree: &str, parents: &[&str]| {
        let parents = parents.iter().flat_map(|parent| ["-p", *parent]);
        fixture.git(&["commit-tree", tree, "-m", name].into_iter().chain(parents).collect::<Vec<_>>())
    };
    let beside = made("Beside", &tree(&old), &[&old]);
    let history = SignedHistory::open(&fixture.path()).unwrap();
    let changed = |head: &str| {
        let between = history.between(Some(&base), head).unwrap();
        let last = between.commits.into_iter().next_back().unwrap();
        (last.before != Some(last.after), last.paths)
    };
    for parents in [[&old, &base, &beside], [&base, &old, &beside], [&beside, &old, &base]] {
        let octopus = made("Undo", &tree(&old), &parents.map(String::as_str));
        assert_eq!(changed(&octopus), (true, vec!["cutlist.yaml".to_owned()]), "{parents:?}");
        // One that brings what its parents bring together brings nothing itself.
        let octopus = made("Merge", &tree(&base), &parents.map(String::as_str));
        assert_eq!(changed(&octopus), (false, Vec::new()), "{parents:?}");
    }
    let more: Vec<String> = (0..40).map(|number| made(&number.to_string(), &tree(&old), &[&old])).collect();
    let many = made("Many", &tree(&old), &more.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(changed(&many), (false, Vec::new()), "each of them is so already");
    let many = made("More", &tree(&old), &more.iter().chain([&base]).map(String::as_str).collect::<Vec<_>>());
    assert_eq!(changed(&many), (true, vec!["cutlist.yaml".to_owned()]));
}

/// The files of the operator: Ada is of the platform team, Bob commits, the forge merges.
fn operators(folder: &Path) -> [Signer; 3] {
    let signers = [Signer::new(1), Signer::new(2), Signer::new(3)];
    let names = ["ada@example.com", "bob@example.com", "forge@example.com"];
    let lines: String = signers.iter().zip(names).map(|(signer, name)| signer.line(name)).collect();
    std::fs::write(folder.join("allowed"), lines).unwrap();
    let policy = "apiVersion: cutlist.dev/v1alpha1\nkind: SigningPolicy\nspec:\n  groups:\n    platform: [ada@example.com]\n    \
                  developers: [ada@example.com, bob@example.com]\n  rules:\n  - name: settings\n    paths: [cutlist.yaml]\n    \
                  signers: [platform]\n  - name: limits\n    raises: [limits]\n    branches: [main]\n    signers: [platform]\n  \
                  - name: all\n    paths: ['**']\n    signers: [developers]\n";
    std::fs::write(folder.join("policy.yaml"), policy).unwrap();
    signers
}

#[test]
fn a_preview_says_who_should_have_signed() {
    let fixture = Fixture::new();
    let operators_files = fixture.beside("");
    let [ada, bob, _] = operators(&operators_files);
    ada.commit(&fixture, "First", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    let preview = |further: &[&str]| {
        let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preview/clusters/blue.yaml");
        let snapshot = format!("blue={}", snapshot.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        let place = fixture.path();
        command.args(["preview", place.to_str().unwrap(), "--base", "main", "--head", "topic", "--cluster", &snapshot]);
        command.args(["--without-simulation", "--allowed-signers", "allowed"]).args(further);
        let output = command.current_dir(&operators_files).env_clear().output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    fixture.git(&["checkout", "--quiet", "-b", "topic"]);
    bob.commit(&fixture, "More", &[("pool.yaml", &POOL.replace("\"100\"", "\"200\""))]);
    let (code, text) = preview(&["--signing-policy", "policy.yaml"]);
    assert!(
        code == 1
            && text.contains("(More) raises the limit cpu of NodePool/default, which rule limits leaves to platform"),
        "{text}"
    );
    let (code, text) = preview(&["--signing-policy", "policy.yaml", "-o", "markdown"]);
    assert!(code == 1 && text.contains("> [!WARNING] > Not signed by who must have"), "{text}");
    // Who may sign at all may, where no rule says more.
    let (code, text) = preview(&[]);
    assert!(code == 0 && text.contains("all commits are signed by who must have"), "{text}");
    fixture.commit("Nobody's", &[("pool.yaml", POOL)]);
    let (code, text) = preview(&[]);
    assert!(code == 1 && text.contains("(Nobody's) must be signed by somebody who may: nobody signed it"), "{text}");
    std::fs::write(
        operators_files.join("policy.yaml"),
        "apiVersion: cutlist.dev/v1alpha1\nkind: SigningPolicy\nspec: {groups: {}, rulez: []}\n",
    )
    .unwrap();
    let (code, text) = preview(&["--signing-policy", "policy.yaml"]);
    assert!(code == 2 && text.contains("policy.yaml is no signing policy") && text.contains("rulez"), "{text}");
}

/// The program itself follows a repository: what it says, line by line.
struct Following {
    child: std::process::Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Following {
    fn start(folder: &Path, bare: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.args(["run", "--embedded", &format!("file://{}", bare.display()), "--interval", "1s"]);
        command.args(["--allowed-signers", "allowed", "--signing-policy", "policy.yaml"]);
        let mut child = command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = std::sync::mpsc::sync_channel(1_000);
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| said.send(line).is_ok()));
        Self { child, lines }
    }

    /// The next line with this text.
    fn until(&self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(std::time::Duration::from_secs(60)) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(_) => panic!("it never said `{text}`, but: {}", before.join("\n")),
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

#[test]
fn the_controller_uses_what_is_signed_by_who_must_have() {
    let fixture = Fixture::new();
    let [ada, bob, forge] = operators(&fixture.beside(""));
    let with_limit = |limit: &str| POOL.replace("\"100\"", &format!("\"{limit}\""));
    bob.commit(&fixture, "First", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    let bare = fixture.bare("bare.git");
    let push = || fixture.git(&["push", "--quiet", "--force", "origin", "main"]);
    let following = Following::start(&fixture.beside(""), &bare);
    // The first that there ever was: who may sign at all may begin.
    following.until("created NodePool/default");
    bob.commit(&fixture, "Bob raises", &[("pool.yaml", &with_limit("200"))]);
    push();
    following.until("is not signed by who must have");
    let line = following.until("(Bob raises)");
    assert!(line.contains("raises the limit cpu of NodePool/default, which rule limits leaves to platform: it is signed by bob@example.com"), "{line}");
    // Undone, and then done by who may, on a branch that the forge merges.
    bob.commit(&fixture, "Bob takes it back", &[("pool.yaml", POOL)]);
    push();
    following.until("Plan ");
    fixture.git(&["checkout", "--quiet", "-b", "topic"]);
    ada.commit(&fixture, "Ada raises", &[("pool.yaml", &with_limit("200"))]);
    fixture.git(&["checkout", "--quiet", "main"]);
    bob.commit(&fixture, "Bob writes", &[("README", "x\n")]);
    fixture.git(&["merge", "--quiet", "--no-ff", "--message", "Merge", "topic"]);
    forge.sign_head(&fixture);
    push();
    following.until("changed NodePool/default");
    // A merge that brings something itself, by a key that may only merge.
    fixture.commit(
        "Evil merge",
        &[("cutlist.yaml", "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: {clusterName: x}\n")],
    );
    forge.sign_head(&fixture);
    push();
    let line = following.until("which rule settings");
    assert!(line.contains("(Evil merge) changes cutlist.yaml, which rule settings leaves to platform: it is signed by forge@example.com"), "{line}");
    // History that is rewritten takes back what came before: the head answers for it.
    fixture.git(&["reset", "--quiet", "--hard", "HEAD~2"]);
    bob.commit(&fixture, "Rewritten", &[("pool.yaml", &with_limit("500"))]);
    push();
    following.until("(Rewritten) raises the limit cpu");
    // More people may sign, from now on: what was held is used.
    let allowed = fixture.beside("policy.yaml");
    let policy = std::fs::read_to_string(&allowed).unwrap();
    std::fs::write(&allowed, policy.replace("platform: [", "platform: [bob@example.com, ")).unwrap();
    following.until("changed NodePool/default");
}
