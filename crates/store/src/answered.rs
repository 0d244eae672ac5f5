//! A limit for waiting on this side of the connection. The server ends what takes too long; a server
//! that has lost its power ends nothing, and TCP alone may never tell.

use std::{io, time::Duration};

use tokio::time::timeout;

/// Longer than the server's own `statement_timeout`, so that a server that lives answers first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// What waits for the server.
pub(crate) trait Answered<T>: Future<Output = Result<T, sqlx::Error>> {
    /// The answer, or an I/O error when there is none in time. The connection is given up then.
    async fn answered(self) -> Result<T, sqlx::Error>;
}

impl<T, F: Future<Output = Result<T, sqlx::Error>>> Answered<T> for F {
    async fn answered(self) -> Result<T, sqlx::Error> {
        let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        timeout(ANSWER_TIMEOUT, self).await.map_err(silent)?
    }
}
