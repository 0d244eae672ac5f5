//! A TCP proxy before the broker that can cut its connections or let them freeze.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use anyhow::Result;
use lapin::uri::AMQPUri;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

#[derive(Clone, Copy, Default)]
struct Orders {
    /// Connections of an older generation are closed.
    generation: u64,
    /// Connections up to this generation pass nothing on and stay open.
    frozen_through: Option<u64>,
}

/// Forwards to the broker until told otherwise; ends when dropped.
pub(crate) struct CuttingProxy {
    amqp_url: String,
    orders: watch::Sender<Orders>,
    accepted: Arc<AtomicUsize>,
    /// Aborted with all connections when the proxy is dropped.
    _accepting: JoinSet<()>,
}

impl CuttingProxy {
    pub(crate) async fn before(amqp_url: &str) -> Result<Self> {
        let mut uri: AMQPUri = amqp_url.parse().map_err(anyhow::Error::msg)?;
        let broker = (uri.authority.host.clone(), uri.authority.port);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let SocketAddr::V4(address) = listener.local_addr()? else {
            unreachable!("bound to v4")
        };
        uri.authority.host = address.ip().to_string();
        uri.authority.port = address.port();
        let (orders, _) = watch::channel(Orders::default());
        let accepted = Arc::new(AtomicUsize::new(0));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, broker, orders.clone(), accepted.clone()));
        Ok(Self {
            amqp_url: uri.to_string(),
            orders,
            accepted,
            _accepting: accepting,
        })
    }

    /// The broker's address by way of the proxy.
    pub(crate) fn amqp_url(&self) -> &str {
        &self.amqp_url
    }

    /// How many connections there have been.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Relaxed)
    }

    /// Closes all connections; new ones are forwarded.
    pub(crate) fn cut(&self) {
        self.orders.send_modify(|orders| orders.generation += 1);
    }

    /// Lets the connections there are hang; new ones are forwarded.
    pub(crate) fn freeze(&self) {
        self.orders.send_modify(|orders| {
            orders.frozen_through = Some(orders.generation);
            orders.generation += 1;
        });
    }

    /// Lets all connections hang, those to come as well.
    pub(crate) fn freeze_for_good(&self) {
        self.orders
            .send_modify(|orders| orders.frozen_through = Some(u64::MAX));
    }
}

async fn accept(
    listener: TcpListener,
    broker: (String, u16),
    orders: watch::Sender<Orders>,
    accepted: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        accepted.fetch_add(1, Relaxed);
        let generation = orders.borrow().generation;
        connections.spawn(serve(
            client,
            broker.clone(),
            orders.subscribe(),
            generation,
        ));
    }
}

async fn serve(
    mut client: TcpStream,
    broker: (String, u16),
    mut orders: watch::Receiver<Orders>,
    generation: u64,
) {
    let frozen = |orders: &Orders| orders.frozen_through.is_some_and(|last| generation <= last);
    let Ok(mut server) = TcpStream::connect(broker).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => return,
        ordered = orders.wait_for(|orders| frozen(orders) || orders.generation > generation) => {
            if !ordered.is_ok_and(|orders| frozen(&orders)) { return }
        }
    }
    // Frozen: both sockets stay open, and nothing is read, until the proxy goes.
    while orders.changed().await.is_ok() {}
}
