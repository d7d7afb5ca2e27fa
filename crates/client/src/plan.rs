//! The checked and combined arguments: one place decides which combinations are allowed.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::BuildHasher as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use thrum_codec::topic::is_valid_name;
use thrum_codec::{TopicFilter, Version};
use thrum_protocol::client::{ClientOptions, WillOptions};
use thrum_scram::METHOD;
use thrum_scram::client::Credentials;

use super::property::PropertyValues;
use super::target::Target;
use super::{ConnectionArgs, Console, Stop};

/// As many as the mosquitto commands have under way.
const INFLIGHT_MAX: u16 = 20;
/// A password file is not a place for anything longer.
const PASSWORD_BYTES_MAX: usize = 65_535;
const PASSWORD_VARIABLE: &str = "THRUM_PASSWORD";

/// The plan of a client command.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) target: Target,
    pub(super) client_id: String,
    /// Options of the client.
    pub(crate) options: ClientOptions,
    /// How to log in without sending the password.
    pub(super) scram: Option<Credentials>,
    /// Properties of the other packets.
    pub(crate) properties: PropertyValues,
    /// The topic of `-L`.
    pub(crate) url_topic: Option<String>,
    /// The output for warnings.
    pub(crate) console: Console,
}

/// Differences between the commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    /// Beginning of a client identifier that is made up.
    pub(crate) id_prefix: &'static str,
    /// Version without `-V` and without anything that needs 5.0.
    pub(crate) version: Version,
    /// An argument that needs 5.0 is given: its name.
    pub(crate) needs_5: Option<&'static str>,
}

impl Plan {
    /// Checks the arguments.
    ///
    /// # Errors
    /// Arguments that exclude each other or make no sense.
    pub(crate) fn new(args: &ConnectionArgs, defaults: Defaults) -> Result<Self, Stop> {
        let console = Console {
            quiet: args.quiet,
            debug: args.debug,
        };
        let (target, url_topic) = Target::new(args)?;
        let mut properties = PropertyValues::parse(&args.properties)?;
        let version = version(args, &properties, defaults)?;
        let given_id = client_id(args);
        if args.disable_clean_session && given_id.is_none() {
            return Err(Stop::usage(
                "-c keeps a session under the client id: give one with -i",
            ));
        }
        let endpoint = &target.endpoint;
        let mut options = ClientOptions {
            version,
            clean_start: !args.disable_clean_session,
            keep_alive: args.keepalive,
            session_expiry: session_expiry(args),
            inflight_max: args.max_inflight.unwrap_or(INFLIGHT_MAX),
            username: args.username.clone().or_else(|| endpoint.username.clone()),
            password: password(args, endpoint.password.as_deref(), console)?,
            will: will(args, std::mem::take(&mut properties.will))?,
            ..ClientOptions::default()
        };
        std::mem::take(&mut properties.connect).apply(&mut options);
        let scram = args.scram.then(|| credentials(&mut options)).transpose()?;
        Ok(Self {
            target,
            client_id: given_id.unwrap_or_else(|| made_up_id(version, defaults.id_prefix)),
            options,
            scram,
            properties,
            url_topic,
            console,
        })
    }
}

/// Checks a topic to publish to.
pub(crate) fn check_topic(topic: &str) -> Result<(), Stop> {
    if is_valid_name(topic) {
        return Ok(());
    }
    Err(Stop::usage(format!(
        "{topic:?} is not a topic to publish to: not empty, without + and #"
    )))
}

/// Checks a topic filter.
pub(crate) fn check_filter(text: &str) -> Result<TopicFilter<'_>, Stop> {
    TopicFilter::parse(text).map_err(|_| {
        let rule = "+ stands for one whole level, # for all that follow and comes last";
        Stop::usage(format!("{text:?} is not a topic filter: {rule}"))
    })
}

fn version(
    args: &ConnectionArgs,
    properties: &PropertyValues,
    defaults: Defaults,
) -> Result<Version, Stop> {
    let needs_5 = if properties.count != 0 {
        Some("-D")
    } else if args.session_expiry_interval.is_some() {
        Some("-x")
    } else if args.scram {
        Some("--scram")
    } else {
        defaults.needs_5
    };
    match (args.protocol_version, needs_5) {
        (Some(Version::V5), _) | (None, Some(_)) => Ok(Version::V5),
        (Some(Version::V31 | Version::V311), Some(argument)) => Err(Stop::usage(format!(
            "{argument} needs MQTT 5.0: leave out -V or give -V 5"
        ))),
        (Some(version), None) => Ok(version),
        (None, None) => Ok(defaults.version),
    }
}

fn session_expiry(args: &ConnectionArgs) -> u32 {
    let without = if args.disable_clean_session {
        u32::MAX
    } else {
        0
    };
    args.session_expiry_interval.unwrap_or(without)
}

fn client_id(args: &ConnectionArgs) -> Option<String> {
    let prefixed = |prefix: &String| format!("{prefix}{}", std::process::id());
    args.id
        .clone()
        .or_else(|| args.id_prefix.as_ref().map(prefixed))
}

/// 5.0 brokers choose an identifier themselves; it is at most 23 letters and digits, which every
/// broker takes.
fn made_up_id(version: Version, prefix: &str) -> String {
    match version {
        Version::V5 => String::new(),
        Version::V31 | Version::V311 => {
            let random = RandomState::new().hash_one(std::process::id());
            format!("{prefix}{:010x}", random >> 24)
        }
    }
}

fn password(
    args: &ConnectionArgs,
    of_url: Option<&str>,
    console: Console,
) -> Result<Option<Vec<u8>>, Stop> {
    let given = args.password.clone().map(OsString::into_vec);
    let visible = given.or_else(|| of_url.map(|password| password.as_bytes().to_vec()));
    if visible.is_some() {
        console.warn(
            "a password on the command line is visible to others on this machine; \
             use --password-file or THRUM_PASSWORD",
        );
        return Ok(visible);
    }
    match &args.password_file {
        Some(path) => read_password(path).map(Some),
        None => Ok(std::env::var_os(PASSWORD_VARIABLE).map(OsString::into_vec)),
    }
}

/// Takes user name and password out of the options: they are not sent.
fn credentials(options: &mut ClientOptions) -> Result<Credentials, Stop> {
    if options.authentication_method.is_some() {
        return Err(Stop::usage(
            "--scram names the authentication method: leave out -D connect authentication-method",
        ));
    }
    let (Some(username), Some(password)) = (options.username.take(), options.password.take())
    else {
        return Err(Stop::usage(
            "--scram needs a user name and a password: give them with -u and --password-file",
        ));
    };
    options.authentication_method = Some(METHOD.to_owned());
    Credentials::new(&username, &password).map_err(|error| Stop::usage(format!("--scram: {error}")))
}

fn read_password(path: &Path) -> Result<Vec<u8>, Stop> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Stop::usage(format!("cannot read the password file {name}: {error}")))?;
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > PASSWORD_BYTES_MAX {
        return Err(Stop::usage(format!(
            "the first line of {name} is too long for a password"
        )));
    }
    Ok(line.to_vec())
}

fn will(
    args: &ConnectionArgs,
    properties: super::PublishValues,
) -> Result<Option<WillOptions>, Stop> {
    let Some(topic) = &args.will_topic else {
        return if properties == super::PublishValues::default() {
            Ok(None)
        } else {
            Err(Stop::usage(
                "-D will: there is no will; give it a topic with --will-topic",
            ))
        };
    };
    check_topic(topic)?;
    let mut will = WillOptions {
        topic: topic.clone(),
        payload: args
            .will_payload
            .clone()
            .map(OsString::into_vec)
            .unwrap_or_default(),
        qos: args.will_qos.unwrap_or_default(),
        retain: args.will_retain,
        ..WillOptions::default()
    };
    properties.apply(&mut will);
    Ok(Some(will))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        connection: ConnectionArgs,
    }

    fn args(line: &str) -> ConnectionArgs {
        let words = std::iter::once("x").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().connection
    }

    fn plan(line: &str) -> Result<Plan, Stop> {
        let defaults = Defaults {
            id_prefix: "thrum-x-",
            version: Version::V311,
            needs_5: None,
        };
        Plan::new(&args(line), defaults)
    }

    #[test]
    fn the_host_is_optional_only_to_ask_for_help() {
        assert!(args("-h").wants_help());
        assert!(args("-h -d").wants_help());
        assert!(!args("-h example").wants_help());
        let place = |line| plan(line).unwrap().target.place();
        assert_eq!(place("-h example -p 1884"), "mqtt://example:1884");
        assert_eq!(place(""), "mqtt://localhost:1883");
    }

    #[test]
    fn a_url_gives_place_credentials_and_topic() {
        let plan = plan("-L mqtt://u:p@h:99/a/b --quiet").unwrap();
        assert_eq!(plan.target.place(), "mqtt://h:99");
        assert_eq!(plan.options.username.as_deref(), Some("u"));
        assert_eq!(plan.options.password.as_deref(), Some(&b"p"[..]));
        assert_eq!(plan.url_topic.as_deref(), Some("a/b"));
    }

    #[test]
    fn the_version_is_3_1_1_unless_something_needs_5_0() {
        let version = |line| plan(line).map(|plan| plan.options.version);
        assert_eq!(version(""), Ok(Version::V311));
        assert_eq!(version("-V mqttv31"), Ok(Version::V31));
        assert_eq!(version("-V 5"), Ok(Version::V5));
        assert_eq!(version("-D connect user-property a b"), Ok(Version::V5));
        assert_eq!(version("-x 60"), Ok(Version::V5));
        for line in ["-V 311 -D connect user-property a b", "-V 31 -x 60"] {
            assert_eq!(version(line).unwrap_err().code, 2);
        }
    }

    #[test]
    fn a_kept_session_needs_an_identifier_and_does_not_expire() {
        assert_eq!(plan("-c").unwrap_err().code, 2);
        let kept = plan("-c -i me -V 5").unwrap();
        assert!(!kept.options.clean_start);
        assert_eq!(kept.options.session_expiry, u32::MAX);
        assert_eq!(plan("-c -i me -x 30").unwrap().options.session_expiry, 30);
        assert_eq!(plan("-x -1").unwrap().options.session_expiry, u32::MAX);
    }

    #[test]
    fn identifiers_are_given_prefixed_or_made_up() {
        assert_eq!(plan("-i me").unwrap().client_id, "me");
        let prefixed = format!("p-{}", std::process::id());
        assert_eq!(plan("-I p-").unwrap().client_id, prefixed);
        let made_up = plan("").unwrap().client_id;
        assert!(
            made_up.starts_with("thrum-x-") && made_up.len() <= 23,
            "{made_up}"
        );
        assert_eq!(plan("-V 5").unwrap().client_id, "");
    }

    #[test]
    fn a_will_needs_a_topic() {
        let will = plan(
            "--will-topic gone --will-payload -bye --will-qos 1 --will-retain \
             -D will will-delay-interval 4",
        );
        let will = will.unwrap().options.will.unwrap();
        assert_eq!(
            (will.topic.as_str(), &will.payload[..]),
            ("gone", &b"-bye"[..])
        );
        assert!(will.retain);
        assert_eq!(will.delay, Some(4));
        assert_eq!(plan("-D will content-type x").unwrap_err().code, 2);
        assert_eq!(plan("--will-topic a/#").unwrap_err().code, 2);
    }

    #[test]
    fn with_scram_neither_user_name_nor_password_is_sent_as_it_is() {
        let plan = plan("--scram -u me --pw secret --quiet").unwrap();
        assert!(plan.scram.is_some());
        assert_eq!(plan.options.version, Version::V5);
        assert_eq!(plan.options.username, None);
        assert_eq!(plan.options.password, None);
        let method = plan.options.authentication_method.as_deref();
        assert_eq!(method, Some("SCRAM-SHA-256"));
    }

    #[test]
    fn scram_needs_a_user_a_password_and_5_0() {
        for line in [
            "--scram -u me",
            "--scram --pw secret --quiet",
            "--scram -u me --pw secret --quiet -V 311",
            "--scram -u me --pw secret --quiet -D connect authentication-method x",
        ] {
            assert_eq!(plan(line).unwrap_err().code, 2, "{line}");
        }
    }

    #[test]
    fn the_first_line_of_the_password_file_is_the_password() {
        let path = std::env::temp_dir().join(format!("thrum-password-{}", std::process::id()));
        std::fs::write(&path, "se cret\r\nmore\n").unwrap();
        let plan = plan(&format!("-u me --password-file {}", path.display()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            plan.unwrap().options.password.as_deref(),
            Some(&b"se cret"[..])
        );
    }
}
