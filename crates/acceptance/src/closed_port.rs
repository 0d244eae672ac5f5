//! A loopback port where nobody listens, and nobody else can.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// Connections to it are refused for as long as it lives: the port is taken, but not listened on.
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    /// Takes a free port.
    ///
    /// # Panics
    /// When there is none.
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(any).expect("a free port");
        Self(socket)
    }

    /// Where nobody listens.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("its address")
    }
}
