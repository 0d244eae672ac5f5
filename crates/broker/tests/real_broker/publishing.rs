//! What a publisher reports about each hint.

use std::time::Duration;

use anyhow::Result;
use broker::{BrokerConfig, Hint, PublishFault, Publisher};
use lapin::{
    BasicProperties,
    options::{
        BasicPublishOptions, ConfirmSelectOptions, QueueBindOptions, QueueDeclareOptions,
        QueueDeleteOptions,
    },
    types::{AMQPValue, FieldTable},
};
use tokio::{net::TcpListener, time::Instant};

use crate::{
    cutting_proxy::CuttingProxy,
    rig::{PATIENCE, Rig, UNIT, hint_after, hints, ids, publish_all, receive_all, with_rig},
};

/// Levels nothing else in these tests uses.
const RETURNING_LEVEL: u32 = 5;
const REJECTING_LEVEL: u32 = 6;

fn level_name(rig: &Rig, level: u32) -> String {
    rig.topology
        .route(UNIT * (1 << level))
        .expect("covered")
        .exchange
        .to_owned()
}

/// Takes the level's queue away, so that its messages have nowhere to go.
async fn make_level_return(rig: &Rig) -> Result<()> {
    let queue = level_name(rig, RETURNING_LEVEL);
    rig.operator
        .queue_delete(queue.as_str().into(), QueueDeleteOptions::default())
        .await?;
    Ok(())
}

/// Binds a full queue to the level's exchange, so that the broker refuses its messages.
async fn make_level_reject(rig: &Rig) -> Result<()> {
    let full = format!("{}.full", rig.config.namespace);
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(1));
    arguments.insert(
        "x-overflow".into(),
        AMQPValue::LongString("reject-publish".into()),
    );
    let until_disconnected = QueueDeclareOptions {
        exclusive: true,
        ..Default::default()
    };
    rig.operator
        .queue_declare(full.as_str().into(), until_disconnected, arguments)
        .await?;
    rig.operator
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    let publish = rig.operator.basic_publish(
        "".into(),
        full.as_str().into(),
        BasicPublishOptions::default(),
        b"full",
        BasicProperties::default(),
    );
    publish.await?.await?;
    let exchange = level_name(rig, REJECTING_LEVEL);
    let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
    let (queue, exchange) = (full.as_str().into(), exchange.as_str().into());
    Ok(rig
        .operator
        .queue_bind(queue, exchange, "#".into(), options, arguments)
        .await?)
}

#[tokio::test]
async fn returned_and_rejected_messages_amid_a_batch_are_reported_alone() -> Result<()> {
    with_rig(async |rig| {
        let mut publisher = rig.publisher();
        publish_all(&mut publisher, &hints(1)).await;
        make_level_return(rig).await?;
        make_level_reject(rig).await?;

        let expectation = |index: usize| match index % 10 {
            3 => (1 << RETURNING_LEVEL, Err(PublishFault::Returned)),
            7 => (1 << REJECTING_LEVEL, Err(PublishFault::Rejected)),
            _ => (0, Ok(())),
        };
        let (units, expected): (Vec<u32>, Vec<_>) = (0..900).map(expectation).unzip();
        let batch: Vec<Hint> = units.into_iter().map(hint_after).collect();
        assert_eq!(publisher.publish(&batch).await, expected);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn after_a_returned_message_the_topology_is_declared_again() -> Result<()> {
    with_rig(async |rig| {
        let mut publisher = rig.publisher();
        publish_all(&mut publisher, &hints(1)).await;
        make_level_return(rig).await?;
        let lost = [hint_after(1 << RETURNING_LEVEL)];
        assert_eq!(
            publisher.publish(&lost).await,
            [Err(PublishFault::Returned)]
        );
        publish_all(&mut publisher, &lost).await;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_delay_at_the_horizon_is_published_and_one_past_it_refused_alone() -> Result<()> {
    with_rig(async |rig| {
        let mut batch = hints(3);
        batch[0].delay = rig.topology.horizon();
        batch[1].delay = rig.topology.horizon() + Duration::from_nanos(1);
        let expected = [Ok(()), Err(PublishFault::BeyondHorizon), Ok(())];
        assert_eq!(rig.publisher().publish(&batch).await, expected);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_call_larger_than_what_may_be_in_flight_is_published_whole() -> Result<()> {
    with_rig(async |rig| {
        let (mut publisher, mut intake) = (rig.publisher(), rig.intake());
        let many = hints(2001);
        publish_all(&mut publisher, &many).await;
        receive_all(&mut intake, ids(&many)).await
    })
    .await
}

#[tokio::test]
async fn the_backlog_is_what_waits_in_the_work_queue() -> Result<()> {
    with_rig(async |rig| {
        let mut publisher = rig.publisher();
        assert_eq!(publisher.work_backlog().await?, 0);
        publish_all(&mut publisher, &hints(3)).await;
        publish_all(&mut publisher, &[hint_after(4000)]).await;
        assert_eq!(publisher.work_backlog().await?, 3);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn only_who_finds_the_work_queue_missing_says_so_and_only_once() -> Result<()> {
    with_rig(async |rig| {
        let (mut first, mut second) = (rig.publisher(), rig.publisher());
        assert!(!first.take_work_queue_created(), "not connected yet");
        publish_all(&mut first, &hints(1)).await;
        publish_all(&mut second, &hints(1)).await;
        assert!(first.take_work_queue_created());
        assert!(!first.take_work_queue_created());
        assert!(!second.take_work_queue_created());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_a_broker_a_call_reports_faults_within_its_time_limit() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let nobody = format!("amqp://{}", listener.local_addr()?);
    drop(listener);
    let confirm_timeout = Duration::from_millis(300);
    let config = BrokerConfig {
        confirm_timeout,
        ..BrokerConfig::new(nobody)
    };
    let mut publisher = Publisher::new(config);
    let mut batch = hints(2);
    batch[1].delay = Duration::MAX;
    let started = Instant::now();
    let expected = [
        Err(PublishFault::Unavailable),
        Err(PublishFault::BeyondHorizon),
    ];
    assert_eq!(publisher.publish(&batch).await, expected);
    assert!(publisher.work_backlog().await.is_err());
    assert!(!publisher.is_connected());
    assert!(started.elapsed() < PATIENCE);
    Ok(())
}

#[tokio::test]
async fn a_broker_that_falls_silent_costs_a_call_no_more_than_its_time_limit() -> Result<()> {
    with_rig(async |rig| {
        let proxy = CuttingProxy::before(&rig.config.amqp_url).await?;
        let mut config = rig.config_by(proxy.amqp_url());
        config.confirm_timeout = Duration::from_secs(3);
        let mut warm = Publisher::new(config.clone());
        publish_all(&mut warm, &hints(1)).await;
        proxy.freeze_for_good();

        config.confirm_timeout = Duration::from_millis(500);
        let mut cold = Publisher::new(config);
        assert_eq!(
            cold.publish(&hints(1)).await,
            [Err(PublishFault::Unavailable)]
        );
        assert_eq!(
            warm.publish(&hints(2)).await,
            [Err(PublishFault::TimedOut); 2]
        );
        assert!(
            !warm.is_connected(),
            "a session with unknown confirmations is given up"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_abandoned_call_leaves_nothing_behind_for_the_next() -> Result<()> {
    with_rig(async |rig| {
        let (mut publisher, mut intake) = (rig.publisher(), rig.intake());
        publish_all(&mut publisher, &hints(1)).await;
        let abandoned = tokio::time::timeout(Duration::ZERO, publisher.publish(&hints(500))).await;
        assert!(abandoned.is_err());
        let after = hints(500);
        publish_all(&mut publisher, &after).await;
        receive_all(&mut intake, ids(&after)).await
    })
    .await
}
