//! A registry without a registry: what is read of references and of what it asks for.

use super::challenge::Challenge;
use super::*;

#[test]
fn references_are_read() {
    let parse = |text: &str| Reference::parse(text).map(|it| it.to_string());
    assert_eq!(parse("oci://r.example.com/team/snapshots").as_deref(), Ok("oci://r.example.com/team/snapshots:latest"));
    assert_eq!(parse("oci://127.0.0.1:5000/a:blue").as_deref(), Ok("oci://127.0.0.1:5000/a:blue"));
    let digest = format!("oci://r/a@sha256:{}", "0a".repeat(32));
    assert_eq!(parse(&digest).as_deref(), Ok(digest.as_str()));
    for wrong in [
        "r/a",
        "oci://r",
        "oci://r/",
        "oci://r/A",
        "oci://r/a:",
        "oci://r/a:-x",
        "oci://r/a/../b",
        "oci://r/a@sha256:0a",
        "oci://r/a b",
        "oci:///a",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    let error = Reference::parse("oci://me:pw@r/a").unwrap_err();
    assert!(!error.to_string().contains("pw"), "{error}");
}

#[test]
fn only_this_machine_is_asked_without_tls() {
    let origin = |text: &str| Reference::parse(text).unwrap().origin();
    assert_eq!(origin("oci://127.0.0.1:5000/a"), "http://127.0.0.1:5000");
    assert_eq!(origin("oci://localhost/a"), "http://localhost");
    assert_eq!(origin("oci://localhost.example.com/a"), "https://localhost.example.com");
    assert_eq!(origin("oci://r.example.com:443/a"), "https://r.example.com:443");
}

#[test]
fn challenges_are_read() {
    let bearer =
        r#"Bearer realm="https://auth.example.com/token",service="r.example.com",scope="repository:a/b:pull,push""#;
    let Some(Challenge::Bearer { realm, service, scope }) = Challenge::parse(bearer) else { panic!() };
    assert_eq!(realm, "https://auth.example.com/token");
    assert_eq!((service.as_deref(), scope.as_deref()), (Some("r.example.com"), Some("repository:a/b:pull,push")));
    assert_eq!(Challenge::parse("Basic realm=\"x\""), Some(Challenge::Basic));
    for strange in ["", "Digest a=b", "Bearer", "Bearer realm=\"x", "Bearer service=x"] {
        assert_eq!(Challenge::parse(strange), None, "{strange}");
    }
}
