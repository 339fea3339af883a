use clickhouse::{Client, Compression, query::Query};
use hyper_util::client::legacy::{
    Client as HttpClient,
    connect::{Connect, HttpConnector},
};
use hyper_util::rt::TokioExecutor;

use crate::{StoreError, error::failed};

/// Where usage is kept: ClickHouse, embedded or served. Cheap to clone; connections are pooled.
#[derive(Clone)]
pub struct UsageStore {
    pub(crate) client: Client,
    pub(crate) options: StoreOptions,
}

/// How the tables are laid out. The same statements serve one machine and a cluster.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    pub database: String,
    /// Run schema statements on every node of this cluster, with replicated tables.
    pub cluster: Option<String>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { database: "contextmeter".to_owned(), cluster: None }
    }
}

impl UsageStore {
    /// Over an engine inside this process; `connector` reaches it whatever the address says.
    pub fn over_connector<C>(connector: C, options: StoreOptions) -> Self
    where
        C: Connect + Clone + Send + Sync + 'static,
    {
        let http = HttpClient::builder(TokioExecutor::new()).build(connector);
        Self::new(Client::with_http_client(http).with_url("http://engine"), options)
    }

    /// Over a ClickHouse server's HTTP interface, such as `http://127.0.0.1:8123`.
    pub fn over_url(url: &str, user: &str, password: &str, options: StoreOptions) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true); // without it every small insert waits 40 ms for a delayed acknowledgement
        let http = HttpClient::builder(TokioExecutor::new()).build(connector);
        let client = Client::with_http_client(http).with_url(url).with_user(user).with_password(password);
        Self::new(client, options)
    }

    fn new(client: Client, options: StoreOptions) -> Self {
        let client = client.with_database(&options.database).with_compression(Compression::None);
        Self { client, options }
    }

    /// Whether the store answers and holds our tables.
    ///
    /// # Errors
    ///
    /// `Unavailable` when it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let read =
            self.client.query("SELECT count() FROM usage_events WHERE platform = ''").fetch_one::<u64>();
        read.await.map(drop).map_err(|error| failed("asking for the tables", error))
    }

    pub(crate) fn query(&self, text: &str) -> Query {
        // `?fields` is the client's: the columns of the row type that is read. Other placeholders are named.
        self.client.query(text)
    }
}
