//! Who gets a committed event, and who does not.

use acceptance::{Event, World};

#[tokio::test]
async fn a_committed_event_arrives_at_every_subscribed_endpoint_exactly_once() {
    let world = World::start().await;
    let (first, second) = (
        world.endpoint("/first").await,
        world.endpoint("/second").await,
    );
    let _relay = world.relay().await;
    let _dispatcher = world.dispatcher().await;
    let id = world.commit(&Event::json("order.paid", r#"{"n":1}"#)).await;

    world.until_status("delivered", 2).await;
    for endpoint in [&first, &second] {
        let requests = world.receiver.requests(&endpoint.path);
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].webhook_id(), id.to_string());
    }
    world.assert_no_leftovers().await;
}
