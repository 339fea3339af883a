//! A task's failure as its client meets it.

use ledger::{CustomerRow, LedgerError};
use web::{Problem, codes};

use crate::payments::PaymentsError;
use crate::provider::PaymentError;

impl From<PaymentsError> for Problem {
    fn from(error: PaymentsError) -> Problem {
        match error {
            PaymentsError::Ledger(error) => error.into(),
            PaymentsError::Provider(error) => of_provider(&error),
            PaymentsError::Busy => Problem::new(&codes::BUSY)
                .detail("Another worker runs the payments tasks now; ask again after the time in Retry-After.")
                .retry_after(5),
            PaymentsError::Unbound(binding) => Problem::new(&codes::PAYMENTS_OFF)
                .detail("The platform is not bound to the Stripe account and mode of the secret key; let the operator bind it.")
                .with("binding", binding.as_str().into()),
            PaymentsError::NoCustomer(customer) => Problem::new(&codes::INVALID_VALUE)
                .detail(format!("Stripe has no customer {customer} in this account and mode; name one that it has."))
                .pointer("/stripe_customer"),
            PaymentsError::MeterUnfit(event_name) => Problem::new(&codes::STRIPE_REFUSED).detail(format!(
                "Stripe has an active meter for the event name {event_name} that does not sum raw events by our payload keys; deactivate it first."
            )),
            PaymentsError::Number(_) => Problem::new(&codes::INTERNAL).internal(&error),
        }
    }
}

fn of_provider(error: &PaymentError) -> Problem {
    let refused = |detail: String| Problem::new(&codes::STRIPE_REFUSED).detail(detail).internal(error);
    match error {
        PaymentError::Unknown { .. } | PaymentError::RateLimited { .. } => {
            Problem::new(&codes::STRIPE_UNAVAILABLE)
                .detail("Stripe gave no usable answer; ask again after the time in Retry-After.")
                .retry_after(5)
                .internal(error)
        }
        PaymentError::Refused { code, message, .. } => refused(format!("Stripe refused ({code}): {message}")),
        PaymentError::NotFound { what } => {
            refused(format!("Stripe does not know {what}; see whether it was deleted."))
        }
        PaymentError::NotWhole { .. } => {
            refused("Stripe counts a fraction of a token; see who else sends usage to this meter.".to_owned())
        }
        PaymentError::OtherAccount { what } => refused(format!(
            "{what} belongs to the other mode or another account; name one of this account and mode."
        )),
    }
}

/// Why a link was refused: two conflicts with two ways out.
pub(super) fn of_link(error: PaymentsError) -> Problem {
    match error {
        PaymentsError::Ledger(LedgerError::Conflict { constraint }) if constraint == CustomerRow::LINKED => {
            Problem::new(&codes::CUSTOMER_LINKED)
                .detail("The customer was billed through another Stripe customer already; keep that one.")
                .pointer("/stripe_customer")
        }
        PaymentsError::Ledger(LedgerError::Conflict { .. }) => Problem::new(&codes::STRIPE_CUSTOMER_TAKEN)
            .detail("The Stripe customer pays for somebody else; link another one.")
            .pointer("/stripe_customer"),
        other => other.into(),
    }
}
