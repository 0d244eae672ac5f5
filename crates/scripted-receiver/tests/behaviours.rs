//! What a sender sees of each reply, and what the receiver remembers of the sender.

use std::io::ErrorKind;
use std::time::Duration;

use scripted_receiver::{BODY_BYTES_MAX, Gate, Receiver, Reply, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends one request on a connection of its own, which the receiver is asked to close.
async fn send(receiver: &Receiver, path: &str, id: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(receiver.address()).await?;
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nwebhook-id: {id}\r\n");
    let body = "content-length: 4\r\n\r\nbody";
    stream.write_all((head + body).as_bytes()).await?;
    Ok(stream)
}

/// Sends one request and reads all that comes back.
async fn exchange(receiver: &Receiver, path: &str, id: &str) -> std::io::Result<String> {
    let mut answer = String::new();
    send(receiver, path, id)
        .await?
        .read_to_string(&mut answer)
        .await?;
    Ok(answer)
}

#[tokio::test]
async fn each_request_gets_the_next_reply_of_its_path() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    let busy = Reply::status(429).header("Retry-After", "2").body("later");
    receiver.script("/a", [busy, Reply::ok()]);
    receiver.script("/b", Reply::status(204));

    let first = exchange(&receiver, "/a", "1").await?;
    assert!(first.starts_with("HTTP/1.1 429 "), "{first}");
    assert!(
        first.contains("retry-after: 2\r\n") && first.ends_with("\r\n\r\nlater"),
        "{first}"
    );
    assert!(
        exchange(&receiver, "/b", "1")
            .await?
            .starts_with("HTTP/1.1 204 ")
    );
    assert!(
        exchange(&receiver, "/a", "1")
            .await?
            .starts_with("HTTP/1.1 200 ")
    );
    Ok(())
}

#[tokio::test]
async fn a_path_without_a_script_answers_200() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    assert!(
        exchange(&receiver, "/any", "1")
            .await?
            .starts_with("HTTP/1.1 200 ")
    );
    Ok(())
}

#[tokio::test]
async fn a_request_is_kept_as_it_came() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    exchange(&receiver, "/a?x=1", "evt").await?;
    let requests = receiver.wait_for("/a", 1).await;
    assert_eq!(requests[0].body, "body");
    assert_eq!(requests[0].query.as_deref(), Some("x=1"));
    assert_eq!(requests[0].webhook_id(), "evt");
    assert_eq!(requests[0].header("Connection"), Some("close"));
    Ok(())
}

#[tokio::test]
async fn a_counting_receiver_keeps_no_requests() -> anyhow::Result<()> {
    let receiver = Receiver::start_counting(0).await?;
    exchange(&receiver, "/a", "1").await?;
    assert!(receiver.wait_for("/a", 1).await.is_empty());
    assert_eq!(receiver.tally_of("/a", "1").accepted, 1);
    Ok(())
}

#[tokio::test]
async fn only_a_second_acceptance_is_a_duplicate() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    receiver.script("/a", [Reply::status(500), Reply::ok()]);
    for id in ["1", "1", "2", "1"] {
        exchange(&receiver, "/a", id).await?;
    }
    let tally = receiver.tally("/a");
    assert_eq!(
        (tally.arrived, tally.accepted, tally.duplicates()),
        (4, 3, 1)
    );
    assert_eq!((tally.ids, tally.ids_accepted), (2, 2));
    Ok(())
}

#[tokio::test]
async fn a_closed_connection_carries_no_answer() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    receiver.script("/a", Reply::close());
    assert_eq!(exchange(&receiver, "/a", "1").await?, "");
    Ok(())
}

#[tokio::test]
async fn a_reset_is_seen_as_a_reset() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    receiver.script("/a", Reply::reset());
    let error = exchange(&receiver, "/a", "1").await.expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    Ok(())
}

#[tokio::test]
async fn raw_bytes_stand_in_place_of_an_answer() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    receiver.script("/a", Reply::raw("nonsense\r\n"));
    assert_eq!(exchange(&receiver, "/a", "1").await?, "nonsense\r\n");
    Ok(())
}

#[tokio::test]
async fn a_hanging_request_is_in_flight_until_its_sender_leaves() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    for (path, reply) in [
        ("/a", Reply::hang()),
        ("/b", Reply::raw_then_hang("HTTP/1.1 200 OK\r\n")),
    ] {
        receiver.script(path, reply);
        let stream = send(&receiver, path, "1").await?;
        receiver.wait_for_id(path, "1").await;
        assert_eq!(receiver.tally(path).in_flight, 1);
        drop(stream);
        receiver
            .wait_until("nothing in flight", |r| r.tally(path).in_flight == 0)
            .await;
        assert_eq!(receiver.tally(path).accepted, 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_drip_goes_on_until_its_sender_leaves() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    for (path, interval) in [
        ("/slow", Duration::from_millis(1)),
        ("/flood", Duration::ZERO),
    ] {
        receiver.script(path, Reply::drip("drop", interval));
        let mut stream = send(&receiver, path, "1").await?;
        stream.read_exact(&mut [0; 400]).await?;
        assert_eq!(receiver.tally(path).in_flight, 1);
        drop(stream);
        receiver
            .wait_until("nothing in flight", |r| r.tally(path).in_flight == 0)
            .await;
    }
    Ok(())
}

#[tokio::test]
async fn overlapping_requests_raise_the_high_water_mark() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    let gate = Gate::closed();
    receiver.script("/a", Reply::ok().behind(&gate));
    let mut streams = vec![
        send(&receiver, "/a", "1").await?,
        send(&receiver, "/a", "1").await?,
    ];
    streams.push(send(&receiver, "/a", "2").await?);
    receiver.wait_for("/a", 3).await;
    gate.open();
    receiver
        .wait_until("all answered", |r| r.tally("/a").in_flight == 0)
        .await;

    assert_eq!(receiver.tally("/a").in_flight_max, 3);
    assert_eq!(receiver.tally_of("/a", "1").in_flight_max, 2);
    assert_eq!(receiver.tally_of("/a", "2").in_flight_max, 1);
    Ok(())
}

#[tokio::test]
async fn requests_one_after_the_other_never_count_as_overlapping() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    receiver.script(
        "/a",
        [Reply::ok(), Reply::close(), Reply::raw("x"), Reply::ok()],
    );
    for _ in 0..20 {
        exchange(&receiver, "/a", "1").await?;
    }
    assert_eq!(receiver.tally("/a").in_flight_max, 1);
    Ok(())
}

#[tokio::test]
async fn latency_passes_before_the_answer() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    receiver.script("/a", Reply::ok().after(Duration::from_millis(30)));
    let begin = std::time::Instant::now();
    exchange(&receiver, "/a", "1").await?;
    assert!(begin.elapsed() >= Duration::from_millis(30));
    Ok(())
}

#[tokio::test]
async fn failures_by_rate_are_the_same_on_every_run() -> anyhow::Result<()> {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let receiver = Receiver::start().await?;
        receiver.script("/a", Script::failing(11, 0.5, Reply::status(500)));
        let mut accepted = Vec::new();
        for _ in 0..20 {
            accepted.push(
                exchange(&receiver, "/a", "1")
                    .await?
                    .starts_with("HTTP/1.1 200 "),
            );
        }
        runs.push(accepted);
    }
    assert_eq!(runs[0], runs[1]);
    Ok(())
}

#[tokio::test]
async fn a_stopped_receiver_refuses_and_its_port_can_be_taken_again() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    let (address, hanging) = (receiver.address(), send(&receiver, "/a", "1").await?);
    receiver.wait_for("/a", 1).await;
    receiver.stop().await;
    assert!(TcpStream::connect(address).await.is_err());

    let again = Receiver::start_on(address.port()).await?;
    assert!(
        exchange(&again, "/a", "1")
            .await?
            .starts_with("HTTP/1.1 200 ")
    );
    drop(hanging);
    Ok(())
}

/// Sends a body of this length; what comes back is empty when the connection is cut.
async fn exchange_bytes(receiver: &Receiver, len: usize) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(receiver.address()).await?;
    let head = "POST /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length:";
    stream
        .write_all(format!("{head} {len}\r\n\r\n").as_bytes())
        .await?;
    // Past the limit the receiver may cut the connection before all is written.
    let _ = stream.write_all(&vec![b'x'; len]).await;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    Ok(answer)
}

#[tokio::test]
async fn a_body_is_taken_up_to_its_limit_and_not_past_it() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    assert!(
        exchange_bytes(&receiver, BODY_BYTES_MAX)
            .await?
            .starts_with("HTTP/1.1 200 ")
    );
    assert_eq!(receiver.requests("/a")[0].body.len(), BODY_BYTES_MAX);

    assert_eq!(exchange_bytes(&receiver, BODY_BYTES_MAX + 1).await?, "");
    assert_eq!(receiver.tally("/a").arrived, 1);
    Ok(())
}
