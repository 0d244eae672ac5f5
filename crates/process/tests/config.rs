//! Configuration: every fault at once, limits at their edges, and no secret in any of it.

use std::net::SocketAddr;
use std::time::Duration;

use process::Environment;

fn faults(env: Environment) -> Vec<String> {
    let told = env.finish().err().map(|faults| faults.to_string());
    told.iter()
        .flat_map(|told| told.lines())
        .map(str::to_owned)
        .collect()
}

fn with(name: &str, value: &str) -> Environment {
    Environment::from_pairs([(name, value)])
}

#[test]
fn all_faults_are_told_at_once_each_on_its_own_line() {
    let mut env = Environment::from_pairs([
        ("APP_COUNT", "many"),
        ("APP_ON", "yes"),
        ("APP_ADDR", "here"),
    ]);
    env.text("APP_NAME");
    env.integer("APP_COUNT", 5, 1..=10);
    env.flag("APP_ON", false);
    env.socket_addr("APP_ADDR");
    env.report("APP_FLOOR", "is above APP_CEILING", "a value not above it");
    assert_eq!(
        faults(env),
        [
            "APP_NAME is not set; expected a value",
            "APP_COUNT is \"many\": invalid digit found in string; expected a whole number from 1 to 10",
            "APP_ON is \"yes\": neither true nor false; expected true, false, 1 or 0",
            "APP_ADDR is \"here\": invalid socket address syntax; expected an IP address and a port, such as 0.0.0.0:8080",
            "APP_FLOOR is above APP_CEILING; expected a value not above it",
        ]
    );
}

#[test]
fn what_is_not_set_takes_its_default_without_fault() {
    let mut env = Environment::default();
    assert_eq!(env.optional_text("APP_NOTE"), None);
    assert_eq!(env.parsed("APP_LETTER", 'a'), 'a');
    assert_eq!(env.integer("APP_COUNT", 5, 1..=10), 5);
    assert!(env.flag("APP_ON", true));
    assert!(env.list::<u8>("APP_LIST").is_empty());
    assert_eq!(env.socket_addr("APP_ADDR"), None);
    assert_eq!(faults(env), [""; 0]);
}

#[test]
fn what_is_set_is_read() {
    let mut env = Environment::from_pairs([
        ("APP_NAME", "a name"),
        ("APP_LETTER", " b "),
        ("APP_LIST", "1, 2,3"),
        ("APP_ADDR", "[::1]:80"),
    ]);
    assert_eq!(env.text("APP_NAME"), "a name");
    assert_eq!(env.parsed("APP_LETTER", 'a'), 'b');
    assert_eq!(env.list::<u8>("APP_LIST"), [1, 2, 3]);
    assert_eq!(
        env.socket_addr("APP_ADDR"),
        Some(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 80)))
    );
    assert_eq!(faults(env), [""; 0]);
}

#[test]
fn an_empty_value_counts_as_unset() {
    let mut env = Environment::from_pairs([("APP_NAME", ""), ("APP_COUNT", "")]);
    env.text("APP_NAME");
    assert_eq!(env.integer("APP_COUNT", 5, 1..=10), 5);
    assert_eq!(faults(env), ["APP_NAME is not set; expected a value"]);
}

#[test]
fn a_number_is_accepted_at_its_edges_and_refused_one_past_them() {
    for (text, accepted) in [
        ("0", false),
        ("1", true),
        ("10", true),
        ("11", false),
        ("-1", false),
    ] {
        let mut env = with("APP_COUNT", text);
        env.integer("APP_COUNT", 5_u32, 1..=10);
        assert_eq!(faults(env).is_empty(), accepted, "{text}");
    }
}

#[test]
fn a_duration_is_accepted_at_its_edges_and_refused_one_past_them() {
    let range = Duration::from_millis(10)..=Duration::from_secs(1);
    for (text, accepted) in [
        ("9", false),
        ("10", true),
        ("1000", true),
        ("1001", false),
        ("1s", false),
    ] {
        let mut env = with("APP_WAIT_MS", text);
        let wait = env.duration_ms("APP_WAIT_MS", Duration::from_millis(50), range.clone());
        assert_eq!(wait.as_millis().to_string() == text, accepted, "{text}");
        assert_eq!(faults(env).is_empty(), accepted, "{text}");
    }
}

#[test]
fn a_flag_is_one_of_four_words() {
    for (text, expected) in [("true", true), ("1", true), ("false", false), ("0", false)] {
        assert_eq!(with("APP_ON", text).flag("APP_ON", !expected), expected);
    }
    for text in ["TRUE", "yes", "2"] {
        let mut env = with("APP_ON", text);
        env.flag("APP_ON", false);
        assert_eq!(faults(env).len(), 1, "{text}");
    }
}

#[test]
fn each_wrong_element_of_a_list_is_named_by_its_place() {
    let mut env = with("APP_LIST", "1,x,3,,256");
    assert_eq!(env.list::<u8>("APP_LIST"), [1, 3]);
    let told = faults(env);
    assert_eq!(told.len(), 3);
    for (fault, place) in told.iter().zip(["element 2", "element 4", "element 5"]) {
        assert!(fault.contains(place), "{fault}");
    }
}

#[test]
fn a_value_that_may_be_a_secret_is_never_told() {
    for name in [
        "DATABASE_URL",
        "AMQP_URL",
        "APP_MASTER_KEYS",
        "APP_SECRET",
        "APP_TOKEN",
    ] {
        let mut env = with(name, "canary");
        env.parsed_with(name, (), "a good one", |text| Err(format!("{text} is bad")));
        env.list::<u8>(name);
        let told = faults(env);
        assert_eq!(told.len(), 2, "{name}");
        assert!(
            told.iter().all(|fault| !fault.contains("canary")),
            "{told:?}"
        );
    }
}

#[test]
fn a_long_or_many_lined_value_is_told_in_one_short_line() {
    let mut env = with("APP_COUNT", &format!("1\n{}", "9".repeat(500)));
    env.integer("APP_COUNT", 5, 1..=10);
    let told = faults(env);
    assert_eq!(told.len(), 1);
    assert!(told[0].len() < 200, "{told:?}");
}

#[test]
fn a_value_that_is_not_utf_8_is_one_fault() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let mut env = Environment::from_pairs([("APP_NAME", OsString::from_vec(vec![0xff]))]);
    env.text("APP_NAME");
    assert_eq!(faults(env), ["APP_NAME is not valid UTF-8; expected text"]);
}

#[test]
fn a_misspelt_variable_is_refused_with_the_nearest_known_one() {
    let mut env = with("APP_MAX_ATEMPTS", "7");
    env.integer("APP_MAX_ATTEMPTS", 5, 1..=10);
    env.refuse_misspelt("APP_", &["APP_RETRY_BASE_MS"]);
    let expected =
        "APP_MAX_ATEMPTS is not a variable of this program; expected APP_MAX_ATTEMPTS, perhaps";
    assert_eq!(faults(env), [expected]);
}

#[test]
fn variables_of_other_programs_prefixes_and_service_links_are_not_refused() {
    let mut env = Environment::from_pairs([
        ("APP_RETRY_BASE_MS", "1"),
        ("OTHER_VARIABLE", "1"),
        ("APP_WEB_SERVICE_HOST", "10.0.0.1"),
        ("APP_WEB_PORT", "tcp://10.0.0.1:80"),
    ]);
    env.refuse_misspelt("APP_", &["APP_RETRY_BASE_MS"]);
    assert_eq!(faults(env), [""; 0]);
}
