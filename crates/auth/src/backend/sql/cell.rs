//! Rows of a database as texts: the values are small and have one meaning, whatever the type of the
//! column.

use sqlx::mysql::MySqlRow;
use sqlx::postgres::{PgRow, PgTypeKind};
use sqlx::sqlite::SqliteRow;
use sqlx::{Column as _, Error, Row as _, TypeInfo as _, ValueRef as _};

use crate::backend::BackendError;

/// Names and values of one row; null is left out.
pub(super) type Row = Vec<(Box<str>, String)>;

/// Reads a whole row.
pub(super) trait Cells {
    /// The columns that are not null, by name in lower case.
    fn cells(&self) -> Result<Row, BackendError>;
}

impl Cells for PgRow {
    fn cells(&self) -> Result<Row, BackendError> {
        cells(self, postgres)
    }
}

impl Cells for MySqlRow {
    fn cells(&self) -> Result<Row, BackendError> {
        cells(self, mysql)
    }
}

impl Cells for SqliteRow {
    fn cells(&self) -> Result<Row, BackendError> {
        cells(self, sqlite)
    }
}

/// Reads the column with this number: none for null, or the type if it cannot be converted to text.
type Read<R> = fn(&R, usize) -> Result<Option<String>, Unread>;

/// Why a column was not read.
enum Unread {
    /// Of this type.
    Type(String),
    Error,
}

impl From<Error> for Unread {
    fn from(_: Error) -> Self {
        Self::Error
    }
}

fn cells<R: sqlx::Row>(row: &R, read: Read<R>) -> Result<Row, BackendError> {
    let mut cells = Row::new();
    for column in row.columns() {
        let name = column.name().to_ascii_lowercase();
        match read(row, column.ordinal()) {
            Ok(None) => {}
            Ok(Some(value)) => cells.push((name.into(), value)),
            Err(Unread::Type(kind)) => {
                let what =
                    format!("column {name} has the type {kind}: convert it to text in the query");
                return Err(BackendError::BadAnswer(what));
            }
            Err(Unread::Error) => {
                let what = format!("column {name} cannot be read as text");
                return Err(BackendError::BadAnswer(what));
            }
        }
    }
    Ok(cells)
}

fn postgres(row: &PgRow, at: usize) -> Result<Option<String>, Unread> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(None);
    }
    let kind = value.type_info().into_owned();
    Ok(Some(match kind.name() {
        "BOOL" => row.try_get::<bool, _>(at)?.to_string(),
        "INT2" => row.try_get::<i16, _>(at)?.to_string(),
        "INT4" => row.try_get::<i32, _>(at)?.to_string(),
        "INT8" => row.try_get::<i64, _>(at)?.to_string(),
        "BYTEA" => text(row.try_get(at)?)?,
        "TEXT[]" | "VARCHAR[]" | "NAME[]" => row.try_get::<Vec<String>, _>(at)?.join(","),
        // Padded with spaces to the length of the column.
        "CHAR" | "BPCHAR" => row.try_get::<&str, _>(at)?.trim_end().to_owned(),
        "TEXT" | "VARCHAR" | "NAME" | "UNKNOWN" | "JSON" | "citext" => {
            row.try_get_unchecked::<String, _>(at)?
        }
        name => match kind.kind() {
            PgTypeKind::Enum(_) | PgTypeKind::Domain(_) => {
                row.try_get_unchecked::<String, _>(at)?
            }
            _ => return Err(Unread::Type(name.to_owned())),
        },
    }))
}

fn mysql(row: &MySqlRow, at: usize) -> Result<Option<String>, Unread> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(None);
    }
    let kind = value.type_info().into_owned();
    let name = kind.name();
    Ok(Some(match name {
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => {
            row.try_get_unchecked::<i64, _>(at)?.to_string()
        }
        "BIT" => row.try_get_unchecked::<u64, _>(at)?.to_string(),
        _ if name.ends_with(" UNSIGNED") => row.try_get_unchecked::<u64, _>(at)?.to_string(),
        "CHAR" | "VARCHAR" | "TEXT" | "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" | "ENUM" | "SET"
        | "JSON" | "BINARY" | "VARBINARY" | "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" => {
            text(row.try_get_unchecked(at)?)?
        }
        _ => return Err(Unread::Type(name.to_owned())),
    }))
}

fn sqlite(row: &SqliteRow, at: usize) -> Result<Option<String>, Unread> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(None);
    }
    // SQLite converts any value to text.
    Ok(Some(row.try_get_unchecked::<String, _>(at)?))
}

fn text(bytes: Vec<u8>) -> Result<String, Unread> {
    String::from_utf8(bytes).map_err(|_| Unread::Error)
}
