//! A GitHub App: a token that its key signs asks which installation has the repository, and that installation for a token of an hour
//! for this repository alone.
//!
//! Source: `https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app`.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::Method;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::adapters::forge::dialect::{Token, TokenStep};
use crate::adapters::forge::http::{Credential, Request, Secret, SecretError};

/// Clocks differ; GitHub advises a minute.
const BEFORE: SignedDuration = SignedDuration::from_secs(60);
/// Ten minutes are the most.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(9);

pub(super) fn token_step(
    repository: &str,
    issuer: &str,
    key: &Secret,
    now: Timestamp,
    answers: &[Value],
) -> Result<TokenStep, SecretError> {
    let signed = || Ok(Credential::bearer(&signed_token(issuer, key, now)?));
    match answers {
        [] => Ok(TokenStep::Ask(Box::new(Request::get(format!("{repository}/installation"))), signed()?)),
        [installation] => {
            let Some(id) = installation["id"].as_u64() else {
                return Ok(TokenStep::Nothing("the answer names no installation of the App"));
            };
            let name = repository.rsplit('/').next().unwrap_or_default();
            let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
            let body = json!({ "repositories": [name] });
            let path = format!("/app/installations/{id}/access_tokens");
            // Two tokens are no harm.
            Ok(TokenStep::Ask(Box::new(Request::change(Method::POST, path, Some(body))), signed()?))
        }
        [_, token, ..] => {
            let until = token["expires_at"].as_str().and_then(|it| it.parse().ok());
            match (token["token"].as_str(), until) {
                (Some(value), Some(until)) => {
                    Ok(TokenStep::Have(Token { value: Secret::new(value.to_owned()), until }))
                }
                _ => Ok(TokenStep::Nothing("the answer holds no token")),
            }
        }
    }
}

/// A JSON Web Token, RS256.
fn signed_token(issuer: &str, key: &Secret, now: Timestamp) -> Result<String, SecretError> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({
        "iat": now.saturating_sub(BEFORE).unwrap_or(now).as_second(),
        "exp": now.saturating_add(GOOD_FOR).unwrap_or(now).as_second(),
        "iss": issuer,
    });
    let message = format!("{}.{}", part(&json!({ "alg": "RS256", "typ": "JWT" })), part(&claims));
    let no_key = || SecretError::NoKey("the file or variable of the App's key".to_owned());
    let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes()).map_err(|_| no_key())?;
    let key = match &key {
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
        _ => return Err(no_key()),
    };
    let key = key.map_err(|_| no_key())?;
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).map_err(|_| no_key())?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn pem(key: &RsaKeyPair) -> Secret {
        let der = key.as_der().unwrap();
        let lines: Vec<String> = STANDARD
            .encode(der.as_ref())
            .as_bytes()
            .chunks(64)
            .map(|it| String::from_utf8_lossy(it).into_owned())
            .collect();
        Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n")))
    }

    #[test]
    fn signs_what_github_can_verify() {
        let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let now: Timestamp = "2026-11-26T12:00:00Z".parse().unwrap();
        let token = signed_token("Iv1.abc", &pem(&key), now).unwrap();
        let (message, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
        public.verify(message.as_bytes(), &signature).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(message.split_once('.').unwrap().1).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 600);
        assert_eq!(claims["iss"], "Iv1.abc");
    }

    #[test]
    fn what_is_no_key_is_not_shown() {
        let error = signed_token("1", &Secret::new("ghp_secret".to_owned()), Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains("no private key") && !error.to_string().contains("ghp"), "{error}");
    }
}
