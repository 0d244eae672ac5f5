//! One connection to the broker, and the power to end it at once. Knows nothing of queues.
//!
//! Recovery inside lapin stays off: a broken link is dropped and another one dialled.

use std::{
    io,
    net::{Shutdown, TcpStream},
    os::fd::AsFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lapin::{
    AsyncTcpStream, Connection, ConnectionProperties,
    protocol::constants::REPLY_SUCCESS,
    runtime::default_runtime,
    tcp::{AMQPUriTcpExt, TLSConfig},
    uri::{AMQPScheme, AMQPUri},
};
use tokio::time::timeout;

use crate::{BrokerConfig, BrokerError};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// An open connection; dropping it cuts the socket, so unacknowledged messages go back.
pub(crate) struct Link {
    connection: Connection,
    _socket: CutOnDrop,
}

impl Link {
    /// Connects and authenticates. Takes as long as the broker does; dropping the future ends it.
    pub(crate) async fn open(config: &BrokerConfig) -> Result<Self, BrokerError> {
        let socket = CutOnDrop(Socket::default());
        let name = config.connection_name.as_str().into();
        let properties = ConnectionProperties::default().with_connection_name(name);
        let connection = connect(config.uri()?, properties, socket.0.clone()).await?;
        Ok(Self {
            connection,
            _socket: socket,
        })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connection.status().connected()
    }

    /// Whether the broker has stopped reading from this connection for want of memory or disk.
    pub(crate) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// Says goodbye, so that everything sent before is read; gives up after five seconds.
    pub(crate) async fn close(self) {
        let goodbye = self.connection.close(REPLY_SUCCESS, "bye".into());
        if let Ok(Err(error)) = timeout(CLOSE_TIMEOUT, goodbye).await {
            tracing::debug!(%error, "the connection was gone before it could be closed");
        }
    }
}

/// Registers the socket before the AMQP handshake begins, so that it can be cut from then on.
async fn connect(
    uri: AMQPUri,
    properties: ConnectionProperties,
    socket: Socket,
) -> lapin::Result<Connection> {
    let plain = AMQPUri {
        scheme: AMQPScheme::AMQP,
        ..uri.clone()
    };
    let runtime = default_runtime()?;
    Connection::connector(
        uri,
        runtime,
        async move |uri, runtime| {
            let stream = plain
                .connect_with_config_async(TLSConfig::default(), &runtime)
                .await?;
            if let AsyncTcpStream::Plain(stream) = &stream {
                socket.register(stream.get_ref())?;
            }
            match uri.scheme {
                AMQPScheme::AMQP => Ok(stream),
                AMQPScheme::AMQPS => Ok(stream
                    .into_tls(&uri.authority.host, TLSConfig::default())
                    .await?),
            }
        },
        properties,
    )
    .await
}

/// Cuts the socket when it goes out of scope.
///
/// lapin runs each connection on a thread that ends only when the peer answers or hangs up. A
/// broker that is frozen does neither, and every try would leave a thread and its buffers behind.
struct CutOnDrop(Socket);

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.0.cut();
    }
}

#[derive(Clone, Default)]
struct Socket(Arc<Mutex<SocketState>>);

#[derive(Default)]
enum SocketState {
    #[default]
    NotYetOpen,
    Open(TcpStream),
    Cut,
}

impl Socket {
    /// Keeps a second handle to the socket; fails if nobody waits for the connection any more.
    fn register(&self, stream: &impl AsFd) -> io::Result<()> {
        let mut state = self.lock();
        if matches!(*state, SocketState::Cut) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        *state = SocketState::Open(stream.as_fd().try_clone_to_owned()?.into());
        Ok(())
    }

    fn cut(&self) {
        let before = std::mem::replace(&mut *self.lock(), SocketState::Cut);
        if let SocketState::Open(stream) = before {
            // Fails only on a socket that is closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SocketState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, net::TcpListener, task::JoinSet};

    use super::*;

    /// Dials a listener that never answers.
    async fn dial(scheme: &str) -> (JoinSet<()>, tokio::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "{scheme}://localhost:{}",
            listener.local_addr().unwrap().port()
        );
        let mut dialling = JoinSet::new();
        dialling.spawn(async move {
            let _ = Link::open(&BrokerConfig::new(url)).await;
        });
        let (stream, _) = listener.accept().await.unwrap();
        (dialling, stream)
    }

    #[tokio::test]
    async fn an_abandoned_dial_hangs_up_on_a_silent_broker() {
        let (dialling, mut stream) = dial("amqp").await;
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting).await.unwrap();
        assert_eq!(&greeting, b"AMQP\x00\x00\x09\x01");
        drop(dialling);
        assert_eq!(
            stream.read(&mut greeting).await.unwrap(),
            0,
            "end of stream"
        );
    }

    #[tokio::test]
    async fn an_amqps_address_speaks_tls_from_the_first_byte() {
        const HANDSHAKE_RECORD: u8 = 22;
        let (dialling, mut stream) = dial("amqps").await;
        assert_eq!(stream.read_u8().await.unwrap(), HANDSHAKE_RECORD);
        drop(dialling);
    }
}
