//! `kurier endpoint add`: from arguments to an endpoint whose values have all been checked.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::Context as _;
use clap::Args;
use domain::{event_type::EventPattern, judge::StatusSet, signing::SigningSecret};
use rand::{TryRng as _, rngs::SysRng};
use serde::Serialize;
use store::NewEndpoint;
use uuid::Uuid;

use crate::{input::Input, output::Output};

/// The ranges that the database enforces too, or that `settings` has for the defaults.
const ATTEMPTS: RangeInclusive<u32> = 1..=1000;
const TIMEOUT_MS: RangeInclusive<u64> = 1..=600_000;
const WAIT_MS: RangeInclusive<u64> = 0..=86_400_000;
const THRESHOLD: RangeInclusive<u32> = 1..=1_000_000;

/// Every value is a text here: it is read further down, so that all faults are told at once.
#[derive(Args, Default)]
#[command(override_usage = "kurier endpoint add --url <URL> [OPTIONS]")]
pub(crate) struct Arguments {
    /// Where deliveries are posted to (required)
    #[arg(long)]
    url: Option<String>,
    /// Event types wanted: order.paid, order.* or *; may be repeated; without any, all of them
    #[arg(long = "event-type", value_name = "PATTERN")]
    event_types: Vec<String>,
    /// Whose events it gets
    #[arg(long)]
    tenant: Option<String>,
    /// For people
    #[arg(long)]
    description: Option<String>,
    /// Attempts before a delivery becomes a dead letter (1 to 1000)
    #[arg(long, value_name = "N")]
    max_attempts: Option<String>,
    /// Limit of one attempt in milliseconds (1 to 600000)
    #[arg(long, value_name = "MS")]
    attempt_timeout_ms: Option<String>,
    /// Base of the exponential backoff in milliseconds
    #[arg(long, value_name = "MS")]
    retry_base_ms: Option<String>,
    /// Cap of the exponential backoff in milliseconds
    #[arg(long, value_name = "MS")]
    retry_cap_ms: Option<String>,
    /// Waits in milliseconds instead of a backoff, such as 60000,300000
    #[arg(long, value_name = "MS,MS")]
    retry_schedule_ms: Option<String>,
    /// Statuses to retry although they are permanent, such as 404,409
    #[arg(long, value_name = "STATUSES")]
    retry_statuses: Option<String>,
    /// Statuses to give up on although they are transient, such as 501-503
    #[arg(long, value_name = "STATUSES")]
    reject_statuses: Option<String>,
    /// Consecutive failures that open the circuit breaker
    #[arg(long, value_name = "N")]
    breaker_threshold: Option<String>,
    /// How deliveries are signed: hmac (unless --secret says otherwise) or ed25519
    #[arg(long, value_name = "hmac|ed25519")]
    signing: Option<String>,
    /// A signing secret of one's own, whsec_... or whsk_...; without it one is made up
    #[arg(long)]
    secret: Option<String>,
}

/// What is printed, the secret this once.
#[derive(Serialize)]
struct Added {
    id: Uuid,
    secret: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
}

/// Registers the endpoint and prints its id and secret.
pub(crate) async fn run(
    arguments: Arguments,
    mut input: Input,
    output: Output,
) -> anyhow::Result<()> {
    let random = random_key().context("the system has no random numbers")?;
    let signing = signing_secret(&arguments, random, &mut input);
    let endpoint = new_endpoint(arguments, &mut input);
    let store = input.into_store()?;
    let signing = signing.context("no signing secret")?;
    let secret = signing.reveal();
    let endpoint = NewEndpoint {
        secret: secret.clone(),
        ..endpoint
    };
    let id = store
        .add_endpoint(&endpoint)
        .await
        .context("cannot add the endpoint")?;
    print(output, id, secret, &signing)
}

fn print(output: Output, id: Uuid, secret: String, signing: &SigningSecret) -> anyhow::Result<()> {
    let public_key = signing.public_key();
    let fields: &[&str] = match public_key {
        Some(_) => &["id", "secret", "public_key"],
        None => &["id", "secret"],
    };
    let added = Added {
        id,
        secret,
        public_key,
    };
    output.record(&added, fields)
}

/// Everything but the secret. Meaningless where faults were found.
fn new_endpoint(arguments: Arguments, input: &mut Input) -> NewEndpoint {
    let given = &arguments;
    let endpoint = NewEndpoint {
        attempt_timeout: milliseconds(
            "--attempt-timeout-ms",
            given.attempt_timeout_ms.as_deref(),
            TIMEOUT_MS,
            input,
        ),
        max_attempts: input.integer("--max-attempts", given.max_attempts.as_deref(), ATTEMPTS),
        retry_base: wait("--retry-base-ms", given.retry_base_ms.as_deref(), input),
        retry_cap: wait("--retry-cap-ms", given.retry_cap_ms.as_deref(), input),
        retry_schedule: schedule(given.retry_schedule_ms.as_deref(), input),
        retry_statuses: statuses("--retry-statuses", given.retry_statuses.as_deref(), input),
        reject_statuses: statuses("--reject-statuses", given.reject_statuses.as_deref(), input),
        breaker_threshold: input.integer(
            "--breaker-threshold",
            given.breaker_threshold.as_deref(),
            THRESHOLD,
        ),
        event_types: patterns(&given.event_types, input),
        tenant: arguments.tenant.unwrap_or_default(),
        description: arguments.description.unwrap_or_default(),
        url: destination(arguments.url, input),
        secret: String::new(),
    };
    refuse_two_retry_policies(&endpoint, input);
    endpoint
}

/// The URL in the form in which it will be called. Its text is in no fault: a query can be secret.
fn destination(url: Option<String>, input: &mut Input) -> String {
    let policy = settings::destinations(&mut input.env);
    let text = input.required("--url", url);
    if text.is_empty() {
        return text;
    }
    match policy.check_url(&text) {
        Ok(url) => url.into(),
        Err(refused) => {
            input.refuse("--url", refused);
            text
        }
    }
}

fn patterns(texts: &[String], input: &mut Input) -> Vec<String> {
    let mut read = |text| input.parsed::<EventPattern>("--event-type", Some(text));
    let patterns = texts.iter().filter_map(|text| read(text));
    patterns.map(|pattern| pattern.to_string()).collect()
}

fn statuses(argument: &str, text: Option<&str>, input: &mut Input) -> String {
    let statuses: Option<StatusSet> = input.parsed(argument, text);
    statuses.unwrap_or_default().to_string()
}

fn milliseconds(
    argument: &str,
    text: Option<&str>,
    range: RangeInclusive<u64>,
    input: &mut Input,
) -> Option<Duration> {
    let milliseconds = input.integer(argument, text, range)?;
    Some(Duration::from_millis(milliseconds))
}

fn wait(argument: &str, text: Option<&str>, input: &mut Input) -> Option<Duration> {
    milliseconds(argument, text, WAIT_MS, input)
}

fn schedule(text: Option<&str>, input: &mut Input) -> Option<Vec<Duration>> {
    let waits = input.integers("--retry-schedule-ms", text, &WAIT_MS)?;
    Some(waits.into_iter().map(Duration::from_millis).collect())
}

fn refuse_two_retry_policies(endpoint: &NewEndpoint, input: &mut Input) {
    let backoff = endpoint.retry_base.is_some() || endpoint.retry_cap.is_some();
    if backoff && endpoint.retry_schedule.is_some() {
        input.refuse(
            "--retry-schedule-ms",
            "cannot be given together with --retry-base-ms or --retry-cap-ms",
        );
    }
}

/// The secret that was given, or one made of `random`. Its text is in no fault.
fn signing_secret(
    arguments: &Arguments,
    random: [u8; 32],
    input: &mut Input,
) -> Option<SigningSecret> {
    let ed25519 = match arguments.signing.as_deref() {
        None => None,
        Some("hmac") => Some(false),
        Some("ed25519") => Some(true),
        Some(_) => {
            input.refuse("--signing", "expected hmac or ed25519");
            return None;
        }
    };
    match &arguments.secret {
        Some(text) => given_secret(text, ed25519, input),
        None if ed25519 == Some(true) => Some(SigningSecret::from_ed25519_seed(random)),
        None => Some(SigningSecret::from_hmac_key(random)),
    }
}

fn given_secret(text: &str, ed25519: Option<bool>, input: &mut Input) -> Option<SigningSecret> {
    let read = SigningSecret::parse(text.trim());
    let secret = read.map_err(|error| input.refuse("--secret", error)).ok()?;
    if ed25519.is_some_and(|wanted| wanted != secret.public_key().is_some()) {
        input.refuse("--secret", "is not of the kind that --signing asks for");
    }
    Some(secret)
}

fn random_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    SysRng.try_fill_bytes(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use process::Environment;

    use super::*;

    const RANDOM: [u8; 32] = [7; 32];

    /// The endpoint, or what is wrong, one fault a line.
    fn read(arguments: Arguments, variables: &[(&str, &str)]) -> Result<NewEndpoint, String> {
        let mut input = Input::new(Environment::from_pairs(variables.iter().copied()));
        signing_secret(&arguments, RANDOM, &mut input);
        let endpoint = new_endpoint(arguments, &mut input);
        input.finish().map_err(|faults| faults.to_string())?;
        Ok(endpoint)
    }

    fn valid() -> Arguments {
        Arguments {
            url: Some("https://hooks.example/in".into()),
            ..Arguments::default()
        }
    }

    #[test]
    fn what_is_not_given_follows_the_defaults() {
        let endpoint = read(valid(), &[]).unwrap();
        assert_eq!(endpoint.url, "https://hooks.example/in");
        assert!(endpoint.event_types.is_empty());
        assert_eq!((endpoint.max_attempts, endpoint.retry_base), (None, None));
        assert_eq!(endpoint.retry_statuses, "");
    }

    #[test]
    fn every_wrong_argument_is_named_in_one_answer() {
        let arguments = Arguments {
            url: Some("http://user:s3cret@10.0.0.1/".into()),
            event_types: vec!["order.*".into(), "order*".into(), "a b".into()],
            max_attempts: Some("0".into()),
            attempt_timeout_ms: Some("600001".into()),
            retry_base_ms: Some("-1".into()),
            retry_cap_ms: Some("86400001".into()),
            retry_schedule_ms: Some("60000,soon".into()),
            retry_statuses: Some("200".into()),
            reject_statuses: Some("5xx".into()),
            breaker_threshold: Some("1000001".into()),
            signing: Some("rsa".into()),
            secret: Some("s3cret".into()),
            ..Arguments::default()
        };
        let told = read(arguments, &[("KURIER_ALLOWED_NETWORKS", "10.0.0.0/99")]).unwrap_err();
        for named in [
            "--url",
            "\"order*\"",
            "\"a b\"",
            "--max-attempts",
            "--attempt-timeout-ms",
            "--retry-base-ms",
            "--retry-cap-ms",
            "--retry-schedule-ms: \"soon\"",
            "--retry-statuses",
            "--reject-statuses",
            "--breaker-threshold",
            "--signing",
            "KURIER_ALLOWED_NETWORKS",
        ] {
            assert!(told.contains(named), "{named} is missing in:\n{told}");
        }
        assert!(!told.contains("s3cret"), "{told}");
    }

    #[test]
    fn a_missing_url_is_a_fault_of_its_own() {
        assert_eq!(
            read(Arguments::default(), &[]).unwrap_err(),
            "--url: is missing"
        );
    }

    #[test]
    fn ones_own_network_is_reached_where_the_environment_allows_it() {
        let arguments = || Arguments {
            url: Some("http://127.0.0.1:8080/in".into()),
            ..Arguments::default()
        };
        let allowed = [
            ("KURIER_ALLOWED_NETWORKS", "127.0.0.0/8"),
            ("KURIER_ALLOW_HTTP", "true"),
        ];
        assert!(read(arguments(), &allowed).is_ok());
        assert!(read(arguments(), &allowed[..1]).is_err());
        assert!(read(arguments(), &allowed[1..]).is_err());
    }

    #[test]
    fn numbers_are_taken_at_their_largest() {
        let arguments = Arguments {
            max_attempts: Some("1000".into()),
            attempt_timeout_ms: Some("600000".into()),
            retry_schedule_ms: Some("0,86400000".into()),
            breaker_threshold: Some("1000000".into()),
            retry_statuses: Some("404, 409".into()),
            ..valid()
        };
        let endpoint = read(arguments, &[]).unwrap();
        assert_eq!(endpoint.max_attempts, Some(1000));
        assert_eq!(endpoint.attempt_timeout, Some(Duration::from_mins(10)));
        let schedule = [Duration::ZERO, Duration::from_hours(24)];
        assert_eq!(endpoint.retry_schedule.as_deref(), Some(&schedule[..]));
        assert_eq!(endpoint.retry_statuses, "404,409");
    }

    #[test]
    fn a_schedule_and_a_backoff_exclude_each_other() {
        let arguments = Arguments {
            retry_schedule_ms: Some("60000".into()),
            retry_cap_ms: Some("60000".into()),
            ..valid()
        };
        assert!(
            read(arguments, &[])
                .unwrap_err()
                .starts_with("--retry-schedule-ms")
        );
    }

    #[test]
    fn a_secret_is_made_for_the_kind_of_signing_asked_for() {
        let revealed = |signing: Option<&str>| {
            let arguments = Arguments {
                signing: signing.map(str::to_owned),
                ..valid()
            };
            let mut input = Input::new(Environment::default());
            let secret = signing_secret(&arguments, RANDOM, &mut input).unwrap();
            secret.reveal()
        };
        assert!(revealed(None).starts_with("whsec_"));
        assert!(revealed(Some("hmac")).starts_with("whsec_"));
        assert!(revealed(Some("ed25519")).starts_with("whsk_"));
    }

    #[test]
    fn a_given_secret_must_be_of_the_kind_asked_for() {
        let with = |signing: Option<&str>, secret: &SigningSecret| Arguments {
            signing: signing.map(str::to_owned),
            secret: Some(secret.reveal()),
            ..valid()
        };
        let hmac = SigningSecret::from_hmac_key(RANDOM);
        let ed25519 = SigningSecret::from_ed25519_seed(RANDOM);
        assert!(read(with(None, &ed25519), &[]).is_ok());
        assert!(read(with(Some("hmac"), &hmac), &[]).is_ok());
        let told = read(with(Some("ed25519"), &hmac), &[]).unwrap_err();
        assert_eq!(told, "--secret: is not of the kind that --signing asks for");
        assert!(read(with(Some("hmac"), &ed25519), &[]).is_err());
    }
}
