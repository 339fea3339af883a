//! The payments half over HTTP. What it does at the payment service is judged in `stripe-provider`, against the sandbox.

mod desk;
mod service;

mod routes;
