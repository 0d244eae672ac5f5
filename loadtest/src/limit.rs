//! `loadtest limit`: what each bare part can do here, and all of them together.

use anyhow::ensure;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use uuid::Uuid;

use crate::bare::{self, BATCH_SIZE, BareQueue, BareStore, Settlement, ack_up_to};
use crate::cli::LimitOptions;
use crate::cpu::Party;
use crate::measurement::{Measurement, measured, table};
use crate::receiver::ReceiverProcess;
use crate::send::Sender;
use crate::services::Services;

/// Requests out at one time when they are measured alone.
const REQUESTS_AT_ONCE: usize = 100;

/// Messages acknowledged together when consuming is measured alone.
const MESSAGES_PER_ACK: usize = 50;

/// The name of the measurement that Kurier's own drain is held against.
const BARE_LOOP: &str = "bare loop";

/// The bare parts of one invocation, and whose CPU time counts.
pub(crate) struct Bench {
    store: BareStore,
    queue: BareQueue,
    /// Killed when the bench is dropped.
    _receiver: ReceiverProcess,
    sender: Sender,
    parties: Vec<Party>,
    payload: String,
    count: u32,
}

#[derive(Serialize)]
struct Report<'a> {
    payload_bytes: u32,
    batch_size: usize,
    measurements: &'a [Measurement],
}

/// Measures everything, removes its own tables and queue, and prints the result.
pub(crate) async fn limit(options: &LimitOptions) -> anyhow::Result<()> {
    let services = Services::find(&options.services)?;
    let bench = Bench::set_up(&services, options.count, options.payload_bytes).await?;
    let measurements = bench.measure_all().await;
    let torn_down = bench.tear_down().await;
    print(options, &measurements?)?;
    torn_down
}

/// Measures the bare loop alone.
pub(crate) async fn bare_loop(
    services: &Services,
    count: u32,
    payload_bytes: u32,
) -> anyhow::Result<Measurement> {
    let bench = Bench::set_up(services, count, payload_bytes).await?;
    let measurement = bench.bare_loop().await;
    let torn_down = bench.tear_down().await;
    measurement.and_then(|measurement| torn_down.map(|()| measurement))
}

fn print(options: &LimitOptions, measurements: &[Measurement]) -> anyhow::Result<()> {
    if options.json {
        let report = Report {
            payload_bytes: options.payload_bytes,
            batch_size: BATCH_SIZE,
            measurements,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}", table(measurements));
    }
    Ok(())
}

impl Bench {
    async fn set_up(services: &Services, count: u32, payload_bytes: u32) -> anyhow::Result<Self> {
        let store = BareStore::create(services.connect_options()?).await?;
        let queue = BareQueue::create(&services.amqp_url).await?;
        let receiver = ReceiverProcess::start(&[]).await?;
        let sender = Sender::new(receiver.url(0))?;
        let own = Party {
            name: "loadtest",
            roots: Some(vec![std::process::id()]),
        };
        let mut parties = vec![own];
        parties.extend(services.parties());
        parties.push(receiver.party());
        let payload = bare::payload(payload_bytes);
        Ok(Self {
            store,
            queue,
            _receiver: receiver,
            sender,
            parties,
            payload,
            count,
        })
    }

    async fn tear_down(self) -> anyhow::Result<()> {
        self.store.drop_tables().await?;
        self.queue.delete().await
    }
}

impl Bench {
    async fn measure_all(&self) -> anyhow::Result<Vec<Measurement>> {
        let mut all = self.statements().await?;
        all.extend(self.messages().await?);
        all.push(self.requests().await?);
        all.push(self.bare_loop().await?);
        Ok(all)
    }

    async fn statements(&self) -> anyhow::Result<Vec<Measurement>> {
        let token = Uuid::now_v7();
        let events = bare::new_ids(self.count);
        let inserting = bare::store_events(&self.store, &events, &self.payload);
        let inserted = self.measured("insert events", inserting).await?;
        let ids = bare::new_ids(self.count);
        let fanned_out = self
            .measured("insert deliveries", self.fan_out(&ids, &events))
            .await?;
        let claimed = self
            .measured("claim by update", self.claim(&ids, token))
            .await?;
        let settled = self
            .measured("settle and record", self.settle(&ids, token))
            .await?;
        Ok(vec![inserted, fanned_out, claimed, settled])
    }

    async fn fan_out(&self, ids: &[Uuid], events: &[Uuid]) -> anyhow::Result<()> {
        for (ids, events) in ids.chunks(BATCH_SIZE).zip(events.chunks(BATCH_SIZE)) {
            self.store.insert_deliveries(ids, events).await?;
        }
        Ok(())
    }

    async fn claim(&self, ids: &[Uuid], token: Uuid) -> anyhow::Result<()> {
        for batch in ids.chunks(BATCH_SIZE) {
            let claimed = self.store.claim(batch, token).await?.len();
            ensure!(
                claimed == batch.len(),
                "{claimed} of {} claimed",
                batch.len()
            );
        }
        Ok(())
    }

    async fn settle(&self, ids: &[Uuid], token: Uuid) -> anyhow::Result<()> {
        for batch in ids.chunks(BATCH_SIZE) {
            self.store.settle(&Settlement::all_ok(batch), token).await?;
        }
        Ok(())
    }

    async fn messages(&self) -> anyhow::Result<[Measurement; 2]> {
        let published = self.measured("publish confirmed", self.publish()).await?;
        let consumed = self.measured("consume and ack", self.consume()).await?;
        Ok([published, consumed])
    }

    async fn publish(&self) -> anyhow::Result<()> {
        for batch in bare::new_ids(self.count).chunks(BATCH_SIZE) {
            self.queue.publish(batch).await?;
        }
        Ok(())
    }

    /// The consumer's channel is closed afterwards: left open, it would take messages of the measurements to come.
    async fn consume(&self) -> anyhow::Result<()> {
        let mut incoming = self.queue.consume().await?;
        let mut left = self.count as usize;
        while left > 0 {
            let taken = incoming.take(left.min(MESSAGES_PER_ACK)).await?;
            ack_up_to(&incoming.channel(), taken.last_tag).await?;
            left -= taken.delivery_ids.len();
        }
        incoming.close().await
    }

    async fn requests(&self) -> anyhow::Result<Measurement> {
        self.measured("signed POST", self.post()).await
    }

    async fn post(&self) -> anyhow::Result<()> {
        let payload = Bytes::from(self.payload.clone());
        let requests = stream::iter(0..self.count).map(|_| {
            let (sender, payload) = (self.sender.clone(), payload.clone());
            async move { sender.post(Uuid::now_v7(), payload).await.map(drop) }
        });
        requests
            .buffer_unordered(REQUESTS_AT_ONCE)
            .try_collect()
            .await
    }

    /// The backlog is stored beforehand, as it is when Kurier's own drain is measured.
    async fn bare_loop(&self) -> anyhow::Result<Measurement> {
        self.store.create_tables().await?;
        bare::store_events(&self.store, &bare::new_ids(self.count), &self.payload).await?;
        self.store.analyze().await?;
        let drain = bare::drain(&self.store, &self.queue, &self.sender, self.count);
        self.measured(BARE_LOOP, drain).await
    }

    async fn measured(
        &self,
        name: &'static str,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<Measurement> {
        measured(name, self.count, &self.parties, work).await
    }
}
