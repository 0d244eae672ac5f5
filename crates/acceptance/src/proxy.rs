//! A TCP proxy that a test can cut, let freeze, close or slow down. It knows nothing of what it
//! passes on.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::sleep,
};
use url::Url;

const BUFFER_BYTES: usize = 16 * 1024;

#[derive(Clone, Copy, Default)]
struct Orders {
    /// Connections of an older generation are closed.
    generation: u64,
    /// New connections are closed at once.
    refuses: bool,
    /// Nothing is passed on; connections stay open.
    frozen: bool,
    /// Connections made before the last of so many stay open towards the client only, and say nothing.
    abandonments: u64,
    /// How long every piece is kept before it is passed on.
    delay: Duration,
}

/// Passes connections on until told otherwise; dropping it closes them all.
pub struct TcpProxy {
    address: SocketAddr,
    orders: watch::Sender<Orders>,
    _accepting: JoinSet<()>,
}

impl TcpProxy {
    /// A proxy on a free loopback port before `target`, `host:port`.
    pub async fn before(target: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let orders = watch::Sender::new(Orders::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target.to_owned(), orders.subscribe()));
        Ok(Self {
            address,
            orders,
            _accepting: accepting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `url` by way of this proxy.
    ///
    /// # Panics
    /// When `url` is none.
    pub fn reroute(&self, url: &str) -> String {
        let mut url = Url::parse(url).expect("a URL");
        url.set_host(Some("127.0.0.1")).expect("a URL with a host");
        let port = Some(self.address.port());
        url.set_port(port).expect("a URL with a port");
        url.into()
    }

    /// Closes all connections; new ones are passed on.
    pub fn cut(&self) {
        self.order(|orders| orders.generation += 1);
    }

    /// Closes all connections, and every new one at once, until [`TcpProxy::accept`].
    pub fn refuse(&self) {
        self.order(|orders| {
            orders.refuses = true;
            orders.generation += 1;
        });
    }

    /// Passes new connections on again.
    pub fn accept(&self) {
        self.order(|orders| orders.refuses = false);
    }

    /// Passes nothing on and closes nothing, as a network does that loses every packet, until
    /// [`TcpProxy::thaw`].
    pub fn freeze(&self) {
        self.order(|orders| orders.frozen = true);
    }

    /// Passes on again, what was sent in the meantime first.
    pub fn thaw(&self) {
        self.order(|orders| orders.frozen = false);
    }

    /// Leaves all clients with open connections that nothing will ever be heard on, as a server does
    /// that loses its power; new ones are passed on.
    pub fn abandon(&self) {
        self.order(|orders| orders.abandonments += 1);
    }

    /// Keeps every piece this long, in both directions; zero for no delay.
    pub fn delay(&self, delay: Duration) {
        self.order(|orders| orders.delay = delay);
    }

    fn order(&self, change: impl FnOnce(&mut Orders)) {
        self.orders.send_modify(change);
    }
}

async fn accept(listener: TcpListener, target: String, orders: watch::Receiver<Orders>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let now = *orders.borrow();
        if !now.refuses {
            connections.spawn(serve(client, target.clone(), orders.clone(), now));
        }
    }
}

/// Ends when either side does, or when the connection's generation is cut.
async fn serve(
    mut client: TcpStream,
    target: String,
    mut orders: watch::Receiver<Orders>,
    since: Orders,
) {
    let Ok(mut server) = TcpStream::connect(target).await else {
        return;
    };
    let mut cut = orders.clone();
    let cut = cut.wait_for(|orders| orders.generation > since.generation);
    let abandoned = orders.clone();
    tokio::select! {
        () = pass_both_ways(&mut client, &mut server, &orders) => return,
        _ = cut => return,
        () = until_abandoned(abandoned, since) => {}
    }
    drop(server);
    let _ = orders
        .wait_for(|orders| orders.generation > since.generation)
        .await;
}

async fn until_abandoned(mut orders: watch::Receiver<Orders>, since: Orders) {
    let abandoned = |orders: &Orders| orders.abandonments > since.abandonments;
    let _ = orders.wait_for(abandoned).await;
}

async fn pass_both_ways(
    client: &mut TcpStream,
    server: &mut TcpStream,
    orders: &watch::Receiver<Orders>,
) {
    let (client_read, client_write) = client.split();
    let (server_read, server_write) = server.split();
    let _ = tokio::join!(
        pass_on(client_read, server_write, orders.clone()),
        pass_on(server_read, client_write, orders.clone()),
    );
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut orders: watch::Receiver<Orders>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        let ordered = orders.wait_for(|orders| !orders.frozen).await;
        let delay = ordered.map_err(io::Error::other)?.delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}
