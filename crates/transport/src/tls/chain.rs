//! The certificates between a server's own and its authority, found by their names.

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Most certificates that are added: chains are shorter, and a file of authorities may contain a
/// circle.
const ADDED_MAX: usize = 8;

/// The chain with those of `more` that continue from its last one. The authority itself is omitted:
/// a client trusts its own copy, or none.
pub(super) fn completed(
    mut chain: Vec<CertificateDer<'static>>,
    more: &[CertificateDer<'static>],
) -> Vec<CertificateDer<'static>> {
    for _ in 0..ADDED_MAX {
        let Some(next) = chain.last().and_then(|last| issuer(last, more)) else {
            break;
        };
        if chain.contains(next) {
            break;
        }
        let next = next.clone();
        chain.push(next);
    }
    chain
}

/// The certificate that signed another one, if it is not an authority that signed itself.
fn issuer<'m>(
    der: &CertificateDer<'_>,
    more: &'m [CertificateDer<'static>],
) -> Option<&'m CertificateDer<'static>> {
    let (_, signed) = X509Certificate::from_der(der).ok()?;
    more.iter().find(|candidate| {
        X509Certificate::from_der(candidate).is_ok_and(|(_, candidate)| {
            candidate.subject() != candidate.issuer()
                && candidate.subject() == signed.issuer()
                && has_key(&candidate, &signed)
        })
    })
}

/// Whether the key of `candidate` signed, as far as both identify it: authorities change their keys
/// and keep their names.
fn has_key(candidate: &X509Certificate<'_>, signed: &X509Certificate<'_>) -> bool {
    let own =
        candidate
            .iter_extensions()
            .find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
                _ => None,
            });
    let wanted =
        signed
            .iter_extensions()
            .find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(key) => {
                    Some(key.key_identifier.as_ref()?.0)
                }
                _ => None,
            });
    own.zip(wanted).is_none_or(|(own, wanted)| own == wanted)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    struct Signer {
        der: CertificateDer<'static>,
        issuer: Issuer<'static, KeyPair>,
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.use_authority_key_identifier_extension = true;
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    fn root(name: &str) -> Signer {
        let key = KeyPair::generate().unwrap();
        let der = params(name).self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(params(name), key);
        Signer { der, issuer }
    }

    fn below(above: &Signer, name: &str) -> Signer {
        let key = KeyPair::generate().unwrap();
        let signed = params(name).signed_by(&key, &above.issuer).unwrap();
        let der = signed.der().clone();
        let issuer = Issuer::new(params(name), key);
        Signer { der, issuer }
    }

    #[test]
    fn the_certificates_up_to_the_authority_are_added_in_their_order() {
        let root = root("root");
        let upper = below(&root, "upper");
        let lower = below(&upper, "lower");
        let own = below(&lower, "own");
        let file = [&root, &upper, &lower].map(|signer| signer.der.clone());
        let chain = completed(vec![own.der.clone()], &file);
        assert_eq!(
            chain,
            [own.der.clone(), lower.der.clone(), upper.der.clone()]
        );
        assert_eq!(completed(chain.clone(), &file), chain);
        assert_eq!(completed(vec![own.der.clone()], &[root.der]), [own.der]);
    }

    #[test]
    fn of_two_authorities_of_one_name_the_one_whose_key_has_signed_is_added() {
        let root = root("root");
        let (older, newer) = (below(&root, "lower"), below(&root, "lower"));
        let own = below(&newer, "own");
        let file = [older.der, newer.der.clone()];
        assert_eq!(
            completed(vec![own.der.clone()], &file),
            [own.der, newer.der]
        );
    }
}
