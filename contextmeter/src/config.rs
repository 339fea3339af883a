//! Configuration: one documented default file, then a file, the environment and flags over it.
//!
//! This is the only place that reads the environment.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use toml::{Table, Value};

const DEFAULTS: &str = include_str!("../config.default.toml");
const PREFIX: &str = "CONTEXTMETER_";

/// Everything that can be set, checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) data: Data,
    pub(crate) http: Http,
    pub(crate) ledger: Ledger,
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) ingest: Ingest,
    pub(crate) billing: Billing,
    pub(crate) stripe: Stripe,
    pub(crate) sandbox: Sandbox,
    pub(crate) log: Log,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    pub(crate) listen: SocketAddr,
    pub(crate) max_body_bytes: usize,
    request_timeout_ms: u64,
    pub(crate) concurrency: usize,
    drain_ms: u64,
}

impl Http {
    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms)
    }

    pub(crate) fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ledger {
    pub(crate) url: String,
    pub(crate) max_connections: u32,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    pub(crate) url: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) database: String,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Engine {
    library: String,
    listen: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) read_only: bool,
    pub(crate) max_memory_bytes: u64,
}

impl Engine {
    pub(crate) fn library(&self) -> Option<&Path> {
        (!self.library.is_empty()).then(|| Path::new(&self.library))
    }

    pub(crate) fn listen(&self) -> Result<Option<SocketAddr>, ConfigError> {
        if self.listen.is_empty() {
            return Ok(None);
        }
        self.listen.parse().map(Some).map_err(|_| ConfigError::Unsafe {
            key: "engine.listen",
            reason: format!("`{}` is not an address and port", self.listen),
            way_out: "write it as 127.0.0.1:8123",
        })
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ingest {
    group_window_ms: u64,
    pub(crate) block_rows: usize,
}

impl Ingest {
    pub(crate) fn group_window(&self) -> Duration {
        Duration::from_millis(self.group_window_ms)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Billing {
    tick_ms: u64,
}

impl Billing {
    pub(crate) fn tick(&self) -> Duration {
        Duration::from_millis(self.tick_ms)
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stripe {
    pub(crate) secret_key: String,
    pub(crate) base_url: String,
    pub(crate) events_per_second: u32,
    pub(crate) invoice_grace_minutes: u32,
}

impl Stripe {
    pub(crate) fn invoice_grace(&self) -> Duration {
        Duration::from_secs(u64::from(self.invoice_grace_minutes) * 60)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sandbox {
    pub(crate) listen: SocketAddr,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

// Sections that hold a secret say only that they exist.
macro_rules! opaque_debug {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), " { … }"))
            }
        }
    )*};
}
opaque_debug!(Ledger, Store, Engine, Stripe);

/// Why the configuration was not taken. Each says where it stands and the way out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read the configuration file {path}; name another with --config or create it", path = path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{place} is not valid TOML")]
    Syntax {
        place: String,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("{place}: unknown key `{key}`; `contextmeter config` lists the keys there are")]
    UnknownKey { place: String, key: String },
    #[error("{place}: `{key}` must be {expected}")]
    WrongType { place: String, key: String, expected: &'static str },
    #[error("the configuration does not fit")]
    Shape(#[source] Box<toml::de::Error>),
    #[error("`{key}`: {reason}; {way_out}")]
    Unsafe { key: &'static str, reason: String, way_out: &'static str },
}

/// What the flags of a command set over all other layers, as (`section.key`, value).
pub(crate) type Overrides = Vec<(&'static str, String)>;

impl Config {
    /// Reads every layer and checks the whole.
    pub(crate) fn load(file: Option<&Path>, overrides: Overrides) -> Result<Config, ConfigError> {
        let environment: Vec<(String, String)> =
            std::env::vars().filter(|(k, _)| k.starts_with(PREFIX)).collect();
        let named = file.map(Path::to_path_buf).or_else(|| {
            environment.iter().find(|(k, _)| k == "CONTEXTMETER_CONFIG").map(|(_, v)| PathBuf::from(v))
        });
        let text = match &named {
            Some(path) => Some((
                path.display().to_string(),
                std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::Read { path: path.clone(), source })?,
            )),
            None => None,
        };
        Self::from_layers(text, environment, overrides)
    }

    fn from_layers(
        file: Option<(String, String)>,
        environment: Vec<(String, String)>,
        overrides: Overrides,
    ) -> Result<Config, ConfigError> {
        let mut table = parse("the default configuration", DEFAULTS)?;
        if let Some((place, text)) = file {
            let layer = parse(&place, &text)?;
            for (section, keys) in layer {
                let Value::Table(keys) = keys else {
                    return Err(ConfigError::UnknownKey { place, key: section });
                };
                for (key, value) in keys {
                    set(&mut table, &place, &section, &key, value)?;
                }
            }
        }
        for (name, text) in environment {
            // Names of other programs' making: the configuration's own path and the tools' folders of the build scripts.
            if matches!(name.as_str(), "CONTEXTMETER_CONFIG" | "CONTEXTMETER_CHDB" | "CONTEXTMETER_TOOLS") {
                continue;
            }
            let lower = name[PREFIX.len()..].to_ascii_lowercase();
            let (section, key) = lower.split_once('_').unwrap_or((lower.as_str(), ""));
            set_text(&mut table, &name, section, key, &text)?;
        }
        for (name, text) in overrides {
            let (section, key) = name.split_once('.').unwrap_or((name, ""));
            set_text(&mut table, "the command line", section, key, &text)?;
        }
        let config: Config = Value::Table(table).try_into().map_err(|e| ConfigError::Shape(Box::new(e)))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let unsafe_value =
            |key, reason: &str, way_out| Err(ConfigError::Unsafe { key, reason: reason.to_owned(), way_out });
        if self.ingest.group_window_ms > 20 {
            return unsafe_value("ingest.group_window_ms", "is above 20", "choose 0 to 20");
        }
        if self.ingest.block_rows == 0 {
            return unsafe_value("ingest.block_rows", "is zero", "choose 1 or more");
        }
        if let Some(listen) = self.engine.listen()? {
            if !listen.ip().is_loopback() {
                return unsafe_value("engine.listen", "is not a loopback address", "use 127.0.0.1 or [::1]");
            }
            if self.engine.password.is_empty() {
                return unsafe_value(
                    "engine.password",
                    "is empty while engine.listen is set",
                    "set a password",
                );
            }
        }
        if self.stripe.secret_key.starts_with("sk_live_") && self.stripe.base_url != "https://api.stripe.com/"
        {
            return unsafe_value(
                "stripe.base_url",
                "a live key would be sent to an address that is not Stripe's",
                "remove base_url or use a test key",
            );
        }
        if self.stripe.events_per_second == 0 {
            return unsafe_value("stripe.events_per_second", "is zero", "choose 1 or more");
        }
        Ok(())
    }

    /// The documented default file, for `contextmeter config`.
    pub(crate) fn documented_defaults() -> &'static str {
        DEFAULTS
    }
}

/// The engine library named by the environment of build scripts and tests.
pub(crate) fn engine_library_from_environment() -> Option<std::ffi::OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
    std::env::var_os("CONTEXTMETER_CHDB")
}

fn parse(place: &str, text: &str) -> Result<Table, ConfigError> {
    text.parse().map_err(|source| ConfigError::Syntax { place: place.to_owned(), source: Box::new(source) })
}

fn slot<'t>(
    table: &'t mut Table,
    place: &str,
    section: &str,
    key: &str,
) -> Result<&'t mut Value, ConfigError> {
    table
        .get_mut(section)
        .and_then(Value::as_table_mut)
        .and_then(|keys| keys.get_mut(key))
        .ok_or_else(|| ConfigError::UnknownKey { place: place.to_owned(), key: format!("{section}.{key}") })
}

fn set(table: &mut Table, place: &str, section: &str, key: &str, value: Value) -> Result<(), ConfigError> {
    let slot = slot(table, place, section, key)?;
    if slot.type_str() != value.type_str() {
        let expected = slot_type(slot);
        return Err(ConfigError::WrongType {
            place: place.to_owned(),
            key: format!("{section}.{key}"),
            expected,
        });
    }
    *slot = value;
    Ok(())
}

/// Text from the environment or a flag takes the type that the default has.
fn set_text(table: &mut Table, place: &str, section: &str, key: &str, text: &str) -> Result<(), ConfigError> {
    let slot = slot(table, place, section, key)?;
    let value = match slot {
        Value::Integer(_) => text.replace('_', "").parse().ok().map(Value::Integer),
        Value::Boolean(_) => text.parse().ok().map(Value::Boolean),
        _ => Some(Value::String(text.to_owned())),
    };
    let expected = slot_type(slot);
    *slot = value.ok_or_else(|| ConfigError::WrongType {
        place: place.to_owned(),
        key: format!("{section}.{key}"),
        expected,
    })?;
    Ok(())
}

fn slot_type(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "a whole number",
        Value::Boolean(_) => "true or false",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: &str, environment: &[(&str, &str)], overrides: Overrides) -> Result<Config, String> {
        let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Config::from_layers(Some(("test.toml".to_owned(), file.to_owned())), environment, overrides)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn the_default_file_is_complete_and_safe() {
        let config = load("", &[], vec![]).unwrap();
        assert_eq!(config.http.listen.to_string(), "127.0.0.1:8787");
        assert_eq!(config.engine.listen().unwrap(), None);
    }

    #[test]
    fn later_layers_win() {
        let file = "[http]\nlisten = \"127.0.0.1:1\"\nconcurrency = 7";
        let env =
            [("CONTEXTMETER_HTTP_LISTEN", "127.0.0.1:2"), ("CONTEXTMETER_HTTP_MAX_BODY_BYTES", "1_000")];
        let config = load(file, &env, vec![("http.listen", "127.0.0.1:3".to_owned())]).unwrap();
        assert_eq!(config.http.listen.port(), 3);
        assert_eq!(config.http.max_body_bytes, 1_000);
        assert_eq!(config.http.concurrency, 7);
    }

    /// The file, the environment, and what the refusal says.
    type Refused<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

    #[test]
    fn what_does_not_fit_is_refused_with_the_way_out() {
        let rows: [Refused<'_>; 6] = [
            ("[http]\nlissen = \"x\"", &[], "test.toml: unknown key `http.lissen`"),
            ("", &[("CONTEXTMETER_HTTP_LISSEN", "x")], "CONTEXTMETER_HTTP_LISSEN: unknown key `http.lissen`"),
            ("[http]\nconcurrency = \"many\"", &[], "`http.concurrency` must be a whole number"),
            ("[ingest]\ngroup_window_ms = 21", &[], "choose 0 to 20"),
            ("[engine]\nlisten = \"127.0.0.1:8123\"", &[], "set a password"),
            ("[stripe]\nsecret_key = \"sk_live_x\"\nbase_url = \"http://h/\"", &[], "not Stripe's"),
        ];
        for (file, environment, message) in rows {
            let error = load(file, environment, vec![]).unwrap_err();
            assert!(error.contains(message), "{error} should say {message}");
        }
    }
}
