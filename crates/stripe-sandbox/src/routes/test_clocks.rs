use serde_json::{Value, json};

use super::{Answer, Call, customers};
use crate::error::ApiError;
use crate::state::billing::interval_of;
use crate::state::{Kind, new_id, text};

const KEPT_SECONDS: i64 = 30 * 86_400;

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let clock = json!({
        "id": new_id("clock"), "object": "test_helpers.test_clock", "created": call.now,
        "deletes_after": call.now.saturating_add(KEPT_SECONDS), "frozen_time": call.params["frozen_time"],
        "livemode": call.account.livemode, "name": call.text("name"), "status": "ready", "status_details": {},
    });
    if call.account.livemode {
        return Err(ApiError::invalid("Test clocks can only be used in test mode."));
    }
    let clock = call.account.insert(Kind::TestClock, clock);
    call.account.emit("test_helpers.test_clock.created", &clock, call.now);
    Ok(clock)
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    call.list(Kind::TestClock, "/v1/test_helpers/test_clocks", |_| true)
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::TestClock)
}

/// The answer says `advancing` and the old time, as Stripe's does; what was due is done before the next request sees `ready`.
pub(super) fn advance(call: &mut Call<'_>) -> Answer {
    let clock = call.own(Kind::TestClock)?;
    let id = text(&clock, "id");
    let frozen = clock["frozen_time"].as_i64().unwrap_or(0);
    let target = call.params["frozen_time"].as_i64().unwrap_or(0);
    if target <= frozen {
        return Err(ApiError::invalid("`frozen_time` must be after the test clock's current `frozen_time`.")
            .param("frozen_time"));
    }
    if furthest(call, &id, frozen).is_some_and(|furthest| target > furthest) {
        let text =
            "You can advance a test clock by at most two intervals of its shortest subscription at a time.";
        return Err(ApiError::invalid(text).param("frozen_time"));
    }
    let mut advancing = clock;
    advancing["status"] = "advancing".into();
    advancing["status_details"] = json!({ "advancing": { "target_frozen_time": target } });
    call.account.emit("test_helpers.test_clock.advancing", &advancing, frozen);
    let ready = call.change(Kind::TestClock, |row, _| row["frozen_time"] = target.into())?;
    call.account.run_due(call.settings, call.now);
    call.account.emit("test_helpers.test_clock.ready", &ready, target);
    Ok(advancing)
}

fn furthest(call: &Call<'_>, clock: &str, frozen: i64) -> Option<i64> {
    let on_clock = |row: &&Value| row["test_clock"] == clock && row["status"] == "active";
    let two_on = |row: &Value| interval_of(row)?.boundary(frozen, 2);
    call.account.rows(Kind::Subscription).filter(on_clock).filter_map(two_on).min()
}

/// Its customers go with it.
pub(super) fn delete(call: &mut Call<'_>) -> Answer {
    let clock = call.own(Kind::TestClock)?;
    let id = text(&clock, "id");
    let at = clock["frozen_time"].as_i64().unwrap_or(call.now);
    let on_clock = call.account.rows(Kind::Customer).filter(|row| row["test_clock"] == id.as_str());
    let customers: Vec<String> = on_clock.map(|row| text(row, "id")).collect();
    for customer in customers {
        customers::delete_customer(call, &customer, at);
    }
    call.account.table(Kind::TestClock).remove(&id);
    Ok(json!({ "id": id, "object": "test_helpers.test_clock", "deleted": true }))
}
