//! Sessions that are resumed, and those that must not be.

use thrum_transport::{Acceptor, ClientCertificate, ServerTlsOptions};

use crate::authority::Authority;
use crate::duplex::{acceptor, serving};
use crate::raw_client::RawClient;

fn renewed(acceptor: &Acceptor, options: &ServerTlsOptions) -> Acceptor {
    acceptor.renewed(Some(options), None).unwrap()
}

#[test]
fn a_session_is_resumed_in_both_versions_by_ticket_and_from_memory() {
    let authority = Authority::new();
    for session_tickets in [true, false] {
        let options = ServerTlsOptions {
            session_tickets,
            ..serving(&authority.sign("localhost"))
        };
        let acceptor = acceptor(&options);
        for is_1_3 in [false, true] {
            let client = RawClient::new(&authority, is_1_3, None);
            let resumed = [(); 3].map(|()| client.resumes(&acceptor));
            assert_eq!(resumed, [false, true, true], "{session_tickets} {is_1_3}");
        }
    }
}

#[test]
fn a_reload_keeps_sessions_though_the_certificate_changes() {
    let authority = Authority::new();
    for session_tickets in [true, false] {
        let with_new_certificate = || ServerTlsOptions {
            session_tickets,
            ..serving(&authority.sign("localhost"))
        };
        let old = acceptor(&with_new_certificate());
        for is_1_3 in [false, true] {
            let client = RawClient::new(&authority, is_1_3, None);
            assert!(!client.resumes(&old));
            assert!(client.resumes(&renewed(&old, &with_new_certificate())));
            assert!(!client.resumes(&acceptor(&with_new_certificate())));
        }
    }
}

#[test]
fn a_revoked_client_does_not_return_by_resumption() {
    let authority = Authority::new();
    let identity = authority.sign_with("a client", |params| {
        params.serial_number = Some(5_u64.into());
    });
    let mut options = ServerTlsOptions {
        client_certificate: ClientCertificate::Required,
        ca_file: Some(authority.file()),
        ..serving(&authority.sign("localhost"))
    };
    for session_tickets in [true, false] {
        options.session_tickets = session_tickets;
        for is_1_3 in [false, true] {
            options.crl_files = Vec::new();
            let client = RawClient::new(&authority, is_1_3, Some(&identity));
            let old = acceptor(&options);
            let resumed = [(); 2].map(|()| client.resumes(&old));
            assert_eq!(resumed, [false, true]);
            // The verification of clients is unchanged, so they resume their sessions.
            let same = renewed(&old, &options);
            let connection = client.connect(&same, "localhost");
            assert!(connection.server.tls().unwrap().resumed);
            assert_eq!(
                connection.server.certificate().unwrap().serial.as_ref(),
                "05"
            );
            options.crl_files = vec![authority.revocation_list(&[5], 2999)];
            let revoking = renewed(&same, &options);
            let fault = client.connect(&revoking, "localhost").fault.unwrap();
            assert!(fault.to_string().contains("is revoked"), "{fault}");
        }
    }
}

#[test]
fn a_session_without_certificate_is_not_resumed_if_one_is_required() {
    let authority = Authority::new();
    let mut options = ServerTlsOptions {
        client_certificate: ClientCertificate::Optional,
        ca_file: Some(authority.file()),
        ..serving(&authority.sign("localhost"))
    };
    let old = acceptor(&options);
    options.client_certificate = ClientCertificate::Required;
    let new = renewed(&old, &options);
    for is_1_3 in [false, true] {
        let client = RawClient::new(&authority, is_1_3, None);
        assert!(!client.resumes(&old));
        let fault = client.connect(&new, "localhost").fault.unwrap();
        assert!(
            fault.to_string().contains("shows no certificate"),
            "{fault}"
        );
    }
}

#[test]
fn a_connection_keeps_the_acceptor_it_came_through() {
    let authority = Authority::new();
    let old = acceptor(&serving(&authority.sign("localhost")));
    let client = RawClient::new(&authority, true, None);
    let mut connection = client.connect(&old, "localhost");
    let new = renewed(&old, &serving(&authority.sign("elsewhere.example")));
    drop(old);
    connection.exchange();
    assert!(client.connect(&new, "elsewhere.example").server.is_open());
}
