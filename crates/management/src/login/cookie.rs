//! The cookie of a session.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::sessions::SessionSecret;

/// Name of the cookie over plain HTTP.
pub(crate) const NAME: &str = "thrum_session";
/// Name of the cookie over TLS: browsers take a cookie of this name only over TLS, for `/` and from
/// this very host, so that neither a neighbour of the domain nor a page without TLS can plant one.
const NAME_TLS: &str = "__Host-thrum_session";
/// Cookies of that name that are tried: a neighbour of the domain may have planted one in front.
pub(super) const COOKIES_MAX: usize = 4;

/// Random bytes of a secret in a cookie.
pub(super) const SECRET_BYTES: usize = 32;
/// Bytes of its text in base64.
const TEXT_BYTES: usize = 43;

/// The secret that is the value of a cookie.
pub(super) fn secret_of(text: &str) -> Option<Zeroizing<[u8; SECRET_BYTES]>> {
    if text.len() != TEXT_BYTES {
        return None;
    }
    let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).ok()?);
    let bytes: [u8; SECRET_BYTES] = bytes.as_slice().try_into().ok()?;
    Some(Zeroizing::new(bytes))
}

/// The name of the cookie.
const fn name(is_tls: bool) -> &'static str {
    if is_tls { NAME_TLS } else { NAME }
}

/// The secrets of sessions in the cookies of a request.
pub(super) fn secrets(headers: &HeaderMap, is_tls: bool) -> impl Iterator<Item = SessionSecret> {
    let values = values(headers, name(is_tls));
    values.take(COOKIES_MAX).filter_map(SessionSecret::parse)
}

/// The values of all cookies of a name.
pub(super) fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let fields = headers.get_all(COOKIE).iter();
    let cookies = fields
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split(';'));
    cookies.filter_map(move |cookie| {
        let (found, value) = cookie.trim().split_once('=')?;
        (found == name).then_some(value)
    })
}

/// `Set-Cookie` of a new session. It ends with the browser; the broker ends it earlier.
pub(super) fn set(secret: &SessionSecret, is_tls: bool) -> String {
    let value = secret.text();
    format!("{}={}{}", name(is_tls), *value, attributes(is_tls))
}

/// `Set-Cookie` that removes it.
pub(super) fn remove(is_tls: bool) -> String {
    format!("{}={}; Max-Age=0", name(is_tls), attributes(is_tls))
}

/// The path is `/` also below the sub-path of a proxy, which is not known here.
const fn attributes(is_tls: bool) -> &'static str {
    if is_tls {
        "; Path=/; HttpOnly; SameSite=Strict; Secure"
    } else {
        "; Path=/; HttpOnly; SameSite=Strict"
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use zeroize::Zeroizing;

    use super::*;

    fn secret() -> SessionSecret {
        SessionSecret::new(Zeroizing::new([7; 32]))
    }

    fn found(fields: &[&str], is_tls: bool) -> usize {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(COOKIE, HeaderValue::from_str(field).unwrap());
        }
        secrets(&headers, is_tls).count()
    }

    #[test]
    fn no_script_and_no_other_site_has_the_cookie() {
        let plain = set(&secret(), false);
        assert!(plain.starts_with("thrum_session=BwcH"), "{plain}");
        assert!(
            plain.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
            "{plain}"
        );
        let tls = set(&secret(), true);
        assert!(tls.starts_with("__Host-thrum_session=BwcH"), "{tls}");
        assert!(
            tls.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"),
            "{tls}"
        );
        assert!(!tls.contains("Domain"), "{tls}");
        let gone = remove(true);
        assert!(
            gone.starts_with("__Host-thrum_session=; Path=/;") && gone.ends_with("; Max-Age=0")
        );
    }

    #[test]
    fn the_cookie_is_found_among_others_and_only_by_the_name_of_its_transport() {
        let value = secret().text();
        let own = format!("thrum_session={}", *value);
        let tls = format!("__Host-thrum_session={}", *value);
        assert_eq!(found(&[&format!("a=b; {own}; c")], false), 1);
        assert_eq!(found(&["a=b", &own], false), 1);
        assert_eq!(found(&[&own], true), 0, "it may have come over plain HTTP");
        assert_eq!(found(&[&tls], true), 1);
        assert_eq!(found(&[&format!("thrum_session=planted; {own}")], false), 1);
        let many = vec![&*own; 100].join("; ");
        assert_eq!(found(&[&many], false), COOKIES_MAX);
        assert_eq!(found(&[&format!("{own}x"), "thrum_session"], false), 0);
    }
}
