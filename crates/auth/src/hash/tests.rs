//! Hashes of other programs, and thrum's own.

use super::*;

/// Made by `mosquitto_passwd -H sha512` and `mosquitto_passwd -H sha512-pbkdf2` 2.0.21.
const MOSQUITTO_SHA512: &str = "$6$N6MwR5kcsKRHlobT$C65Rq/vZdi7Uhruf39cxLQKItZhwlhYLhTar4sOqWtnju1X9z673j0dxKLf8Zys8ZNetjSng89OcQOlxB+hEPg==";
const MOSQUITTO_PBKDF2: &str = "$7$101$TbmVBh14tXSnz8TM$8m54Rj2eqN0rN7n0ga++IKxvsApywEh7n5Mt+9MdatVW2IEZ/oPAkyl0RGTLr00ijTV7/8fNYbTGWDCoie6RGA==";

fn check_all(stored: &str, password: &str) {
    assert_eq!(check(stored), Ok(()), "{stored}");
    assert_eq!(verify(stored, password.as_bytes()), Ok(true), "{stored}");
    for wrong in ["", "Secret", "secret ", "secre"] {
        assert_eq!(verify(stored, wrong.as_bytes()), Ok(false), "{stored}");
    }
}

#[test]
fn our_own_hash_is_argon2id_with_the_parameters_that_owasp_asks_for() {
    let hash = create(b"secret").unwrap();
    assert!(
        hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
        "{hash}"
    );
    check_all(&hash, "secret");
    assert_ne!(hash, create(b"secret").unwrap());
}

#[test]
fn hashes_of_mosquitto_passwd_verify() {
    check_all(MOSQUITTO_SHA512, "secret");
    check_all(MOSQUITTO_PBKDF2, "pass word");
}

#[test]
fn hashes_of_other_programs_verify() {
    for stored in [
        "$pbkdf2-sha256$i=1000,l=32$c2FsdHNhbHRzYWx0c2FsdA$dClvKSmj66n6MdMWNv3Go4mvH1Ym2WIGiJvquqa+mfE",
        "$pbkdf2-sha256$1000$c2FsdHNhbHRzYWx0c2FsdA$dClvKSmj66n6MdMWNv3Go4mvH1Ym2WIGiJvquqa.mfE",
        "$pbkdf2-sha512$i=1000$c2FsdHNhbHRzYWx0c2FsdA$2IVLzDcUS76iY9+wBooZzkS5Z0mI6ikZPfMieFfR1eV/GJiiRzyvvz4ne7tBn8OJ1hxZyCz95QPNeLP3ykzMiQ",
        "$2a$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
        "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
        "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
    ] {
        check_all(stored, "secret");
    }
}

#[test]
fn the_reference_program_of_argon2_is_understood() {
    let stored =
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    assert_eq!(verify(stored, b"password"), Ok(true));
    assert_eq!(verify(stored, b"Password"), Ok(false));
}

#[test]
fn columns_of_emqx_verify() {
    let scheme = |algorithm, salt_position| Scheme {
        algorithm,
        salt_position,
        iterations: 4096,
    };
    let stored = |scheme: Scheme, hash: &str| scheme.stored(hash, "s4lt").unwrap();
    check_all(
        &stored(
            scheme(Algorithm::Sha256, SaltPosition::Prefix),
            "56fb59a0918a8e898cc46532428936acd1717e608c197eef668b7c6ef2f3c655",
        ),
        "secret",
    );
    check_all(
        &stored(
            scheme(Algorithm::Sha256, SaltPosition::Suffix),
            "96d1d6fd3676b1d199e85516233edbfc74c98dd9253ec9b940cda372f96ff74a",
        ),
        "secret",
    );
    check_all(
        &stored(
            scheme(Algorithm::Sha512, SaltPosition::None),
            "BD2B1AAF7EF4F09BE9F52CE2D8D599674D81AA9D6A4421696DC4D93DD0619D682CE56B4D64A9EF097761CED99E0F67265B5F76085E5B0EE7CA4696B2AD6FE2B2",
        ),
        "secret",
    );
    check_all(
        &stored(scheme(Algorithm::Plain, SaltPosition::Prefix), "secret"),
        "secret",
    );
    check_all(
        &stored(
            scheme(Algorithm::Pbkdf2Sha1, SaltPosition::None),
            "6a4ed0c338e43cf91a65e148112ce2fea0fd39af",
        ),
        "secret",
    );
    check_all(
        &stored(
            scheme(Algorithm::Pbkdf2Sha256, SaltPosition::None),
            "73fa1de8ceaa809327880c195f14ebe74452aaa941e6ef921070b1e6deeee9e3",
        ),
        "secret",
    );
    check_all(
        &stored(
            scheme(Algorithm::Pbkdf2Sha512, SaltPosition::None),
            "291b3fb6f085f9e661515d997e47e7f7561f4f66f86648c8ad9ce18906c7dca878035826ac244cc1f7095584b2849c8d9b16547fa0f2bfb793b4da4857870ad9",
        ),
        "secret",
    );
}

#[test]
fn unverifiable_hashes_are_refused_with_the_reason() {
    let refused = |stored: &str| verify(stored, b"secret").unwrap_err().to_string();
    for stored in [
        "",
        "secret",
        "$1$abc$def",
        "$5$abc$def",
        "$md5$x",
        "$2x$10$abc",
    ] {
        assert!(refused(stored).starts_with("no known"), "{stored}");
    }
    for stored in [
        "$2b$10$short",
        "$7$101$only",
        "$7$x$TbmVBh14tXSnz8TM$8m54",
        "$7$0$TbmVBh14tXSnz8TM$8m54",
        "$6$!$!",
        "$6$N6MwR5kcsKRHlobT$C65R",
        "$argon2id$v=19$m=19456,t=2,p=1",
        "$pbkdf2-sha256$i=1$c2FsdA$c2hvcnQ",
        "$salted-sha256$middle$$",
        "$salted-sha256$prefix$$c2hvcnQ",
    ] {
        assert!(
            refused(stored).starts_with("damaged"),
            "{stored}: {}",
            refused(stored)
        );
    }
    let crypt = "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjlO/O817G3uBnIFNjnQJuesI68OTLiBFdcbYEdFCoEOfaS35inz1";
    assert!(refused(crypt).contains("crypt(3)"), "{}", refused(crypt));
}

#[test]
fn a_hash_that_would_cost_seconds_is_refused() {
    for stored in [
        "$2b$15$3euPcmQFCiblsZeEu5s7p.9OVHgeHWFDk9nhMqZ0m/3pd/lhwZgES",
        "$argon2id$v=19$m=1048576,t=2,p=1$c2FsdHNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "$pbkdf2-sha256$i=100000000$c2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ] {
        let error = check(stored).unwrap_err();
        assert!(matches!(error, HashError::Refused(_)), "{stored}: {error}");
        assert_eq!(verify(stored, b"secret"), Err(error));
    }
}
