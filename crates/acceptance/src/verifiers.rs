//! The official Standard Webhooks libraries, as receivers would use them.

use std::process::Stdio;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use scripted_receiver::Request;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::environment::required;

const PYTHON: &str = r"
import base64, json, sys
from standardwebhooks.webhooks import Webhook
given = json.load(sys.stdin)
Webhook(given['secret']).verify(base64.b64decode(given['body']), given['headers'], json_parse=False)
";

const JAVASCRIPT: &str = r"
const { Webhook } = require('standardwebhooks');
const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
new Webhook(given.secret).verify(Buffer.from(given.body, 'base64'), given.headers);
";

/// One of the libraries. It reads bodies as text, JavaScript's as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verifier {
    /// `standardwebhooks` from `PyPI`, in the interpreter that `KURIER_TEST_PYTHON` names.
    Python,
    /// `standardwebhooks` from npm, in the folder that `KURIER_TEST_NODE_MODULES` names.
    JavaScript,
}

impl Verifier {
    /// Whether the library accepts this request under this secret.
    ///
    /// # Panics
    /// When the library cannot be run.
    pub async fn accepts(self, request: &Request, secret: &str) -> bool {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the verifier starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let given = given(request, secret).to_string();
        stdin
            .write_all(given.as_bytes())
            .await
            .expect("the verifier reads");
        drop(stdin);
        let ended = child.wait_with_output().await.expect("the verifier ends");
        let told = String::from_utf8_lossy(&ended.stderr);
        let refused = told.contains("WebhookVerificationError");
        assert!(ended.status.success() || refused, "{self:?}: {told}");
        ended.status.success()
    }

    fn command(self) -> Command {
        match self {
            Self::Python => {
                let mut command = Command::new(required("KURIER_TEST_PYTHON"));
                command.args(["-c", PYTHON]);
                command
            }
            Self::JavaScript => {
                let mut command = Command::new("node");
                command
                    .args(["-e", JAVASCRIPT])
                    .env("NODE_PATH", required("KURIER_TEST_NODE_MODULES"));
                command
            }
        }
    }
}

fn given(request: &Request, secret: &str) -> Value {
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    json!({
        "secret": secret,
        "body": STANDARD.encode(&request.body),
        "headers": {
            "webhook-id": header("webhook-id"),
            "webhook-timestamp": header("webhook-timestamp"),
            "webhook-signature": header("webhook-signature"),
        },
    })
}
