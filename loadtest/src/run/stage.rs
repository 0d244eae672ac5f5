//! Everything one run needs, set up before and removed after it; the run itself is one scene after the other.

use std::time::Duration;

use tokio::try_join;
use uuid::Uuid;

use super::database::FreshDatabase;
use super::programs::{Program, Programs};
use super::{Report, namespace, progress, writer};
use crate::bare::payload;
use crate::cli::RunOptions;
use crate::cpu::{CpuMeter, Party};
use crate::receiver::{ReceiverProcess, Totals};
use crate::services::Services;

pub(crate) struct Stage {
    /// Name of both the database and the broker namespace.
    name: String,
    database: FreshDatabase,
    programs: Programs,
    receiver: ReceiverProcess,
}

impl Stage {
    /// An empty database and a running receiver.
    pub(crate) async fn set_up(services: &Services, options: &RunOptions) -> anyhow::Result<Self> {
        let name = format!("kurier_load_{}", Uuid::now_v7().simple());
        let receiver = ReceiverProcess::start(&options.scripts).await?;
        let database = FreshDatabase::create(services, &name).await?;
        let programs = Programs::beside_this(database.url.as_str(), &services.amqp_url, &name)?;
        Ok(Self {
            name,
            database,
            programs,
            receiver,
        })
    }

    /// Migrates the database and adds endpoints that lead to the receiver.
    async fn prepare(&self, endpoints: u32) -> anyhow::Result<()> {
        self.programs.migrate().await?;
        for endpoint in 0..endpoints {
            self.programs
                .add_endpoint(&self.receiver.url(endpoint))
                .await?;
        }
        Ok(())
    }

    /// Removes the database and what the programs declared at the broker.
    pub(crate) async fn tear_down(self, services: &Services) -> anyhow::Result<()> {
        try_join!(
            self.database.remove(services),
            namespace::remove(&services.amqp_url, &self.name)
        )?;
        Ok(())
    }

    /// The load, from the start of the relays or the first event to the last finished delivery.
    pub(crate) async fn play(
        &mut self,
        services: &Services,
        options: &RunOptions,
    ) -> anyhow::Result<Report> {
        self.prepare(options.endpoints).await?;
        if options.stored {
            self.write(options).await?;
            sqlx::raw_sql("ANALYZE kurier.outbox_events")
                .execute(&self.database.pool)
                .await?;
        }
        let mut programs = self.start("dispatcher", options.dispatchers).await?;
        let mut meter = CpuMeter::start(self.standing_parties(services, &programs));
        let mut begin = self.database.now().await?;
        let relays = self.start("outbox-relay", options.relays).await?;
        meter.add_new(party("relay", &relays));
        programs.extend(relays);
        if !options.stored {
            begin = self.database.now().await?;
            self.write(options).await?;
        }
        let totals = self.await_finished(options, &mut programs).await?;
        let cpu = meter.used();
        stop(programs).await?;
        let counts = self.database.counts().await?;
        let latencies_us = self.database.latencies_us().await?;
        Ok(Report::new(
            options,
            begin,
            &counts,
            totals,
            &latencies_us,
            cpu,
        ))
    }

    async fn write(&self, options: &RunOptions) -> anyhow::Result<()> {
        let payload = payload(options.payload_bytes);
        writer::write(&self.database.pool, options.events, &payload, options.rate).await
    }

    async fn start(&self, binary: &str, count: u32) -> anyhow::Result<Vec<Program>> {
        let mut started = Vec::new();
        for number in 0..count {
            started.push(self.programs.start(binary, number).await?);
        }
        Ok(started)
    }

    async fn await_finished(
        &mut self,
        options: &RunOptions,
        programs: &mut [Program],
    ) -> anyhow::Result<Totals> {
        let expected = u64::from(options.events) * u64::from(options.endpoints);
        let patience = Duration::from_secs(options.patience_seconds);
        let (database, receiver) = (&self.database, &mut self.receiver);
        progress::await_finished(database, receiver, programs, expected, patience).await
    }

    /// All that runs before the relays do.
    fn standing_parties(&self, services: &Services, dispatchers: &[Program]) -> Vec<Party> {
        let mut parties = vec![party("dispatcher", dispatchers), self.receiver.party()];
        parties.extend(services.parties());
        parties
    }
}

fn party(name: &'static str, programs: &[Program]) -> Party {
    Party {
        name,
        roots: programs.iter().map(Program::pid).collect(),
    }
}

async fn stop(programs: Vec<Program>) -> anyhow::Result<()> {
    for program in programs {
        program.stop().await?;
    }
    Ok(())
}
