//! The schema: brought up once, however often and by however many it is asked for.

use store::{SchemaState, StoreError, migrate};

use crate::rig::Rig;

#[tokio::test]
async fn migrating_again_changes_nothing() {
    let rig = Rig::empty().await;
    assert_eq!(
        rig.store.schema_state().await.unwrap(),
        SchemaState::Missing
    );
    let version = migrate(&rig.store).await.unwrap();
    assert_eq!(migrate(&rig.store).await.unwrap(), version);
    let ready = SchemaState::Ready { found: version };
    assert_eq!(rig.store.schema_state().await.unwrap(), ready);
}

#[tokio::test]
async fn two_migrations_at_once_both_succeed() {
    let rig = Rig::empty().await;
    let other = rig.another_store();
    let (first, second) = tokio::join!(migrate(&rig.store), migrate(&other));
    assert_eq!(first.unwrap(), second.unwrap());
    let twice: bool = rig
        .value("SELECT count(*) <> count(DISTINCT version) FROM kurier.schema_migrations")
        .await;
    assert!(!twice);
}

#[tokio::test]
async fn statements_without_their_schema_say_what_to_do_and_an_older_one_is_told() {
    let rig = Rig::empty().await;
    let missing = rig.store.outbox_backlog().await.unwrap_err();
    assert!(matches!(missing, StoreError::Schema(_)));
    assert!(missing.to_string().contains("run `kurier migrate`"));
    let needed = migrate(&rig.store).await.unwrap();
    rig.execute(&format!(
        "DELETE FROM kurier.schema_migrations WHERE version = {needed}"
    ))
    .await;
    let found = needed - 1;
    assert_eq!(
        rig.store.schema_state().await.unwrap(),
        SchemaState::Behind { found, needed }
    );
}

#[tokio::test]
async fn a_newer_schema_is_good_enough() {
    let rig = Rig::start().await;
    rig.execute(
        "INSERT INTO kurier.schema_migrations (version, description, success, checksum, execution_time)
        VALUES (9999, 'from the future', true, ''::bytea, 0)",
    )
    .await;
    let state = rig.store.schema_state().await.unwrap();
    assert_eq!(state, SchemaState::Ready { found: 9999 });
    migrate(&rig.store).await.unwrap();
}
