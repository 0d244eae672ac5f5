//! Chores: one of many does each, once in an interval.

use std::time::Duration;

use store::{Chore, Store};

use crate::rig::Rig;

const INTERVAL: Duration = Duration::from_mins(1);

async fn takers(rig: &Rig, take: impl AsyncFn(Store) -> bool + Copy) -> usize {
    let (a, b, c, d) = tokio::join!(
        take(rig.store.clone()),
        take(rig.another_store()),
        take(rig.another_store()),
        take(rig.store.clone()),
    );
    [a, b, c, d].into_iter().filter(|taken| *taken).count()
}

#[tokio::test]
async fn a_chore_is_taken_by_one_of_many_and_again_after_its_interval() {
    let rig = Rig::start().await;
    for chore in [
        Chore::Sweep,
        Chore::Release,
        Chore::Expire,
        Chore::Partitions,
    ] {
        let take = async |store: Store| store.take_chore(chore, INTERVAL).await.unwrap();
        assert_eq!(takers(&rig, take).await, 1, "{chore:?}");
        assert_eq!(takers(&rig, take).await, 0, "{chore:?}");
        rig.execute("UPDATE kurier.chores SET last_run_at = last_run_at - interval '59 seconds'")
            .await;
        assert_eq!(takers(&rig, take).await, 0, "{chore:?}");
        rig.execute("UPDATE kurier.chores SET last_run_at = last_run_at - interval '1 second'")
            .await;
        assert_eq!(takers(&rig, take).await, 1, "{chore:?}");
    }
}

#[tokio::test]
async fn a_full_sweep_is_taken_once_for_each_time_it_is_asked_for() {
    let rig = Rig::start().await;
    let take = async |store: Store| store.take_full_sweep().await.unwrap();
    takers(&rig, take).await;
    assert_eq!(takers(&rig, take).await, 0);
    rig.store.request_full_sweep().await.unwrap();
    rig.store.request_full_sweep().await.unwrap();
    assert_eq!(takers(&rig, take).await, 1);
    assert_eq!(takers(&rig, take).await, 0);
}
