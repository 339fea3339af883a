//! From what support has in hand to the whole chain, with a proof that needs nobody's word.

use proof::{ProofFile, PublicKey};
use serde_json::{Value, json};

use super::on_both;
use super::world::{Journal, MINUTE, Turn, World, platform};

on_both!(
    a_frame_leads_to_a_proof_that_holds_and_fails_after_one_changed_byte,
    every_handle_leads_to_the_same_statement,
    an_event_of_a_revision_is_proved_in_the_revision,
    what_no_run_reached_yet_has_no_statement,
    g3_what_was_sealed_is_proved_although_another_content_was_accepted_before_it,
    g9_another_platform_gets_nothing,
);

const FRAME: &str = "/v1/disputes/lookup?provider_id=docs&frame_id=f0&customer_id=globex";

/// A sealed hour of two customers and a frame that both were served.
async fn sealed(world: &World) -> Journal {
    let mut journal = world.journal("a").await;
    let mut turns: Vec<Turn> =
        (1..=5).map(|cost| Turn::new(&cost.to_string(), "globex", &[cost * 10])).collect();
    turns[2].providers.push(("notes", vec![1, 2]));
    turns.push(Turn::new("6", "initech", &[7]));
    world.take(&mut journal, &turns).await;
    world.settled(&[&journal]).await;
    world.seal().await;
    journal
}

async fn chains(world: &World, of: &str, path: &str) -> Vec<Value> {
    let (status, page) = world.get(of, path).await;
    assert_eq!(status, 200, "{path}: {page}");
    page["data"].as_array().unwrap().clone()
}

fn file(chain: &Value) -> ProofFile {
    serde_json::from_value(chain["proof"]["file"].clone()).unwrap()
}

async fn a_frame_leads_to_a_proof_that_holds_and_fails_after_one_changed_byte(world: World) {
    sealed(&world).await;
    let chains = chains(&world, "acme", FRAME).await;
    assert_eq!(chains.len(), 5, "one a serving");
    let statement = world.statements("acme").await.remove(0);
    let trusted: Vec<PublicKey> = file(&chains[0]).keys;
    let mut quantities = Vec::new();
    for chain in &chains {
        assert_eq!(chain["statement"]["statement_id"], statement.statement_id.as_str(), "{chain}");
        assert_eq!((&chain["frame"]["frame_id"], &chain["proof"]["verified"]), (&json!("f0"), &json!(true)));
        let verdict = file(chain).verify_with(&trusted).unwrap();
        assert_eq!((verdict.frames_opened, verdict.event_opened, verdict.meter_opened), (1, true, true));
        assert_eq!(verdict.statement_hash, statement.statement_hash);
        assert_eq!(chain["frame"]["tokens"], verdict.quantity);
        quantities.push(verdict.quantity);
    }
    quantities.sort_unstable();
    assert_eq!(quantities, [10, 20, 30, 40, 50]);

    let text = serde_json::to_string(&file(&chains[0])).unwrap();
    assert!(serde_json::from_str::<ProofFile>(&text).unwrap().verify().is_ok());
    for (place, byte) in text.bytes().enumerate() {
        let other = match byte {
            b'0' => b'1',
            b'a' => b'b',
            digit if digit.is_ascii_digit() => b'0',
            _ => b'a',
        };
        let mut changed = text.clone().into_bytes();
        changed[place] = other;
        let holds = serde_json::from_slice::<ProofFile>(&changed).is_ok_and(|file| file.verify().is_ok());
        let around = &text[place.saturating_sub(40)..(place + 10).min(text.len())];
        assert!(!holds, "byte {place} may be changed unseen, near {around}");
    }
}

async fn every_handle_leads_to_the_same_statement(world: World) {
    let mut journal = sealed(&world).await;
    let mut copy = Turn::new("3", "globex", &[30]);
    copy.providers.push(("notes", vec![1, 2]));
    world.take(&mut journal, &[copy]).await;
    let statement = world.statements("acme").await.remove(0);
    let event = chains(&world, "acme", FRAME).await[0]["event"]["event_id"].as_str().unwrap().to_owned();
    for (query, rows) in [
        (format!("event_id={event}"), 1),
        ("request_id=req-1&turn_id=3".to_owned(), 3),
        (format!("statement_id={}", statement.statement_id), 7),
        (format!("statement_id={}&limit=2", statement.statement_id), 2),
    ] {
        let found = chains(&world, "acme", &format!("/v1/disputes/lookup?{query}")).await;
        assert_eq!(found.len(), rows, "{query}: a row a frame, whatever the copies: {found:?}");
        for chain in found {
            assert_eq!(chain["statement"]["statement_id"], statement.statement_id.as_str(), "{query}");
            assert_eq!(chain["event"]["in_conflict"], false, "a copy is no conflict");
            file(&chain).verify().unwrap();
        }
    }
    let digest = format!("{FRAME}&content_digest=sha256:{}", "ab".repeat(32));
    assert_eq!(chains(&world, "acme", &digest).await.len(), 5);
    let digest = format!("{FRAME}&content_digest=sha256:{}", "cd".repeat(32));
    assert_eq!(chains(&world, "acme", &digest).await.len(), 0);
    for query in ["", "frame_id=f0", "event_id=x", "turn_id=3", "statement_id=x&event_id=y", "limit=0"] {
        let (status, problem) = world.get("acme", &format!("/v1/disputes/lookup?{query}")).await;
        assert_eq!(status, 422, "{query}: {problem}");
    }
    let key = world.key("acme", "read").await;
    let (status, problem) = world.send(&key, "GET", FRAME, None, "").await;
    assert_eq!((status, problem["code"].as_str()), (403, Some("missing_scope")));
}

async fn an_event_of_a_revision_is_proved_in_the_revision(world: World) {
    let mut journal = sealed(&world).await;
    world
        .take(&mut journal, &[Turn::new("late", "globex", &[900]), Turn::new("later", "globex", &[1])])
        .await;
    world.clock.advance_micros(MINUTE);
    world.tell(&journal).await;
    world.seal().await;
    let chains = chains(&world, "acme", "/v1/disputes/lookup?request_id=req-1&turn_id=late").await;
    assert_eq!((chains.len(), &chains[0]["statement"]["revision"]), (1, &json!(2)));
    assert_eq!(chains[0]["statement"]["sum"], "901");
    let verdict = file(&chains[0]).verify().unwrap();
    assert_eq!((verdict.quantity, verdict.log_index), (900, 2));
}

async fn what_no_run_reached_yet_has_no_statement(world: World) {
    let mut journal = sealed(&world).await;
    world.take(&mut journal, &[Turn::new("late", "globex", &[900])]).await;
    let chains = chains(&world, "acme", "/v1/disputes/lookup?request_id=req-1&turn_id=late").await;
    assert_eq!(chains.len(), 1);
    assert_eq!(chains[0]["event"]["tokens"], 900);
    for member in ["statement", "placement", "invoice_line", "proof"] {
        assert_eq!(chains[0][member], json!(null), "{member}");
    }
}

async fn g3_what_was_sealed_is_proved_although_another_content_was_accepted_before_it(world: World) {
    let (mut early, mut late) = (world.journal("a").await, world.journal("b").await);
    // Accepted first, and stored only when the hour is sealed already.
    let first = world.accept(&mut early, &Turn::new("1", "globex", &[900, 1]));
    world.clock.advance_micros(MINUTE);
    let sealed = world.take(&mut late, &[Turn::new("1", "globex", &[40])]).await.remove(0);
    world.clock.advance_micros(25 * 60 * MINUTE);
    let status = world.seal().await;
    assert_eq!(status.sealed[0].silent, [early.epoch, late.epoch], "{status:?}");
    world.store.insert(&first).await.unwrap();
    world.tell(&early).await;
    world.clock.advance_micros(60 * MINUTE);
    world.seal().await;
    let statements = world.statements("acme").await;
    assert_eq!((statements.len(), statements[0].sum), (1, 40), "what was sealed stands alone");

    let event = hex::encode(sealed.event_id);
    for query in [format!("event_id={event}"), format!("statement_id={}", statements[0].statement_id)] {
        let chains = chains(&world, "acme", &format!("/v1/disputes/lookup?{query}")).await;
        assert_eq!(chains.len(), 1, "{query}");
        assert_eq!(chains[0]["event"]["content_hash"], hex::encode(sealed.content_hash), "{query}");
        assert_eq!(
            (&chains[0]["event"]["in_conflict"], &chains[0]["frame"]["tokens"]),
            (&json!(true), &json!(40))
        );
        assert_eq!(file(&chains[0]).verify().unwrap().quantity, 40, "{query}");
    }
    let (_, event) = world.get("acme", &format!("/v1/events/{event}")).await;
    let contents: Vec<_> =
        event["contents"].as_array().unwrap().iter().map(|c| c["tokens"].as_u64().unwrap()).collect();
    assert_eq!((contents, &event["in_conflict"], &event["copies"]), (vec![901, 40], &json!(true), &json!(2)));

    let both = chains(&world, "acme", FRAME).await;
    let mut shown: Vec<_> =
        both.iter().map(|c| (c["frame"]["tokens"].as_u64().unwrap(), c["statement"].is_null())).collect();
    shown.sort_unstable();
    assert_eq!(shown, [(40, false), (900, true)], "each content by itself, one of them counted");
    assert_eq!(world.difference().await, None);
}

async fn g9_another_platform_gets_nothing(world: World) {
    let mut journal = sealed(&world).await;
    let ours = chains(&world, "acme", FRAME).await;
    let event = ours[0]["event"]["event_id"].as_str().unwrap();
    let statement = ours[0]["statement"]["statement_id"].as_str().unwrap();
    for query in [
        "provider_id=docs&frame_id=f0".to_owned(),
        format!("event_id={event}"),
        "request_id=req-1&turn_id=1".to_owned(),
        format!("statement_id={statement}"),
    ] {
        let path = format!("/v1/disputes/lookup?{query}");
        assert_eq!(chains(&world, "other", &path).await, Vec::<Value>::new(), "{query}");
        assert!(!chains(&world, "acme", &path).await.is_empty(), "{query}");
    }
    for path in [format!("/v1/events/{event}"), format!("/v1/statements/{statement}")] {
        assert_eq!(world.get("other", &path).await.0, 404, "{path}");
        assert_eq!(world.get("acme", &path).await.0, 200, "{path}");
    }
    for path in ["/v1/statements", "/v1/heads", "/v1/windows", "/v1/usage", "/v1/conflicts"] {
        assert_eq!(world.get("other", path).await.1["data"], json!([]), "{path}");
    }
    assert_eq!(world.get("other", "/v1/usage").await.1["total"]["tokens"], "0");
    let found = world.billing.verify(&platform("other")).await.unwrap();
    assert_eq!((found.ok, found.statements, found.events), (true, 0, 0));

    // The same turn, customer and frame of the other platform are other events, in its own log.
    let mut theirs = Turn::new("1", "globex", &[5]);
    theirs.platform = "other";
    world.take(&mut journal, &[theirs]).await;
    world.seal().await;
    let theirs = chains(&world, "other", FRAME).await;
    assert_eq!((theirs.len(), &theirs[0]["frame"]["tokens"]), (1, &json!(5)));
    assert_eq!(
        (&theirs[0]["statement"]["log_index"], &theirs[0]["statement"]["sum"]),
        (&json!(1), &json!("5"))
    );
    assert_eq!(file(&theirs[0]).verify().unwrap().quantity, 5);
    assert_eq!(chains(&world, "acme", FRAME).await, ours);
    let key = world.key("other", "support").await;
    let (_, page) = world.send(&key, "GET", FRAME, None, "").await;
    assert_eq!(page["data"], json!(theirs), "by the key alone");
    let (_, page) = world.send(&key, "GET", FRAME, Some("acme"), "").await;
    assert_eq!(page["data"], json!(theirs), "a key cannot choose another platform");
}
