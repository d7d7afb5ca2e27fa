//! Certificates that the client or the broker does not take.

use crate::fixture::Fixture;

/// Arguments of `pub` after its transport.
const MESSAGE: &str = "-t a -q 1 -m one";

#[test]
fn a_server_with_an_untrusted_certificate_is_refused() {
    let fixture = Fixture::new("unknown");
    for place in ["mqtts://{mqtts}", "wss://{wss}", "quic://{quic}"] {
        fixture.fails(
            &format!("pub -L {place} --cafile stranger.pem {MESSAGE}"),
            5,
            "is not signed by a trusted authority: give the authority's certificate as CA file (--cafile), or check \
             nothing (--insecure)",
        );
        fixture.runs(&format!("pub -L {place} --insecure {MESSAGE}"));
    }
}

#[test]
fn a_server_whose_certificate_is_out_of_date_is_refused() {
    let fixture = Fixture::new("dates");
    for (listener, words) in [
        ("expired", "has expired on 2002-01-01 00:00 UTC"),
        ("future", "is not valid before 2998-01-01 00:00 UTC"),
    ] {
        let line = format!("pub -L mqtts://{{{listener}}} --cafile ca.pem {MESSAGE}");
        fixture.fails(&line, 5, words);
        fixture.fails(&line, 5, "renew it, or set the clock of this machine");
    }
}

#[test]
fn a_server_of_another_name_is_refused_unless_that_is_given() {
    let fixture = Fixture::new("names");
    let words = "is not for 'localhost' but for broker.example: connect by one of these names, or give one as server name \
                 (--server-name)";
    fixture.fails(
        &format!("pub -L mqtts://{{elsewhere}} --cafile ca.pem {MESSAGE}"),
        5,
        words,
    );
    let line = format!("pub -L quic://{{elsewherequic}} --cafile ca.pem {MESSAGE}");
    fixture.fails(&line, 5, "give one as server name (--server-name)");
    for place in ["mqtts://{elsewhere}", "quic://{elsewherequic}"] {
        fixture.runs(&format!(
            "pub -L {place} --cafile ca.pem --server-name broker.example {MESSAGE}"
        ));
    }
}

#[test]
fn a_client_is_admitted_by_its_certificate() {
    let fixture = Fixture::new("mutual");
    for place in [
        "mqtts://{mutual}",
        "wss://{mutualws}",
        "quic://{mutualquic}",
    ] {
        fixture.runs(&format!(
            "pub -L {place} --cafile ca.pem --cert client.pem --key client.key {MESSAGE}"
        ));
    }
}

#[test]
fn a_client_with_a_refused_certificate_gets_the_reason() {
    let fixture = Fixture::new("clients");
    for place in [
        "mqtts://{mutual}",
        "wss://{mutualws}",
        "quic://{mutualquic}",
    ] {
        let line = format!("pub -L {place} --cafile ca.pem {MESSAGE}");
        fixture.fails(
            &line,
            4,
            "the server wants a client certificate: give certificate file and key file (--cert, --key)",
        );
        for (name, words) in [
            ("bad", "it is revoked, use another"),
            ("old", "it is out of date by the server's clock, renew it"),
            (
                "strange",
                "no authority that the server trusts has signed it",
            ),
        ] {
            let with = format!("{line} --cert {name}.pem --key {name}.key");
            fixture.fails(&with, 4, "the server refuses the client certificate");
            fixture.fails(&with, 4, words);
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let fixture = Fixture::new("files");
    let to = "pub -t a -m one -L mqtts://{mqtts}";
    for (flags, words) in [
        (
            "--cafile none.pem",
            "cannot use 'none.pem': No such file or directory",
        ),
        (
            "--cafile server.key",
            "it holds no '-----BEGIN CERTIFICATE-----'",
        ),
        (
            "--insecure --cert client.pem --key server.key",
            "cannot use 'client.pem' with the key 'server.key'",
        ),
        (
            "--insecure --cert client.pem --key client.pem",
            "cannot use 'client.pem': it holds no private key in PEM",
        ),
    ] {
        fixture.fails(&format!("{to} {flags}"), 2, words);
    }
}
