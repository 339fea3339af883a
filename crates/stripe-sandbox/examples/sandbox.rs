//! The stand-in alone: `cargo run -p stripe-sandbox --example sandbox -- 127.0.0.1:12111 [state.json]`.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use stripe_sandbox::{Sandbox, SandboxOptions, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:12111".to_owned()).parse()?;
    let state_file = arguments.next().map(PathBuf::from);
    let sandbox = Sandbox::open(SandboxOptions { state_file, ..SandboxOptions::default() })?;
    let server = serve(sandbox, listen).await?;
    writeln!(std::io::stdout(), "http://{}", server.local_addr())?;
    // Until it is killed.
    std::future::pending::<()>().await;
    Ok(())
}
