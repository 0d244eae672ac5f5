//! What an intake hands out, when, and what becomes of it.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use broker::{BrokerConfig, Hint, Intake, Receipt};
use futures_util::StreamExt as _;
use lapin::{
    BasicProperties,
    options::{BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions},
    types::FieldTable,
};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{
    cutting_proxy::CuttingProxy,
    rig::{PATIENCE, Rig, UNIT, hint_after, hints, ids, next, publish_all, receive_all, with_rig},
};

/// How late the broker of a busy machine may be, beyond the unit that rounding costs.
const SLACK: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_hint_arrives_with_its_delivery_id_and_trace_context() -> Result<()> {
    with_rig(async |rig| {
        let mut hint = hint_after(0);
        hint.traceparent = Some(format!("00-{}-{}-01", "a".repeat(32), "b".repeat(16)));
        publish_all(&mut rig.publisher(), std::slice::from_ref(&hint)).await;
        let message = next(&mut rig.intake()).await?;
        assert_eq!(message.delivery_id, hint.delivery_id);
        assert_eq!(message.traceparent, hint.traceparent);
        assert!(!message.redelivered);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn hints_arrive_after_their_delay_never_before_and_at_most_a_unit_late() -> Result<()> {
    with_rig(async |rig| {
        let batch: Vec<Hint> = [0, 1, 5, 3, 0, 8, 2, 10].map(hint_after).into();
        let mut due: BTreeMap<_, _> = batch
            .iter()
            .map(|hint| (hint.delivery_id, hint.delay))
            .collect();
        let (mut publisher, mut intake) = (rig.publisher(), rig.intake());
        publish_all(&mut publisher, &hints(1)).await;
        let started = Instant::now();
        publish_all(&mut publisher, &batch).await;
        while !due.is_empty() {
            let message = next(&mut intake).await?;
            let waited = started.elapsed();
            let Some(delay) = due.remove(&message.delivery_id) else {
                continue;
            };
            assert!(waited >= delay, "{delay:?} was over after {waited:?}");
            assert!(waited <= delay + UNIT + SLACK, "{delay:?} took {waited:?}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_short_delay_does_not_wait_behind_a_longer_one() -> Result<()> {
    with_rig(async |rig| {
        let (mut publisher, mut intake) = (rig.publisher(), rig.intake());
        // Both pass the lowest level; the long one outlasts this test.
        publish_all(&mut publisher, &[hint_after(2047)]).await;
        let short = hint_after(3);
        publish_all(&mut publisher, std::slice::from_ref(&short)).await;
        assert_eq!(next(&mut intake).await?.delivery_id, short.delivery_id);
        Ok(())
    })
    .await
}

async fn publish_raw(rig: &Rig, body: &[u8]) -> Result<()> {
    rig.operator
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    let publish = rig.operator.basic_publish(
        rig.topology.work_exchange().into(),
        "".into(),
        BasicPublishOptions::default(),
        body,
        BasicProperties::default(),
    );
    publish.await?.await?;
    Ok(())
}

#[tokio::test]
async fn an_undecodable_message_goes_to_quarantine_alone() -> Result<()> {
    with_rig(async |rig| {
        let (mut publisher, mut intake) = (rig.publisher(), rig.intake());
        let (before, after) = (hints(3), hints(3));
        publish_all(&mut publisher, &before).await;
        publish_raw(rig, b"not a hint").await?;
        publish_all(&mut publisher, &after).await;
        receive_all(&mut intake, &ids(&before) | &ids(&after)).await?;

        let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
        let queue = rig.topology.quarantine_queue().into();
        let mut quarantined = rig
            .operator
            .basic_consume(queue, "".into(), options, arguments)
            .await?;
        let exhibit = timeout(PATIENCE, quarantined.next())
            .await?
            .expect("not cancelled")?;
        assert_eq!(exhibit.data, b"not a hint");
        assert_eq!(intake.quarantined_count(), 1);
        assert_eq!(publisher.work_backlog().await?, 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn no_more_than_the_prefetch_is_out_unacknowledged() -> Result<()> {
    with_rig(async |rig| {
        let mut publisher = rig.publisher();
        publish_all(&mut publisher, &hints(5)).await;
        let mut intake = Intake::new(BrokerConfig {
            prefetch: 3,
            ..rig.config.clone()
        });
        let first = next(&mut intake).await?;
        next(&mut intake).await?;
        next(&mut intake).await?;
        assert_eq!(publisher.work_backlog().await?, 2);
        assert!(intake.try_next().is_none());

        intake.acks().ack([first.receipt]);
        next(&mut intake).await?;
        assert_eq!(publisher.work_backlog().await?, 1);
        assert!(intake.try_next().is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn unacknowledged_messages_come_back_when_the_intake_is_dropped() -> Result<()> {
    with_rig(async |rig| {
        publish_all(&mut rig.publisher(), &hints(1)).await;
        let mut dropped = rig.intake();
        let lost = next(&mut dropped).await?;
        drop(dropped);
        let again = next(&mut rig.intake()).await?;
        assert_eq!(again.delivery_id, lost.delivery_id);
        assert!(again.redelivered);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn stopping_gives_back_what_waits_and_still_acknowledges_what_is_out() -> Result<()> {
    with_rig(async |rig| {
        let (mut publisher, mut stopping) = (rig.publisher(), rig.intake());
        let five = hints(5);
        publish_all(&mut publisher, &five).await;
        let out = next(&mut stopping).await?;
        stopping.stop().await;
        assert!(stopping.try_next().is_none());

        let mut others = ids(&five);
        others.remove(&out.delivery_id);
        let mut successor = rig.intake();
        receive_all(&mut successor, others).await?;
        successor.close().await;

        stopping.acks().ack([out.receipt]);
        stopping.close().await;
        assert_eq!(publisher.work_backlog().await?, 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn acknowledgements_in_any_order_and_from_another_task_are_all_kept() -> Result<()> {
    with_rig(async |rig| {
        let proxy = CuttingProxy::before(&rig.config.amqp_url).await?;
        let mut publisher = rig.publisher();
        let mut intake = Intake::new(rig.config_by(proxy.amqp_url()));
        publish_all(&mut publisher, &hints(300)).await;
        let mut thirds: [Vec<Receipt>; 3] = Default::default();
        for index in 0..300 {
            thirds[index % 3].push(next(&mut intake).await?.receipt);
        }
        let mut acking = JoinSet::new();
        for receipts in thirds {
            let acks = intake.acks();
            acking.spawn(async move { acks.ack(receipts) });
        }
        acking.join_all().await;
        intake.close().await;
        assert_eq!(publisher.work_backlog().await?, 0);
        assert_eq!(
            proxy.accepted(),
            1,
            "a wrong tag would have ended the channel"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn receipts_of_an_earlier_connection_do_no_harm() -> Result<()> {
    with_rig(async |rig| {
        let proxy = CuttingProxy::before(&rig.config.amqp_url).await?;
        let mut publisher = rig.publisher();
        let mut intake = Intake::new(rig.config_by(proxy.amqp_url()));
        let acks = intake.acks();
        publish_all(&mut publisher, &hints(2)).await;
        let stale = [
            next(&mut intake).await?.receipt,
            next(&mut intake).await?.receipt,
        ];
        proxy.cut();
        let again = [next(&mut intake).await?, next(&mut intake).await?];
        acks.ack(stale);
        assert!(again.iter().all(|message| message.redelivered));
        acks.ack(again.map(|message| message.receipt));

        let fresh = hints(1);
        publish_all(&mut publisher, &fresh).await;
        receive_all(&mut intake, ids(&fresh)).await?;
        intake.close().await;
        assert_eq!(publisher.work_backlog().await?, 0);
        assert_eq!(
            proxy.accepted(),
            2,
            "one connection before the cut and one after it"
        );
        Ok(())
    })
    .await
}
