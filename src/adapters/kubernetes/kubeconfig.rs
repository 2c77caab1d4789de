//! What a kubeconfig holds that nobody else may read.

use std::error::Error;

use http::HeaderValue;
use kube::config::{AuthInfo, Kubeconfig, KubeconfigError};
use serde_json::Value;

use crate::adapters::http::{remember_password, remember_secret};

/// Parts of the names of variables, flags and settings whose values are secrets.
const OF_SECRETS: [&str; 6] = ["credential", "key", "passwd", "password", "secret", "token"];

/// In the place of what the library says, which quotes the lines around the mistake.
#[derive(Debug, thiserror::Error)]
#[error("it can not be read; its lines may hold secrets, so none is shown: `kubectl config view` says which is wrong")]
pub struct NotReadable;

/// The error, without what the file says.
pub fn without_lines(error: KubeconfigError) -> Box<dyn Error + Send + Sync> {
    match error {
        KubeconfigError::Parse(_) => Box::new(NotReadable),
        error => Box::new(error),
    }
}

/// From now on no message repeats what its users show to be who they are.
pub fn remember_secrets(kubeconfig: &Kubeconfig) {
    kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref()).for_each(remember_secrets_of);
}

fn remember_secrets_of(user: &AuthInfo) {
    // The library tells secrets to nobody but who writes the file.
    let Ok(written) = serde_json::to_value(user) else { return };
    let text = |pointer: &str| written.pointer(pointer).and_then(Value::as_str);
    if let Some(password) = text("/password") {
        remember_password(text("/username").unwrap_or_default(), password);
    }
    [text("/token"), text("/client-key-data")].into_iter().flatten().for_each(remember_secret);
    for (name, value) in written.pointer("/auth-provider/config").and_then(Value::as_object).into_iter().flatten() {
        value.as_str().filter(|_| is_of_secret(name)).into_iter().for_each(remember_secret);
    }
    for variable in written.pointer("/exec/env").and_then(Value::as_array).into_iter().flatten() {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        let value = variable.get("value").and_then(Value::as_str);
        value.filter(|_| is_of_secret(name)).into_iter().for_each(remember_secret);
    }
    let words = written.pointer("/exec/args").and_then(Value::as_array).into_iter().flatten();
    remember_secrets_of_flags(words.filter_map(Value::as_str));
}

/// `--client-secret=VALUE`, `--client-secret VALUE`
fn remember_secrets_of_flags<'w>(words: impl Iterator<Item = &'w str>) {
    let mut is_value = false;
    for word in words {
        match word.split_once('=') {
            _ if is_value => remember_secret(word),
            Some((flag, value)) if is_of_secret(flag) => remember_secret(value),
            _ => {}
        }
        is_value = word.starts_with('-') && !word.contains('=') && is_of_secret(word);
    }
}

fn is_of_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    OF_SECRETS.iter().any(|part| name.contains(part))
}

/// Whether the token, if there is one, can stand in a header: the library does not ask.
pub fn has_sendable_token(user: &AuthInfo) -> bool {
    let written = serde_json::to_value(user).unwrap_or_default();
    let token = written.get("token").and_then(Value::as_str);
    token.is_none_or(|token| HeaderValue::from_str(&format!("Bearer {token}")).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::http::without_secrets;

    fn user(text: &str) -> AuthInfo {
        serde_yaml::from_str(text).unwrap()
    }

    #[test]
    fn what_users_show_is_not_repeated() {
        remember_secrets_of(&user(
            "token: token-of-a-test\n\
             client-key-data: key-of-a-test\n\
             auth-provider: { name: oidc, config: { id-token: identity-of-a-test, idp-issuer-url: https://issuer.example.com } }\n\
             exec:\n  \
               args: [get-token, --client-secret=secret-of-a-test, --password, password-of-a-test, --region, us-east-1]\n  \
               env: [{ name: AWS_SECRET_ACCESS_KEY, value: variable-of-a-test }, { name: AWS_PROFILE, value: production }]\n",
        ));
        let secrets = [
            "token-of-a-test",
            "key-of-a-test",
            "identity-of-a-test",
            "secret-of-a-test",
            "password-of-a-test",
            "variable-of-a-test",
        ];
        for secret in secrets {
            assert_eq!(without_secrets(&format!("said {secret} aloud")), "said *** aloud");
        }
        for word in ["get-token", "us-east-1", "production", "https://issuer.example.com"] {
            assert_eq!(without_secrets(word), word);
        }
    }

    #[test]
    fn a_token_of_several_lines_is_found() {
        assert!(has_sendable_token(&user("token: abc")) && has_sendable_token(&user("{}")));
        assert!(!has_sendable_token(&user("token: |\n  abc\n\n  def\n")));
    }

    #[test]
    fn of_a_file_that_can_not_be_read_no_line_is_shown() {
        let text = "users:\n- name: u\n  user:\n    token: canary-of-a-line\n\tusername: u\n";
        let error = Kubeconfig::from_yaml(text).unwrap_err();
        assert!(matches!(error, KubeconfigError::Parse(_)));
        let said = without_lines(error).to_string();
        assert!(!said.contains("canary-of-a-line"), "{said}");
    }
}
