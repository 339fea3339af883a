//! Serves the engine on a loopback address until its standard input ends: `engine FOLDER 127.0.0.1:8123`.

use std::io::Read;

use clickhouse_embedded::test_support::test_options;
use clickhouse_embedded::{Engine, TcpAccess};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: engine FOLDER ADDRESS".into());
    };
    let address = address.to_str().ok_or("the address is not text")?.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = Engine::open(test_options(folder)?).await?;
        let server = engine.serve_tcp(address, TcpAccess::open_on_loopback()).await?;
        eprintln!("ClickHouse {} on {}", engine.version(), server.local_addr());
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        ended.await??;
        server.shutdown().await;
        engine.close().await?;
        Ok(())
    })
}
