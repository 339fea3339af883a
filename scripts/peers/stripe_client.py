#!/usr/bin/env python3
"""The official Python client walks a metered subscription from its first event to a paid invoice.

Run by stripe.sh against the stand-in; it knows nothing of it but its address. Exits with the first difference.
"""

import sys
import time

import stripe

HOUR = 3600
START = 1_700_006_400  # 2023-11-15T00:00:00Z


def check(what, seen, expected):
    if seen != expected:
        sys.exit(f"stripe client: {what}: {seen!r} instead of {expected!r}")


def until(what, condition):
    for _ in range(100):
        if condition():
            return
        time.sleep(0.05)
    sys.exit(f"stripe client: {what} did not happen within five seconds")


def main(base):
    bases = {"api": base, "meter_events": base, "files": base, "connect": base}
    client = stripe.StripeClient("sk_test_peer", base_addresses=bases, max_network_retries=2)
    v1 = client.v1

    clock = v1.test_helpers.test_clocks.create({"frozen_time": START})
    customer = v1.customers.create({"name": "Acme", "test_clock": clock.id, "metadata": {"platform": "p1"}})
    meter = v1.billing.meters.create(
        {
            "display_name": "Context tokens",
            "event_name": f"context_tokens_{clock.id}",
            "default_aggregation": {"formula": "sum"},
        }
    )
    product = v1.products.create({"name": "Context tokens", "unit_label": "token"})
    price = v1.prices.create(
        {
            "currency": "usd",
            "product": product.id,
            "unit_amount_decimal": "0.0003",
            "recurring": {"interval": "month", "usage_type": "metered", "meter": meter.id},
        }
    )
    check("a decimal price has no whole amount", price.unit_amount, None)
    subscription = v1.subscriptions.create({"customer": customer.id, "items": [{"price": price.id}]})
    item = subscription["items"].data[0]
    check("the item's period starts at the clock", item.current_period_start, START)
    end = item.current_period_end

    event = {
        "event_name": meter.event_name,
        "payload": {"stripe_customer_id": customer.id, "value": "123456"},
        "identifier": f"cm1_{clock.id}",
        "timestamp": START,
    }
    first = v1.billing.meter_events.create(event, options={"idempotency_key": f"{clock.id}/1"})
    check("the identifier comes back", first.identifier, event["identifier"])
    again = v1.billing.meter_events.create(event, options={"idempotency_key": f"{clock.id}/1"})
    check("a repeat under the key is a replay", again.last_response.headers.get("idempotent-replayed"), "true")
    try:
        v1.billing.meter_events.create(event, options={"idempotency_key": f"{clock.id}/2"})
        sys.exit("stripe client: a second event with the identifier was taken")
    except stripe.InvalidRequestError as error:
        check("the duplicate's text", error.user_message, f"An event already exists with identifier {event['identifier']}.")
        check("the duplicate has no code", error.code, None)

    def summaries():
        window = {"customer": customer.id, "start_time": START, "end_time": START + HOUR, "value_grouping_window": "hour"}
        return [row.aggregated_value for row in v1.billing.meters.event_summaries.list(meter.id, window).data]

    until("the summary", lambda: summaries() == [123456.0])

    v1.test_helpers.test_clocks.advance(clock.id, {"frozen_time": end + 60})
    until("the clock", lambda: v1.test_helpers.test_clocks.retrieve(clock.id).status == "ready")
    [draft] = v1.invoices.list({"customer": customer.id, "status": "draft"}).data
    [line] = draft.lines.data
    check("37.0368 cents are 37", (draft.total, line.amount, line.quantity), (37, 37, 123456))
    check("the line names its price", line.pricing.price_details.price, price.id)
    check("the line names its item", line.parent.subscription_item_details.subscription_item, item.id)
    check("the line's period", (line.period.start, line.period.end), (START, end))

    v1.invoices.update(draft.id, {"auto_advance": False, "metadata": {"root": "abc"}})
    v1.test_helpers.test_clocks.advance(clock.id, {"frozen_time": end + 2 * HOUR})
    until("the clock", lambda: v1.test_helpers.test_clocks.retrieve(clock.id).status == "ready")
    check("a guarded draft stays", v1.invoices.retrieve(draft.id).status, "draft")
    opened = v1.invoices.finalize_invoice(draft.id)
    check("finalised by us", (opened.status, opened.metadata["root"]), ("open", "abc"))
    check("paid", v1.invoices.pay(draft.id).status, "paid")

    names = [row.id for row in v1.billing.meters.list({"limit": 1}).auto_paging_iter()]
    check("the meter is in the list", meter.id in names, True)
    try:
        v1.customers.retrieve("cus_unknown")
        sys.exit("stripe client: an unknown customer was found")
    except stripe.InvalidRequestError as error:
        check("an unknown customer", (error.http_status, error.code), (404, "resource_missing"))
    try:
        client.v2.billing.meter_events.create({**event, "timestamp": "2023-11-15T00:00:00Z"})
        sys.exit("stripe client: the second version took the duplicate")
    except stripe.StripeError as error:
        check("the duplicate in the second version", error.code, "duplicate_meter_event")
    print(f"stripe {stripe.VERSION}: customer, meter, price, subscription, event, summary and invoice agree")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
