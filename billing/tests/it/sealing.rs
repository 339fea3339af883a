//! Sealing, verifying and disputes, on a real engine and on both ledgers.

mod world;

mod hours;

mod pieces;

mod histories;

mod tampering;

mod lookups;

/// A test on each database.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod with_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::sealing::world::World::sqlite().await).await;
            })+
        }
        mod with_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::sealing::world::World::postgres().await).await;
            })+
        }
    };
}

pub(crate) use on_both;
