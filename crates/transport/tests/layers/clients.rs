//! Client certificates: accepted ones, and refused ones with the reason.

use rcgen::{CertificateParams, DnType, DnValue, ExtendedKeyUsagePurpose, SanType, SerialNumber};
use thrum_transport::{ClientCertificate, ServerTlsOptions, TlsOptions};

use crate::authority::{Authority, Identity};
use crate::duplex::{Duplex, acceptor, connect, serving};
use crate::pair::trusting;
use crate::raw_client::RawClient;

/// A listener that trusts `clients` to sign client certificates.
fn verifying(server: &Identity, clients: &Authority) -> ServerTlsOptions {
    ServerTlsOptions {
        client_certificate: ClientCertificate::Required,
        ca_file: Some(clients.file()),
        ..serving(server)
    }
}

fn showing(authority: &Authority, identity: &Identity) -> TlsOptions {
    TlsOptions {
        cert_file: Some(identity.cert_file()),
        key_file: Some(identity.key_file()),
        ..trusting(authority)
    }
}

fn meter(params: &mut CertificateParams) {
    params.serial_number = Some(SerialNumber::from(0xFACE_u64));
    params.distinguished_name = rcgen::DistinguishedName::new();
    let name = &mut params.distinguished_name;
    name.push(DnType::CountryName, "DE");
    name.push(DnType::OrganizationName, "Example, Inc.");
    name.push(DnType::CommonName, "meter 1");
}

/// The client is refused with this text, and receives this alert.
#[track_caller]
fn refused(options: &ServerTlsOptions, client: &TlsOptions, expected: &str, alert: &str) {
    let (duplex, mut faults) = connect(&acceptor(options), client);
    let told = faults.client.take().unwrap().to_string();
    let message = faults.of_client().to_string();
    assert!(message.contains(expected), "{message}");
    assert!(told.contains(alert), "{told}");
    assert!(!duplex.server.is_open());
    assert_eq!(duplex.server.certificate(), None);
}

#[track_caller]
fn accepted(options: &ServerTlsOptions, client: &TlsOptions) -> Duplex {
    let (mut duplex, faults) = connect(&acceptor(options), client);
    faults.none();
    duplex.client_sends(b"hello");
    assert_eq!(duplex.to_server, b"hello");
    duplex
}

#[test]
fn a_certificate_is_described() {
    let authority = Authority::new();
    let identity = authority.sign_with("meter.example", |params| {
        meter(params);
        let names = &mut params.subject_alt_names;
        names.push(SanType::Rfc822Name("meter@example.org".try_into().unwrap()));
        names.push(SanType::URI("urn:meter:1".try_into().unwrap()));
    });
    let options = verifying(&authority.sign("localhost"), &authority);
    let duplex = accepted(&options, &showing(&authority, &identity));
    let certificate = duplex.server.certificate().unwrap();
    assert_eq!(certificate.common_name.as_deref(), Some("meter 1"));
    assert_eq!(&*certificate.subject, "CN=meter 1,O=Example\\, Inc.,C=DE");
    assert_eq!(certificate.dns_names, [Box::from("meter.example")]);
    assert_eq!(certificate.emails, [Box::from("meter@example.org")]);
    assert_eq!(certificate.uris, [Box::from("urn:meter:1")]);
    assert_eq!(&*certificate.serial, "face");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &identity.certificate);
    assert_eq!(certificate.fingerprint, digest.as_ref());
}

#[test]
fn names_in_other_alphabets_are_text() {
    let authority = Authority::new();
    let identity = authority.sign_with("a client", |params| {
        params.distinguished_name = rcgen::DistinguishedName::new();
        let value = DnValue::BmpString("Zähler \u{2460}".try_into().unwrap());
        params.distinguished_name.push(DnType::CommonName, value);
        let custom = DnType::CustomDnType(vec![1, 2, 3, 4]);
        params.distinguished_name.push(custom, "x");
    });
    let options = verifying(&authority.sign("localhost"), &authority);
    let duplex = accepted(&options, &showing(&authority, &identity));
    let certificate = duplex.server.certificate().unwrap();
    assert_eq!(certificate.common_name.as_deref(), Some("Zähler \u{2460}"));
    assert_eq!(&*certificate.subject, "1.2.3.4=#0c0178,CN=Zähler \u{2460}");
}

#[test]
fn a_client_without_certificate_is_refused_or_taken_as_the_listener_says() {
    let authority = Authority::new();
    let mut options = verifying(&authority.sign("localhost"), &authority);
    let anonymous = trusting(&authority);
    refused(
        &options,
        &anonymous,
        "shows no certificate",
        "wants a client certificate",
    );
    options.client_certificate = ClientCertificate::Optional;
    assert_eq!(accepted(&options, &anonymous).server.certificate(), None);
    let shown = showing(&authority, &authority.sign("a client"));
    assert!(accepted(&options, &shown).server.certificate().is_some());
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (authority, stranger) = (Authority::new(), Authority::named("a stranger"));
    let identity = stranger.sign_with("a client", meter);
    for mode in [ClientCertificate::Optional, ClientCertificate::Required] {
        let options = ServerTlsOptions {
            client_certificate: mode,
            ..verifying(&authority.sign("localhost"), &authority)
        };
        let words = "'CN=meter 1,O=Example\\, Inc.,C=DE' is not signed by an authority";
        refused(
            &options,
            &showing(&authority, &identity),
            words,
            "UnknownCA",
        );
    }
    // Another authority may have the same name.
    let impostor = Authority::new().sign("a client");
    let options = verifying(&authority.sign("localhost"), &authority);
    refused(
        &options,
        &showing(&authority, &impostor),
        "is not signed by",
        "DecryptError",
    );
}

#[test]
fn a_certificate_out_of_date_is_refused() {
    let authority = Authority::new();
    let options = verifying(&authority.sign("localhost"), &authority);
    for (from, until) in [(2001, 2002), (4000, 4001)] {
        let identity = authority.sign_with("a client", |params| {
            meter(params);
            params.not_before = rcgen::date_time_ymd(from, 1, 1);
            params.not_after = rcgen::date_time_ymd(until, 1, 1);
        });
        let client = showing(&authority, &identity);
        refused(
            &options,
            &client,
            "C=DE' is out of date",
            "CertificateExpired",
        );
    }
}

#[test]
fn a_revoked_certificate_is_refused() {
    let authority = Authority::new();
    let mut options = verifying(&authority.sign("localhost"), &authority);
    let numbered = |serial: u64| {
        let identity = authority.sign_with("a client", |params| {
            meter(params);
            params.serial_number = Some(SerialNumber::from(serial));
        });
        showing(&authority, &identity)
    };
    options.crl_files = vec![authority.revocation_list(&[7, 8], 2999)];
    refused(
        &options,
        &numbered(8),
        "C=DE' is revoked",
        "CertificateRevoked",
    );
    accepted(&options, &numbered(9));
}

#[test]
fn a_revocation_list_must_be_there_and_in_date_for_every_authority() {
    let (authority, other) = (Authority::new(), Authority::named("another"));
    let mut options = verifying(&authority.sign("localhost"), &authority);
    let client = showing(&authority, &authority.sign("a client"));
    options.crl_files = vec![other.revocation_list(&[], 2999)];
    refused(&options, &client, "it is unknown whether", "UnknownCA");
    options.crl_files = vec![authority.revocation_list(&[], 2025)];
    let message = "revocation list for the client certificate";
    refused(&options, &client, message, "UnknownCA");
    let warnings = acceptor(&options).warnings().join("\n");
    assert!(
        warnings.contains("was due on 2025-01-01 00:00 UTC"),
        "{warnings}"
    );
}

#[test]
fn a_certificate_for_servers_alone_is_refused() {
    let authority = Authority::new();
    let identity = authority.sign_with("a client", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let options = verifying(&authority.sign("localhost"), &authority);
    let client = showing(&authority, &identity);
    refused(
        &options,
        &client,
        "client authentication",
        "UnsupportedCertificate",
    );
}

#[test]
fn a_name_that_is_cut_short_elsewhere_is_refused() {
    let authority = Authority::new();
    let identity = authority.sign_with("a client", |params| {
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "admin\0.example");
    });
    let options = verifying(&authority.sign("localhost"), &authority);
    let client = showing(&authority, &identity);
    refused(
        &options,
        &client,
        "'CN=admin\\00.example' is refused",
        "BadCertificate",
    );
}

#[test]
fn a_client_that_does_not_take_the_server_is_explained() {
    let (authority, stranger) = (Authority::new(), Authority::named("a stranger"));
    let expected = "does not take this listener's certificate (alert ";
    for (name, trusted, alert) in [
        ("localhost", &stranger, "UnknownCA"),
        ("elsewhere.example", &authority, "BadCertificate"),
    ] {
        let options = serving(&authority.sign(name));
        let (_, faults) = connect(&acceptor(&options), &trusting(trusted));
        assert!(faults.client.is_some());
        let message = faults.of_client().to_string();
        assert!(message.contains(&format!("{expected}{alert}")), "{message}");
    }
}

#[test]
fn certificates_are_verified_in_both_versions() {
    let authority = Authority::new();
    let options = verifying(&authority.sign("localhost"), &authority);
    let acceptor = acceptor(&options);
    let (friend, stranger) = (
        authority.sign("a client"),
        Authority::named("a stranger").sign("a client"),
    );
    for is_1_3 in [false, true] {
        let client = RawClient::new(&authority, is_1_3, Some(&friend));
        let mut connection = client.connect(&acceptor, "localhost");
        connection.exchange();
        assert!(connection.server.certificate().is_some());
        let client = RawClient::new(&authority, is_1_3, Some(&stranger));
        let fault = client
            .connect(&acceptor, "localhost")
            .fault
            .unwrap()
            .to_string();
        assert!(fault.contains("is not signed by an authority"), "{fault}");
        let client = RawClient::new(&authority, is_1_3, None);
        let fault = client
            .connect(&acceptor, "localhost")
            .fault
            .unwrap()
            .to_string();
        assert!(fault.contains("shows no certificate"), "{fault}");
    }
}
