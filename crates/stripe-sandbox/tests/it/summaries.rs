use crate::desk::{DAY, Desk, HOUR, NOON, id};

#[tokio::test]
async fn times_are_whole_minutes_hours_or_days() {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let midnight = NOON - 12 * HOUR;
    let table = [
        (
            "no customer",
            format!("start_time={NOON}&end_time={}", NOON + 60),
            Some("parameter_missing"),
            "customer",
        ),
        (
            "start within a minute",
            format!("customer={customer}&start_time={}&end_time={}", NOON + 1, NOON + 60),
            None,
            "start_time",
        ),
        (
            "end within a minute",
            format!("customer={customer}&start_time={NOON}&end_time={}", NOON + 61),
            None,
            "end_time",
        ),
        (
            "end before start",
            format!("customer={customer}&start_time={NOON}&end_time={NOON}"),
            None,
            "end_time",
        ),
        (
            "hour within an hour",
            format!(
                "customer={customer}&start_time={}&end_time={}&value_grouping_window=hour",
                NOON + 60,
                NOON + HOUR
            ),
            None,
            "start_time",
        ),
        (
            "day within a day",
            format!("customer={customer}&start_time={midnight}&end_time={NOON}&value_grouping_window=day"),
            None,
            "end_time",
        ),
        (
            "unknown customer",
            format!("customer=cus_x&start_time={NOON}&end_time={}", NOON + 60),
            Some("resource_missing"),
            "customer",
        ),
    ];
    for (name, query, code, param) in table {
        let said = desk.get(&format!("/v1/billing/meters/{meter}/event_summaries?{query}")).await;
        said.refused(400, code);
        assert_eq!(said.body["error"]["param"], param, "{name}");
    }
    desk.get(&format!(
        "/v1/billing/meters/mtr_x/event_summaries?customer={customer}&start_time=0&end_time=60"
    ))
    .await
    .refused(404, Some("resource_missing"));
}

#[tokio::test]
async fn the_range_is_half_open_and_buckets_come_newest_first() {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    for (identifier, value, at) in
        [("a", "1", NOON - 2 * HOUR), ("b", "2", NOON - HOUR - 1), ("c", "4", NOON - HOUR), ("d", "8", NOON)]
    {
        desk.event(&customer, identifier, value, at).await.ok();
    }
    assert_eq!(desk.sum(&meter, &customer, NOON - 2 * HOUR, NOON - HOUR).await, Some(3.0));
    assert_eq!(desk.sum(&meter, &customer, NOON - HOUR, NOON).await, Some(4.0));
    assert_eq!(desk.sum(&meter, &customer, NOON + 60, NOON + 120).await, None, "no event, no summary");
    let path = format!(
        "/v1/billing/meters/{meter}/event_summaries?customer={customer}&start_time={}&end_time={}&value_grouping_window=hour",
        NOON - 12 * HOUR,
        NOON + 12 * HOUR
    );
    let page = desk.get(&format!("{path}&limit=2")).await.ok();
    let sums = |page: &serde_json::Value| -> Vec<f64> {
        page["data"].as_array().unwrap().iter().map(|row| row["aggregated_value"].as_f64().unwrap()).collect()
    };
    assert_eq!((sums(&page), &page["has_more"]), (vec![8.0, 4.0], &true.into()));
    let rest = desk.get(&format!("{path}&limit=2&starting_after={}", id(&page["data"][1]))).await.ok();
    assert_eq!((sums(&rest), &rest["has_more"]), (vec![3.0], &false.into()));
    let midnight = NOON - 12 * HOUR;
    let day = desk
        .get(&format!(
            "/v1/billing/meters/{meter}/event_summaries?customer={customer}&start_time={midnight}&end_time={}&value_grouping_window=day",
            midnight + DAY
        ))
        .await
        .ok();
    assert_eq!(sums(&day), vec![15.0]);
    desk.settings(serde_json::json!({ "empty_summaries": true })).await;
    assert_eq!(desk.sum(&meter, &customer, NOON + 60, NOON + 120).await, Some(0.0));
}

#[tokio::test]
async fn the_sum_is_a_float_and_loses_what_a_float_loses() {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    for place in 0..10 {
        desk.event(&customer, &place.to_string(), "999999999999999", NOON).await.ok();
    }
    desk.event(&customer, "one", "3", NOON).await.ok();
    // 9,999,999,999,999,993 has no place among the floats.
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(9_999_999_999_999_992.0));
}

#[tokio::test]
async fn count_last_and_windowed_meters_follow_their_formula() {
    let desk = Desk::at_noon();
    let customer = desk.customer().await;
    let table = [
        ("count", "", 3.0),
        ("last", "", 7.0),
        ("sum", "&event_time_window=hour", 12.0),
        ("sum", "&event_time_window=day", 5.0),
    ];
    for (place, (formula, window, expected)) in table.into_iter().enumerate() {
        let name = format!("m{place}");
        let form = format!("display_name=M&event_name={name}&default_aggregation[formula]={formula}{window}");
        let meter = id(&desk.post("/v1/billing/meters", &form).await.ok());
        // The last received of an hour or day is its value: 5 and 7 by hour, 5 by day.
        for (value, at) in [("3", NOON - HOUR), ("7", NOON), ("5", NOON - HOUR + 60)] {
            let form = format!(
                "event_name={name}&timestamp={at}&payload[stripe_customer_id]={customer}&payload[value]={value}"
            );
            desk.post("/v1/billing/meter_events", &form).await.ok();
        }
        let sum = desk.sum(&meter, &customer, NOON - 2 * HOUR, NOON + HOUR).await;
        assert_eq!(sum, Some(expected), "{formula}{window}");
    }
}

#[tokio::test]
async fn a_meter_has_one_active_name_and_comes_back_only_where_it_is_free() {
    let desk = Desk::at_noon();
    let first = desk.meter("tokens").await;
    let form = "display_name=T&event_name=tokens&default_aggregation[formula]=sum";
    desk.post("/v1/billing/meters", form).await.refused(400, None);
    let at_rest = desk.post(&format!("/v1/billing/meters/{first}/deactivate"), "").await.ok();
    assert_eq!(
        (&at_rest["status"], &at_rest["status_transitions"]["deactivated_at"]),
        (&"inactive".into(), &NOON.into())
    );
    let second = desk.meter("tokens").await;
    desk.post(&format!("/v1/billing/meters/{first}/reactivate"), "").await.refused(400, None);
    desk.post(&format!("/v1/billing/meters/{second}/deactivate"), "").await.ok();
    desk.post(&format!("/v1/billing/meters/{first}/reactivate"), "").await.ok();
    desk.post(&format!("/v1/billing/meters/{first}"), "display_name=Other").await.ok();
    desk.post(&format!("/v1/billing/meters/{first}"), "event_name=other")
        .await
        .refused(400, Some("parameter_unknown"));
    let active = desk.get("/v1/billing/meters?status=active").await.ok();
    assert_eq!(
        (active["data"].as_array().unwrap().len(), &active["data"][0]["display_name"]),
        (1, &"Other".into())
    );
}
