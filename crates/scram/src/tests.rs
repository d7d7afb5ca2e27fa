//! Both sides with each other.

use super::client::{Credentials, ScramError};
use super::server::{Refused, start};
use super::{Credential, Decoys};

/// A login of a user that knows `password`, at a server that has `credential`: what each says in
/// the end.
fn exchanged(password: &str, credential: &Credential) -> Result<Result<(), ScramError>, Refused> {
    let credentials = Credentials::new("us=er,", password.as_bytes()).unwrap();
    let mut login = credentials.login().unwrap();
    let find = |name: &str| {
        assert_eq!(name, "us=er,");
        credential.clone()
    };
    let (challenge, started, found) = start(&login.first(), find).unwrap();
    let proof = login.answer(&challenge).unwrap();
    let end = started.finish(&proof, &found)?;
    Ok(login.finish(&end.data))
}

#[test]
fn who_knows_the_password_is_admitted_and_so_is_the_server() {
    let credential = Credential::of("pencil").unwrap();
    assert_eq!(exchanged("pencil", &credential), Ok(Ok(())));
    // A soft hyphen is mapped to nothing.
    assert_eq!(exchanged("pen\u{ad}cil", &credential), Ok(Ok(())));
}

#[test]
fn another_password_and_a_decoy_are_refused_alike() {
    let credential = Credential::of("pencil").unwrap();
    let decoy = Decoys::new(b"secret").credential("us=er,");
    for (password, credential) in [("pencils", &credential), ("pencil", &decoy)] {
        assert_eq!(exchanged(password, credential), Err(Refused::WrongProof));
    }
}

#[test]
fn a_server_with_another_server_key_is_an_impostor() {
    let mut credential = Credential::of("pencil").unwrap();
    credential.server_key[31] ^= 1;
    let end = exchanged("pencil", &credential);
    assert_eq!(end, Ok(Err(ScramError::Impostor)));
}

#[test]
fn a_credential_equals_itself_alone() {
    let credential = Credential::of("pencil").unwrap();
    assert_eq!(credential, credential.clone());
    let change = |with: fn(&mut Credential)| {
        let mut other = credential.clone();
        with(&mut other);
        other
    };
    for other in [
        change(|one| one.salt.push(0)),
        change(|one| one.iterations += 1),
        change(|one| one.stored_key[0] ^= 1),
        change(|one| one.server_key[0] ^= 1),
    ] {
        assert_ne!(credential, other);
    }
}
