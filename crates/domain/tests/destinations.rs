//! The destination policy held against a collection of hostile and harmless URLs, and its own
//! promises beside it.

use std::{collections::HashMap, net::IpAddr};

use chrono::DateTime;
use domain::{
    destination::{DestinationPolicy, DestinationRefused, URL_BYTES_MAX},
    judge::{Attempt, StatusRules, Verdict, judge},
    outcome::Outcome,
    retry::RetryPolicy,
};
use proptest::prelude::*;

/// One case of `cases/urls.json`.
#[derive(serde::Deserialize)]
struct Case {
    id: String,
    url: String,
    must: Must,
    why: String,
    stage: Stage,
    /// What the resolver answers, by name.
    #[serde(default)]
    dns: HashMap<String, Vec<String>>,
    /// What it answers one time after the other.
    #[serde(default)]
    dns_sequence: Vec<Vec<String>>,
    response_status: Option<u16>,
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Must {
    Allow,
    Refuse,
}

#[derive(PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    Registration,
    Resolve,
    Connect,
    Redirect,
}

/// Cases that no pure function can decide, each with its reason.
const SKIPPED: [(&str, &str); 1] = [("u285", "needs the addresses this host listens on")];

/// What everybody gets who configures nothing.
const PUBLIC_ONLY: DestinationPolicy = DestinationPolicy {
    allowed_networks: Vec::new(),
    allow_http: false,
};

#[test]
fn every_case_comes_out_as_it_must() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("cases/urls.json")).unwrap();
    assert_eq!(cases.len(), 174);
    let wrong: Vec<String> = cases
        .iter()
        .filter(|case| !SKIPPED.iter().any(|(id, _)| *id == case.id))
        .filter(|case| decided(case) != case.must)
        .map(|case| format!("{} must {:?}: {}", case.id, case.must, case.why))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn decided(case: &Case) -> Must {
    let permitted = match case.stage {
        Stage::Registration => PUBLIC_ONLY.check_url(&case.url).is_ok(),
        Stage::Resolve | Stage::Connect => may_connect(case),
        Stage::Redirect => is_delivered(case.response_status.unwrap()),
    };
    if permitted { Must::Allow } else { Must::Refuse }
}

/// An attempt goes out only if its URL and every answer of the resolver pass.
fn may_connect(case: &Case) -> bool {
    let mut answers = case.dns.values().chain(&case.dns_sequence);
    PUBLIC_ONLY.check_url(&case.url).is_ok()
        && answers.all(|answer| {
            let addresses: Vec<IpAddr> = answer.iter().map(|text| text.parse().unwrap()).collect();
            PUBLIC_ONLY.check_addresses(&addresses).is_ok()
        })
}

/// A redirect is never followed, so all that counts is what the judge makes of its status.
fn is_delivered(status: u16) -> bool {
    let judgement = judge(
        &Outcome::response(status, None),
        Attempt {
            number: 1,
            max_attempts: 5,
        },
        &RetryPolicy::Schedule(Vec::new()),
        &StatusRules::default(),
        DateTime::UNIX_EPOCH,
        0.5,
    );
    judgement.verdict == Verdict::Delivered
}

fn refused(url: &str) -> DestinationRefused {
    PUBLIC_ONLY.check_url(url).unwrap_err()
}

fn allowing(networks: &[&str]) -> DestinationPolicy {
    DestinationPolicy {
        allowed_networks: networks.iter().map(|text| text.parse().unwrap()).collect(),
        allow_http: true,
    }
}

#[test]
fn every_refusal_says_which_kind_it_is() {
    use DestinationRefused::{
        AddressForm, Character, ForbiddenAddress, Form, LocalName, Name, Port, Scheme, UserInfo,
    };
    let kinds = [
        ("https://a.example.com/ x", Character),
        ("https://a.example.com\\x", Character),
        ("https://a.example.com/é", Character),
        ("https:a.example.com", Form),
        ("https:///hook", Form),
        ("http://a.example.com/", Scheme),
        ("ftp://a.example.com/", Scheme),
        ("https://user@a.example.com/", UserInfo),
        ("https://a.example.com:/", Port),
        ("https://a.example.com:0443/", Port),
        ("https://a.example.com:65536/", Port),
        ("https://127.1/", AddressForm),
        ("https://a..example.com/", Name),
        ("https://localhost/", LocalName),
        ("https://10.0.0.1/", ForbiddenAddress),
    ];
    for (url, kind) in kinds {
        assert_eq!(refused(url), kind, "{url}");
    }
}

#[test]
fn no_refusal_repeats_what_the_url_said() {
    for url in [
        "https://user:canary@a.example.com/?q=canary",
        "https://10.0.0.1/canary?canary",
        "canary",
    ] {
        let refusal = refused(url);
        assert!(
            !format!("{refusal} {refusal:?}").contains("canary"),
            "{url}"
        );
    }
}

#[test]
fn lengths_are_permitted_up_to_their_limit() {
    let start = "https://a.example.com/";
    let longest = format!("{start}{}", "a".repeat(URL_BYTES_MAX - start.len()));
    assert!(PUBLIC_ONLY.check_url(&longest).is_ok());
    assert_eq!(refused(&format!("{longest}a")), DestinationRefused::Length);
    let label = "a".repeat(63);
    assert!(
        PUBLIC_ONLY
            .check_url(&format!("https://{label}.example.com/"))
            .is_ok()
    );
    assert_eq!(
        refused(&format!("https://{label}a.example.com/")),
        DestinationRefused::Name
    );
    // Four labels, 253 characters.
    let name = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert!(PUBLIC_ONLY.check_url(&format!("https://{name}/")).is_ok());
    assert_eq!(
        refused(&format!("https://{name}a/")),
        DestinationRefused::Name
    );
}

#[test]
fn ports_of_other_services_are_refused_and_ephemeral_ones_permitted() {
    let check = |port: u16| PUBLIC_ONLY.check_url(&format!("https://a.example.com:{port}/"));
    for port in [80, 443, 1024, 8080, 8443, 32_768, u16::MAX] {
        assert!(check(port).is_ok(), "{port}");
    }
    for port in [0, 1, 22, 25, 442, 1023, 2375, 5432, 6379, 9200] {
        assert_eq!(check(port), Err(DestinationRefused::Port), "{port}");
    }
}

#[test]
fn an_accepted_url_is_returned_ready_for_use() {
    let url = |text| PUBLIC_ONLY.check_url(text).unwrap().to_string();
    assert_eq!(
        url("HTTPS://A.Example.COM./in?x=%20"),
        "https://a.example.com/in?x=%20"
    );
    assert_eq!(
        url("https://münchen.example.com/in"),
        "https://xn--mnchen-3ya.example.com/in"
    );
    assert_eq!(url("https://1.1.1.1:8443/in"), "https://1.1.1.1:8443/in");
}

#[test]
fn an_allowed_network_opens_itself_and_nothing_beside_it() {
    let policy = allowing(&["10.1.0.0/16", "fd00:1::/32"]);
    let check = |text: &str| policy.check_address(text.parse().unwrap());
    for inside in ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "fd00:1::1"] {
        assert_eq!(check(inside), Ok(()), "{inside}");
    }
    for outside in [
        "10.0.255.255",
        "10.2.0.0",
        "::ffff:10.2.0.0",
        "::10.1.2.3",
        "fd00:2::1",
        "127.0.0.1",
    ] {
        assert_eq!(
            check(outside),
            Err(DestinationRefused::ForbiddenAddress),
            "{outside}"
        );
    }
    assert!(policy.check_url("http://10.1.2.3:8080/in").is_ok());
    assert!(policy.check_url("http://10.2.2.3:8080/in").is_err());
}

#[test]
fn one_forbidden_address_refuses_the_whole_answer() {
    let check = |texts: &[&str]| {
        let addresses: Vec<IpAddr> = texts.iter().map(|text| text.parse().unwrap()).collect();
        PUBLIC_ONLY.check_addresses(&addresses)
    };
    assert_eq!(check(&["1.1.1.1", "2606:4700:4700::1111"]), Ok(()));
    assert_eq!(
        check(&["1.1.1.1", "10.0.0.1"]),
        Err(DestinationRefused::ForbiddenAddress)
    );
    assert_eq!(check(&[]), Err(DestinationRefused::NoAddress));
}

#[test]
fn local_names_follow_the_allowed_networks() {
    let (none, loopback, own) = (
        allowing(&[]),
        allowing(&["127.0.0.0/8"]),
        allowing(&["10.0.0.0/8"]),
    );
    let permitted = |name: &str| {
        let url = format!("http://{name}:8080/in");
        [&none, &loopback, &own].map(|policy| policy.check_url(&url).is_ok())
    };
    for name in ["localhost", "LOCALHOST.", "a.localhost"] {
        assert_eq!(permitted(name), [false, true, false], "{name}");
    }
    for name in [
        "receiver",
        "receiver.shop.svc",
        "receiver.shop.svc.cluster.local",
        "a.internal",
    ] {
        assert_eq!(permitted(name), [false, false, true], "{name}");
    }
    for name in ["a.onion", "a.test", "a.invalid", "1.0.0.10.in-addr.arpa"] {
        assert_eq!(permitted(name), [false; 3], "{name}");
    }
    assert_eq!(permitted("localhost.example.com"), [true; 3]);
}

#[test]
fn ranges_are_refused_from_their_first_address_to_their_last() {
    let public = |text: &str| PUBLIC_ONLY.check_address(text.parse().unwrap()).is_ok();
    let edges = [
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        (
            "100.63.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "100.128.0.0",
        ),
        (
            "126.255.255.255",
            "127.0.0.0",
            "127.255.255.255",
            "128.0.0.0",
        ),
        (
            "168.63.129.15",
            "168.63.129.16",
            "168.63.129.16",
            "168.63.129.17",
        ),
        (
            "172.15.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "172.32.0.0",
        ),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        (
            "198.17.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.20.0.0",
        ),
        ("2000:ffff::", "2001::", "2001:1ff:ffff::", "2001:200::"),
        (
            "2001:db7:ffff::",
            "2001:db8::",
            "2001:db8:ffff::",
            "2001:db9::",
        ),
        ("2001:ffff::", "2002::", "2002:ffff::", "2003::"),
        ("3ffe:ffff::", "3fff::", "3fff:fff:ffff::", "3fff:1000::"),
    ];
    for (before, first, last, after) in edges {
        let seen = [before, first, last, after].map(public);
        assert_eq!(seen, [true, false, false, true], "{first} to {last}");
    }
    for address in ["223.255.255.255", "2000::", "3ffe::"] {
        assert!(public(address), "{address}");
    }
    for address in [
        "224.0.0.0",
        "255.255.255.255",
        "1fff:ffff::",
        "4000::",
        "2606::5efe:1.1.1.1",
    ] {
        assert!(!public(address), "{address}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "(https?://)?\\PC*") {
        let _ = allowing(&["0.0.0.0/0"]).check_url(&text);
    }

    #[test]
    fn what_was_accepted_once_is_accepted_again(
        host in "[a-zA-Zäß0-9._-]{1,20}(\\.com)?\\.?",
        port in proptest::option::of(any::<u16>()),
    ) {
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        if let Ok(url) = PUBLIC_ONLY.check_url(&format!("https://{host}{port}/in")) {
            prop_assert_eq!(PUBLIC_ONLY.check_url(url.as_str()), Ok(url));
        }
    }

    #[test]
    fn an_address_is_refused_in_every_spelling_that_the_parser_would_turn_into_it(
        address in any::<u32>(),
    ) {
        let [a, b, c, d] = address.to_be_bytes();
        let low = address & 0xffff;
        for spelling in [
            format!("{address}"),
            format!("0x{address:x}"),
            format!("0{address:o}"),
            format!("{a}.{}", address & 0x00ff_ffff),
            format!("{a}.{b}.{low}"),
            format!("0x{a:x}.{b}.{c}.{d}"),
            format!("{a}.{b}.{c}.0{d:o}"),
            format!("{a}.{b}.{c}.{d}."),
        ] {
            prop_assert!(PUBLIC_ONLY.check_url(&format!("https://{spelling}/")).is_err(), "{}", spelling);
        }
    }
}
