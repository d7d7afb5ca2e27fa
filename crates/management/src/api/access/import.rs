//! `POST /import/users`: users of other programs, with the hashes of their passwords.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Request, State};
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_auth::hash::{Algorithm, SaltPosition, Scheme};
use thrum_auth::users::import::{
    Imported, ImportedPassword, emqx_csv, emqx_json, merge, mosquitto,
};
use thrum_auth::users::{PasswordHash, UserStore, read_from};
use utoipa::ToSchema;

use super::super::entrance::Sender;
use super::super::openapi::{Asked, Audited, Conflict};
use super::super::request::{Parameters, check_length};
use super::super::{ApiState, Problem};
use crate::audit::Change;

/// Bytes of a file: some hundred thousand users; `thrum users import --users FILE` takes larger
/// ones.
pub(super) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Passwords in clear text, each of which is hashed: all of them within the time of a request.
const PLAIN_MAX: usize = 200;

/// What was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsersImported {
    /// Users that were not there.
    pub added: usize,
    /// Users that were there: they have the imported password, and keep roles, groups and rules.
    pub replaced: usize,
}

/// The form of the body.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ImportParameters {
    /// `mosquitto` (a password file), `emqx-csv`, `emqx-json`, or `jsonl` (another store of thrum).
    #[param(inline)]
    format: Format,
    /// Algorithm of EMQX's hashes; `sha256` if absent.
    #[serde(default = "sha256")]
    #[param(inline)]
    algorithm: Hash,
    /// Position of the salt in EMQX: `suffix` (the default), `prefix` or `none`.
    #[serde(default = "suffix")]
    #[param(inline)]
    salt_position: Position,
    /// Iterations of EMQX's PBKDF2; 4096 if absent.
    #[serde(default = "iterations")]
    #[param(minimum = 1, maximum = 10_000_000)]
    iterations: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Format {
    Mosquitto,
    EmqxCsv,
    EmqxJson,
    Jsonl,
}

/// Algorithm of EMQX's hashes, which its files do not name.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Hash {
    Sha256,
    Sha512,
    Bcrypt,
    Pbkdf2Sha1,
    Pbkdf2Sha256,
    Pbkdf2Sha512,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Position {
    Prefix,
    Suffix,
    None,
}

const fn sha256() -> Hash {
    Hash::Sha256
}

const fn suffix() -> Position {
    Position::Suffix
}

const fn iterations() -> u32 {
    4096
}

impl ImportParameters {
    const fn scheme(&self) -> Scheme {
        Scheme {
            algorithm: match self.algorithm {
                Hash::Sha256 => Algorithm::Sha256,
                Hash::Sha512 => Algorithm::Sha512,
                Hash::Bcrypt => Algorithm::Auto,
                Hash::Pbkdf2Sha1 => Algorithm::Pbkdf2Sha1,
                Hash::Pbkdf2Sha256 => Algorithm::Pbkdf2Sha256,
                Hash::Pbkdf2Sha512 => Algorithm::Pbkdf2Sha512,
            },
            salt_position: match self.salt_position {
                Position::Prefix => SaltPosition::Prefix,
                Position::Suffix => SaltPosition::Suffix,
                Position::None => SaltPosition::None,
            },
            iterations: self.iterations,
        }
    }
}

/// Imports users of other programs with the hashes of their passwords.
///
/// The body is the file, up to 16 MiB.
#[utoipa::path(
    post,
    path = "/import/users",
    operation_id = "import_users",
    tag = "access",
    params(ImportParameters),
    request_body(content = Option<String>, content_type = "text/plain"),
    responses((status = 200, body = UsersImported), Conflict, Asked, Audited),
)]
pub(super) async fn import(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(parameters): Parameters<ImportParameters>,
    request: Request,
) -> Result<Json<UsersImported>, Problem> {
    check_length(&request)?;
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|error| {
        Problem::new(
            error.status(),
            "body not read",
            error.body_text(),
            "send at most 16 MiB; thrum users import --users FILE takes larger files",
        )
    })?;
    if !(1..=10_000_000).contains(&parameters.iterations) {
        return Err(Problem::bad_request(
            "iterations is a number from 1 to 10,000,000",
        ));
    }
    let name = format!("{:?}", parameters.format).to_ascii_lowercase();
    let change = Change::new("user.import", &name);
    let change = change.after(json!({ "bytes": body.len() }));
    let asked = api.clone();
    let make = async move {
        let read = asked.in_access(move |_| read(&parameters, &body));
        let users = read.await?;
        asked
            .change_store(move |store| Ok(users.put_into(store)))
            .await
    };
    Ok(Json(api.audited(&sender, change, make).await?))
}

/// Users to import.
enum Users {
    /// A store: everything in it replaces what has the same name.
    Store(Box<UserStore>),
    /// Passwords alone.
    Passwords(Vec<Password>),
}

struct Password {
    name: String,
    hash: PasswordHash,
    is_superuser: bool,
}

fn read(parameters: &ImportParameters, body: &[u8]) -> Result<Users, Problem> {
    if matches!(parameters.format, Format::Jsonl) {
        let store = read_from(body, std::path::Path::new("body"));
        let store = store.map_err(|error| Problem::bad_request(error.to_string()))?;
        return Ok(Users::Store(Box::new(store)));
    }
    let text = str::from_utf8(body);
    let text = text.map_err(|_| Problem::bad_request("the body is not text in UTF-8"))?;
    let scheme = parameters.scheme();
    let users = match parameters.format {
        Format::Mosquitto | Format::Jsonl => mosquitto(text),
        Format::EmqxCsv => emqx_csv(text, &scheme),
        Format::EmqxJson => emqx_json(text, &scheme),
    };
    let users = users.map_err(Problem::bad_request)?;
    let is_plain = |user: &&Imported| matches!(user.password, ImportedPassword::Plain(_));
    if users.iter().filter(is_plain).count() > PLAIN_MAX {
        return Err(Problem::bad_request(format!(
            "more than {PLAIN_MAX} passwords are in clear text, and have to be hashed first: import the file in parts, \
             or into the file of the store with thrum users import --users FILE"
        )));
    }
    let hashed = users.into_iter().map(|user| {
        let hash = match user.password {
            ImportedPassword::Hash(hash) => hash,
            ImportedPassword::Plain(password) => PasswordHash::of(password.expose())
                .map_err(|error| Problem::bad_request(error.to_string()))?,
        };
        Ok(Password {
            name: user.name,
            hash,
            is_superuser: user.is_superuser,
        })
    });
    Ok(Users::Passwords(hashed.collect::<Result<_, Problem>>()?))
}

impl Users {
    fn put_into(self, store: &mut UserStore) -> UsersImported {
        let before = store.users().len();
        let count = match self {
            Self::Store(other) => {
                for (name, user) in other.users() {
                    store.set_user(name, user.clone());
                }
                for (name, group) in other.groups() {
                    store.set_group(name, group.clone());
                }
                for (name, role) in other.roles() {
                    store.set_role(name, role.clone());
                }
                other.users().len()
            }
            Self::Passwords(users) => {
                let count = users.len();
                for user in users {
                    merge(store, &user.name, user.hash, user.is_superuser);
                }
                count
            }
        };
        let added = store.users().len() - before;
        UsersImported {
            added,
            replaced: count.saturating_sub(added),
        }
    }
}
