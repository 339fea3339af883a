//! `/v1/customers`: who pays for whom.

use axum::{Json, extract::State};
use ledger::CustomerRow;
use serde::{Deserialize, Serialize};
use usage::{CustomerId, Timestamp};
use utoipa::ToSchema;
use web::{Auth, Page, PageQuery, Problem, StrictJson, StrictPath, StrictQuery, codes, scope};

use super::{Desk, failure::of_link};

#[derive(Serialize, ToSchema)]
pub(super) struct Customer {
    customer_id: String,
    /// Absent: its usage is sealed and waits as `unlinked_customer`.
    stripe_customer: Option<String>,
    stripe_account: Option<String>,
    #[schema(value_type = String)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>)]
    linked_at: Option<Timestamp>,
}

impl From<CustomerRow> for Customer {
    fn from(row: CustomerRow) -> Customer {
        Customer {
            customer_id: row.customer.to_string(),
            stripe_customer: row.stripe_customer,
            stripe_account: row.stripe_account,
            created_at: row.created_at,
            linked_at: row.linked_at,
        }
    }
}

/// Lists customers that were named here, in the order of their ids.
#[utoipa::path(get, path = "/v1/customers", tag = "finance", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page", body = inline(Vec<Customer>))))]
pub(super) async fn list_customers(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Page<Customer>>, Problem> {
    let limit = query.limit()?;
    let after = query.after.unwrap_or_default();
    let rows = desk.ledger.customer_list(&caller.platform, &after, limit.saturating_add(1)).await?;
    let customers = rows.into_iter().map(Customer::from).collect();
    Ok(Json(Page::cut(customers, limit, |customer| customer.customer_id.clone())))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    /// `cus_…` of the platform's account and mode.
    stripe_customer: String,
}

/// Says which Stripe customer pays for a customer. The same again changes nothing.
#[utoipa::path(put, path = "/v1/customers/{customer_id}", tag = "finance", security(("key" = [])),
    params(("customer_id" = String, Path, description = "As in its reports")), request_body = Link,
    responses((status = 200, description = "The customer", body = Customer),
        (status = 409, description = "stripe_customer_taken, customer_linked, payments_off"),
        (status = 422, description = "invalid_value")))]
pub(super) async fn link_customer(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictPath(customer): StrictPath<String>,
    StrictJson(link): StrictJson<Link>,
) -> Result<Json<Customer>, Problem> {
    let customer = CustomerId::parse(customer).map_err(|error| {
        Problem::new(&codes::INVALID_VALUE)
            .detail(format!("The customer's id is not taken: {error}; use the one of its reports."))
    })?;
    let payments = desk.payments()?.clone();
    let linked = tokio::spawn(async move {
        payments.customer_link(&caller.platform, &customer, &link.stripe_customer).await.map_err(of_link)
    });
    let row = linked.await.map_err(|error| Problem::new(&codes::INTERNAL).internal(&error))??;
    Ok(Json(row.into()))
}
