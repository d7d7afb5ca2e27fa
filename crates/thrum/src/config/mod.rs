//! Merges files, variables and flags to one configuration with the origin of each of its values.
//!
//! Layers, each over the one before: defaults, the file of the management interface, `thrum.toml`,
//! `conf.d/*.toml` beside it, environment variables, flags. All errors are reported at once, each
//! with its position.

#[cfg(test)]
mod converted;
#[cfg(test)]
mod guide;
mod layer;
#[cfg(test)]
mod made_part;
pub(crate) mod managed;
#[cfg(feature = "management")]
pub(crate) mod managed_changes;
#[cfg(test)]
mod managed_layer;
mod reference;
mod rules;
mod schema;
#[cfg(test)]
mod secrets;
mod settings;
mod show;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thrum_broker::config::{Bind, Transport};
use thrum_migrate::mosquitto;
use thrum_settings::problem::Problem;
use toml_edit::DocumentMut;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use layer::{Reader, SHARED_LOG_VARIABLE, Setting};

pub(crate) use layer::Origin;
pub(crate) use reference::{commented_file, description};
pub(crate) use schema::{Key, Kind, Leaf, json_schema, keys};
pub(crate) use settings::Config;
pub(crate) use show::{changed_keys, collected, differences, listing};
pub(crate) use thrum_settings::problem::{Problems, Source};

/// The file that is read if none is named.
pub(crate) const DEFAULT_FILE: &str = "/etc/thrum/thrum.toml";

/// The section of listeners.
const LISTENERS: &str = "listeners";
/// The key of a listener's addresses.
const BIND: &str = "bind";
/// The listener that is there if no other is.
pub(crate) const DEFAULT_LISTENER: &str = "mqtt";
/// The listener of the management interface: it is there unless its list of addresses is empty.
const HTTP_LISTENER: &str = "http";
/// Its port, of this machine's loopback addresses, if none is set.
const HTTP_PORT: u16 = 8080;
/// Its addresses.
const HTTP_BIND: &str = "listeners.http.bind";
/// Its addresses.
const DEFAULT_BIND: &str = "listeners.mqtt.bind";

/// Sources of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The file named by the user.
    pub(crate) file: Option<PathBuf>,
    /// For experiments: every client may connect, loopback only unless a listener is named, no
    /// default file.
    pub(crate) dev: bool,
    /// Keys set by flags: the key, its value as text, the flag.
    pub(crate) flags: Vec<(&'static str, String, &'static str)>,
    /// The data directory of a broker that runs, which it keeps until its end; none before its
    /// start.
    pub(crate) data_dir: Option<PathBuf>,
}

/// A configuration and the origins of its values.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// The settings in force.
    pub(crate) config: Config,
    /// The origin of each key that is not at its default.
    origins: BTreeMap<String, Origin>,
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
    /// The report about a file of mosquitto, if it was one.
    pub(crate) imported: Option<mosquitto::Report>,
    /// Why the file of the management interface could not be read: this user may not look into the
    /// data directory.
    pub(crate) unread: Option<String>,
}

/// Where the keys of the management interface are taken from.
#[derive(Clone, Copy, Debug)]
enum ManagedLayer<'a> {
    OnDisk,
    #[cfg_attr(
        not(any(feature = "management", test)),
        expect(dead_code, reason = "only the management interface changes the file")
    )]
    Text(&'a str),
}

impl Loaded {
    /// The origin of a key, given by its dotted name.
    pub(crate) fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }

    /// The listener that nobody asked for: without its addresses the broker starts as well.
    pub(crate) fn optional_listener(&self) -> Option<&'static str> {
        (*self.origin(HTTP_BIND) == Origin::Default).then_some(HTTP_LISTENER)
    }
}

/// Reads everything that the request and the environment name.
///
/// # Errors
/// All that is wrong with files, variables and flags.
pub(crate) fn load(request: &Request) -> Result<Loaded, Problems> {
    Given::read(request)?.load(request)
}

/// The same as if the file of the management interface had that text.
///
/// # Errors
/// As [`load`].
#[cfg(any(feature = "management", test))]
pub(crate) fn load_with(request: &Request, managed: &str) -> Result<Loaded, Problems> {
    Given::read(request)?.layers(request, ManagedLayer::Text(managed))
}

/// What people have written: files, which may be pipes that can be read once only, and variables.
#[derive(Debug)]
pub(crate) struct Given {
    files: Vec<Arc<Source>>,
    /// The report about a file of mosquitto.
    imported: Option<mosquitto::Report>,
    variables: Vec<(String, String)>,
}

impl Given {
    /// Reads them.
    ///
    /// # Errors
    /// A file cannot be read or imported.
    pub(crate) fn read(request: &Request) -> Result<Self, Problems> {
        let mut files = read_sources(request)?;
        let imported = match files.first_mut() {
            Some(main) => of_mosquitto(main)?,
            None => None,
        };
        Ok(Self {
            files,
            imported,
            variables: variables(),
        })
    }

    /// The data directory that they name; empty if there is none.
    pub(crate) fn data_dir(&self, request: &Request) -> PathBuf {
        let named = named_data_dir(&self.files, &self.variables, request);
        named.unwrap_or_default()
    }

    /// With the file of the management interface and the flags.
    ///
    /// # Errors
    /// As [`load`].
    pub(crate) fn load(self, request: &Request) -> Result<Loaded, Problems> {
        self.layers(request, ManagedLayer::OnDisk)
    }

    fn layers(self, request: &Request, managed: ManagedLayer<'_>) -> Result<Loaded, Problems> {
        let Self {
            files,
            imported,
            variables,
        } = self;
        let (managed, unread) = managed_source(&files, &variables, request, managed)?;
        let layers = Layers {
            managed,
            files,
            variables,
        };
        let loaded = compose_layers(&layers, request)?;
        let mut loaded = Loaded {
            imported,
            unread,
            ..loaded
        };
        add_http(&mut loaded);
        Ok(loaded)
    }
}

/// The variables of the environment, in the order in which they are read.
fn variables() -> Vec<(String, String)> {
    // Names and values that are not UTF-8 are not thrum's.
    let variables = std::env::vars_os()
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)));
    let mut variables: Vec<(String, String)> = variables.collect();
    // The variable that all Rust programs share comes first, so that thrum's own name overrides it.
    variables.sort_by_key(|(name, _)| (name != SHARED_LOG_VARIABLE, name.clone()));
    variables
}

/// The file of the management interface in the data directory of the broker that runs, else in the
/// one that the other layers name: another one waits for a restart. To a user that may not look
/// there its absence is told.
fn managed_source(
    files: &[Arc<Source>],
    variables: &[(String, String)],
    request: &Request,
    managed: ManagedLayer<'_>,
) -> Result<(Option<Arc<Source>>, Option<String>), Problems> {
    let named = || named_data_dir(files, variables, request);
    let data_dir = request.data_dir.clone().or_else(named);
    let Some(data_dir) = data_dir.filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok((None, None));
    };
    let path = managed::path(&data_dir);
    let read = match managed {
        ManagedLayer::Text(text) => Ok(Some(managed::source(&data_dir, text.to_owned()))),
        ManagedLayer::OnDisk => managed::read(&data_dir),
    };
    match read {
        Ok(source) => Ok((source, None)),
        // A broker that runs has read it before, and would lose its keys.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && request.data_dir.is_none() => {
            let path = path.display();
            Ok((None, Some(format!("cannot read {path}: permission denied"))))
        }
        Err(error) => Err(unreadable(&path, &error)),
    }
}

fn named_data_dir(
    files: &[Arc<Source>],
    variables: &[(String, String)],
    request: &Request,
) -> Option<PathBuf> {
    let keys = keys();
    let mut reader = Reader::new(&keys);
    read_layers(&mut reader, files, variables);
    read_flags(&mut reader, request);
    let mut settings = reader.settings.iter().rev();
    let named = settings.find(|setting| setting.path == ["node", "data_dir"]);
    named.and_then(|setting| Some(PathBuf::from(setting.value.as_str()?)))
}

/// The sources of settings, but for the flags.
#[derive(Debug, Default)]
struct Layers {
    managed: Option<Arc<Source>>,
    files: Vec<Arc<Source>>,
    /// In the order in which they are read.
    variables: Vec<(String, String)>,
}

fn read_layers(reader: &mut Reader<'_>, files: &[Arc<Source>], variables: &[(String, String)]) {
    for source in files {
        reader.file(source);
    }
    for (name, text) in variables {
        reader.variable(name, text);
    }
}

fn read_flags(reader: &mut Reader<'_>, request: &Request) {
    for (key, text, flag) in &request.flags {
        reader.text(path(key), text, Origin::Flag(flag));
    }
}

/// Replaces the configuration by one of mosquitto. Mosquitto does not start with an unknown option:
/// it may be the one that restricts access.
fn of_mosquitto(main: &mut Arc<Source>) -> Result<Option<mosquitto::Report>, Problems> {
    if !mosquitto::is_mosquitto(main) {
        return Ok(None);
    }
    let imported = mosquitto::import(main, &mosquitto::Disk)?;
    if !imported.unknown.is_empty() {
        return Err(Problems(imported.unknown));
    }
    *main = Arc::new(Source {
        path: main.path.clone(),
        text: imported.toml,
        made_of: imported.origins,
    });
    Ok(Some(imported.report))
}

/// The layers without a file of the management interface.
#[cfg(test)]
fn compose(
    files: &[Arc<Source>],
    mut variables: Vec<(String, String)>,
    request: &Request,
) -> Result<Loaded, Problems> {
    variables.sort_by_key(|(name, _)| (name != SHARED_LOG_VARIABLE, name.clone()));
    let layers = Layers {
        managed: None,
        files: files.to_vec(),
        variables,
    };
    compose_layers(&layers, request)
}

/// Puts the layers together.
fn compose_layers(layers: &Layers, request: &Request) -> Result<Loaded, Problems> {
    let keys = keys();
    let mut reader = Reader::new(&keys);
    if let Some(source) = &layers.managed {
        reader.managed_file(source);
        let misplaced = managed::misplaced(&reader.settings);
        reader.problems.extend(misplaced);
    }
    read_layers(&mut reader, &layers.files, &layers.variables);
    if request.dev {
        reader.text(path("auth.anonymous"), "true", Origin::Flag("--dev"));
        if takes_default_address(&reader, DEFAULT_LISTENER) {
            reader.text(path(DEFAULT_BIND), "localhost:1883", Origin::Flag("--dev"));
        }
    }
    read_flags(&mut reader, request);
    let Reader {
        mut settings,
        mut problems,
        listeners,
        ..
    } = reader;
    add_default_addresses(&mut settings, &listeners);
    let config = merge(&settings);
    let settings: BTreeMap<String, Setting> = settings
        .into_iter()
        .map(|setting| (setting.path.join("."), setting))
        .collect();
    verify(&config, &settings, &mut problems);
    problems.extend(rules::problems(&config.acl.rules, settings.get(rules::KEY)));
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let origins = settings
        .into_iter()
        .map(|(key, setting)| (key, setting.origin))
        .collect();
    let sources = layers.managed.iter().chain(&layers.files);
    let files = sources.map(|source| source.path.clone()).collect();
    Ok(Loaded {
        config,
        origins,
        files,
        imported: None,
        unread: None,
    })
}

/// The defaults with the settings over them; the last setting of a key wins.
fn merge(settings: &[Setting]) -> Config {
    let mut document = schema::document(&Config::default());
    if settings.iter().any(is_listener) {
        document.remove(LISTENERS);
        document.insert(
            LISTENERS,
            toml_edit::Item::Value(toml_edit::InlineTable::new().into()),
        );
    }
    for setting in settings {
        schema::insert(
            document.as_table_mut(),
            &setting.path,
            setting.value.clone(),
        );
    }
    from_document(document)
}

fn from_document(document: DocumentMut) -> Config {
    toml_edit::de::from_document(document).expect("each value was checked on its own")
}

/// Whether a setting is of a listener for MQTT. That of the management interface is there beside
/// whichever others are.
fn is_listener(setting: &Setting) -> bool {
    setting.path.first().is_some_and(|first| first == LISTENERS) && !is_of_http(setting)
}

fn is_of_http(setting: &Setting) -> bool {
    let [section, name, ..] = setting.path.as_slice() else {
        return false;
    };
    section == LISTENERS && name == HTTP_LISTENER
}

/// Adds what is not set of the listener of the management interface; takes it away if it is to have
/// no address.
fn add_http(loaded: &mut Loaded) {
    let is_set = |key: &str| {
        let origin = loaded.origin(&format!("{LISTENERS}.{HTTP_LISTENER}.{key}"));
        *origin != Origin::Default
    };
    let (has_bind, has_transport) = (is_set(BIND), is_set("transport"));
    let listeners = &mut loaded.config.listeners;
    if !listeners.contains_key(HTTP_LISTENER) && !cfg!(feature = "management") {
        return;
    }
    let listener = listeners.entry(HTTP_LISTENER.to_owned()).or_default();
    if !has_transport {
        listener.transport = Transport::Http;
    }
    if !has_bind {
        let loopback = [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ];
        let addresses = loopback.map(|ip| Bind::Address(SocketAddr::new(ip, HTTP_PORT)));
        listener.bind = addresses.to_vec();
    } else if listener.bind.is_empty() {
        listeners.remove(HTTP_LISTENER);
    }
}

fn is_bind(setting: &Setting) -> bool {
    is_listener(setting) && setting.path.last().is_some_and(|key| key == BIND)
}

/// Whether a listener of that name has an address by default.
fn is_default_listener(name: &str) -> bool {
    name == HTTP_LISTENER || Config::default().listeners.contains_key(name)
}

/// Whether a listener exists without an address: by default, or because its table or another of its
/// keys is set.
fn takes_default_address(reader: &Reader<'_>, name: &str) -> bool {
    let its_own = |setting: &&Setting| {
        is_listener(setting) && setting.path.get(1).is_some_and(|own| own == name)
    };
    let mut own = reader.settings.iter().filter(its_own);
    let is_alone = !reader.settings.iter().any(is_bind);
    let is_named = reader.listeners.iter().any(|table| table == name);
    let has_keys = own.clone().next().is_some();
    (is_alone || is_named || has_keys) && !own.any(is_bind)
}

/// The default listener keeps its address where another of its keys, or only its table, is set: a
/// key that is taken out of its comment in the file of `thrum config init` does not need a second
/// one.
fn add_default_addresses(settings: &mut Vec<Setting>, tables: &[String]) {
    let defaults = schema::document(&Config::default());
    for name in Config::default().listeners.into_keys() {
        let is_its_own = |setting: &Setting| setting.path.get(1) == Some(&name);
        let mut own = settings
            .iter()
            .filter(|one| is_listener(one))
            .filter(|one| is_its_own(one));
        let is_named = tables.contains(&name) || own.clone().next().is_some();
        if !is_named || own.any(is_bind) {
            continue;
        }
        let value = defaults[LISTENERS][&name][BIND].as_value().cloned();
        settings.extend(value.map(|value| Setting {
            path: vec![LISTENERS.to_owned(), name, BIND.to_owned()],
            value,
            origin: Origin::Default,
            place: None,
        }));
    }
}

/// Checks what can only be seen with all layers together.
fn verify(config: &Config, settings: &BTreeMap<String, Setting>, problems: &mut Vec<Problem>) {
    let mut report = |key: &str, message: String| {
        let setting = settings.get(key).or_else(|| {
            settings
                .iter()
                .find(|(name, _)| name.starts_with(key))
                .map(|(_, setting)| setting)
        });
        problems.push(Problem {
            place: setting.and_then(|setting| setting.place.clone()),
            origin: setting.map_or_else(|| key.to_owned(), |setting| setting.origin.to_string()),
            message,
        });
    };
    let from_others = settings
        .get("log.level")
        .is_some_and(Setting::is_shared_variable);
    if !is_log_level(&config.log.level, from_others) {
        let expected =
            "error, warn, info, debug or trace, also by part: \"info,thrum_broker=debug\"";
        let found = &config.log.level;
        report(
            "log.level",
            format!("log.level: expected {expected}, found {found:?}"),
        );
    }
    let mut taken: BTreeMap<(bool, &Bind), &str> = BTreeMap::new();
    for (name, listener) in &config.listeners {
        let is_http = name == HTTP_LISTENER;
        if listener.bind.is_empty() && !is_http {
            let message = format!("listeners.{name} has no address, set listeners.{name}.bind");
            report(&format!("listeners.{name}"), message);
        }
        let is_http = is_http || listener.transport == Transport::Http;
        if is_http && !cfg!(feature = "management") {
            let message = format!(
                "listeners.{name}: this program was built without `management`, which answers HTTP"
            );
            report(&format!("listeners.{name}"), message);
        }
        let is_any_port =
            |bind: &Bind| matches!(bind, Bind::Address(address) if address.port() == 0);
        for address in listener.bind.iter().filter(|bind| !is_any_port(bind)) {
            let is_udp = listener.transport == Transport::Quic;
            let Some(other) = taken.insert((is_udp, address), name) else {
                continue;
            };
            let message = format!("{address} is already used by the listener {other:?}");
            report(&format!("listeners.{name}.bind"), message);
        }
    }
}

/// A single word is a level. The log would take any other word for the name of a module, and a
/// typing error would silence it; the variable that all Rust programs share may name modules of
/// other programs.
fn is_log_level(level: &str, from_others: bool) -> bool {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let meant = |part: &str| from_others || part.contains(['=', '[']) || is_level(part);
    level.split(',').all(meant) && EnvFilter::builder().parse(level).is_ok()
}

fn path(key: &str) -> Vec<String> {
    key.split('.').map(str::to_owned).collect()
}

/// Reads the file and the files in `conf.d` beside it.
fn read_sources(request: &Request) -> Result<Vec<Arc<Source>>, Problems> {
    let default = Path::new(DEFAULT_FILE);
    let main = match &request.file {
        Some(file) => file.as_path(),
        None if request.dev || !default.exists() => return Ok(Vec::new()),
        None => default,
    };
    let mut files = vec![main.to_owned()];
    let extra = main
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .join("conf.d");
    files.extend(parts(&extra).map_err(|error| unreadable(&extra, &error))?);
    let read = |path: PathBuf| match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Arc::new(Source::new(path, text))),
        Err(error) => Err(unreadable(&path, &error)),
    };
    files.into_iter().map(read).collect()
}

/// The `.toml` files of a folder by name; none if the folder does not exist.
fn parts(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "toml")
    });
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problems {
    let hint = match error.kind() {
        ErrorKind::NotFound => "no such file; write one with: thrum config init FILE".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::InvalidData => "not text in UTF-8".to_owned(),
        _ => error.to_string(),
    };
    let origin = format!("cannot read {}", path.display());
    Problems(vec![Problem {
        place: None,
        origin,
        message: hint,
    }])
}
