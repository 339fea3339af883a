//! Billing through the sandbox: from a statement to a final invoice, judged by what the sandbox saw.

mod campaign;
mod evidence;
mod invoices;
mod periods;
mod sync;
