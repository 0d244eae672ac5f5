//! The official Standard Webhooks libraries, as receivers would use them.

use std::process::{Output, Stdio};

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
        let ended = run(self.command(), &given(request, secret)).await;
        let told = String::from_utf8_lossy(&ended.stderr);
        let refused = told.contains("WebhookVerificationError");
        assert!(ended.status.success() || refused, "{self:?}: {told}");
        ended.status.success()
    }

    fn command(self) -> Command {
        match self {
            Self::Python => python(PYTHON),
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

/// Runs a script that reads JSON from its standard input, in the interpreter that has the library.
///
/// # Panics
/// When it cannot be run or fails.
pub async fn run_python(script: &str, given: &Value) -> String {
    let ended = run(python(script), given).await;
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

fn python(script: &str) -> Command {
    let mut command = Command::new(required("KURIER_TEST_PYTHON"));
    command.args(["-c", script]);
    command
}

async fn run(mut command: Command, given: &Value) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the script starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(given.to_string().as_bytes())
        .await
        .expect("the script reads");
    drop(stdin);
    child.wait_with_output().await.expect("the script ends")
}

/// A request as a receiver's script gets it: the secret, the body in base64, the signature's headers.
pub fn given(request: &Request, secret: &str) -> Value {
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
