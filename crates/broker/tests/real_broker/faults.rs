//! Broken connections, frozen connections, and a broker that loses what it had.

use std::time::Duration;

use anyhow::Result;
use broker::{Intake, Publisher};
use lapin::options::QueueDeleteOptions;
use tokio::time::timeout;

use crate::{
    cutting_proxy::CuttingProxy,
    rig::{
        PATIENCE, hints, ids, next, publish_all, publish_until_confirmed, receive_all, with_rig,
    },
};

/// Lets an intake to which no message comes do its work until something is true of it.
async fn drive_until(
    intake: &mut Intake,
    mut is_true: impl FnMut(&mut Intake) -> bool,
) -> Result<()> {
    let driving = async {
        while !is_true(intake) {
            let message = timeout(Duration::from_millis(20), intake.next()).await;
            assert!(message.is_err(), "nothing was published");
        }
    };
    Ok(timeout(PATIENCE, driving).await?)
}

#[tokio::test]
async fn publishing_and_consuming_go_on_after_every_cut() -> Result<()> {
    with_rig(async |rig| {
        let proxy = CuttingProxy::before(&rig.config.amqp_url).await?;
        let config = rig.config_by(proxy.amqp_url());
        let (mut publisher, mut intake) = (Publisher::new(config.clone()), Intake::new(config));
        for _ in 0..3 {
            let batch = hints(50);
            publish_until_confirmed(&mut publisher, &batch).await;
            receive_all(&mut intake, ids(&batch)).await?;
            proxy.cut();
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_cut_amid_publishing_loses_nothing_that_was_confirmed() -> Result<()> {
    with_rig(async |rig| {
        let proxy = CuttingProxy::before(&rig.config.amqp_url).await?;
        let mut publisher = Publisher::new(rig.config_by(proxy.amqp_url()));
        let mut intake = rig.intake();
        publish_all(&mut publisher, &hints(1)).await;
        let batch = hints(2000);
        let (outcomes, ()) = tokio::join!(publisher.publish(&batch), async { proxy.cut() });
        let confirmed = batch
            .iter()
            .zip(outcomes)
            .filter(|(_, outcome)| outcome.is_ok());
        let confirmed = confirmed.map(|(hint, _)| hint.delivery_id).collect();
        receive_all(&mut intake, confirmed).await
    })
    .await
}

#[tokio::test]
async fn a_frozen_subscription_is_replaced() -> Result<()> {
    with_rig(async |rig| {
        let proxy = CuttingProxy::before(&rig.config.amqp_url).await?;
        let mut publisher = rig.publisher();
        let mut intake = Intake::new(rig.config_by(proxy.amqp_url()));
        publish_all(&mut publisher, &hints(1)).await;
        next(&mut intake).await?;
        proxy.freeze();
        drive_until(&mut intake, |intake| {
            proxy.accepted() == 2 && intake.is_connected()
        })
        .await?;
        // The broker does not know yet, and gives the frozen connection its share of these.
        let batch = hints(10);
        publish_all(&mut publisher, &batch).await;
        assert!(ids(&batch).contains(&next(&mut intake).await?.delivery_id));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_work_queue_deleted_under_its_consumer_is_made_again_and_reported() -> Result<()> {
    with_rig(async |rig| {
        let (mut publisher, mut intake) = (rig.publisher(), rig.intake());
        let batch = hints(1);
        publish_all(&mut publisher, &batch).await;
        receive_all(&mut intake, ids(&batch)).await?;
        assert!(
            !intake.take_work_queue_created(),
            "the publisher had made it"
        );

        let work_queue = rig.topology.work_queue().into();
        rig.operator
            .queue_delete(work_queue, QueueDeleteOptions::default())
            .await?;
        let batch = hints(10);
        let (received, ()) = tokio::join!(
            receive_all(&mut intake, ids(&batch)),
            publish_until_confirmed(&mut publisher, &batch),
        );
        received?;
        assert!(intake.take_work_queue_created() || publisher.take_work_queue_created());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_intake_alone_makes_a_deleted_work_queue_again_and_says_so_once() -> Result<()> {
    with_rig(async |rig| {
        let mut intake = rig.intake();
        drive_until(&mut intake, Intake::take_work_queue_created).await?;
        let work_queue = rig.topology.work_queue().into();
        rig.operator
            .queue_delete(work_queue, QueueDeleteOptions::default())
            .await?;
        drive_until(&mut intake, Intake::take_work_queue_created).await?;
        assert!(!intake.take_work_queue_created());
        assert!(intake.is_connected() && !intake.is_blocked());
        Ok(())
    })
    .await
}
