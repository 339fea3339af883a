//! Random histories: whatever comes in whichever order through whichever journal, each event is in exactly one statement.

use std::collections::BTreeMap;

use billing::SealRequest;
use usage::{Clock as _, Hour};

use super::on_both;
use super::world::{Journal, MINUTE, Turn, World, noon, platform};

on_both!(g5_the_statements_of_random_histories_add_up_to_the_tokens_that_were_reported);

/// Each on a platform of its own, over the same journals.
const HISTORIES: [(u64, &str); 3] = [(1, "first"), (0x5eed, "second"), (20_261_130, "third")];
const CUSTOMERS: [&str; 3] = ["globex", "initech", "umbrella"];
const PROVIDERS: [&str; 3] = ["docs", "notes", "web"];
const HOURS: i64 = 4;

/// SplitMix64: the same history of a seed on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(u64::try_from(length).unwrap())).unwrap()
    }

    fn micros(&mut self, end: i64) -> i64 {
        i64::try_from(self.below(u64::try_from(end).unwrap())).unwrap()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.place(all.len())]
    }

    /// At any instant of the history that has been, of one to three providers.
    fn turn(&mut self, platform: &'static str, number: usize, now: i64) -> Turn {
        let mut turn = Turn::new(&number.to_string(), self.of(&CUSTOMERS), &[]);
        let start = noon().start().as_micros();
        let end = now.min(start + HOURS * 60 * MINUTE - 1);
        let back = self.micros(end - start);
        turn.at = usage::Timestamp::from_micros(end - back);
        turn.platform = platform;
        turn.providers.clear();
        for provider in PROVIDERS.iter().take(1 + self.place(3)) {
            let most = self.of(&[10, 2_000, 1_000_000_000_000_000]);
            turn.providers.push((provider, (0..self.below(4)).map(|_| self.below(most)).collect()));
        }
        turn
    }
}

/// Customer and hour to events and tokens.
type Sums = BTreeMap<(String, Hour), (u64, u128)>;

#[expect(clippy::print_stdout, reason = "a failure shows its seed")]
async fn g5_the_statements_of_random_histories_add_up_to_the_tokens_that_were_reported(world: World) {
    let mut journals = [world.journal("a").await, world.journal("b").await, world.journal("c").await];
    for (seed, name) in HISTORIES {
        println!("history {name}: seed {seed}");
        world.add_platform(name).await;
        let reported = history(&world, &mut journals, seed, name).await;

        let mut sealed: Sums = BTreeMap::new();
        let statements = world.statements(name).await;
        for statement in &statements {
            let sums = sealed.entry((statement.customer.to_string(), statement.hour)).or_default();
            sums.0 += statement.count;
            sums.1 += statement.sum;
        }
        assert_eq!(sealed, reported, "seed {seed}: the statements and what was reported");
        let revised = statements.iter().filter(|statement| statement.revision > 1).count();
        println!("history {name}: {} statements, {revised} of them revisions", statements.len());

        let from = noon();
        let (status, usage) = world.get(name, &format!("/v1/usage?from={from}&limit=1000")).await;
        assert_eq!(status, 200, "{usage}");
        let total = reported.values().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        assert_eq!(usage["total"]["events"], total.0.to_string(), "seed {seed}");
        assert_eq!(usage["total"]["tokens"], total.1.to_string(), "seed {seed}");
        let found = world.billing.verify(&platform(name)).await.unwrap();
        assert!(found.ok, "seed {seed}: {found:?}");
        assert_eq!(
            found.statements,
            u64::try_from(statements.len()).unwrap(),
            "seed {seed}: every one was made again"
        );
        assert!(found.events >= total.0, "seed {seed}: and every event, with its copies, hashed again");
    }
}

async fn history(world: &World, journals: &mut [Journal; 3], seed: u64, name: &'static str) -> Sums {
    let mut random = Random(seed);
    let mut reported: Sums = BTreeMap::new();
    let mut turns: Vec<Turn> = Vec::new();
    let mut activations = 0;
    for _ in 0..40 {
        match random.below(10) {
            0..=4 => {
                for _ in 0..=random.below(5) {
                    let turn = random.turn(name, turns.len(), world.clock.now().as_micros());
                    for (_, costs) in &turn.providers {
                        let tokens: u64 = costs.iter().sum();
                        let sums = reported.entry((turn.customer.clone(), Hour::of(turn.at))).or_default();
                        sums.0 += 1;
                        sums.1 += u128::from(tokens);
                    }
                    put(world, &mut random, journals, &turn).await;
                    turns.push(turn);
                }
            }
            5 if !turns.is_empty() => {
                // The host did not see the answer and posted again, through whichever replica.
                let place = random.place(turns.len());
                put(world, &mut random, journals, &turns[place]).await;
            }
            5 | 6 => world.tell(&journals[random.place(3)]).await,
            7 | 8 => world.clock.advance_micros(random.micros(40) * MINUTE + 1),
            _ => {
                activations += 1;
                let force = random.below(2) == 0;
                world.billing.seal_activate(SealRequest { force, ..SealRequest::default() }).await.unwrap();
                if activations % 3 == 0 {
                    let found = world.billing.verify(&platform(name)).await.unwrap();
                    let first = found.first_difference.map(|first| first.what);
                    // What is stored and not told yet counts for nobody.
                    assert_eq!(first, None, "seed {seed}");
                }
            }
        }
    }
    let end = noon().end().checked_add_micros(HOURS * 60 * MINUTE).unwrap();
    world.clock.set(end.max(world.clock.now()));
    for journal in journals.iter() {
        world.tell(journal).await;
    }
    let last = SealRequest { platform: Some(platform(name)), hour: None, force: true };
    let status = world.billing.seal_activate(last.clone()).await.unwrap();
    assert!(status.frozen.is_empty() && status.waiting.is_empty(), "seed {seed}: {status:?}");
    let again = world.billing.seal_activate(last).await.unwrap();
    assert!(again.sealed.is_empty(), "seed {seed}: {again:?}");
    reported
}

/// Into any of the journals; told at once or only later.
async fn put(world: &World, random: &mut Random, journals: &mut [Journal; 3], turn: &Turn) {
    let journal = &mut journals[random.place(3)];
    let block = world.accept(journal, turn);
    world.store.insert(&block).await.unwrap();
    if random.below(3) == 0 {
        world.tell(journal).await;
    }
}
