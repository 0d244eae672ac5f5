//! What the README tells people to type works as it stands there.

use acceptance::{Event, KURIER, RELAY, World, given, run_python};
use sqlx::{AssertSqlSafe, Executor as _};

const README: &str = include_str!("../../../../README.md");

/// The entry script, whose commands the README names.
const RUN: &str = include_str!("../../../../run");

/// What a receiver's framework would do around the README's function: first delivery, then a repeat.
const RECEIVER: &str = r"
import base64, json, sys
given = json.load(sys.stdin)
seen = set()
body = base64.b64decode(given['body'])
first = receive(given['secret'], given['headers'], body, seen)
second = receive(given['secret'], given['headers'], body, seen)
print(json.dumps([first, second]))
";

/// The fenced blocks of one language, in their order.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = README.split(&fence).skip(1);
    let blocks: Vec<String> = parts
        .filter_map(|part| Some(part.split_once("```")?.0.to_owned()))
        .collect();
    assert!(!blocks.is_empty(), "the README has no {language} block");
    blocks
}

/// The words of a command line; single quotes keep theirs together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[tokio::test]
async fn every_command_in_the_readme_works() {
    let world = World::start().await;
    for line in blocks("sh").iter().flat_map(|block| block.lines()) {
        let words = words(line);
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let program = match words[0].as_str() {
            "./run" => {
                let known = RUN
                    .lines()
                    .any(|help| help.trim_start().starts_with(arguments[0]));
                assert!(known, "{line}");
                continue;
            }
            "kurier" => KURIER,
            "outbox-relay" => RELAY,
            other => panic!("unknown program {other} in the README"),
        };
        let ended = world.launch(program).args(&arguments).run().await;
        assert_eq!(
            ended.code,
            Some(0),
            "{line}: {}{}",
            ended.stdout,
            ended.stderr
        );
    }
}

#[tokio::test]
async fn the_sql_in_the_readme_writes_three_events_in_one_transaction() {
    let world = World::start().await;
    let mut transaction = world.pool().begin().await.unwrap();
    for block in blocks("sql") {
        transaction
            .execute(sqlx::raw_sql(AssertSqlSafe(block)))
            .await
            .unwrap();
    }
    transaction.commit().await.unwrap();
    let types: Vec<(String,)> = world
        .rows("SELECT event_type FROM kurier.outbox_events ORDER BY event_type")
        .await;
    let types: Vec<&str> = types.iter().map(|(name,)| name.as_str()).collect();
    assert_eq!(types, ["order.paid", "order.paid", "report.ready"]);
}

#[tokio::test]
async fn the_receiver_in_the_readme_takes_a_delivery_once_and_ignores_its_repeat() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world
        .commit(&Event::json("order.paid", r#"{"order": 4711}"#))
        .await;
    world.until_status("delivered", 1).await;
    let requests = world.receiver.wait_for("/in", 1).await;
    let script = format!("{}\n{RECEIVER}", blocks("python").concat());
    let answer = run_python(&script, &given(&requests[0], &endpoint.secret)).await;
    assert_eq!(answer.trim(), r#"[{"order": 4711}, null]"#);
}
