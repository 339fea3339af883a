//! Turn reports from a seed.

use serde_json::{Value, json};

/// A small generator whose whole state is its seed, so that a printed number replays a run.
#[derive(Debug, Clone)]
pub struct Seed(u64);

impl Seed {
    pub fn new(seed: u64) -> Seed {
        Seed(seed)
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }
}

/// A consistent turn report as the wire has it, and what it costs.
#[derive(Debug, Clone)]
pub struct Turn {
    pub customer: String,
    pub request: String,
    pub turn: String,
    pub tokens: u64,
    pub body: Value,
}

impl Turn {
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.body).expect("a value of JSON serialises")
    }
}

/// A report of one to three providers with one to four frames each.
pub fn turn(seed: &mut Seed, customer: &str, request: &str, turn: &str, as_of: &str) -> Turn {
    let mut total = 0;
    let providers: Vec<Value> = (0..=seed.below(2))
        .map(|p| {
            let provider = format!("provider-{p}");
            let mut cost = 0;
            let frames: Vec<Value> = (0..=seed.below(3))
                .map(|f| {
                    let tokens = 1 + seed.below(900);
                    cost += tokens;
                    let digest: String = (0..4).map(|_| format!("{:016x}", seed.draw())).collect();
                    json!({
                        "frame": {"provider_id": provider, "frame_id": format!("frame-{f}"), "content_digest": format!("sha256:{digest}")},
                        "token_cost": tokens,
                    })
                })
                .collect();
            total += cost;
            json!({
                "provider_id": provider, "frames_served": frames.len(), "frames_rejected": seed.below(3),
                "token_cost": cost, "served_frames": frames,
            })
        })
        .collect();
    Turn {
        customer: customer.to_owned(),
        request: request.to_owned(),
        turn: turn.to_owned(),
        tokens: total,
        body: json!({
            "customer_id": customer, "request_id": request, "turn_id": turn,
            "report": {"budget_requested": 100_000, "budget_consumed": total, "as_of": as_of, "providers": providers},
        }),
    }
}
